/**
 * The limit on log lines about one source: a source that misbehaves does so often, and gets one line a minute with the
 * count of those left out; the number of sources remembered is bounded.
 */
import { QUIET_MS, QUIET_SOURCES_MAX } from "./limits.ts";

/** Limit that lets one line a minute through for each source. */
export class Quiet {
  readonly #nowMs: () => number;
  readonly #sources = new Map<string, { sinceMs: number; unsaid: number }>();

  /** Makes a limit. @param nowMs a clock that never goes back. */
  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  /** Returns how many lines were left out since the last one; null where this one is left out too. */
  admits(source: string): number | null {
    const nowMs = this.#nowMs();
    const known = this.#sources.get(source);
    if (known !== undefined && nowMs - known.sinceMs < QUIET_MS) {
      known.unsaid++;
      return null;
    }
    this.#sources.delete(source);
    // The oldest source is forgotten, at the price of a line too many.
    const [oldest] = this.#sources.keys();
    if (oldest !== undefined && this.#sources.size >= QUIET_SOURCES_MAX) this.#sources.delete(oldest);
    this.#sources.set(source, { sinceMs: nowMs, unsaid: 0 });
    return known?.unsaid ?? 0;
  }
}
