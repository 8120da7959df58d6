/**
 * The hybrid logical clock (Kulkarni et al., 2014), as one integer (row.ts).
 *
 * C1  tick() is larger than every value this clock has returned or merged.
 * C2  A value of another site's that is more than the limit ahead of the wall clock is refused, never merged: one bad
 *     clock must not drag the cluster into the future. Nor must this site's own: of its wall clock it takes only the
 *     time that is believed (wall.ts).
 * C3  tick() is even: odd values are drawn by isolates that write as this site without asking it (clock_share.ts).
 */
import type { SiteId } from "./ports.ts";
import { CLOCK_EPOCH_MS, CLOCK_TICKS_PER_MS, type ClockValue, unixMs } from "./row.ts";
import type { Wall } from "./wall.ts";

export class HybridClock {
  readonly #wall: Wall;
  #last: ClockValue = 0;

  constructor(wall: Wall) {
    this.#wall = wall;
  }

  /** Largest value that was returned or merged. */
  get last(): ClockValue {
    return this.#last;
  }

  /** Returns the next value. */
  tick(): ClockValue {
    const next = this.#last + 2 - this.#last % 2; // C1, C3
    this.#last = Math.max(next, this.wall());
    return this.#last;
  }

  /** Moves past a value that another site has sent. */
  merge(seen: ClockValue): void {
    if (seen > this.#last) this.#last = seen; // C1
  }

  /** Returns the time that is believed, less `ageMs`, as a clock value. */
  wall(ageMs = 0): ClockValue {
    return clockAt(this.#wall.datesMs() - ageMs);
  }

  /**
   * Reports whether a value of another site may be merged (C2). That it may counts for what is believed of the wall
   * clock.
   */
  admits(seen: ClockValue): boolean {
    return this.#wall.agrees(unixMs(seen));
  }

  /** Takes the value that a neighbour's clock has now, once it was admitted (C2). */
  hears(from: SiteId, said: ClockValue): void {
    this.#wall.hears(from, unixMs(said), false);
    this.merge(said);
  }
}

/** Returns a time in milliseconds since 1970 as a clock value. */
export const clockAt = (ms: number): ClockValue =>
  Math.max(0, Math.floor(ms - CLOCK_EPOCH_MS)) * CLOCK_TICKS_PER_MS;
