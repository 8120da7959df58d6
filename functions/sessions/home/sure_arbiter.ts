/**
 * Arbiter as sites ask it: an ask waits here for what the arbiter has to find out first, for a moment.
 *
 * - Whether a home is gone (`unsure`): a refused dial takes a millisecond or two, and a site that is told so comes
 *   again after a trip and a pause.
 * - Whether it knows all that it knew (`waits`): sites that have not told are mostly about to be there, after its start.
 * - What there is to know of one name (`unsettled`), where its disk went back.
 *
 * SU1  The arbiter decides, each time anew: an ask that waits holds nothing, and was granted nothing.
 */
import type { SiteId } from "../../../store/model/ports.ts";
import type { StatefulName } from "../log/api.ts";
import type { Arbiter, ArbiterAnswer } from "./arbiter.ts";
import type { ArbiterAsk, Reply } from "../log/asks.ts";
import type { Certainty } from "./certainty.ts";
import { SETTLE_HELD_MS, UNSURE_HELD_MS, WAITS_HELD_MS } from "../log/limits.ts";

export interface SureArbiterPorts {
  readonly nowMs: () => number;
  readonly after: (ms: number, callback: () => void) => () => void;
  /** Calls back when what is known of a site has changed. */
  readonly onChange: (changed: () => void) => () => void;
  readonly certainty: Pick<Certainty, "onChange">;
  /**
   * Finds out what there is to know of a name. Returns the sites that are missed for that; none: the name is on record.
   */
  readonly settle: (name: StatefulName) => Promise<readonly SiteId[]>;
}

/** Answer that is not given before the ask has waited. */
type Unfound = Exclude<ArbiterAnswer, Reply> | Extract<Reply, { readonly kind: "row" | "waits" }>;

/** Arbiter as sites ask it (see the file's header). */
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
    const { nowMs, onChange, certainty } = this.#ports;
    const beganMs = nowMs();
    let missed: readonly SiteId[] = [];
    for (;;) {
      const changed = Promise.withResolvers<void>();
      // Before the ask: what changes while the arbiter answers counts.
      const unlisten = [onChange(changed.resolve), certainty.onChange(changed.resolve)];
      const answer = await this.#arbiter.handle(from, ask);
      const leftMs = beganMs + heldMsOf(answer) - nowMs();
      const isHeld = isUnfound(answer) && leftMs > 0 && !this.#closed; // SU1
      if (isHeld) {
        if (answer.kind === "unsettled") {
          void this.#ports.settle(answer.name).then((sites) => {
            missed = sites;
            if (sites.length === 0) changed.resolve();
          });
        }
        await this.#within(leftMs, changed);
      }
      for (const end of unlisten) end();
      if (!isHeld) return this.#replyOf(answer, missed);
    }
  }

  close(): void {
    this.#closed = true;
    for (const resolve of this.#waiting) resolve();
  }

  #replyOf(answer: ArbiterAnswer, missed: readonly SiteId[]): Reply {
    return answer.kind === "unsettled" ? { kind: "waits", sites: missed } : answer;
  }

  async #within(ms: number, { promise, resolve }: PromiseWithResolvers<void>): Promise<void> {
    const cancel = this.#ports.after(ms, resolve);
    this.#waiting.add(resolve);
    await promise;
    this.#waiting.delete(resolve);
    cancel();
  }
}

const isUnfound = (answer: ArbiterAnswer): answer is Unfound =>
  answer.kind === "row" ? answer.outcome === "unsure" : UNFOUND.has(answer.kind);
const UNFOUND: ReadonlySet<string> = new Set(["waits", "unsettled"]);

function heldMsOf({ kind }: ArbiterAnswer): number {
  if (kind === "unsettled") return SETTLE_HELD_MS;
  return kind === "row" ? UNSURE_HELD_MS : WAITS_HELD_MS;
}
