/**
 * Detection of clients that leave before they are answered. Asking `Deno.serve` for a request's signal costs as much as
 * the rest of a short request, so it is asked for only where a request has waited a while.
 *
 * Life of a departure: `await` (registered) → looked at, once it is SLOW_MS old → aborted when the client has gone,
 * or `done` when it has its answer. A body that streams is cancelled by the server itself.
 *
 * DP1  The waiting departures are a list linked through themselves, and one that leaves it points at none of them. (A
 *      Set with as many additions is rebuilt over and over, and each old table that has grown old keeps all that came
 *      after it from being collected young: a fifth of the CPU time of a site under load.)
 */

/** The part of an `AbortSignal` that tells of the abort; an `AbortSignal` is one. */
export interface GoneSignal {
  readonly aborted: boolean;
  addEventListener(type: "abort", listener: () => void, options?: { once?: boolean }): void;
  removeEventListener(type: "abort", listener: () => void): void;
}

/**
 * Milliseconds that a request waits before its client is watched. Below this a client that leaves costs nothing worth
 * saving; above, loops and polls begin.
 */
export const SLOW_MS = 100;

/** Departure of one request that waits for its answer. */
export class Departure implements GoneSignal {
  readonly #request: Pick<Request, "signal">;
  /** Called when the request has waited SLOW_MS. */
  readonly #slow: (() => void) | undefined;
  readonly sinceMs: number;
  #aborted = false;
  #watched = false;
  #listeners: (() => void)[] | null = null;
  /** Neighbours among those that wait; the departure itself where it does not wait (DP1). */
  before: Departure = this;
  after: Departure = this;

  constructor(request: Pick<Request, "signal">, sinceMs: number, slow?: () => void) {
    this.#request = request;
    this.#slow = slow;
    this.sinceMs = sinceMs;
  }

  /** True once the request has waited SLOW_MS. */
  get isSlow(): boolean {
    return this.#watched;
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

  /** Begins to watch for the client's leaving. */
  watch(): void {
    if (this.#watched) return;
    this.#watched = true;
    const { signal } = this.#request;
    if (signal.aborted) return this.#abort();
    this.#slow?.();
    signal.addEventListener("abort", () => this.#abort(), { once: true });
  }

  #abort(): void {
    this.#aborted = true;
    for (const listener of this.#listeners?.splice(0) ?? []) listener();
  }

  /** Drops the listeners: the request is answered, and they are not told if the client leaves from now on. */
  forget(): void {
    this.#listeners = null;
  }
}

/** The requests of one gateway that wait. */
export class Departures {
  /** Sentinel before the first and after the last waiting departure. */
  readonly #ends = new Departure({ signal: AbortSignal.abort() }, 0);
  readonly #nowMs: () => number;
  #size = 0;
  #timer: ReturnType<typeof setInterval> | null = null;
  #closed = false;

  constructor(nowMs: () => number = () => performance.now()) {
    this.#nowMs = nowMs;
  }

  /** Number of requests that wait. */
  get size(): number {
    return this.#size;
  }

  /** Registers a request that begins to wait. */
  begin(request: Pick<Request, "signal">, slow?: () => void): Departure {
    const departure = new Departure(request, this.#nowMs(), slow);
    const last = this.#ends.before;
    departure.before = last;
    departure.after = this.#ends;
    last.after = this.#ends.before = departure;
    this.#size++;
    if (!this.#closed) this.#timer ??= setInterval(() => this.look(), SLOW_MS);
    return departure;
  }

  /** Removes a request that has its answer. */
  done(departure: Departure): void {
    if (departure.after === departure) return;
    this.#size--;
    departure.before.after = departure.after;
    departure.after.before = departure.before;
    departure.before = departure.after = departure;
    departure.forget();
  }

  /** Watches the clients of requests that have waited long; sets no timer where none waits. */
  look(): void {
    const beforeMs = this.#nowMs() - SLOW_MS;
    const ends = this.#ends, slow: Departure[] = [];
    for (let departure = ends.after; departure !== ends; departure = departure.after) {
      if (departure.sinceMs > beforeMs) break; // in the order in which they began
      slow.push(departure);
    }
    for (const departure of slow) departure.watch(); // a listener may leave the list
    if (ends.after === ends) this.#rest();
  }

  /** Ends all watching, whatever begins later. */
  close(): void {
    this.#closed = true;
    this.#rest();
  }

  #rest(): void {
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#timer = null;
  }
}
