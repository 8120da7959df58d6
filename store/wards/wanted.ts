/**
 * The choice of owners that should hold this site's ward.
 *
 * W1  An owner stays as long as it is not silent, away or off the tree: a change costs a round trip to the root, and a
 *     nearer site is not worth that. A stopgap, which would not have been chosen had there been others, stays until
 *     there are: what was chosen while a cluster starts is not to last.
 * W2  Where there are too few others, nothing changes: what one of them has is better than what none has.
 * W3  The worst stopgap shares a failure area with this site or another owner: one fault loses both.
 * W4  The next worst is a site above this one. Should it be lost, so is the way to the root, on which another owner has
 *     to be agreed upon: until it is back this site could tell nothing.
 * W6  A site that has no room for this site's ward counts as one that is not there, as long as any other would have
 *     room (source.ts): its refusal would fail the answers here, while others could hold the ward.
 * W5  The least bad is one that is too near. Distances vary: a stopgap that is an owner already has to be nearer by a
 *     fifth of the limit.
 */
import type { Core } from "../core/core.ts";
import type { SiteOwners } from "../owners/site_owners.ts";
import { OwnersError } from "../presence/choose.ts";
import type { SiteId } from "../model/ports.ts";

/**
 * Chooses the owners of the ward from now on, this site left out; null: those it has.
 *
 * @param isFull reports whether a site had no room for the ward lately (W6).
 */
export function wantedOwners(
  core: Core,
  owners: SiteOwners,
  current: readonly SiteId[],
  isFull: (site: SiteId) => boolean,
): readonly SiteId[] | null {
  const { f, sites } = owners.settings;
  if (core.isRoot || f === 0) return [];
  const nowMs = core.wall.nowMs();
  const kept = current.filter((site) => {
    const standing = owners.detector.standing(site);
    const isAway = nowMs < (core.topology.awayUntilMs(site) ?? -Infinity);
    return standing !== "suspected" && standing !== "dead" && !isAway && !core.topology.isRemoved(site) &&
      !isFull(site) && (sites === null || sites.includes(site));
  }).slice(0, f);
  const { nearMs } = owners.settings;
  const poor = stopgaps(core, owners, kept, NEARER * nearMs);
  if (kept.length === f && poor.size === 0) return kept; // W1
  const good = kept.filter((site) => !poor.has(site)); // W1
  try {
    const isAbove = (site: SiteId) => core.path.includes(site);
    const weighed = [(site: SiteId) => isAbove(site) || isFull(site), isFull].map((without) =>
      owners.choose(f, good, without)
    ).flatMap(
      ({ owners: [, ...fresh], missing }) =>
        missing > 0 ? [] : [{ fresh, weight: weightOf(stopgaps(core, owners, fresh, nearMs)) }],
    );
    const [best] = weighed.sort((a, b) => a.weight - b.weight);
    if (kept.length === f && (best?.weight ?? Infinity) >= weightOf(poor)) return kept;
    return best?.fresh ?? null;
  } catch (error) {
    // There are too few sites so far: the operator is told so (status.ts, ownersMissing).
    if (error instanceof OwnersError) return kept.length === f ? kept : null;
    throw error;
  }
}

/** Share of the limit below which a site that is an owner already counts as too near (W5). */
const NEARER = 0.8;

/** Weights of stopgaps: one of a kind weighs more than owners of the next lighter kind there can be (`F_MAX`). */
const WEIGHT = { area: 256, above: 16, near: 1 };

/** Finds the stopgaps among chosen sites (W3 to W5), and what they weigh. */
function stopgaps(
  core: Core,
  owners: SiteOwners,
  chosen: readonly SiteId[],
  nearMs: number,
): ReadonlyMap<SiteId, number> {
  const areas = new Set([owners.settings.area]);
  const found = new Map<SiteId, number>();
  for (const site of chosen) {
    const area = core.topology.area(site);
    const isShared = area !== null && areas.has(area);
    const weight = (isShared ? WEIGHT.area : 0) + (core.path.includes(site) ? WEIGHT.above : 0) +
      ((owners.detector.rttMs(site) ?? Infinity) < nearMs ? WEIGHT.near : 0);
    if (weight > 0) found.set(site, weight);
    areas.add(area);
  }
  return found;
}

const weightOf = (stopgaps: ReadonlyMap<SiteId, number>): number =>
  [...stopgaps.values()].reduce((sum, weight) => sum + weight, 0);
