/**
 * Frames between a site and an isolate: the one format on the Unix socket, used at both ends.
 *
 *   u32 length of what follows · u8 type · u32 id · payload          (little endian)
 *
 * `id` names a channel: a request (given by the site, below FETCH_ID_BASE) or an outgoing fetch (given by the
 * isolate, from FETCH_ID_BASE on). Frames collect in one buffer and leave in one write per turn of the event
 * loop: that is where the throughput comes from.
 *
 * F1  Frames of one connection arrive in the order in which they were ended.
 * F2  A payload's views are valid only until the handler returns; what is kept is copied.
 * F3  The reader trusts no length: a frame above the limit, or a read beyond a payload, throws FrameError, and
 *     the site kills the isolate that sent it.
 * F4  An app can have its isolate send anything. The site reads a frame whole, each field as a value of its type within
 *     its bounds (frame_fields.ts), before it does anything with it; a frame that can't be read so ends its isolate. A
 *     frame for a channel that is not open, or that means nothing there any more, is ignored.
 * F5  So many bytes can name a million things, each of which costs the site more than its bytes do. The number of
 *     things, and the length of a text, are bounded for each field before it is read: by what the app's own library
 *     lets it ask for, so that only a forger is beyond.
 */

import { KEY_BYTES_MAX } from "../../functions/vocabulary/limits.ts";

/** Types of frames. */
export const ISOLATE_FRAME = {
  // site → isolate
  load: 1,
  request: 2,
  cancel: 3,
  storeReply: 4,
  ping: 5,
  fetchHead: 6,
  secrets: 7,
  scheduled: 8,
  // site → isolate, of a stateful session (session_frames.ts)
  sessionOpen: 9,
  sessionEvent: 10,
  sessionAcknowledged: 11,
  sessionCheckpointNow: 12,
  sessionClose: 13,
  // site → isolate, of one that another site runs: followed, and then run here
  sessionFollow: 17,
  sessionPiece: 18,
  sessionPromote: 19,
  // site → isolate, of stateful sessions, while it waits for the first
  rehearse: 15,
  // site → isolate, of a request: the answer of a stateful session
  statefulReply: 14,
  // site → isolate: messages for the queue handler; the answer to a send (queue_frames.ts)
  queueBatch: 16,
  queueReply: 60,
  // isolate → site
  ready: 20,
  loaded: 21,
  loadFailed: 22,
  response: 23,
  failed: 24,
  settled: 25,
  storeCall: 26,
  storeStop: 27,
  log: 28,
  pong: 29,
  fetchStart: 30,
  fetchAbort: 31,
  upgrade: 32,
  started: 33,
  noRetry: 34,
  span: 35,
  // isolate → site, of a stateful session
  sessionOpened: 36,
  sessionCommit: 37,
  sessionCall: 38,
  sessionDropped: 39,
  sessionCheckpoint: 40,
  sessionParked: 41,
  sessionClosed: 42,
  // isolate → site, of a request: a call to a stateful session
  statefulCall: 43,
  // isolate → site, the answer of a request: its WebSocket goes to a stateful session
  attach: 44,
  // isolate → site, of a request: messages for queues; of a batch: what became of a message (queue_frames.ts)
  queueSend: 45,
  queueSaid: 46,
  // both ways, on any channel
  data: 50,
  end: 51,
  abort: 52,
  credit: 53,
  stop: 57,
  socketText: 54,
  socketBytes: 55,
  socketClose: 56,
  // both ways, of a stateful session (state_frames.ts)
  sessionState: 58,
  // site → isolate, of a request's WebSocket: u32 messages · u32 bytes that were passed on (socket_window.ts)
  socketTaken: 59,
} as const;

/**
 * Bytes of a key in a frame (F5): as long as the app's library lets it be, and what comes before the app's own part. A
 * site's limit, which may be smaller, is told to the app.
 */
export const FRAME_KEY_BYTES_MAX = 2 * KEY_BYTES_MAX;

/** Channel id from which on ids are outgoing fetches. */
export const FETCH_ID_BASE = 0x80000000;
/** Bytes of a body chunk on the wire: larger ones are cut. Transfer costs flatten out above 16–32 KiB. */
export const CHUNK_BYTES_MAX = 64 * 1024;
/** Bytes of a frame to an isolate: a bundle (10 MiB) or a long page of rows. What exceeds it is garbage. */
export const FRAME_TO_ISOLATE_BYTES_MAX = 48 * 1024 * 1024;
/**
 * Bytes of a frame from an isolate: an atomic (4 MiB of values, 2 KiB of key for each of 1,000 mutations) is the
 * largest.
 */
export const ISOLATE_FRAME_BYTES_MAX = 8 * 1024 * 1024;
/**
 * Number of things of any kind that one frame may name (F5). The most is a commit of a stateful session in which a
 * handler has sent all that it may (functions/sessions/turn/peers.ts) and written beside it.
 */
export const FRAME_THINGS_MAX = 128 * 1024;

/**
 * Bytes that may wait for an isolate to read them. Its reads of the store alone, 64 at a time with up to 2 MiB each,
 * may come to 128 MiB in an isolate that is busy for a moment.
 */
export const BACKLOG_BYTES_MAX = 160 * 1024 * 1024;

/** Bytes of a frame's length, type and id. */
export const HEADER_BYTES = 9;
/** Bytes of the buffer that a connection reads or collects into. */
export const BUFFER_BYTES = 64 * 1024;
/** Bytes of the largest buffer that is kept: one that a large batch has grown beyond that is given back. */
export const BUFFER_KEEP_MAX = 1024 * 1024;

/** The error for bytes that are no frame, and for reads beyond a payload. */
export class FrameError extends Error {
  override readonly name = "FrameError";
  readonly code = "frame_invalid";
}

/** The part of a connection that frames need. */
export interface IsolateConnection {
  read(into: Uint8Array): Promise<number | null>;
  write(bytes: Uint8Array): Promise<number>;
}
