/**
 * The named timers of an open stateful session.
 *
 * T1  The planned timers decide when the session is to be woken; a timer that is set is called when it is due, once.
 * T2  A timer is never called before its time by the wall clock, however that is set meanwhile.
 */

import type { PeerClock } from "../attach/mod.ts";

/** Milliseconds that a timer of the system waits at most: then the clock is looked at again. */
const WAIT_MS_MAX = 60_000;

/** The named timers of one session. */
export class Timers {
  readonly #nowMs: () => number;
  readonly #clock: PeerClock;
  readonly #due: (name: string, dueMs: number) => void;
  /** Planned timers by name; null, as most sessions have it: there was none. */
  #planned: Map<string, number> | null = null;
  #set: Map<string, () => void> | null = null;

  /** @param nowMs reads the wall clock. */
  constructor(nowMs: () => number, clock: PeerClock, due: (name: string, dueMs: number) => void) {
    this.#nowMs = nowMs;
    this.#clock = clock;
    this.#due = due;
  }

  /** Time at which the first of the planned timers is due; null: none is. */
  get earliest(): number | null {
    let least: number | null = null;
    for (const dueMs of this.#planned?.values() ?? []) {
      least = least === null ? dueMs : Math.min(least, dueMs);
    }
    return least;
  }

  list(): { name: string; dueMs: number }[] {
    return [...this.#planned ?? []].map(([name, dueMs]) => ({ name, dueMs }));
  }

  /** Number of planned timers. */
  get size(): number {
    return this.#planned?.size ?? 0;
  }

  /** Plans a timer that is to be set, or cleared (null). */
  plan(name: string, dueMs: number | null): void {
    if (dueMs === null) this.#planned?.delete(name);
    else (this.#planned ??= new Map()).set(name, dueMs);
  }

  /** Removes a timer that was called. */
  fired(name: string, dueMs: number): void {
    if (this.#planned?.get(name) === dueMs) this.#planned.delete(name);
  }

  /** Sets or clears (null) a timer, unless it was planned otherwise since. */
  set(name: string, dueMs: number | null): void {
    this.#set?.get(name)?.();
    this.#set?.delete(name);
    if (dueMs !== null && this.#planned?.get(name) === dueMs) this.#wait(name, dueMs); // T1
  }

  close(): void {
    for (const cancel of this.#set?.values() ?? []) cancel();
    this.#set = null;
  }

  #wait(name: string, dueMs: number): void {
    const ms = Math.min(Math.max(0, dueMs - this.#nowMs()), WAIT_MS_MAX);
    const cancel = this.#clock.after(ms, () => {
      if (this.#nowMs() < dueMs) return this.#wait(name, dueMs); // T2
      this.#set?.delete(name);
      if (this.#planned?.get(name) === dueMs) this.#due(name, dueMs); // T1
    });
    (this.#set ??= new Map()).set(name, cancel);
  }
}
