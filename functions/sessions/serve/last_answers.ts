/**
 * The last answers of stateful sessions that ended here and that nobody has heard: a caller who asks again is given
 * them, also where the session has begun anew by then (ending.ts, EN2).
 *
 * LA1  Each is kept for a time, all together in a number of bytes: the oldest go first.
 */
import type { PeerClock } from "../attach/mod.ts";

interface Kept {
  readonly bytes: Uint8Array;
  readonly untilMs: number;
}

/**
 * Bytes of the answers of all sessions of a site that ended: a quarter of what the answers of living sessions may take
 * (functions/sessions/log/limits.ts).
 */
const BYTES_MAX = 64 << 20;
/** Cost of an answer beside its bytes. */
const COST_BYTES = 256;

/** See the file's header. */
export class LastAnswers {
  readonly #clock: PeerClock;
  readonly #keptMs: number;
  readonly #bytesMax: number;
  /** Answers in the order in which they go. */
  readonly #kept = new Map<string, Kept>();
  #bytes = 0;

  constructor(clock: PeerClock, keptMs: number, bytesMax = BYTES_MAX) {
    this.#clock = clock;
    this.#keptMs = keptMs;
    this.#bytesMax = bytesMax;
  }

  /** Keeps answers. @param session one text for the session's name. */
  keep(session: string, answers: ReadonlyMap<string, Uint8Array>): void {
    const untilMs = this.#clock.nowMs() + this.#keptMs;
    for (const [request, bytes] of answers) {
      const key = keyOf(session, request);
      this.#drop(key);
      this.#kept.set(key, { bytes, untilMs });
      this.#bytes += bytes.length + COST_BYTES;
    }
    this.sweep();
  }

  get(session: string, request: string): Uint8Array | null {
    const kept = this.#kept.get(keyOf(session, request));
    return kept === undefined || kept.untilMs <= this.#clock.nowMs() ? null : kept.bytes;
  }

  get size(): number {
    return this.#kept.size;
  }

  /** Drops answers whose time is up, or that have no room (LA1). */
  sweep(): void {
    const nowMs = this.#clock.nowMs();
    for (const [key, { untilMs }] of this.#kept) {
      if (untilMs > nowMs && this.#bytes <= this.#bytesMax) return;
      this.#drop(key);
    }
  }

  #drop(key: string): void {
    const kept = this.#kept.get(key);
    if (kept === undefined) return;
    this.#kept.delete(key);
    this.#bytes -= kept.bytes.length + COST_BYTES;
  }
}

const keyOf = (session: string, request: string): string => `${session}\0${request}`;
