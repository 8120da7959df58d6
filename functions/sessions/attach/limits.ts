/** Every bound and interval of what is said between a stateful session's home and its peers, and why it is what it is. */

import { HOST_LOG_BYTES_MAX } from "../sealed/limits.ts";

/** The version of the frames (docs/protocol/session-frames.md). */
export const FRAMES_VERSION = 1;
/** The subprotocol of a WebSocket that carries them. */
export const SUBPROTOCOL = "sojourn.session.1";

/** A message or an output: an uncompressed picture of 1024 × 1024; an isolate's frame has room for two. */
export const MESSAGE_BYTES_MAX = 4 << 20;
export { HOST_LOG_BYTES_MAX, HOST_RECORDS_MAX } from "../sealed/limits.ts";
/** A record of the log, with an output or without: it is one of a log that a host can hold. */
export const INCREMENT_BYTES_MAX = HOST_LOG_BYTES_MAX;
/** As functions/sessions/turn has it (event.ts, Peer). */
export const PEER_ID_BYTES_MAX = 200;
/** A MAC: shorter ones can be guessed, and there are no longer ones. */
export const KEY_BYTES_MIN = 16;
export const PEER_KEY_BYTES_MAX = 64;
/** What a host says of the log that it holds. */
export const LOG_SUMMARY_BYTES_MAX = 4 << 10;
/** Codes, sites, and texts for people. */
export const CODE_BYTES_MAX = 100;
export const TEXT_BYTES_MAX = 1 << 10;
/** A WebSocket's close reason. */
export const REASON_BYTES_MAX = 123;

/**
 * Attempts of one program, of those that went on with one storage: the first of program n is n times that, and 1. Who comes
 * again every 50 ms does so for ten days; and a page that is loaded every second reaches the last number after 17 years.
 */
export const PROGRAM_ATTEMPTS = 2 ** 24;
/** From then on they are not told apart. */
export const PROGRAMS_MAX = 2 ** 29 - 1;

/** Messages that are on their way and not acknowledged: as many as 64 in flight need at sixteen times the pace. */
export const WINDOW_MESSAGES = 1_024;
/** One message always goes; more of them up to so much. */
export const PEER_WINDOW_BYTES = 4 << 20;
/**
 * Messages of one peer that its session has at one time; the others of its window wait behind those of other peers. Fewer
 * keep a fast peer waiting for the owners, more keep the others waiting for one that floods.
 */
export const HANDED_MAX = 64;
/** What a host side keeps of what it could not send yet: some seconds of a busy client while it looks for a site. */
export const BUFFER_BYTES_MAX = 16 << 20;
/** What is kept for a peer that does not acknowledge; beyond, it is detached as too slow. */
export const OUTBOX_BYTES_MAX = 4 << 20;
export const OUTBOX_OUTPUTS_MAX = 16_384;
/** Messages of all peers of one session that wait for it: beyond, who sends more is told to come again. */
export const SESSION_WAITING_BYTES_MAX = 64 << 20;
/** Attached to one session: some 1.6 KB of its home's memory each. */
export const PEERS_MAX = 10_000;
/** Of those that made room for others, and of whom the session has not heard yet. */
export const LEAVING_MAX = 1_000;

/** An acknowledgement that nothing carries waits so long for something that does, or for so many. */
export const ACK_MS = 50;
export const ACK_EVERY = 64;
/** A peer whose channel broke stays attached so long: a phone that changes its network is back within seconds. */
export const GRACE_MS = 60_000;
/**
 * So long a host side of somebody else's connection that holds a log looks for a home: a machine that was lost in the night
 * is mended by then. A connection and up to 1 MiB wait for it.
 */
export const HOLDING_MS = 24 * 3_600_000;
/** What a channel has taken and not sent: an outbox that goes again, with room. Beyond, nobody reads its other end. */
export const CHANNEL_BYTES_MAX = 8 << 20;
/**
 * A home that is told of a newer one looks whether it is one still: not more often, however many say so, and half as often
 * each time, down to once in: a checkpoint of a large state takes a second.
 */
export const OUTRUN_MS = 1_000;
export const OUTRUN_MS_MAX = 60_000;
/** A channel is told who it is for at once; one that is not is nobody's. */
export const HELLO_MS_MAX = 10_000;

/** Records of the log that a host has taken are told so soon, several together: at f = 0 others wait for it. */
export const TAKEN_MS = 5;
/** Records that no output carries leave so soon, several together. */
export const RECORDS_MS = 2;
/**
 * A host that has not taken a record for so long, at most twice that, is not waited for: it may have vanished, and at
 * f = 0 everybody else waits for it. A whole log of 256 KiB arrives meanwhile at 1 Mbit/s.
 */
export const TAKEN_LATE_MS = 2_000;
/**
 * Who was late a second time holds no log for so long, then twice as long, up to that: what others wait for one that does so
 * on purpose comes to less than half a percent of their time.
 */
export const LATE_OUT_MS = 15_000;
export const LATE_OUT_MS_MAX = 15 * 60_000;
/** What was longer ago is forgotten: twice the longest time out, so that nobody is late anew whenever one is over. */
export const LATE_FORGOTTEN_MS = 2 * LATE_OUT_MS_MAX;
/** Those that are late within this are so by one incident: all that are looked at while one of them is waited for. */
export const LATE_INCIDENT_MS = 2 * TAKEN_LATE_MS;
/** Who is late sooner than this after it became a host may have come for that. */
export const LATE_AGAIN_MS = 60_000;
