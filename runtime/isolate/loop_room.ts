/**
 * Decides how many requests an isolate is given at a time: as many as its event loop has time for.
 *
 * Requests that only wait for something else cost it nothing, and may be many. Of those that compute, each one more
 * makes all others wait: beyond what the isolate can do they stand in line inside of it, where nobody bounds their
 * time, as the site does with its own line (call_queue.ts). So the isolate is asked for a sign of life, which stands
 * behind all that it was given: how late that comes is how long the line is. By Little's law the line gets as short as
 * it has to be where the isolate is given as many fewer.
 *
 * Life: a few may run → more are wanted: it is asked → answered at once: twice as many may; late: fewer.
 *
 * LR1  One question is under way at a time, some time after the one before: requests that it was given then may have to
 *      wait for a row before they compute. None is sent where there is room: an isolate with little to do is not asked.
 * LR2  An isolate is given LEAST at any rate, so that it has something to do while its answers are on their way.
 */

/**
 * Number of requests that an isolate is given at first: an app's first are few; where more come, and it has time, the
 * first answer has doubled this.
 */
const FIRST = 16;
const LEAST = 2;
/**
 * Milliseconds after which an answer is late: a tenth of what somebody who clicked waits for. A garbage collection is
 * shorter.
 */
const LATE_MS = 100;
/**
 * Milliseconds between an answer and the next question: rows are there within it; sixteen times as many requests run
 * after four questions.
 */
const BETWEEN_MS = 40;

/** The number of requests that an isolate is given at a time. Times are of one clock that never goes back, in ms. */
export class LoopRoom {
  readonly #most: number;
  #room: number;
  #isLate = false;
  #asked: { readonly atMs: number; readonly running: number } | null = null;
  #answeredMs = -Infinity;

  /** @param most number of requests that it may ever be given at a time. */
  constructor(most: number) {
    this.#most = most;
    this.#room = Math.min(FIRST, most);
  }

  /** Reports whether one more may be given to an isolate that has so many. */
  isFor(running: number): boolean {
    return running < this.#room;
  }

  /** True where the isolate would not do more requests sooner than another, as far as its answers tell. */
  get isFull(): boolean {
    return this.#isLate || this.#room >= this.#most;
  }

  /**
   * Notes that more is wanted of an isolate with so many requests than there is room for; returns true where the
   * isolate is to be asked now (LR1).
   */
  wanted(running: number, atMs: number): boolean {
    if (this.#asked !== null || atMs < this.#answeredMs + BETWEEN_MS) return false;
    this.#asked = { atMs, running };
    return true;
  }

  /** Takes the isolate's answer, and gives it more room, or less. */
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
