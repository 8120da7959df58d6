/** Source of a live turn's time: the host, which is asked once. */
import type { TurnSource } from "./turn.ts";

/** Clocks of the host that a live turn asks. */
export interface Clocks {
  nowMs(): number;
  /**
   * Returns a store clock that no other write of the site has, larger than `after`: for a turn whose event brought
   * none.
   */
  storeClock(after: number): number;
}

/**
 * A turn's source that asks the host.
 *
 * LS1  What a turn writes is newer than what the session has written and read in turns before. An event gets its value
 *      of the store's clock when it is delivered; where it waits, and is handled after the result of a read that came
 *      later, another value is drawn for it.
 */
export class LiveSource implements TurnSource {
  readonly isReplay = false;
  readonly isWhole = true;
  readonly #host: Clocks;
  readonly #storeClock: number;
  readonly #seen: number;

  /**
   * @param storeClock the value that the event brought; 0: it brought none.
   * @param seen the greatest value of all events so far.
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
