/**
 * Outcomes of requests to origins, kept for stateful sessions that ask again because their home was lost before its log
 * had them.
 *
 * KO1  Asked again with the same key while it runs or is kept, a request is not made again.
 * KO2  What failed is not kept: whether the origin did it nobody knows, and the session that asks again wants it done.
 */
import type { CallOutcome } from "../../functions/turns/mod.ts";

/** A home that is lost is taken over long before, unless an operator is needed. */
const KEPT_MS = 10 * 60_000;
/** Of all outcomes together: a sixteenth of what a small root's process has. */
const KEPT_BYTES_MAX = 64 << 20;
/** What one costs beside its bytes. */
const OVERHEAD_BYTES = 300;

interface Kept {
  readonly outcome: Promise<CallOutcome>;
  /** 0 while it runs. */
  bytes: number;
  atMs: number;
}

/** See the file's header. */
export class KeptOutcomes {
  readonly #kept = new Map<string, Kept>();
  readonly #nowMs: () => number;
  readonly #bytesMax: number;
  #bytes = 0;

  constructor(nowMs: () => number, bytesMax = KEPT_BYTES_MAX) {
    this.#nowMs = nowMs;
    this.#bytesMax = bytesMax;
  }

  /** For tests and metrics. */
  get size(): number {
    return this.#kept.size;
  }

  /** KO1 */
  once(key: string, make: () => Promise<CallOutcome>): Promise<CallOutcome> {
    const known = this.#kept.get(key);
    if (known !== undefined) return known.outcome;
    const kept: Kept = { outcome: make(), bytes: 0, atMs: 0 };
    this.#kept.set(key, kept);
    kept.outcome.then(
      (outcome) => outcome.ok ? this.#keep(key, kept, outcome.bytes.length) : this.#kept.delete(key),
      () => this.#kept.delete(key),
    );
    return kept.outcome;
  }

  #keep(key: string, kept: Kept, length: number): void {
    kept.bytes = length + OVERHEAD_BYTES;
    kept.atMs = this.#nowMs();
    this.#bytes += kept.bytes;
    // In the order in which they ended: the oldest come first.
    this.#kept.delete(key);
    this.#kept.set(key, kept);
    const beforeMs = kept.atMs - KEPT_MS;
    for (const [each, { bytes, atMs }] of this.#kept) {
      if (bytes === 0) continue;
      if (this.#bytes <= this.#bytesMax && atMs > beforeMs) break;
      this.#kept.delete(each);
      this.#bytes -= bytes;
    }
  }
}
