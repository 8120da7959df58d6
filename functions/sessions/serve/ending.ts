/**
 * The end of a stateful session that called `end()`: its log goes when those who wait for its last answers have them, so
 * that a caller who did not hear one, and asks again, is told what was done and does not begin a new session with it.
 *
 * Life: its last commit has left → heard by all, or long ago, or somebody wants it to begin anew → `over` resolves.
 *
 * EN1  Until then the log is where it was: a site that replays it finds the same answers.
 * EN2  Answers that nobody has heard are given back in the end; the site keeps them for a while for callers who ask
 *      when the session has begun anew there.
 * EN3  A caller wants the session to begin anew who asks while it ends, or who had asked before and was not come to.
 */
import type { PeerClock } from "../attach/mod.ts";

/** Milliseconds within which a caller whose way broke asks again (router.ts, REACH_MS_MAX). */
const HEARD_MS_MAX = 15_000;

/** See the file's header. */
export class Ending {
  readonly #unheard: Map<string, Uint8Array>;
  readonly #over = Promise.withResolvers<void>();
  readonly #cancel: () => void;

  constructor(
    answers: readonly { readonly request: string; readonly bytes: Uint8Array }[],
    clock: PeerClock,
  ) {
    this.#unheard = new Map(answers.map(({ request, bytes }) => [request, bytes]));
    this.#cancel = clock.after(HEARD_MS_MAX, () => this.now());
    if (this.#unheard.size === 0) this.now(); // EN1
  }

  get over(): Promise<void> {
    return this.#over.promise;
  }

  /** Answers that nobody has heard, by request (EN2). */
  get unheard(): ReadonlyMap<string, Uint8Array> {
    return this.#unheard;
  }

  heard(request: string): void {
    if (this.#unheard.delete(request) && this.#unheard.size === 0) this.now(); // EN1, EN2
  }

  now(): void {
    this.#cancel();
    this.#over.resolve();
  }
}
