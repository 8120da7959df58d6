/**
 * Choice of the failed dials that are logged: one that fails like the one before says nothing new, and a site that is
 * down is dialled twice a second by everything that waits for it.
 *
 * DN1  A reason is logged at once, and again after a minute of the same, with the number of tries meanwhile.
 * DN2  A connection resets this: a dial that fails afterwards is news.
 * DN3  A site where nothing listens yet is no reason to warn: one that restarts is back within {@link START_MS}. The
 *      failure is logged anew, as a warning, when it is not.
 */

/**
 * Milliseconds until the same reason is logged again: often enough for a reader who begins in the middle; a day of it
 * is 1,440 lines, not 170,000.
 */
const AGAIN_MS = 60_000;
/** Milliseconds in which a site that starts beside five others on two busy cores listens. */
const START_MS = 10_000;
/** Reasons remembered a site: they may hold numbers, and one that varies for ever is logged each minute too. */
const REASONS_MAX = 8;

interface Note {
  readonly reasons: Set<string>;
  readonly sinceMs: number;
  hasWarned: boolean;
  toldMs: number;
  untold: number;
}

/** Remembers what was logged, by site. */
export class DialNotes {
  readonly #notes = new Map<string, Note>();
  readonly #nowMs: () => number;

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  /**
   * Notes that a dial failed. Returns what to log beside the reason, or null: nothing (DN1).
   *
   * @param mayStart true where nothing listens there, but may be about to (DN3).
   */
  failed(site: string, reason: string, mayStart = false): { warns: boolean; before?: number } | null {
    const nowMs = this.#nowMs();
    const fresh = { reasons: new Set<string>(), sinceMs: nowMs, hasWarned: false };
    const note = this.#notes.get(site) ?? { ...fresh, toldMs: -Infinity, untold: 0 };
    this.#notes.set(site, note);
    const warns = !mayStart || nowMs - note.sinceMs >= START_MS;
    const isLate = warns && !note.hasWarned;
    if (warns) note.hasWarned = true;
    const isNew = isLate || !note.reasons.has(reason) && note.reasons.size < REASONS_MAX;
    if (!isNew && nowMs - note.toldMs < AGAIN_MS) {
      note.untold++;
      return null;
    }
    note.reasons.add(reason);
    const before = note.untold;
    note.toldMs = nowMs;
    note.untold = 0;
    return before === 0 ? { warns } : { warns, before };
  }

  /** Forgets a site's failures: there is a connection, or the site is no longer known (DN2). */
  connected(site: string): void {
    this.#notes.delete(site);
  }
}
