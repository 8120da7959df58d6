/**
 * A turn: one event given to a program, run until no microtask is left.
 *
 * What a program takes from outside within a turn comes from the turn's source: live, the source asks the host and
 * remembers the answers (they make the entry); in a replay it reads the entry.
 *
 * T1  Time stands still within a turn: the clock is asked once, at the first reading, and again only after
 *     READS_MAX readings, so that a busy wait ends.
 */
import type { HandledEvent } from "./event.ts";
import type { EntryCheck } from "./rolling_check.ts";
import type { Subject } from "../../class/subject.ts";

/** Input that begins a turn: an event, or what the executor itself records. Each is one entry of the log. */
export type TurnInput =
  | Exclude<HandledEvent, { readonly kind: "timer" | "reject" }>
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

/** Input in place of a handler that threw or was killed. */
export interface Rejected {
  readonly kind: "rejected";
  /** Number of entries before this one that are void: those of the handler that had been given out already. */
  readonly voids: number;
  /** Subject of the handler: a request is answered with the error. null: no handler ran, but a closure timer. */
  readonly subject: Subject | null;
  /** Number of attempts so far, where the subject is tried again; 0: it is over and done with. */
  readonly attempt: number;
  readonly code: string;
  readonly message: string;
  /** Closure timers that are gone: the one that threw, or all where one of them was killed. */
  readonly drops: "none" | "all" | number;
  /**
   * Numbers that are given next. Numbers that the handler gave are never given again: late results belong to nobody.
   */
  readonly nextCall: number;
  readonly nextLocal: number;
  readonly nextEffect: number;
}

/** Readings of the clock in one turn, after which time goes on. A busy wait of 1 ms reads some 20,000 times. */
export const READS_MAX = 4096;

/** Source of a turn's time. */
export interface TurnSource {
  /** True in a replay: what the turn logs or asks for is there already. */
  readonly isReplay: boolean;
  /** True where the turn's entry has all of the check (rolling_check.ts, RK3). */
  readonly isWhole: boolean;
  /** Returns the reading of that index (0, 1, … every READS_MAX readings), not before `lastMs`. */
  clock(index: number, lastMs: number): number;
  /** Returns the clock for the versions of what this turn writes to the store, more than `last`. */
  storeClock(last: number): number;
}

/** Outcome of a turn, as far as its entry says it. */
export interface TurnEnd {
  /** Readings of the clock, in milliseconds since 1970: none where the clock was not read. */
  readonly clocks: readonly number[];
  readonly storeClock: number | null;
  /** Rolling check after the turn. */
  readonly check: EntryCheck;
}
