/**
 * Room for requests that wait for one stateful session: as many as it answers in time.
 *
 * A session runs requests one after the other, in the order in which they came, and one that it was given can't be
 * taken back. So a request that would wait too long is refused as it comes: by Little's law that is one that finds more
 * before it than are answered within {@link LINE_MS}, at the pace of the answers before.
 *
 * WL1  LEAST may wait at any pace: callers that wait for handlers which take seconds are no crowd. A pace is that of a
 *      crowd: what a request alone waits for is mostly the disk, which many share. A number of answers within a moment
 *      is no pace either: where other work takes the processor, answers come in bursts. The pace counts as quicker when
 *      it was so for as long as a request may wait, and as slower at once. Until a pace is known, no answer for
 *      PACE_MS, or few, say as much as that: a thousand requests might come until the first answer.
 * WL2  While the session is opened no request is refused for its wait, and {@link WAITING_MAX} may wait: they are
 *      served as soon as it is open.
 */

/** Milliseconds that a request may wait in line: half of the time for which a person who clicked waits. */
const LINE_MS = 500;
/** Number of requests that may wait at any pace: handlers of 30 ms are done with as many within that time. */
const LEAST = 16;
/** Number of requests that may wait at most: a burst at a session that is not open, or has had no crowd yet. */
const WAITING_MAX = 1_000;
/**
 * Milliseconds over which a first pace is measured: answers that leave with one commit come together, so it is the pace
 * of several.
 */
const PACE_MS = 100;
/**
 * Milliseconds after which a crowd that is gone says nothing of the next one: the machine has other things to do by
 * then.
 */
const FRESH_MS = 60_000;
/**
 * Milliseconds without an answer after which no more may wait: a handler takes that long, or a disk, and the requests
 * that wait already are enough.
 */
const STALLED_MS = 1_000;

/** Room of one session. Times are of one clock that never goes back, in ms. */
export class SessionRoom {
  #isOpen = false;
  /** Milliseconds that one answer took, the last time that there was a crowd; 0: there was none. */
  #eachMs = 0;
  /** Time since which there is a crowd, or since which it is measured; null: there is none. */
  #sinceMs: number | null = null;
  /**
   * True until the first answer of a crowd. The time of that one is its way, and no pace: the pace is measured from
   * there.
   */
  #isFirst = false;
  /** Time at which the crowd came. */
  #cameMs = 0;
  /** Time at which there was a crowd last. */
  #lastMs = 0;
  /** Number of answers since `#sinceMs`. */
  #answers = 0;

  /** Reports whether one more request may wait, beside `waiting` others. */
  isFor(waiting: number, nowMs: number): boolean {
    if (waiting < LEAST) return true; // WL1
    if (waiting >= WAITING_MAX) return false;
    if (!this.#isOpen) return true; // WL2
    const passedMs = this.#sinceMs === null ? 0 : nowMs - this.#sinceMs;
    if (this.#answers === 0 && passedMs >= STALLED_MS) return false;
    const soFarMs = this.#isFirst && passedMs < PACE_MS ? 0 : passedMs / (this.#answers + 1);
    return waiting * (this.#eachMs || soFarMs) < LINE_MS;
  }

  /** Notes that the session is open, while `waiting` requests wait. */
  opened(waiting: number, nowMs: number): void {
    this.#isOpen = true;
    this.came(waiting, nowMs);
  }

  /** Notes that the session is not open any more. */
  closed(): void {
    this.#isOpen = false;
    this.#sinceMs = null;
  }

  /** Notes a request that came; `waiting` wait with it. */
  came(waiting: number, nowMs: number): void {
    if (!this.#isOpen || waiting < LEAST || this.#sinceMs !== null) return;
    if (nowMs - this.#lastMs > FRESH_MS) this.#eachMs = 0;
    this.#isFirst = true;
    this.#cameMs = this.#sinceMs = nowMs;
    this.#answers = 0;
  }

  /** Notes a request that was answered; `waiting` wait still. */
  answered(waiting: number, nowMs: number): void {
    if (this.#sinceMs === null) return;
    if (this.#isFirst) this.#sinceMs = nowMs;
    else this.#answers++;
    this.#isFirst = false;
    const tookMs = nowMs - this.#sinceMs;
    const eachMs = tookMs / Math.max(1, this.#answers);
    if (tookMs >= (eachMs > this.#eachMs ? PACE_MS : LINE_MS)) {
      this.#eachMs = eachMs;
      this.#sinceMs = nowMs;
      this.#answers = 0;
    }
    this.#lastMs = nowMs;
    if (waiting >= LEAST) return;
    if (this.#eachMs === 0) this.#eachMs = (nowMs - this.#cameMs) / (this.#answers + 1);
    this.#sinceMs = null;
  }
}
