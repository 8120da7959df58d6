/**
 * How many requests may wait for one stateful session: as many as it answers in time.
 *
 * It runs one after the other, in the order in which they came, and what it was given can't be taken back. So who would
 * wait too long is told so as he comes: by Little's law that is whoever finds more before him than are answered within
 * {@link LINE_MS}, at the pace of the answers before.
 *
 * WL1  LEAST may wait at any pace: who waits for handlers that take seconds is no crowd. A pace is that of a crowd: what
 *      one alone waits is mostly the disk, which many share.
 *      That many are answered in a moment is no pace either: where others take the processor, answers come in bursts. It is
 *      quicker where it was so for as long as one may wait, and slower at once.
 *      Until one is known, no answer for PACE_MS, or few, say as much as that: a thousand might come until the first.
 * WL2  While the session is opened nobody is judged, and {@link WAITING_MAX} may wait: they are served as soon as it is
 *      open.
 */

/** Half of what somebody who clicked waits for. */
const LINE_MS = 500;
/** Handlers of 30 ms are done with as many within that time. */
const LEAST = 16;
/** A burst at a session that is not open, or has had no crowd yet. */
const WAITING_MAX = 1_000;
/** Answers that leave with one commit come together: the first pace is that of several. */
const PACE_MS = 100;
/** A crowd that is gone for longer says nothing of the next one: the machine has other things to do by then. */
const FRESH_MS = 60_000;
/** A handler takes so long, or a disk: those who wait already are enough. */
const STALLED_MS = 1_000;

/** See the file's header. Times are of one clock that never goes back, in ms. */
export class SessionRoom {
  #isOpen = false;
  /** What one answer took, the last time that there was a crowd; 0: there was none. */
  #eachMs = 0;
  /** Since when there is one, or since when it is measured; null: there is none. */
  #sinceMs: number | null = null;
  /** What the first answer of a crowd took is its way, and no pace: it is measured from there. */
  #isFirst = false;
  /** When the crowd came. */
  #cameMs = 0;
  /** When there was one last. */
  #lastMs = 0;
  /** Answers since then. */
  #answers = 0;

  /** Whether one more may wait, beside so many. */
  isFor(waiting: number, nowMs: number): boolean {
    if (waiting < LEAST) return true; // WL1
    if (waiting >= WAITING_MAX) return false;
    if (!this.#isOpen) return true; // WL2
    const passedMs = this.#sinceMs === null ? 0 : nowMs - this.#sinceMs;
    if (this.#answers === 0 && passedMs >= STALLED_MS) return false;
    const soFarMs = this.#isFirst && passedMs < PACE_MS ? 0 : passedMs / (this.#answers + 1);
    return waiting * (this.#eachMs || soFarMs) < LINE_MS;
  }

  /** It is open, and so many wait. */
  opened(waiting: number, nowMs: number): void {
    this.#isOpen = true;
    this.came(waiting, nowMs);
  }

  /** It is not open any more. */
  closed(): void {
    this.#isOpen = false;
    this.#sinceMs = null;
  }

  /** One came, and so many wait. */
  came(waiting: number, nowMs: number): void {
    if (!this.#isOpen || waiting < LEAST || this.#sinceMs !== null) return;
    if (nowMs - this.#lastMs > FRESH_MS) this.#eachMs = 0;
    this.#isFirst = true;
    this.#cameMs = this.#sinceMs = nowMs;
    this.#answers = 0;
  }

  /** One was answered, and so many wait. */
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
