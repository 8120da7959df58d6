/** Where a live turn's time comes from: the host, which is asked once. */
import type { TurnSource } from "./turn.ts";

/** What it asks. */
export interface Clocks {
  nowMs(): number;
  /** A value for the version of what a turn writes that no event of the site began. */
  storeClock(): number;
}

/**
 * A turn's source that asks the host.
 *
 * LS1  What a turn writes is newer than what the session has read in turns before: events get their value of the store's
 *      clock as they are delivered, and one that waited may be handled after the result of a read that came later.
 */
export class LiveSource implements TurnSource {
  readonly isReplay = false;
  readonly isWhole = true;
  readonly #host: Clocks;
  readonly #storeClock: number;
  readonly #seen: number;

  /**
   * @param storeClock the event's own; 0: it has none.
   * @param seen the greatest of all events so far.
   */
  constructor(host: Clocks, storeClock: number, seen: number) {
    this.#host = host;
    this.#storeClock = storeClock;
    this.#seen = seen;
  }

  clock(_index: number, lastMs: number): number {
    return Math.max(lastMs, this.#host.nowMs());
  }

  storeClock(last: number): number {
    // event.ts EV3
    return Math.max(
      last + 1,
      this.#seen,
      this.#storeClock === 0 ? this.#host.storeClock() : this.#storeClock,
    );
  }
}
