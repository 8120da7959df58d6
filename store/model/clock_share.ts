/**
 * The shares of a site's clock values, for writers that write as the site and can't ask it for each value: isolates of
 * stateful sessions, in the midst of a handler.
 *
 * CS1  Two writers that draw values of one site never draw the same: the site's own clock gives even values (clock.ts
 *      C3); each share has odd ones of its own, CLOCK_SHARE_STEP apart.
 * CS2  A drawn value is larger than all that were drawn before of this share, and than the value that is passed in; nor
 *      is it older than the time.
 */
import { CLOCK_EPOCH_MS, CLOCK_TICKS_PER_MS, type ClockValue } from "./row.ts";

/** Number of writers that may draw at once: shares are numbered from 0. */
export const CLOCK_SHARES = 256;
/** Distance from one value of a share to its next: eight are in a millisecond. */
export const CLOCK_SHARE_STEP = 2 * CLOCK_SHARES;

/** Drawer of the values of one share. */
export class ClockShare {
  readonly #least: ClockValue;
  readonly #nowMs: () => number;
  #last: ClockValue = 0;

  constructor(share: number, nowMs: () => number) {
    if (!Number.isInteger(share) || share < 0 || share >= CLOCK_SHARES) {
      throw new RangeError(`a share is one of 0 to ${CLOCK_SHARES - 1}, not ${share}`);
    }
    this.#least = 2 * share + 1;
    this.#nowMs = nowMs;
  }

  /** Returns the next value, which is larger than `seen`. */
  after(seen: ClockValue): ClockValue {
    const past = Math.max(seen, this.#last, (this.#nowMs() - CLOCK_EPOCH_MS) * CLOCK_TICKS_PER_MS - 1); // CS2
    const steps = Math.floor((past - this.#least) / CLOCK_SHARE_STEP) + 1;
    return this.#last = this.#least + Math.max(0, steps) * CLOCK_SHARE_STEP;
  }
}

/**
 * Shares of a site, with those that are taken.
 *
 * CS3  A share that was given back is given again only after all others that are free: the values that its last holder
 *      drew are past by then, had it drawn ahead of time.
 */
export class ClockShares {
  readonly #taken = new Set<number>();
  #next: number;

  /**
   * Begins with a share.
   *
   * @param first the share that is given first: any, so that a process does not begin with those that the one before it
   *     gave last.
   */
  constructor(first: number) {
    this.#next = first % CLOCK_SHARES;
  }

  /** Returns a share that no writer has; null: there is none. */
  take(): number | null {
    for (let tries = 0; tries < CLOCK_SHARES; tries++) {
      const share = this.#next;
      this.#next = (share + 1) % CLOCK_SHARES; // CS3
      if (this.#taken.has(share)) continue;
      this.#taken.add(share);
      return share;
    }
    return null;
  }

  /** Takes a share back: its holder draws no more. */
  give(share: number): void {
    this.#taken.delete(share);
  }
}
