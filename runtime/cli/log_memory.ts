/**
 * What a follower of logs has shown, so that the stream of another site goes on where the one before broke off.
 *
 * Life: `isNew` for each line → the stream breaks off: `brokeOff` → `sinceMs` asks the next one → `isNew` …
 *
 * M1  A line is left out only where an earlier stream has brought it, and as often as it has: an app may print the
 *     same text many times in a millisecond.
 * M2  Times are compared within one site: its clock may be an hour off.
 */
import type { LogLine } from "../observe/log_line.ts";

/** Lines of other sites may come this much later than what was shown last. */
const OVERLAP_MS = 3_000;
/** Lines by which those that come again are known: more than a site prints in the overlap, but for a flood. */
const LINES_MAX = 4_096;

/** See the file's header. */
export class LogMemory {
  #recent: string[] = [];
  /** How often lines of the streams before are still to come again. */
  #again = new Map<string, number>();
  readonly #lastMs = new Map<string, number>();
  /** The same when the stream before this one broke off; what is older was shown, or was not asked for. */
  #beforeMs = new Map<string, number>();

  /** Whether a line has not been shown; it is from now on. */
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

  /** The stream has broken off: what it has brought comes again. */
  brokeOff(): void {
    this.#again = new Map();
    for (const text of this.#recent.slice(-LINES_MAX)) {
      this.#again.set(text, (this.#again.get(text) ?? 0) + 1);
    }
    this.#beforeMs = new Map(this.#lastMs);
  }

  /** From when on the next stream has to tell; null where nothing was shown. */
  get sinceMs(): number | null {
    return this.#lastMs.size === 0 ? null : Math.min(...this.#lastMs.values()) - OVERLAP_MS;
  }

  /** M2 */
  #isOld({ site, atMs }: LogLine): boolean {
    if (this.#beforeMs.size === 0) return false;
    return atMs < (this.#beforeMs.get(site) ?? Math.max(...this.#beforeMs.values())) - OVERLAP_MS;
  }
}
