/**
 * What a site says of itself to a parent that is not the one it had (adoption.ts).
 *
 * M1  What a hello says holds when its welcome is taken, or another hello is said first: while the answer is on its way
 *     the site goes on serving, and may come to depend on more than it has said.
 * M2  Whatever stands in the journals of those above, and not in this one, is not asked of this site by anybody: what
 *     sessions here, and below here, have seen of it counts as taken (core.ts `takes`).
 * M3  A parent that resyncs waits for this site's push, so the new one would wait for ever until that is whole. It has told
 *     this site nothing but who is who. Of what is pending here from before, what is left of its causes is with those that
 *     the parent waits for. So these are asked, and this site is one of them (gather_sources.ts S4).
 */
import type { Core } from "../core/core.ts";
import type { MovedSite } from "../wire/message.ts";
import type { SiteId } from "../model/ports.ts";
import type { Position, ReplicaNumber } from "../model/row.ts";
import { SYSTEM_RANGE } from "../members/topology.ts";

/** The part of a hello that a parent needs who is another one than before. */
export function broughtAlong(core: Core, parent: SiteId): MovedSite | undefined {
  const from = core.path.at(-1), { lost } = core;
  if (core.replica === 0 && lost.length > 0) return { floor: 0, from: "", siblings: [], lost };
  if (core.replica === 0 || from === undefined || from === parent) return undefined;
  const { topology } = core;
  const siblings = new Set(topology.movingFrom(from));
  for (const site of topology.sites()) if (site.parent === from) siblings.add(site.id);
  siblings.delete(core.config.site);
  if (isParentPartial(core)) siblings.add(core.config.site); // M3
  const isKnown = isAllKnown(core);
  return {
    floor: floorOf(core),
    from: isKnown ? "" : from,
    siblings: isKnown ? [] : [...siblings].sort(),
    lost,
  };
}

/**
 * Whether this site has nothing of its parent's present disk but who is who: as far as is known here that one resyncs, or
 * has said nothing yet.
 */
export function isParentPartial({ stable, depth, coverage }: Core): boolean {
  // One that resyncs has no stable clock.
  if (depth === 0 || (stable[depth - 1] ?? 0) > 0) return false;
  return coverage.all().every(({ start, end }) => SYSTEM_RANGE.start <= start && end <= SYSTEM_RANGE.end);
}

/** M1: whether it still says enough. */
export function isSaidEnough(core: Core, moved: MovedSite | undefined): boolean {
  if (moved === undefined || core.replica === 0) return true;
  return floorOf(core) <= moved.floor && (moved.from !== "" || isAllKnown(core));
}

/** Of the root's journal, how far it has come here. */
const floorOf = (core: Core): Position => Math.max(core.rootFloor, core.down[0] ?? 0);

/** Whether the root has all that anything here depends on, of the journals between it and this site. */
function isAllKnown(core: Core): boolean {
  // One that was never ready has shown nothing of it to anybody.
  if (core.depth === 1 || core.resyncing) return true;
  if (isParentPartial(core) && hasPending(core)) return false; // M3
  if (!isParentKnown(core)) return false;
  // How far the root has those further up is not said here; but it has all that is older than its stable clock.
  const stable = core.topology.succession.bound(core.stable[0] ?? 0);
  return core.depth === 2 || !hasBelow(core) && stable >= core.takenAbove;
}

/** Whether the root has all of the parent's journal that anything here depends on. */
export function isParentKnown(core: Core): boolean {
  if (core.depth === 1 || core.resyncing) return true;
  const taken = hasBelow(core) ? core.down[core.depth - 1] ?? 0 : core.taken;
  return (core.via[0]?.top ?? 0) >= taken;
}

/** Anything that the root is not known to have. */
const hasPending = ({ pending, reach }: Core): boolean =>
  pending.after(reach[0]?.top ?? 0, 1)[Symbol.iterator]().next().done !== true;

/** What sites below have taken is not told here; they have no more of those above than this site has (M2). */
const hasBelow = ({ topology, config }: Core): boolean => topology.joinedBelow(config.site).length > 0;

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
