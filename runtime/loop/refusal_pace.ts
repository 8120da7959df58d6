/**
 * When clients are told that there is no room for them: at once, as long as these are few.
 *
 * A client that is refused at once, and asks again at once, is refused as often as the site's thread can: a crowd of them takes
 * all of it, from the clients that are served. So the crowd is told no faster than costs a tenth of the thread, and a connection
 * that waits to be told costs what any does (gateway/surplus.ts bounds what it sends).
 *
 * RP1  No more are told than PER_MS, beyond a burst of BURST; the others wait, in order.
 * RP2  Nobody waits for longer than WAIT_MS.
 * RP3  REFUSALS_WAITING_MAX wait; one more is told at once.
 */

/** At 30 µs each: a tenth of the thread. More than come to a site whose clients wait as long as they are told to. */
export const PER_MS = 3;
/** 10 ms of the thread. */
export const BURST = 300;
/** What they are told to wait for before they ask again (gateway/problem.ts). */
export const WAIT_MS = 1_000;
/** More than a site has connections. */
export const REFUSALS_WAITING_MAX = 16_384;
/** Fifteen are told together. */
const LOOK_MS = 5;

/** See the file's header. */
export class RefusalPace {
  readonly #nowMs: () => number;
  #waiting: { readonly sinceMs: number; readonly tell: () => void }[] = [];
  /** How many may be told at once, as of then. */
  #room = BURST;
  #sinceMs: number;
  #closed = false;
  /** Runs while somebody waits. */
  #timer: ReturnType<typeof setInterval> | undefined;

  /** @param nowMs a clock that never goes back. */
  constructor(nowMs: () => number = () => performance.now()) {
    this.#nowMs = nowMs;
    this.#sinceMs = nowMs();
  }

  /** How many wait to be told. */
  get size(): number {
    return this.#waiting.length;
  }

  /** null: one may be told now; otherwise when it resolves. */
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

  /** Tells those whose turn it is. */
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

  /** Tells all, and from now on at once: nobody is to wait for a site that goes away. */
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
