/**
 * Clients that leave before they are answered. Asking `Deno.serve` for a request's signal costs as much as the rest
 * of a short request, so only those that have waited a while are asked for.
 *
 * Life of a departure: `await` (registered) → looked at, once it is SLOW_MS old → aborted when the client has gone,
 * or `done` when it has its answer. A body that streams is cancelled by the server itself.
 */

/** The part of an `AbortSignal` that tells of the end; an `AbortSignal` is one. */
export interface GoneSignal {
  readonly aborted: boolean;
  addEventListener(type: "abort", listener: () => void, options?: { once?: boolean }): void;
  removeEventListener(type: "abort", listener: () => void): void;
}

/** Below this a client that leaves costs nothing worth saving; above, loops and polls begin. */
const SLOW_MS = 100;

/** One request that waits for its answer. */
export class Departure implements GoneSignal {
  readonly #request: Pick<Request, "signal">;
  readonly sinceMs: number;
  #aborted = false;
  #watched = false;
  #listeners: (() => void)[] | null = null;

  constructor(request: Pick<Request, "signal">, sinceMs: number) {
    this.#request = request;
    this.sinceMs = sinceMs;
  }

  get aborted(): boolean {
    return this.#aborted;
  }

  addEventListener(_type: "abort", listener: () => void): void {
    (this.#listeners ??= []).push(listener);
  }

  removeEventListener(_type: "abort", listener: () => void): void {
    const at = this.#listeners?.indexOf(listener) ?? -1;
    if (at >= 0) this.#listeners?.splice(at, 1);
  }

  /** Begins to look at the client. */
  watch(): void {
    if (this.#watched) return;
    this.#watched = true;
    const { signal } = this.#request;
    if (signal.aborted) this.#abort();
    else signal.addEventListener("abort", () => this.#abort(), { once: true });
  }

  #abort(): void {
    this.#aborted = true;
    for (const listener of this.#listeners?.splice(0) ?? []) listener();
  }

  /** Answered: what becomes of the client from now on is not told. */
  forget(): void {
    this.#listeners = null;
  }
}

/** The requests of one gateway that wait. */
export class Departures {
  readonly #waiting = new Set<Departure>();
  readonly #nowMs: () => number;
  #timer: ReturnType<typeof setInterval> | null = null;
  #closed = false;

  constructor(nowMs: () => number = () => performance.now()) {
    this.#nowMs = nowMs;
  }

  /** How many wait. */
  get size(): number {
    return this.#waiting.size;
  }

  /** A request begins to wait. */
  begin(request: Pick<Request, "signal">): Departure {
    const departure = new Departure(request, this.#nowMs());
    this.#waiting.add(departure);
    if (!this.#closed) this.#timer ??= setInterval(() => this.look(), SLOW_MS);
    return departure;
  }

  /** It has its answer. */
  done(departure: Departure): void {
    this.#waiting.delete(departure);
    departure.forget();
  }

  /** Looks at those that have waited long; stops looking where nobody waits. */
  look(): void {
    const beforeMs = this.#nowMs() - SLOW_MS;
    for (const departure of this.#waiting) {
      if (departure.sinceMs > beforeMs) break; // in the order in which they began
      departure.watch();
    }
    if (this.#waiting.size === 0) this.#rest();
  }

  /** Looks no more, whatever comes. */
  close(): void {
    this.#closed = true;
    this.#rest();
  }

  #rest(): void {
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#timer = null;
  }
}
