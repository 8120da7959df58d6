/**
 * The queues of a run: each site stores what the stateful sessions at home there send, under the ids that they name, as
 * a broker does. A site that starts anew has what it had stored, as its disk would.
 */
import type { SessionMessage } from "../../functions/sessions/serve/ports.ts";
import { tupleIdOfSession } from "../../runtime/queues/tuple_ids.ts";
import type { SiteId } from "../../store/model/ports.ts";
import type { Draws } from "../sim/random.ts";

/** A message that some site has stored. */
export interface Mailed {
  readonly what: string;
  readonly id: string;
  readonly site: SiteId;
}

const text = new TextDecoder();
/** Chances that a queue is full, and that a site stores a message and says that it could not. */
const FULL_CHANCE = 0.25, UNHEARD_CHANCE = 0.15;

/** See the file's header. */
export class Mailbox {
  /** By site and id: what was stored first under it there is what there is. */
  readonly #stored = new Map<string, Mailed>();

  get all(): readonly Mailed[] {
    return [...this.#stored.values()];
  }

  /** @throws Error with a code, as a site's queues do, whether or not it was stored. */
  store(site: SiteId, { message, key, place }: SessionMessage, draws: Draws): void {
    if (draws.chance(FULL_CHANCE)) throw coded("queue_full");
    const id = tupleIdOfSession(key, place), what = text.decode(message.body.subarray(1));
    const at = `${site} ${id}`;
    if (!this.#stored.has(at)) this.#stored.set(at, { what, id, site });
    if (draws.chance(UNHEARD_CHANCE)) throw coded("owners_unreachable");
  }
}

const coded = (code: string): Error => Object.assign(new Error(`refused: ${code}`), { code });
