/**
 * Clock values for who writes as a site and can't ask it for each of them: an isolate of stateful sessions, in the midst of
 * a handler.
 *
 * CS1  Two who draw values of one site never draw the same: the site's own clock gives even ones (clock.ts C3); each
 *      share has odd ones of its own, CLOCK_SHARE_STEP apart.
 * CS2  What is drawn is larger than all drawn before of this share, and than what is named; nor is it older than the time.
 */
import { CLOCK_EPOCH_MS, CLOCK_TICKS_PER_MS, type ClockValue } from "./row.ts";

/** How many may draw at once: shares are numbered from 0. */
export const CLOCK_SHARES = 256;
/** From one value of a share to its next: eight are in a millisecond. */
export const CLOCK_SHARE_STEP = 2 * CLOCK_SHARES;

/** Draws the values of one share. */
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

  /** The next value, which is larger than this one. */
  after(seen: ClockValue): ClockValue {
    const past = Math.max(seen, this.#last, (this.#nowMs() - CLOCK_EPOCH_MS) * CLOCK_TICKS_PER_MS - 1); // CS2
    const steps = Math.floor((past - this.#least) / CLOCK_SHARE_STEP) + 1;
    return this.#last = this.#least + Math.max(0, steps) * CLOCK_SHARE_STEP;
  }
}

/**
 * Which shares of a site are taken.
 *
 * CS3  A share that was given back is given again only after all others that are free: what its last holder drew is
 *      past by then, had it drawn ahead of time.
 */
export class ClockShares {
  readonly #taken = new Set<number>();
  #next: number;

  /** @param first given first: any, so that a process does not begin with those that the one before it gave last. */
  constructor(first: number) {
    this.#next = first % CLOCK_SHARES;
  }

  /** One that nobody has; null: there is none. */
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

  /** Its holder draws no more. */
  give(share: number): void {
    this.#taken.delete(share);
  }
}
