/**
 * The real clock and the real randomness behind the store's ports. The network port is the link hub, the storage
 * port one of runtime/storage/.
 */
import type { Clock, Random } from "../../store/model/ports.ts";
import { nextTurn } from "../loop/next_turn.ts";

/** Wall clock and timers of this process. */
export class SystemClock implements Clock {
  /** Milliseconds added to the wall clock, to try what a wrong one does (runtime/chaos); timers go on as before. */
  skewMs = 0;

  nowMs(): number {
    return Date.now() + this.skewMs;
  }

  steadyMs(): number {
    return performance.now();
  }

  after(ms: number, callback: () => void): () => void {
    const timer = setTimeout(callback, ms);
    return () => clearTimeout(timer);
  }

  turn(): Promise<void> {
    return nextTurn();
  }
}

/** Bytes drawn at once: a call to the system costs as much as 200 bytes do, and a new session takes 28 of them. */
const POOL_BYTES = 4096;

/** The operating system's cryptographic randomness. No byte is given out twice. */
export class SystemRandom implements Random {
  readonly #pool = new Uint8Array(POOL_BYTES);
  #at = POOL_BYTES;

  bytes(length: number): Uint8Array<ArrayBuffer> {
    if (length > POOL_BYTES) return crypto.getRandomValues(new Uint8Array(length));
    if (this.#at + length > POOL_BYTES) {
      crypto.getRandomValues(this.#pool);
      this.#at = 0;
    }
    const given = this.#pool.slice(this.#at, this.#at + length);
    this.#pool.fill(0, this.#at, this.#at + length); // bytes that were given out are not kept here
    this.#at += length;
    return given;
  }
}
