/**
 * The arbiter as sites ask it: while it finds out whether a home is gone an asking waits here for a moment, since a
 * refused dial takes a millisecond or two, and who is told `unsure` comes again after a trip and a pause.
 *
 * SU1  It is the arbiter that decides, each time anew: an asking that waits holds nothing, and was granted nothing.
 */
import type { SiteId } from "../../store/ports.ts";
import type { Arbiter } from "./arbiter.ts";
import type { ArbiterAsk, Reply } from "./asks.ts";
import { UNSURE_HELD_MS } from "./limits.ts";

export interface SureArbiterPorts {
  readonly nowMs: () => number;
  readonly after: (ms: number, callback: () => void) => () => void;
  /** Calls back when what is known of a site has changed. */
  readonly onChange: (changed: () => void) => () => void;
}

/** See the file's header. */
export class SureArbiter {
  readonly #arbiter: Pick<Arbiter, "handle">;
  readonly #ports: SureArbiterPorts;
  readonly #waiting = new Set<() => void>();
  #closed = false;

  constructor(arbiter: Pick<Arbiter, "handle">, ports: SureArbiterPorts) {
    this.#arbiter = arbiter;
    this.#ports = ports;
  }

  async handle(from: SiteId, ask: ArbiterAsk): Promise<Reply> {
    const untilMs = this.#ports.nowMs() + UNSURE_HELD_MS;
    for (;;) {
      const changed = Promise.withResolvers<void>();
      // Before it is asked: what changes while it answers counts.
      const unlisten = this.#ports.onChange(changed.resolve);
      const reply = await this.#arbiter.handle(from, ask);
      const leftMs = untilMs - this.#ports.nowMs();
      if (reply.kind !== "row" || reply.outcome !== "unsure" || leftMs <= 0 || this.#closed) {
        unlisten();
        return reply;
      }
      const cancel = this.#ports.after(leftMs, changed.resolve);
      this.#waiting.add(changed.resolve);
      await changed.promise;
      this.#waiting.delete(changed.resolve);
      cancel();
      unlisten();
    }
  }

  close(): void {
    this.#closed = true;
    for (const resolve of this.#waiting) resolve();
  }
}
