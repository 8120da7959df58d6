/**
 * What a home does when a peer says that it has seen a newer one (docs/protocol/session-frames.md, F4): it looks whether it
 * is one still, which costs it a checkpoint.
 *
 * OR1  Where it still is one the word was false, and it looks less and less often: whoever has a key of this session could
 *      have it look as often as it asks. After a while without such words it believes the next one at once.
 */
import { OUTRUN_MS, OUTRUN_MS_MAX } from "./limits.ts";

/** See the file's header. */
export class Outrun {
  readonly #nowMs: () => number;
  #nextMs = -Infinity;
  #pauseMs = OUTRUN_MS;

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  /** A peer whose key is known has seen a newer home: whether it is to be looked now. */
  told(): boolean {
    const nowMs = this.#nowMs();
    if (nowMs < this.#nextMs) return false; // OR1
    const isLongAgo = nowMs - this.#nextMs >= OUTRUN_MS_MAX;
    this.#pauseMs = isLongAgo ? OUTRUN_MS : Math.min(2 * this.#pauseMs, OUTRUN_MS_MAX); // OR1
    this.#nextMs = nowMs + this.#pauseMs;
    return true;
  }
}
