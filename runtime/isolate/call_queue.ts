/**
 * Calls that wait for a place in an isolate: a queue that is bounded by time, beside the number that may wait.
 *
 * A burst waits and is served in order. A queue that stands for {@link STANDS_MS} is no burst: more comes than can be
 * done, and whoever waits its turn in it is served when its client has gone. From then on the newest go first, and what
 * has waited {@link WAIT_MS} is told so at once (controlled delay, Nichols and Jacobson, "Controlling Queue Delay", 2012; the
 * newest first while it lasts, Maurer, "Fail at Scale", 2015).
 *
 * Those at its end would be sent away in the end: so no more wait then than are begun within {@link LINE_MS}, and who comes
 * when it is full hears so at once. The next to come after one has begun is the newest, and goes first.
 *
 * Q1  A call that was put in comes out once: by `next`, by `shed`, or by `takeAll`.
 * Q2  While nobody begins calls (the first isolate starts, the only one is stuck) nothing is judged: those who wait are
 *     served as soon as somebody does.
 */

/** Longer than an isolate takes to start, or the garbage collector of a site. */
const STANDS_MS = 1_000;
/** What somebody who clicked waits for. */
const WAIT_MS = 1_000;
/** It bridges what an isolate needs until it is given more, and a turn of the site's thread. */
const LINE_MS = 500;
/** At any pace: as an isolate is given at once (loop_room.ts). */
const LINE_LEAST = 16;

interface Waiting<T> {
  readonly call: T;
  readonly sinceMs: number;
}

/** See the file's header. Times are of one clock that never goes back, in ms. */
export class CallQueue<T> {
  #waiting: Waiting<T>[] = [];
  /** Since when it has not been empty, and somebody began calls. */
  #standsMs = 0;
  /** When it was emptied because all had waited too long: that it is empty then says nothing. */
  #emptiedMs = -Infinity;
  /** Calls that were begun in the LINE_MS that began then, and in those before. */
  #pace = { sinceMs: 0, begun: 0, before: 0 };

  get size(): number {
    return this.#waiting.length;
  }

  push(call: T, nowMs: number): void {
    if (this.#waiting.length === 0 && nowMs - this.#emptiedMs >= LINE_MS) this.#standsMs = nowMs;
    this.#emptiedMs = -Infinity;
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

  /** Whether no more may wait: `most`, or what is begun within LINE_MS where more comes than can be done. */
  isFull(most: number, nowMs: number): boolean {
    if (this.size < LINE_LEAST) return this.size >= most;
    if (!this.isStanding(nowMs)) return this.size >= most;
    const { begun, before } = this.#paceAt(nowMs);
    return this.size >= Math.min(most, Math.max(LINE_LEAST, begun, before));
  }

  /** Who is begun now. */
  next(nowMs: number): T | undefined {
    this.#paceAt(nowMs).begun++;
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
    if (late.length > 0 && this.#waiting.length === 0) this.#emptiedMs = nowMs;
    return late.map(({ call }) => call);
  }

  /** The pace as it is counted then: what was begun long ago says nothing. */
  #paceAt(nowMs: number): { begun: number; readonly before: number } {
    const passedMs = nowMs - this.#pace.sinceMs;
    if (passedMs >= LINE_MS) {
      this.#pace = { sinceMs: nowMs, begun: 0, before: passedMs < 2 * LINE_MS ? this.#pace.begun : 0 };
    }
    return this.#pace;
  }

  takeAll(): T[] {
    const all = this.#waiting.map(({ call }) => call);
    this.#waiting = [];
    return all;
  }
}
