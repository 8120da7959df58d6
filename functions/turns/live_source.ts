/** Where a live turn's time comes from: the host, which is asked once. */
import type { TurnSource } from "./turn.ts";

/** What it asks. */
export interface Clocks {
  nowMs(): number;
  /** A value for the version of what a turn writes that no event of the site began. */
  storeClock(): number;
}

/** A turn's source that asks the host. */
export class LiveSource implements TurnSource {
  readonly isReplay = false;
  readonly #host: Clocks;
  readonly #storeClock: number;

  constructor(host: Clocks, storeClock: number) {
    this.#host = host;
    this.#storeClock = storeClock;
  }

  clock(_index: number, lastMs: number): number {
    return Math.max(lastMs, this.#host.nowMs());
  }

  storeClock(last: number): number {
    return Math.max(last + 1, this.#storeClock === 0 ? this.#host.storeClock() : this.#storeClock);
  }
}
