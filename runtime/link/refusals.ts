/**
 * Log of refused connections: strangers may try as often as they like, so each source gets one line a minute with the
 * number of those left out, and the number of sources remembered is bounded.
 */
const QUIET_MS = 60_000;
const SOURCES_MAX = 1_024;

export class Refusals {
  readonly #nowMs: () => number;
  readonly #log: (source: string, reason: string, before: number) => void;
  #sources = new Map<string, { sinceMs: number; unlogged: number }>();
  /** Number of refusals since start. */
  count = 0;

  /** @param log called with the source, the reason, and the number of refusals since the last line. */
  constructor(nowMs: () => number, log: (source: string, reason: string, before: number) => void) {
    this.#nowMs = nowMs;
    this.#log = log;
  }

  add(source: string, reason: string): void {
    this.count++;
    const nowMs = this.#nowMs();
    const known = this.#sources.get(source);
    if (known && nowMs - known.sinceMs < QUIET_MS) {
      known.unlogged++;
      return;
    }
    if (!known && this.#sources.size >= SOURCES_MAX) this.#forget(nowMs);
    this.#sources.set(source, { sinceMs: nowMs, unlogged: 0 });
    this.#log(source, reason, known?.unlogged ?? 0);
  }

  #forget(nowMs: number): void {
    for (const [source, { sinceMs }] of this.#sources) {
      if (nowMs - sinceMs >= QUIET_MS) this.#sources.delete(source);
    }
    // All entries are fresh: the oldest goes, at the price of a line too many.
    const oldest = this.#sources.keys().next();
    if (this.#sources.size >= SOURCES_MAX && !oldest.done) this.#sources.delete(oldest.value);
  }
}
