/**
 * Memory of the lines that a follower of logs has shown, so that the stream of another site goes on where the one
 * before broke off.
 *
 * Life: `isNew` for each line → the stream breaks off: `brokeOff` → `sinceMs` asks the next one → `isNew` …
 *
 * M1  A line is left out only where an earlier stream has brought it, and as many times as that has: an app may print
 *     the same text many times in a millisecond.
 * M2  Times are compared within one site: its clock may be an hour off.
 */
import type { LogLine } from "../observe/log_line.ts";

/** Milliseconds by which lines of other sites may come later than the line shown last. */
const OVERLAP_MS = 3_000;
/** Lines by which repeated ones are known: more than a site prints in the overlap, but for a flood. */
const LINES_MAX = 4_096;

/** The shown lines of one follower. */
export class LogMemory {
  #recent: string[] = [];
  /** Number of times that each line of the former streams is still to come again. */
  #again = new Map<string, number>();
  readonly #lastMs = new Map<string, number>();
  /** Last times by site when the former stream broke off; an older line was shown, or was not asked for. */
  #beforeMs = new Map<string, number>();

  /** Reports whether a line has not been shown; from now on it counts as shown. */
  isNew(line: LogLine): boolean {
    if (this.#isOld(line)) return false;
    const text = JSON.stringify(line);
    const again = this.#again.get(text) ?? 0;
    if (again > 0) {
      this.#again.set(text, again - 1);
      return false;
    }
    this.#recent.push(text);
    if (this.#recent.length > 2 * LINES_MAX) this.#recent = this.#recent.slice(-LINES_MAX);
    this.#lastMs.set(line.site, Math.max(line.atMs, this.#lastMs.get(line.site) ?? 0));
    return true;
  }

  /** Notes that the stream has broken off: the next one brings its last lines again. */
  brokeOff(): void {
    this.#again = new Map();
    for (const text of this.#recent.slice(-LINES_MAX)) {
      this.#again.set(text, (this.#again.get(text) ?? 0) + 1);
    }
    this.#beforeMs = new Map(this.#lastMs);
  }

  /** Time from which the next stream has to tell; null where nothing was shown. */
  get sinceMs(): number | null {
    return this.#lastMs.size === 0 ? null : Math.min(...this.#lastMs.values()) - OVERLAP_MS;
  }

  /** Reports whether a line is older than the site's last one of the former stream, beyond the overlap (M2). */
  #isOld({ site, atMs }: LogLine): boolean {
    if (this.#beforeMs.size === 0) return false;
    return atMs < (this.#beforeMs.get(site) ?? Math.max(...this.#beforeMs.values())) - OVERLAP_MS;
  }
}
