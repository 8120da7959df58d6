/** Bounds and intervals of homes and keepers, each with its unit and the reason for its number. */

/** Bytes of the id of a stateful session, as the public API promises. */
export const STATEFUL_ID_BYTES_MAX = 200;
/** Bytes of a name of an app or a class. Those that exist are shorter than 40 characters; room for those to come. */
export const NAME_BYTES_MAX = 100;
/** Bytes of a request's id: two UUIDs with a word between them. */
export const REQUEST_BYTES_MAX = 100;
/** Bytes of a version: 64 hexadecimal digits; tests use words. */
export const VERSION_BYTES_MAX = 64;
export const SEED_BYTES = 32;

/** Bytes of one commit: the largest body of a request (32 MiB), and what comes with it. It fits a link's message. */
export const PIECE_BYTES_MAX = 36 << 20;
/**
 * Bytes of a checkpoint without the state beside it: clocks, timers, what nobody has acknowledged; a checkpoint of the
 * first form has all in itself.
 */
export const CHECKPOINT_BYTES_MAX = 96 << 20;
/** Bytes of one part of a checkpoint's state: several go in a packet, and none holds up a disk for long. */
export const STATE_PART_BYTES_MAX = (1 << 20) + 64;
/**
 * Bytes of the state of one checkpoint: `motion` tracks 53 MB, and changes may take as much again before they are
 * merged.
 */
export const STATE_BYTES_MAX = 256 << 20;
/** Parts of one state, with changes of a few bytes each between full ones. */
export const STATE_PARTS_MAX = 4_096;
/** Bytes of one session's log after its checkpoint: its home is to have written a new one long before. */
export const LOG_BYTES_MAX = 128 << 20;
/** Logs that one site keeps: 400 bytes of memory each. */
export const KEPT_MAX = 200_000;
/** Bytes of all logs that one site keeps, on disk. */
export const KEPT_BYTES_MAX = 16 * (1 << 30);

/** Bytes of a packet after which it takes no further item; one item always fits. */
export const LOG_PACKET_BYTES_TARGET = 1 << 20;
/** Time after which an ask without an answer is sent again: a link that is not down answers sooner. */
export const ASK_RETRY_MS = 1_000;
export const ASK_RETRY_MS_MAX = 8_000;
/** Time that a request waits for another site before its caller is told so, as in the store (WAIT_MS_MAX). */
export const OPEN_MS_MAX = 2_000;
/** Time to wait for an owner that lives before the log is taken from those that have answered. */
export const PROMISE_MS_MAX = 1_000;
/**
 * Time to wait for owners that are taken to be lost, where nobody else has the log: a site that is back has answered by
 * then.
 */
export const LOST_MS = 200;
/**
 * Time to wait for clients that an operator would go on without, if they are there: they try a site every few seconds.
 * No disk is given up before either.
 */
export const FORCED_MS = 6_000;
/**
 * Pause before an arbiter that is not sure whether a home is gone is asked again; it doubles up to the second number.
 */
export const UNSURE_MS = 4, UNSURE_MS_MAX = 250;
/**
 * Time for which the arbiter holds such an answer back to find out: a site that no longer listens is found in one trip.
 */
export const UNSURE_HELD_MS = 50;
/** Time for which the arbiter waits for sites that are to tell it something: half of what an opening may take. */
export const WAITS_HELD_MS = 1_000;
/**
 * Time after its start for which the arbiter waits for a site that is gone. Sites that run dial the root again within
 * seconds; names that such a site alone knows of are not known for that long, and names that are on record nowhere
 * wait.
 */
export const HEARD_MS_MAX = 10_000;
/**
 * Time for which the arbiter waits for a site that is there, and does not answer: it starts, and a large disk takes
 * long.
 */
