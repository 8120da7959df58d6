/**
 * Timeout of a silent stream: every stream of a site gives a sign of life (a line, or a blank one) each few seconds, so
 * a silent one is of a site that stands still, though its connection does not know.
 *
 * Life: `begins` before each read → `throwIfLong` after it → `using` ends it.
 */
import { clearTimeout, setTimeout } from "node:timers";

/**
 * Milliseconds of silence allowed: three signs of life (LIFE_SIGN_MS of runtime/observe/ndjson.ts), so that one that is
 * late on a busy machine is not missed.
 */
export const SILENCE_MS_MAX = 15_000;

/** Watches one stream. */
export class Silence {
  readonly #long = new AbortController();
  readonly #msMax: number;
  #timer: ReturnType<typeof setTimeout> | null = null;
  /** Signal that aborts when the stream was silent for too long, or the given signal does. */
  readonly signal: AbortSignal;

  constructor(signal: AbortSignal | undefined, msMax: number = SILENCE_MS_MAX) {
    this.#msMax = msMax;
    this.signal = signal === undefined ? this.#long.signal : AbortSignal.any([signal, this.#long.signal]);
    this.begins();
  }

  /** Begins to wait for a sign of life; `msMax` where this wait may be longer than one between two signs. */
  begins(msMax: number = this.#msMax): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = setTimeout(
      () => this.#long.abort(new Error(`nothing came within ${msMax / 1000} s`)),
      msMax,
    );
  }

  /** True when the stream was silent for too long. */
  get isLong(): boolean {
    return this.#long.signal.aborted;
  }

  /** Throws when the stream was silent for too long. */
  throwIfLong(): void {
    this.#long.signal.throwIfAborted();
  }

  [Symbol.dispose](): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
  }
}
