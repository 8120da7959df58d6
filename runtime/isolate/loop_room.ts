/**
 * How many requests an isolate is given at a time: as many as its event loop has time for.
 *
 * Requests that only wait for something else cost it nothing, and may be many. Of those that compute, each one more makes
 * all others wait: beyond what it can do they stand in line inside of it, where nobody bounds their time, as the site does
 * with its own line (call_queue.ts). So it is asked for a sign of life, which stands behind all that it was given: how late
 * that comes is how long the line is. By Little's law it is as long as it may be where there are as many fewer.
 *
 * Life: a few may run → more are wanted: it is asked → answered at once: twice as many may; late: fewer.
 *
 * LR1  One question is under way at a time, some time after the one before: what it was given then may have to wait for a row
 *      before it computes. None where there is room: an isolate with little to do is not asked.
 * LR2  It is given LEAST at any rate, so that it has something to do while its answers are on their way.
 */

/** An app's first requests are few; where more come, and it has time, the first answer has doubled this. */
const FIRST = 16;
const LEAST = 2;
/** A tenth of what somebody who clicked waits for. A garbage collection is shorter. */
const LATE_MS = 100;
/** Rows are there within it; sixteen times as many run after four questions. */
const BETWEEN_MS = 40;

/** See the file's header. Times are of one clock that never goes back, in ms. */
export class LoopRoom {
  readonly #most: number;
  #room: number;
  #isLate = false;
  #asked: { readonly atMs: number; readonly running: number } | null = null;
  #answeredMs = -Infinity;

  /** @param most that it may ever be given at a time. */
  constructor(most: number) {
    this.#most = most;
    this.#room = Math.min(FIRST, most);
  }

  /** Whether one more may be given to an isolate that has so many. */
  isFor(running: number): boolean {
    return running < this.#room;
  }

  /** More would not be done sooner by it, as far as it has said. */
  get isFull(): boolean {
    return this.#isLate || this.#room >= this.#most;
  }

  /** More is wanted than there is room for, of an isolate that has so many; true where it is to be asked now (LR1). */
  wanted(running: number, atMs: number): boolean {
    if (this.#asked !== null || atMs < this.#answeredMs + BETWEEN_MS) return false;
    this.#asked = { atMs, running };
    return true;
  }

  /** It has answered. */
  answered(nowMs: number): void {
    if (this.#asked === null) return;
    const { atMs, running } = this.#asked, lateMs = nowMs - atMs;
    this.#asked = null;
    this.#answeredMs = nowMs;
    this.#isLate = lateMs >= LATE_MS / 2;
    if (lateMs > LATE_MS) this.#room = Math.max(LEAST, Math.floor(running * LATE_MS / lateMs));
    else if (!this.#isLate) this.#room = Math.min(this.#most, 2 * this.#room);
  }
}
