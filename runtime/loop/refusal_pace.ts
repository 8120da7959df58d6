/**
 * The pace at which clients are told that there is no room for them: at once, as long as these are few.
 *
 * A client that is refused at once, and asks again at once, is refused as often as the site's thread can: a crowd of
 * such clients takes all of the thread, from the clients that are served. So the crowd is told no faster than costs a
 * tenth of the thread, and a connection that waits to be told costs what any does (gateway/surplus.ts bounds what it
 * sends).
 *
 * RP1  No more clients are told than PER_MS, beyond a burst of BURST; the others wait, in order.
 * RP2  No client waits for longer than WAIT_MS.
 * RP3  At most REFUSALS_WAITING_MAX clients wait; one more is told at once.
 */

/**
 * Number of clients that are told in a millisecond, at 30 µs each: a tenth of the thread. More than come to a site
 * whose clients wait as long as they are told to.
 */
export const PER_MS = 3;
/** Number of clients that are told at once: 10 ms of the thread. */
export const BURST = 300;
/**
 * Milliseconds that a client waits here at most: as long as it is told to wait before it asks again
 * (gateway/problem.ts).
 */
export const WAIT_MS = 1_000;
/** Number of clients that may wait to be told: more than a site has connections. */
export const REFUSALS_WAITING_MAX = 16_384;
/** Milliseconds between looks at clients that wait: fifteen are told together. */
const LOOK_MS = 5;

/** Says when a client may be told that it is refused. */
export class RefusalPace {
  readonly #nowMs: () => number;
  #waiting: { readonly sinceMs: number; readonly tell: () => void }[] = [];
  /** Number of clients that may be told at once, as of `#sinceMs`. */
  #room = BURST;
  #sinceMs: number;
  #closed = false;
  /** Timer that runs while a client waits. */
  #timer: ReturnType<typeof setInterval> | undefined;

  /** @param nowMs a clock that never goes back. */
  constructor(nowMs: () => number = () => performance.now()) {
    this.#nowMs = nowMs;
    this.#sinceMs = nowMs();
  }

  /** Number of clients that wait to be told. */
  get size(): number {
    return this.#waiting.length;
  }

  /** Takes a client's turn: null where it may be told now; otherwise a promise that resolves when it may. */
  turn(): Promise<void> | null {
    const nowMs = this.#nowMs();
    this.#earn(nowMs);
    if (this.#closed || this.size >= REFUSALS_WAITING_MAX) return null; // RP3
    if (this.size === 0 && this.#room >= 1) {
      this.#room--;
      return null;
    }
    this.#timer ??= setInterval(() => this.look(), LOOK_MS);
    return new Promise((tell) => this.#waiting.push({ sinceMs: nowMs, tell }));
  }

  /** Tells the clients whose turn it is. */
  look(): void {
    const nowMs = this.#nowMs();
    this.#earn(nowMs);
    let told = 0;
    for (const { sinceMs } of this.#waiting) {
      if (this.#room < 1 && nowMs - sinceMs < WAIT_MS) break;
      this.#room = Math.max(0, this.#room - 1);
      told++;
    }
    for (const { tell } of this.#waiting.splice(0, told)) tell();
    if (this.size === 0) this.#rest();
  }

  /** Tells all clients, and from now on at once: none is to wait for a site that goes away. */
  close(): void {
    this.#closed = true;
    for (const { tell } of this.#waiting.splice(0)) tell();
    this.#rest();
  }

  #earn(nowMs: number): void {
    this.#room = Math.min(BURST, this.#room + (nowMs - this.#sinceMs) * PER_MS);
    this.#sinceMs = nowMs;
  }

  #rest(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }
}
