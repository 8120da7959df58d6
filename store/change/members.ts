/**
 * Members of the tree: which sites belong to it and which are away, as the host of a replica changes and asks it.
 *
 * Life of a planned stop: its host ends all sessions → `leave` has its owners adopt nothing any more, writes ["s",
 * "away", id], and waits until the root has it → stop … start → ready → the row is deleted.
 *
 * A1  Between the row and the stop no session writes. So a site that has got the row over the tree has got, before it,
 *     all that any session saw at the stopped site until then (PROTOCOL I1): for a token from there nothing is to be
 *     done, without a word from the site, and whatever other sites lag behind (handoff.ts H9). No session sees here
 *     what comes behind the row, from the parent or from below. It is not waited for: there would always be more of it,
 *     and the site that sent it has it on disk and keeps it until the root has it (I7).
 */
import type { Replica } from "../api/api.ts";
import type { Core } from "../core/core.ts";
import type { Removals } from "./removal.ts";
import type { Position } from "../model/row.ts";
import { heldBy } from "../members/held_by.ts";
import { awayKey, encodeJson } from "../members/topology.ts";

/**
 * Makes the part of a replica that knows which sites belong to the tree.
 *
 * @param leaves called before anybody is told of a planned stop.
 */
export function openMembers(
  core: Core,
  removals: Removals,
  durable: (position: Position) => Promise<void>,
  leaves: () => void,
): Replica["members"] {
  const site = core.config.site;
  const write = async (value: object | null): Promise<Position> => {
    const position = await core.rows.lock.run(async () => {
      const key = awayKey(site);
      const [old] = await core.rows.lookup([key]);
      core.rows.apply(old, core.own(key, value === null ? null : encodeJson(value)));
      return core.rows.head;
    });
    core.wake();
    await durable(position);
    return position;
  };
  return {
    remove: async (id) => {
      const removed = await removals.remove(id);
      await durable(core.rows.head);
      return removed;
    },
    admit: async (id) => {
      const admitted = await removals.admit(id);
      await durable(core.rows.head);
      return admitted;
    },
    isRemoved: (id) => core.topology.isRemoved(id),
    leave: async (untilMs, sole = []) => {
      leaves(); // store/owners/tuples.ts O8
      const position = await write(sole.length === 0 ? { untilMs } : { untilMs, sole }); // A1
      if (!core.isRoot) await reached(core, position); // A1
    },
    back: async () => {
      if (core.topology.awayUntilMs(site) !== undefined) await write(null);
    },
    awayUntilMs: (id) => core.topology.awayUntilMs(id),
    soleAt: (id) => core.topology.soleAt(id),
    heldBy: (id) => heldBy(core.topology, id),
    sites: core.topology.present,
    get children() {
      return core.topology.childrenOf(site).length;
    },
    get changes() {
      return core.topology.changes;
    },
  };
}

/** Resolves when the root's journal includes this one's up to a position. */
function reached(core: Core, position: Position): Promise<void> {
  return new Promise((resolve) => {
    const look = () => {
      if ((core.reach[0]?.top ?? 0) < position) return;
      forget();
      resolve();
    };
    const forget = core.onAdvance(look);
    look();
  });
}
