/**
 * Calls that wait for a place in an isolate: a queue that is bounded by time, beside the number that may wait.
 *
 * A burst waits and is served in order. A queue that stands for {@link STANDS_MS} is no burst: more comes than can be
 * done, and whoever waits its turn in it is served when its client has gone. From then on the newest go first, and what
 * has waited {@link WAIT_MS} is told so at once (controlled delay, Nichols and Jacobson, "Controlling Queue Delay", 2012; the
 * newest first while it lasts, Maurer, "Fail at Scale", 2015).
 *
 * Q1  A call that was put in comes out once: by `next`, by `shed`, or by `takeAll`.
 * Q2  While nobody begins calls (the first isolate starts, the only one is stuck) nothing is judged: those who wait are
 *     served as soon as somebody does.
 */

/** Longer than an isolate takes to start, or the garbage collector of a site. */
const STANDS_MS = 1_000;
/** What somebody who clicked waits for. */
const WAIT_MS = 1_000;

interface Waiting<T> {
  readonly call: T;
  readonly sinceMs: number;
}

/** See the file's header. Times are of one clock that never goes back, in ms. */
export class CallQueue<T> {
  #waiting: Waiting<T>[] = [];
  /** Since when it has not been empty, and somebody began calls. */
  #standsMs = 0;

  get size(): number {
    return this.#waiting.length;
  }

  push(call: T, nowMs: number): void {
    if (this.#waiting.length === 0) this.#standsMs = nowMs;
    this.#waiting.push({ call, sinceMs: nowMs });
  }

  /** Those that had been begun, and come back, go first. */
  return(calls: readonly T[], nowMs: number): void {
    if (this.#waiting.length === 0) this.#standsMs = nowMs;
    this.#waiting.unshift(...calls.map((call) => ({ call, sinceMs: nowMs })));
  }

  /** More comes than can be done. */
  isStanding(nowMs: number): boolean {
    return this.#waiting.length > 0 && nowMs - this.#standsMs >= STANDS_MS;
  }

  /** Who is begun now. */
  next(nowMs: number): T | undefined {
    return (this.isStanding(nowMs) ? this.#waiting.pop() : this.#waiting.shift())?.call;
  }

  /** Q2 */
  nobodyServes(nowMs: number): void {
    this.#standsMs = nowMs;
  }

  /** Takes out those who have waited too long. */
  shed(nowMs: number): T[] {
    if (!this.isStanding(nowMs)) return [];
    // Those that came back may be younger than who stands behind them: each is looked at.
    const late = this.#waiting.filter(({ sinceMs }) => nowMs - sinceMs >= WAIT_MS);
    if (late.length > 0) this.#waiting = this.#waiting.filter(({ sinceMs }) => nowMs - sinceMs < WAIT_MS);
    return late.map(({ call }) => call);
  }

  /** Takes the one out that has waited longest, for a newer one. */
  shedOldest(): T | undefined {
    return this.#waiting.shift()?.call;
  }

  takeAll(): T[] {
    const all = this.#waiting.map(({ call }) => call);
    this.#waiting = [];
    return all;
  }
}
