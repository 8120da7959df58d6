/**
 * Which failed dials are told: one that fails like the one before says nothing new, and a site that is down is dialled
 * twice a second by everything that waits for it.
 *
 * N1  A reason is told at once, and again after a minute of the same with how often it was tried meanwhile.
 * N2  A connection ends it: what fails afterwards is news.
 * N3  A site where nobody listens yet is no reason to warn: one that restarts is back within {@link START_MS}. It is told
 *     anew, as a warning, when it is not.
 */

/** Often enough for who begins to read in the middle; a day of it is 1,440 lines, not 170,000. */
const AGAIN_MS = 60_000;
/** A site that starts beside five others on two busy cores listens within this. */
const START_MS = 10_000;
/** Reasons may hold numbers; what varies for ever is told each minute too. */
const REASONS_MAX = 8;

interface Note {
  readonly reasons: Set<string>;
  readonly sinceMs: number;
  hasWarned: boolean;
  toldMs: number;
  untold: number;
}

/** Remembers what was told, by site. */
export class DialNotes {
  readonly #notes = new Map<string, Note>();
  readonly #nowMs: () => number;

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  /**
   * A dial failed. Returns what to tell beside the reason, or null: nothing (N1).
   *
   * @param mayStart nobody listens there: it may be about to (N3).
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

  /** There is a connection, or the site is no longer known (N2). */
  connected(site: string): void {
    this.#notes.delete(site);
  }
}
