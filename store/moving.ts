/** What a site says of itself to a parent that is not the one it had (adoption.ts). */
import type { Core } from "./core.ts";
import type { Hello } from "./message.ts";
import type { SiteId } from "./ports.ts";
import type { ReplicaNumber } from "./row.ts";
import { SYSTEM_RANGE } from "./topology.ts";

/** The part of a hello that a parent needs who is another one than before. */
export function broughtAlong(core: Core, parent: SiteId): Pick<Hello, "moved"> {
  const from = core.path.at(-1), { lost } = core;
  if (core.replica === 0 && lost.length > 0) return { moved: { floor: 0, from: "", siblings: [], lost } };
  if (core.replica === 0 || from === undefined || from === parent) return {};
  const { topology } = core;
  const siblings = new Set(topology.movingFrom(from));
  for (const site of topology.sites()) if (site.parent === from) siblings.add(site.id);
  siblings.delete(core.config.site);
  const isKnown = isAllKnown(core);
  return {
    moved: {
      floor: Math.max(core.rootFloor, core.down[0] ?? 0),
      from: isKnown ? "" : from,
      siblings: isKnown ? [] : [...siblings].sort(),
      lost,
    },
  };
}

/** Whether the root has all of the parent's journal that anything here depends on. */
export function isAllKnown(core: Core): boolean {
  // One that was never ready has shown nothing of it to anybody.
  return core.depth === 1 || core.resyncing || (core.via[0]?.top ?? 0) >= core.taken;
}

/**
 * Numbers that were given to this site and that it did not take: to a hello that it, or a process before it, said to
 * another parent, or that its parent had asked for twice. A claim may be passed on long after the hello that it was
 * for. Nobody but this site can tell that they are void, and whoever gave one may be gone by then.
 */
export function unused({ topology, config, replica, path, coverage }: Core): ReplicaNumber[] {
  // One that it may take yet comes from a parent that has not welcomed it. Its own ends are to be known first.
  if (replica === 0 || path.at(-1) !== config.parent || !coverage.hasRange(SYSTEM_RANGE)) return [];
  const own = new Set<ReplicaNumber>();
  for (let at = replica; at > 0 && !own.has(at); at = topology.incarnation(at)?.from ?? 0) own.add(at);
  return topology.living(config.site).filter((number) => !own.has(number));
}
