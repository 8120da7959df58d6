/**
 * Hybrid logical clock (Kulkarni et al., 2014), as one integer (row.ts).
 *
 * C1  tick() is larger than every value this clock has returned or merged.
 * C2  A value more than the limit ahead of the wall clock is refused, never merged: one bad clock must not
 *     drag the cluster into the future.
 */
import { CLOCK_AHEAD_MS_MAX } from "./limits.ts";
import type { Clock } from "./ports.ts";
import { CLOCK_EPOCH_MS, CLOCK_TICKS_PER_MS, type ClockValue } from "./row.ts";

export class HybridClock {
  readonly #wall: Clock;
  #last: ClockValue = 0;

  constructor(wall: Clock) {
    this.#wall = wall;
  }

  /** The largest value returned or merged. */
  get last(): ClockValue {
    return this.#last;
  }

  /** The next value. */
  tick(): ClockValue {
    this.#last = Math.max(this.#last + 1, this.wall());
    return this.#last;
  }

  /** Moves past a value seen from elsewhere. */
  merge(seen: ClockValue): void {
    if (seen > this.#last) this.#last = seen;
  }

  /** The wall clock as a clock value, less `ageMs`. */
  wall(ageMs = 0): ClockValue {
    return Math.max(0, Math.floor(this.#wall.nowMs() - ageMs - CLOCK_EPOCH_MS)) * CLOCK_TICKS_PER_MS;
  }

  /** Whether a value is so far ahead that its sender's clock must be wrong. */
  isTooFarAhead(seen: ClockValue): boolean {
    return seen > this.wall(-CLOCK_AHEAD_MS_MAX);
  }
}

/** Time for intervals: the wall clock's, but where that is set back, this one goes on from where it was. */
export class SteadyClock {
  readonly #wall: Clock;
  #lastMs = -Infinity;
  #setBackMs = 0;

  constructor(wall: Clock) {
    this.#wall = wall;
  }

  nowMs(): number {
    const nowMs = this.#wall.nowMs();
    if (nowMs < this.#lastMs) this.#setBackMs += this.#lastMs - nowMs;
    this.#lastMs = nowMs;
    return nowMs + this.#setBackMs;
  }
}
