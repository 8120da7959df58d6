/**
 * Limits on what one isolate, and one request in it, may use. Every number is a default that the operator can change.
 */

/** Limits of one app's isolates. */
export interface IsolateLimits {
  /** Milliseconds of CPU time of one request; an isolate whose event loop is held longer than this is killed. */
  readonly cpuMs: number;
  /** Milliseconds from the start of a request to its response head; streams and sockets go on after it. */
  readonly wallMs: number;
  /** Milliseconds that `waitUntil` work may go on after the response. */
  readonly waitUntilMs: number;
  /** Milliseconds that a bundle may take from import to manifest. */
  readonly loadMs: number;
  /** Size of V8's heap. */
  readonly heapMib: number;
  /** Size of array buffers and everything else outside of V8's heap, where the system can bound it. */
  readonly buffersMib: number;
  /** Bytes of a request body. */
  readonly bodyBytesMax: number;
  /** Number of requests that run at the same time in one isolate. */
  readonly requestsMax: number;
  /** Number of isolates of one app version on this site. */
  readonly isolatesMax: number;
  /** Number of requests of one app version that may wait for an isolate. */
  readonly waitingMax: number;
}

/** Sizes of a process; they are fixed when it starts. */
export type ProcessSizes = Pick<IsolateLimits, "heapMib" | "buffersMib">;

/**
 * Least `buffersMib` of an isolate of stateful sessions: one state may have 120 MiB
 * (functions/tracked/state_segments.ts), and while it is written as a whole there are the object, its segments, the new
 * one and what it is made of. What is not used takes nothing.
 */
export const STATEFUL_BUFFERS_MIB = 512;

/**
 * The defaults of docs/http.md. `buffersMib` equals the heap: an app that needs more of the one than of the other
 * is rare, and 128 + 128 MiB keeps forty full isolates in the memory of a small server. Two isolates use the two
 * cores of the smallest machine that is worth being a site.
 */
export const DEFAULT_ISOLATE_LIMITS: IsolateLimits = {
  cpuMs: 1_000,
  wallMs: 30_000,
  waitUntilMs: 30_000,
  loadMs: 10_000,
  heapMib: 128,
  buffersMib: 128,
  bodyBytesMax: 32 * 1024 * 1024,
  requestsMax: 256,
  isolatesMax: 2,
  waitingMax: 1_024,
};
