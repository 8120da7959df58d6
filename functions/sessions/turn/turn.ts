/**
 * A turn: one event given to a program, run until no microtask is left.
 *
 * What a program takes from outside within a turn comes from the turn's source: live, the source asks the host and
 * remembers what it said (that makes the entry); in a replay it reads the entry.
 *
 * T1  Time stands still within a turn: the clock is asked once, at the first reading, and again only after
 *     READS_MAX readings, so that a busy wait ends.
 */
import type { Peer } from "./event.ts";
import type { EntryCheck } from "./rolling_check.ts";
import type { Subject } from "../../class/subject.ts";

/** What begins a turn: an event, or what the executor itself records. One entry of the log each. */
export type TurnInput =
  | {
    readonly kind: "request";
    readonly request: string;
    readonly chain: readonly string[];
    readonly bytes: Uint8Array;
  }
  | { readonly kind: "attach"; readonly peer: Peer }
  | { readonly kind: "message"; readonly peer: string; readonly message: string | Uint8Array }
  | { readonly kind: "detach"; readonly peer: string }
  | { readonly kind: "timer"; readonly name: string }
  /** A closure timer (setTimeout). */
  | { readonly kind: "local"; readonly local: number }
  | { readonly kind: "result"; readonly call: number; readonly bytes: Uint8Array }
  | { readonly kind: "error"; readonly call: number; readonly code: string; readonly message: string }
  | Rejected
  /** A home opens the session under a new epoch, or new code goes on with it. */
  | { readonly kind: "epoch"; readonly epoch: number; readonly replica: number; readonly code: string }
  /** The session is born, with its seed. */
  | { readonly kind: "birth"; readonly seed: Uint8Array };

/** In place of a handler that threw or was killed. */
export interface Rejected {
  readonly kind: "rejected";
  /** So many entries before this one are void: those of the handler that had been given out already. */
  readonly voids: number;
  /** Whose handler it was: a request is answered with the error. null: none ran, but a closure timer. */
  readonly subject: Subject | null;
  /** 0: its subject is over and done with. Else it is tried again, and has been so many times. */
  readonly attempt: number;
  readonly code: string;
  readonly message: string;
  /** Closure timers that are gone: the one that threw, or all where one of them was killed. */
  readonly drops: "none" | "all" | number;
  /** What the handler had numbered is never numbered so again: late results belong to nobody. */
  readonly nextCall: number;
  readonly nextLocal: number;
  readonly nextEffect: number;
}

/** Readings of the clock in one turn, after which time goes on. A busy wait of 1 ms reads some 20,000 times. */
export const READS_MAX = 4096;

/** Where a turn's time comes from. */
export interface TurnSource {
  /** What a replay logs or asks for is there already. */
  readonly isReplay: boolean;
  /** Its entry has all of the check (rolling_check.ts, RK3). */
  readonly isWhole: boolean;
  /** The reading of that index (0, 1, … every READS_MAX readings), not before `lastMs`. */
  clock(index: number, lastMs: number): number;
  /** The clock value for the versions of what this turn writes to the store, more than `last`. */
  storeClock(last: number): number;
}

/** What a turn did, as far as its entry says it. */
export interface TurnEnd {
  /** Readings, in milliseconds since 1970: none where the clock was not read. */
  readonly clocks: readonly number[];
  readonly storeClock: number | null;
  /** The rolling check after it. */
  readonly check: EntryCheck;
}
