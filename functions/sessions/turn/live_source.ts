/** Where a live turn's time comes from: the host, which is asked once. */
import type { TurnSource } from "./turn.ts";

/** What it asks. */
export interface Clocks {
  nowMs(): number;
  /** A value that no other write of the site has, larger than this one: of a turn that has none of an event. */
  storeClock(after: number): number;
}

/**
 * A turn's source that asks the host.
 *
 * LS1  What a turn writes is newer than what the session has written and read in turns before. Events get their value of
 *      the store's clock as they are delivered: one that waited may be handled after the result of a read that came
 *      later, and then has another.
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
    const isNewest = this.#storeClock > last && this.#storeClock >= this.#seen;
    return isNewest ? this.#storeClock : this.#host.storeClock(Math.max(last, this.#seen)); // LS1, event.ts EV3
  }
}
