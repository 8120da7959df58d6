/** Every bound and interval of homes and keepers, with its unit and why it is what it is. */

/** SURFACES: an id of a stateful session. */
export const STATEFUL_ID_BYTES_MAX = 200;
/** Names of apps and classes are shorter than 40 characters; room for those to come. */
export const NAME_BYTES_MAX = 100;
/** Two UUIDs with a word between them. */
export const REQUEST_BYTES_MAX = 100;
/** A version is 64 hexadecimal digits; tests use words. */
export const VERSION_BYTES_MAX = 64;
export const SEED_BYTES = 32;

/** One commit: the largest body of a request (32 MiB), and what comes with it. It fits a link's message. */
export const PIECE_BYTES_MAX = 36 << 20;
/** A checkpoint without what lies beside it: clocks, timers, what nobody has acknowledged; all of one of the first form. */
export const CHECKPOINT_BYTES_MAX = 96 << 20;
/** One part of a checkpoint's state: some of them go in a packet, and none holds up a disk for long. */
export const STATE_PART_BYTES_MAX = (1 << 20) + 64;
/** The state of one checkpoint: `motion` tracks 53 MB, and changes may take as much again before they are merged. */
export const STATE_BYTES_MAX = 256 << 20;
/** Of these, with changes of a few bytes each between them. */
export const STATE_PARTS_MAX = 4_096;
/** The log of one stateful session after its checkpoint: its home is to have written a new one long before. */
export const LOG_BYTES_MAX = 128 << 20;
/** Stateful sessions that one site keeps a log of: 400 bytes of memory each. */
export const KEPT_MAX = 200_000;
/** Of all of them together, on disk. */
export const KEPT_BYTES_MAX = 16 * (1 << 30);

/** Items of one packet are cut there; one item always fits. */
export const LOG_PACKET_BYTES_TARGET = 1 << 20;
/** An ask without an answer goes again after this long: a link that is not down answers sooner. */
export const ASK_RETRY_MS = 1_000;
export const ASK_RETRY_MS_MAX = 8_000;
/** How long a request waits for another site before it is told so, as in the store (WAIT_MS_MAX). */
export const OPEN_MS_MAX = 2_000;
/** So long is waited for an owner that lives before the log is taken from those who have answered. */
export const PROMISE_MS_MAX = 1_000;
/** So long for those that are taken to be lost, where nobody else has the log: a site that is back has answered by then. */
export const LOST_MS = 200;
/** Clients that an operator would go on without come within this, if they are there: they try a site every few seconds. */
export const FORCED_MS = 6_000;
/** An arbiter that is not sure whether a home is gone is asked again after so long, then after twice that, up to: */
export const UNSURE_MS = 4, UNSURE_MS_MAX = 250;
/** Until then the arbiter waits whether it finds out: a site that no longer listens is found in a trip to it. */
export const UNSURE_HELD_MS = 50;
/** Until then it waits for sites that are to tell it something: half of what an opening may take. */
export const WAITS_HELD_MS = 1_000;
/**
 * So long after its start it waits for a site that is gone. Sites that run dial the root again within seconds; what
 * one that does not alone knows of is not known for that long, and names that are on record nowhere wait.
 */
export const HEARD_MS_MAX = 10_000;
/** So long for one that is there, and does not answer: it starts, and a large disk may take it that long. */
export const SILENT_MS_MAX = 60_000;
/** A site that it is to move to has to have the whole log by then: 96 MiB at 13 Mbit/s. */
export const MOVE_PREPARE_MS_MAX = 60_000;
/** Whether it was taken over is asked of the arbiter so often: a move is over a moment after it is. */
export const MOVE_LOOK_MS = 20;
/** What lacks owners, and cannot get them now, looks again after so long. */
export const MEND_RETRY_MS = 1_000;
/** An owner that had no room is asked again after so long. */
export const FULL_RETRY_MS = 5_000;

/** Bytes of answers kept of one stateful session, beyond those that its log holds anyway. */
export const ANSWERS_BYTES_MAX = 4 << 20;
/** Of all open ones of a site together: a quarter of what a small site's process has. Beyond it see answer_room.ts. */
export const SITE_ANSWERS_BYTES_MAX = 256 << 20;
/** An answer that nobody said to have received is kept over checkpoints for so long: a client gives up before. */
export const ANSWER_KEPT_MS = 60_000;
/**
 * An answer to another stateful session is kept for so long: its caller may have lost its home, and what it waits for is
 * a result in its log, which nobody else can tell it. A site that is mended or replaced is so within a day.
 */
export const CALLER_ANSWER_KEPT_MS = 24 * 3_600_000;
/** Of these, beyond the time of any answer: of callers that are gone for good nothing is ever heard. */
export const CALLER_ANSWERS_MAX = 1_024;
/** Ids of requests whose answers are not kept any more: 100 bytes each at most. */
export const PAST_REQUESTS_MAX = 1_024;

/** Where homes are, as remembered by sites that are none: at some 200 bytes each. */
export const ROUTES_MAX = 50_000;
/** A log that nothing was appended to for so long: its keeper asks the arbiter whether it is still an owner. */
export const AUDIT_MS = 10 * 60_000;
/**
 * The time for which a log's open work keeps the store from forgetting, from when it was written: it is opened within two
 * minutes where it can be, and one that can't would hold what all sites collect.
 */
export const OPEN_HELD_MS = 3_600_000;
/** Rows asked for at once in an audit. */
export const AUDIT_AT_ONCE = 200;
/** Names that a site tells the arbiter at once, which has lost what it knew: 100 KB where they are long. */
export const NAMES_AT_ONCE = 500;
/** Names that it settles at once, each of them with an ask to every site. */
export const NAMES_SETTLED_AT_ONCE = 32;
/** So long it waits for a site to say what it knows of a name. */
export const RECALL_MS_MAX = 1_500;
/** Who asks for a name meanwhile waits longer than that, to be told who is missed, and less than an opening may take. */
export const SETTLE_HELD_MS = 1_750;
/** Rows of an app that live: half of what one site keeps logs of, so that no app by itself fills it for the others. */
export const PER_APP_MAX = 100_000;
/** Of ended stateful sessions the arbiter remembers the epoch so long. */
export const ENDED_MS = 7 * 24 * 3_600_000;

/** A site that is asked to open a session in the arbiter's place (seats.ts) has said whether it does by then. */
export const SEAT_MS_MAX = 500;
/** Of those, so many are asked for one opening: more that live and do not are no accident, and who asked waits. */
export const SEATS_MAX = 2;
/** One that was asked to, and did not, is not asked for that session again so soon. */
export const SEAT_AGAIN_MS = 10_000;
/** Names of which that is remembered: 300 bytes each at most. */
export const SEATS_ASKED_MAX = 10_000;
/** A log above this is not sent elsewhere while a request waits for it: it goes when its session rests. */
export const SEAT_BYTES_MAX = 1 << 20;
/** Sessions that leave the arbiter's site at once as they are opened; others are served there meanwhile. */
export const SEAT_MOVES_MAX = 4;
