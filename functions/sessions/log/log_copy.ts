/** Log of a stateful session, as bytes that are opaque to homes and keepers: its base, and the commits after it. */
import type { StateMark } from "./state_parts.ts";

/** Commit in a log, with the epoch of the home that wrote it. */
export interface LogPiece {
  readonly epoch: number;
  readonly first: number;
  readonly count: number;
  /** Time of the earliest named timer as of this commit, by the wall clock; 0: none. */
  readonly wakeAtMs: number;
  readonly bytes: Uint8Array;
}

/** Checkpoint that a log begins with: the state after the entry `at`, and the answers kept then (answers.ts). */
export interface Base {
  readonly at: number;
  /** Epoch of the home that had written that entry. */
  readonly epoch: number;
  readonly wakeAtMs: number;
  readonly version: string;
  readonly bytes: Uint8Array;
  readonly answers: Uint8Array;
  /** Mark of the state that lies beside the base (state_parts.ts). */
  readonly state: StateMark;
}

/** Log in memory. */
export interface LogCopy {
  readonly seed: Uint8Array;
  readonly version: string;
  readonly base: Base | null;
  /** Parts of the base's state. */
  readonly parts: readonly Uint8Array[];
  readonly pieces: readonly LogPiece[];
}
