/** Bounds and intervals between a stateful session's home and its peers, each with the reason for its number. */

import { HOST_LOG_BYTES_MAX } from "../sealed/limits.ts";

/** Version of the frames (docs/protocol/session-frames.md). */
export const FRAMES_VERSION = 1;
/** Subprotocol of a WebSocket that carries them. */
export const SUBPROTOCOL = "sojourn.session.1";

/** Bytes of a message or an output: an uncompressed picture of 1024 × 1024; an isolate's frame has room for two. */
export const MESSAGE_BYTES_MAX = 4 << 20;
export { HOST_LOG_BYTES_MAX, HOST_RECORDS_MAX } from "../sealed/limits.ts";
/** Bytes of a record of the log, with an output or without: it is one of a log that a host can hold. */
export const INCREMENT_BYTES_MAX = HOST_LOG_BYTES_MAX;
/** Bytes of a peer's id, as functions/sessions/turn has them (event.ts, Peer). */
export const PEER_ID_BYTES_MAX = 200;
/** Bytes of a peer's key, a MAC: shorter ones can be guessed, and there are no longer ones. */
export const KEY_BYTES_MIN = 16;
export const PEER_KEY_BYTES_MAX = 64;
/** Bytes of a host's summary of the log that it holds. */
export const LOG_SUMMARY_BYTES_MAX = 4 << 10;
/** Bytes of codes and of names of sites, and of texts for people. */
export const CODE_BYTES_MAX = 100;
export const TEXT_BYTES_MAX = 1 << 10;
/** Bytes of a WebSocket's close reason. */
export const REASON_BYTES_MAX = 123;

/**
 * Attempts of each of the programs that went on with one storage: the first of program n is n times that, and 1. A
 * program that comes again every 50 ms has enough for ten days; a page that is loaded every second reaches the last
 * number after 17 years.
 */
export const PROGRAM_ATTEMPTS = 2 ** 24;
/** Largest number of a program: later ones are not told apart. */
export const PROGRAMS_MAX = 2 ** 29 - 1;

/** Messages that are on their way and not acknowledged: as many as 64 in flight need at sixteen times the pace. */
export const WINDOW_MESSAGES = 1_024;
/** Bytes of the messages of a peer that are on their way; one message always goes. */
export const PEER_WINDOW_BYTES = 4 << 20;
/**
 * Messages of one peer that its session has at one time; the others of its window wait behind those of other peers.
 * Fewer keep a fast peer waiting for the owners, more keep the others waiting for one that floods.
 */
export const HANDED_MAX = 64;
/**
 * Bytes of messages that a host side keeps until it can send them: some seconds of a busy client while it looks for a
 * site.
 */
export const BUFFER_BYTES_MAX = 16 << 20;
/** Bytes of outputs kept for a peer that does not acknowledge; beyond, it is detached as too slow. */
export const OUTBOX_BYTES_MAX = 4 << 20;
export const OUTBOX_OUTPUTS_MAX = 16_384;
/**
 * Bytes of messages of all peers of one session that wait for it: beyond, a peer that sends more is told to come again.
 */
export const SESSION_WAITING_BYTES_MAX = 64 << 20;
/** Peers attached to one session: some 1.6 KB of its home's memory each. */
export const PEERS_MAX = 10_000;
/** Peers that made room for others, and of whose leaving the session has not heard yet. */
export const LEAVING_MAX = 1_000;

/**
 * Milliseconds for which an acknowledgement waits for a frame that carries it, and the number of them that is not kept
 * waiting.
 */
export const ACK_MS = 50;
export const ACK_EVERY = 64;
/**
 * Milliseconds that a peer whose channel broke stays attached: a phone that changes its network is back within seconds.
 */
export const GRACE_MS = 60_000;
/**
 * Milliseconds for which a host side of somebody else's connection that holds a log looks for a home: a machine that
 * was lost in the night is mended by then. A connection and up to 1 MiB wait for it.
 */
export const HOLDING_MS = 24 * 3_600_000;
/**
 * Bytes that a channel has taken and not sent: an outbox that is sent again, with room. Beyond, nobody reads its other
 * end.
 */
export const CHANNEL_BYTES_MAX = 8 << 20;
/**
 * Interval at which a home that is told of a newer one looks whether it is still the home, however many say so; it
 * doubles each time, up to the second number: a checkpoint of a large state takes a second.
 */
export const OUTRUN_MS = 1_000;
export const OUTRUN_MS_MAX = 60_000;
/** Milliseconds for the hello on a channel, which a peer sends at once: one that has none by then belongs to nobody. */
export const HELLO_MS_MAX = 10_000;

/**
 * Milliseconds after which a home is told of records that its host has taken, several together: at f = 0 others wait
 * for it.
 */
export const TAKEN_MS = 5;
/** Milliseconds after which records that no output carries leave, several together. */
export const RECORDS_MS = 2;
/**
 * Milliseconds for which a host that has not taken a record is waited for, at most twice that: it may have vanished,
 * and at f = 0 everybody else waits for it. A whole log of 256 KiB arrives meanwhile at 1 Mbit/s.
 */
export const TAKEN_LATE_MS = 2_000;
/**
 * Milliseconds for which a host that was late a second time holds no log; twice as long each time, up to the second
 * number: the waits for one that is late on purpose come to less than half a percent of the others' time.
 */
export const LATE_OUT_MS = 15_000;
export const LATE_OUT_MS_MAX = 15 * 60_000;
/**
 * Milliseconds after which a late host is forgotten: twice the longest time out, so that nobody is late anew whenever
 * one is over.
 */
export const LATE_FORGOTTEN_MS = 2 * LATE_OUT_MS_MAX;
/**
 * Milliseconds within which all hosts that are late are so by one incident: all that are looked at while one is waited
 * for.
 */
export const LATE_INCIDENT_MS = 2 * TAKEN_LATE_MS;
/** Milliseconds after it became a host within which one that is late may have come for that. */
export const LATE_AGAIN_MS = 60_000;
