/** A log of a stateful session, as bytes that are opaque to homes and keepers: its base, and the commits after it. */
import type { StateMark } from "./state_parts.ts";

/** One commit in a log, with the epoch of the home that wrote it. */
export interface LogPiece {
  readonly epoch: number;
  readonly first: number;
  readonly count: number;
  /** The earliest named timer as of this commit, by the wall clock; 0: none. */
  readonly wakeAtMs: number;
  readonly bytes: Uint8Array;
}

/** What a log begins with: the state after the entry `at`, and the answers kept then (answers.ts). */
export interface Base {
  readonly at: number;
  /** Of the home that had written that entry. */
  readonly epoch: number;
  readonly wakeAtMs: number;
  readonly version: string;
  readonly bytes: Uint8Array;
  readonly answers: Uint8Array;
  /** What lies beside it (state_parts.ts). */
  readonly state: StateMark;
}

/** A log in memory. */
export interface LogCopy {
  readonly seed: Uint8Array;
  readonly version: string;
  readonly base: Base | null;
  /** Of the base's state. */
  readonly parts: readonly Uint8Array[];
  readonly pieces: readonly LogPiece[];
}
