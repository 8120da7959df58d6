/**
 * The real clock and the real randomness behind the store's ports. The network port is the link hub, the storage
 * port one of runtime/storage/.
 */
import { setImmediate } from "node:timers";
import type { Clock, Random } from "../../store/ports.ts";

/** Wall clock and timers of this process. */
export class SystemClock implements Clock {
  nowMs(): number {
    return Date.now();
  }

  after(ms: number, callback: () => void): () => void {
    const timer = setTimeout(callback, ms);
    return () => clearTimeout(timer);
  }

  turn(): Promise<void> {
    return new Promise((resolve) => setImmediate(resolve));
  }
}

/** The operating system's cryptographic randomness. */
export class SystemRandom implements Random {
  bytes(length: number): Uint8Array<ArrayBuffer> {
    return crypto.getRandomValues(new Uint8Array(length));
  }
}
