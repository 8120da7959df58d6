/**
 * The part of a hello that a site says to a parent that is not the one it had (adoption.ts).
 *
 * M1  A hello has to hold when its welcome is taken; else another hello is said first: while the answer is on its way
 *     the site goes on serving, and may come to depend on more than it has said.
 * M2  Nobody asks this site for rows that stand in the journals of those above, and not in this one: whatever sessions
 *     here, and below here, have seen of them counts as taken (core.ts `takes`).
 * M3  A parent that resyncs waits for this site's push, so the new one would wait for ever until that parent is whole.
 *     It has told this site nothing but the system rows. The causes that are left of what is pending here from before
 *     are with those that the parent waits for. So these are asked, and this site is one of them (gather_sources.ts
 *     S4).
 */
import type { Core } from "../core/core.ts";
import type { MovedSite } from "../wire/message.ts";
import type { SiteId } from "../model/ports.ts";
import type { Position, ReplicaNumber } from "../model/row.ts";
import { SYSTEM_RANGE } from "../members/topology.ts";

/** Makes the part of a hello that a parent other than the one before needs. */
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
 * Reports whether this site has nothing but the system rows of its parent's present disk: as far as is known here, that
 * parent resyncs, or has said nothing yet.
 */
export function isParentPartial({ stable, depth, coverage }: Core): boolean {
  // A parent that resyncs has no stable clock.
  if (depth === 0 || (stable[depth - 1] ?? 0) > 0) return false;
  return coverage.all().every(({ start, end }) => SYSTEM_RANGE.start <= start && end <= SYSTEM_RANGE.end);
}

/** Reports whether the last hello still says enough (M1). */
export function isSaidEnough(core: Core, moved: MovedSite | undefined): boolean {
  if (moved === undefined || core.replica === 0) return true;
  return floorOf(core) <= moved.floor && (moved.from !== "" || isAllKnown(core));
}

/** Returns the position to which the root's journal has come here. */
const floorOf = (core: Core): Position => Math.max(core.rootFloor, core.down[0] ?? 0);

/** Reports whether the root has all that anything here depends on, of the journals between it and this site. */
function isAllKnown(core: Core): boolean {
  // A site that was never ready has shown nothing of them to anybody.
  if (core.depth === 1 || core.resyncing) return true;
  if (isParentPartial(core) && hasPending(core)) return false; // M3
  if (!isParentKnown(core)) return false;
  // It is not said here how far the root has the journals further up; but it has all that is older than its stable
  // clock.
  const stable = core.topology.succession.bound(core.stable[0] ?? 0);
  return core.depth === 2 || !hasBelow(core) && stable >= core.takenAbove;
}

/** Reports whether the root has all of the parent's journal that anything here depends on. */
export function isParentKnown(core: Core): boolean {
  if (core.depth === 1 || core.resyncing) return true;
  const taken = hasBelow(core) ? core.down[core.depth - 1] ?? 0 : core.taken;
  return (core.via[0]?.top ?? 0) >= taken;
}

/** Reports whether anything is pending here that the root is not known to have. */
const hasPending = ({ pending, reach }: Core): boolean =>
  pending.after(reach[0]?.top ?? 0, 1)[Symbol.iterator]().next().done !== true;

/**
 * Reports whether sites are below this one. It is not told here what they have taken; they have no more of the journals
 * above than this site has (M2).
 */
const hasBelow = ({ topology, config }: Core): boolean => topology.joinedBelow(config.site).length > 0;

/**
 * Lists numbers that were given to this site and that it did not take: to a hello that it, or a process before it, said
 * to another parent, or that its parent had asked for twice. A claim may be passed on long after the hello that it was
 * for. Only this site can tell that they are void, and the parent that gave one may be gone by then.
 */
export function unused({ topology, config, replica, path, coverage }: Core): ReplicaNumber[] {
  // A number that this site may take yet comes from a parent that has not welcomed it. Its own ends are to be known
  // first.
  if (replica === 0 || path.at(-1) !== config.parent || !coverage.hasRange(SYSTEM_RANGE)) return [];
  const own = new Set<ReplicaNumber>();
  for (let at = replica; at > 0 && !own.has(at); at = topology.incarnation(at)?.from ?? 0) own.add(at);
  return topology.living(config.site).filter((number) => !own.has(number));
}