export const SILENT_MS_MAX = 60_000;
/** Time within which a site that a session moves to has to have the whole log: 96 MiB at 13 Mbit/s. */
export const MOVE_PREPARE_MS_MAX = 60_000;
/**
 * Interval at which the arbiter is asked whether a moved session was taken over: the move is over a moment after that.
 */
export const MOVE_LOOK_MS = 20;
/** Time after which a home that lacks owners, and cannot get them now, looks again. */
export const MEND_RETRY_MS = 1_000;
/** Time after which an owner that had no room is asked again. */
export const FULL_RETRY_MS = 5_000;

/** Bytes of answers kept of one stateful session, beyond those that its log holds anyway. */
export const ANSWERS_BYTES_MAX = 4 << 20;
/**
 * Bytes of answers of all open sessions of a site: a quarter of what a small site's process has. Beyond it see
 * answer_room.ts.
 */
export const SITE_ANSWERS_BYTES_MAX = 256 << 20;
/** Time for which an answer that nobody said to have received is kept over checkpoints: a client gives up before. */
export const ANSWER_KEPT_MS = 60_000;
/**
 * Time for which an answer to another stateful session is kept: the caller may have lost its home, and what it waits
 * for is a result in its log, which nobody else can tell it. A site that is mended or replaced is so within a day.
 */
export const CALLER_ANSWER_KEPT_MS = 24 * 3_600_000;
/**
 * Answers to other stateful sessions that are kept beyond the time of any answer: callers that are gone for good say
 * nothing.
 */
export const CALLER_ANSWERS_MAX = 1_024;
/** Ids of requests whose answers are not kept any more: 100 bytes each at most. */
export const PAST_REQUESTS_MAX = 1_024;

/** Homes that a site remembers which are elsewhere, at some 200 bytes each. */
export const ROUTES_MAX = 50_000;
/** Time without an append after which a keeper asks the arbiter whether it is still an owner of the log. */
export const AUDIT_MS = 10 * 60_000;
/**
 * Time, from its writing on, for which a log's open work keeps the store from forgetting. A session that can be opened
 * is so within two minutes; one that can't would hold what all sites collect.
 */
export const OPEN_HELD_MS = 3_600_000;
/** Rows asked for at once in an audit. */
export const AUDIT_AT_ONCE = 200;
/** Names that a site tells at once to an arbiter that has lost what it knew: 100 KB where they are long. */
export const NAMES_AT_ONCE = 500;
/** Names that such an arbiter settles at once, each of them with an ask to every site. */
export const NAMES_SETTLED_AT_ONCE = 32;
/** Time for which the arbiter waits for a site to say what it knows of a name. */
export const RECALL_MS_MAX = 1_500;
/**
 * Time that an ask for a name waits meanwhile: longer than that, so that the answer names the sites that are missed,
 * and less than an opening may take.
 */
export const SETTLE_HELD_MS = 1_750;
/**
 * Rows of one app that live: half of the logs that one site keeps, so that no app by itself fills it for the others.
 */
export const PER_APP_MAX = 100_000;
/** Time for which the arbiter remembers the epoch of an ended stateful session. */
export const ENDED_MS = 7 * 24 * 3_600_000;

/** Time for a site that is asked to open a session in the arbiter's place (seats.ts) to say whether it does. */
export const SEAT_MS_MAX = 500;
/**
 * Sites that are asked so for one opening: where more live and do not open it, that is no accident, and the caller
 * waits.
 */
export const SEATS_MAX = 2;
/** Time for which a site that was asked to, and did not, is not asked for that session again. */
export const SEAT_AGAIN_MS = 10_000;
/** Names for which that is remembered: 300 bytes each at most. */
export const SEATS_ASKED_MAX = 10_000;
/** Bytes of a log above which it is not sent elsewhere while a request waits: it goes when its session rests. */
export const SEAT_BYTES_MAX = 1 << 20;
/** Sessions that leave the arbiter's site at once as they are opened; others are served there meanwhile. */
export const SEAT_MOVES_MAX = 4;
