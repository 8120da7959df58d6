/**
 * Words of peers that have seen a newer home (docs/protocol/session-frames.md, F4). The home that hears one looks
 * whether it is still the home, which costs it a checkpoint.
 *
 * OR1  Where it still is, the word was false, and it looks less and less often: a peer with a key of this session could
 *      have it look as often as it asks. After a while without such words it believes the next one at once.
 */
import { OUTRUN_MS, OUTRUN_MS_MAX } from "./limits.ts";

/** Words of newer homes (see the file's header). */
export class Outrun {
  readonly #nowMs: () => number;
  #nextMs = -Infinity;
  #pauseMs = OUTRUN_MS;

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  /** Takes the word of a peer, whose key is known, that it has seen a newer home. Returns whether to look now. */
  told(): boolean {
    const nowMs = this.#nowMs();
    if (nowMs < this.#nextMs) return false; // OR1
    const isLongAgo = nowMs - this.#nextMs >= OUTRUN_MS_MAX;
    this.#pauseMs = isLongAgo ? OUTRUN_MS : Math.min(2 * this.#pauseMs, OUTRUN_MS_MAX); // OR1
    this.#nextMs = nowMs + this.#pauseMs;
    return true;
  }
}
