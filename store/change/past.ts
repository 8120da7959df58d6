/**
 * Incarnations that are over, as one row for each site instead of several for each of them: else those of a site that
 * starts with a blank disk again and again would grow at every site for ever.
 *
 *   ["s", "past", id]   PastGroup[], JSON: the incarnations of a site, written by the root
 *
 * Z1  The row says all that the rows said which it replaces: a site that has it knows no less of a token of such an
 *     incarnation.
 * Z2  The row is written, and the others are deleted, in one commit: a site that gets the one gets the other (PROTOCOL
 *     I1).
 * Z3  An incarnation is taken only when nothing more is to be said of it: it has ended, nobody went on with its disk,
 *     its site was not removed, and each of its owners has said what it had of it, or was removed. A row that comes all
 *     the same, as of a configuration that was on its way, is taken in here later.
 */
import type { Core } from "../core/core.ts";
import type { SiteId } from "../model/ports.ts";
import type { ReplicaNumber } from "../model/row.ts";
import {
  decodeJson,
  encodeJson,
  endedKey,
  type PastGroup,
  pastKey,
  replicaKey,
} from "../members/topology.ts";
import { recoveredKey, wardsKey } from "../members/configuration.ts";

/** Writer of the rows of incarnations that are over; it works at the root only. */
export class Past {
  readonly #core: Core;

  constructor(core: Core) {
    this.#core = core;
  }

  /** Takes in incarnations that are over by now. */
  async sweep(): Promise<void> {
    const core = this.#core;
    if (!core.isRoot || core.closed || core.resyncing || core.topology.over().length === 0) return;
    await core.rows.lock.run(async () => {
      const { topology } = core;
      const bySite = Map.groupBy(topology.over(), (number) => topology.incarnation(number)?.site ?? "");
      for (const [site, numbers] of bySite) await this.#take(site, numbers);
    });
    core.wake();
  }

  async #take(site: SiteId, numbers: readonly ReplicaNumber[]): Promise<void> {
    const core = this.#core, { rows, topology } = core;
    const keys = numbers.flatMap((number) => {
      const owners = [...topology.wards.recovered(number).keys()];
      return [
        replicaKey(number),
        endedKey(number),
        wardsKey(number),
        ...owners.map((owner) => recoveredKey(number, owner)),
      ];
    });
    const [row, ...found] = await rows.lookup([pastKey(site), ...keys]);
    const groups = (decodeJson(row?.value ?? null) ?? []) as PastGroup[];
    const taken = numbers.reduce((past, number) => withPast(past, number, core), groups);
    // From here on nothing is waited for (Z2).
    rows.apply(row, core.own(pastKey(site), encodeJson(taken)));
    for (const old of found) {
      if (old !== undefined && old.value !== null) rows.apply(old, core.own(old.key, null));
    }
    core.count("past", numbers.length);
  }
}

/** Adds an incarnation to the groups of its site, with all that its rows said (Z1). */
function withPast(groups: readonly PastGroup[], number: ReplicaNumber, { topology }: Core): PastGroup[] {
  const known = topology.incarnation(number), stable = topology.recordedEnd(number);
  if (known === undefined || stable === undefined) throw new Error(`incarnation ${number} is not over`);
  const wards = topology.wards.of(number), recovered = Object.fromEntries(topology.wards.recovered(number));
  const over = {
    ...{ number, stable },
    ...wards === undefined ? {} : { wards },
    ...Object.keys(recovered).length === 0 ? {} : { recovered },
  };
  const { path, parent } = known;
  const isOf = (group: PastGroup) => group.parent === parent && group.path.join("/") === path.join("/");
  const group = groups.find(isOf) ?? { path, parent, over: [] };
  const rest = group.over.filter((other) => other.number !== number);
  return [...groups.filter((other) => !isOf(other)), { ...group, over: [...rest, over] }];
}
