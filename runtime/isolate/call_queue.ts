/**
 * Calls that wait for a place in an isolate: a queue that is bounded by time, beside the number that may wait.
 *
 * A burst waits and is served in order. A queue that stands for {@link STANDS_MS} is no burst: more calls come than can
 * be done, and a call that waits its turn in it is served when its client has gone. From then on the newest go first,
 * and a call that has waited {@link WAIT_MS} is refused at once (controlled delay, Nichols and Jacobson, "Controlling
 * Queue Delay", 2012; the newest first while it lasts, Maurer, "Fail at Scale", 2015).
 *
 * Calls at its end would be refused in the end: so no more wait then than are begun within {@link LINE_MS}, and a call
 * that comes when it is full is refused at once. The next to come after one has begun is the newest, and goes first.
 *
 * Q1  A call that was put in comes out once: by `next`, by `shed`, or by `takeAll`.
 * Q2  While nobody begins calls (the first isolate starts, the only one is stuck) nothing is judged: calls that wait
 *     are served as soon as somebody does.
 */

/**
 * Milliseconds for which a burst may keep the queue from being empty: longer than an isolate takes to start, or the
 * garbage collector of a site.
 */
const STANDS_MS = 1_000;
/** Milliseconds that a call may wait in a standing queue: about what somebody who clicked waits for. */
const WAIT_MS = 1_000;
/**
 * Milliseconds' worth of calls that may wait in a standing queue: they bridge what an isolate needs until it is given
 * more, and a turn of the site's thread.
 */
const LINE_MS = 500;
/** Number of calls that may wait at any pace: as many as an isolate is given at once (loop_room.ts). */
const LINE_LEAST = 16;

interface Waiting<T> {
  readonly call: T;
  readonly sinceMs: number;
}

/** A bounded queue of calls, by the rules of the file's header. Times are of one clock that never goes back, in ms. */
export class CallQueue<T> {
  #waiting: Waiting<T>[] = [];
  /** Time since which the queue has not been empty, and somebody began calls. */
  #standsMs = 0;
  /** Time at which the queue was emptied because all had waited too long: that it is empty then says nothing. */
  #emptiedMs = -Infinity;
  /** Number of calls begun in the period of LINE_MS since `sinceMs` (`begun`), and in the one before it (`before`). */
  #pace = { sinceMs: 0, begun: 0, before: 0 };

  get size(): number {
    return this.#waiting.length;
  }

  push(call: T, nowMs: number): void {
    if (this.#waiting.length === 0 && nowMs - this.#emptiedMs >= LINE_MS) this.#standsMs = nowMs;
    this.#emptiedMs = -Infinity;
    this.#waiting.push({ call, sinceMs: nowMs });
  }

  /** Puts calls that had been begun, and come back, before all others. */
  return(calls: readonly T[], nowMs: number): void {
    if (this.#waiting.length === 0) this.#standsMs = nowMs;
    this.#waiting.unshift(...calls.map((call) => ({ call, sinceMs: nowMs })));
  }

  /** Reports whether the queue stands: more calls come than can be done. */
  isStanding(nowMs: number): boolean {
    return this.#waiting.length > 0 && nowMs - this.#standsMs >= STANDS_MS;
  }

  /**
   * Reports whether no more calls may wait: `most` do, or, in a standing queue, as many as are begun within LINE_MS.
   */
  isFull(most: number, nowMs: number): boolean {
    if (this.size < LINE_LEAST) return this.size >= most;
    if (!this.isStanding(nowMs)) return this.size >= most;
    const { begun, before } = this.#paceAt(nowMs);
    return this.size >= Math.min(most, Math.max(LINE_LEAST, begun, before));
  }

  /** Takes out the call that is to begin now. */
  next(nowMs: number): T | undefined {
    this.#paceAt(nowMs).begun++;
    return (this.isStanding(nowMs) ? this.#waiting.pop() : this.#waiting.shift())?.call;
  }

  /** Starts the time anew from which a queue is taken to stand, while nobody begins calls (Q2). */
  nobodyServes(nowMs: number): void {
    this.#standsMs = nowMs;
  }

  /** Takes out the calls that have waited too long. */
  shed(nowMs: number): T[] {
    if (!this.isStanding(nowMs)) return [];
    // Calls that came back may be younger than those behind them: each is looked at.
    const late = this.#waiting.filter(({ sinceMs }) => nowMs - sinceMs >= WAIT_MS);
    if (late.length > 0) this.#waiting = this.#waiting.filter(({ sinceMs }) => nowMs - sinceMs < WAIT_MS);
    if (late.length > 0 && this.#waiting.length === 0) this.#emptiedMs = nowMs;
    return late.map(({ call }) => call);
  }

  /** Returns the pace of the period that a time is in; what was begun long ago counts no more. */
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
