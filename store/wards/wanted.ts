/**
 * Who should hold this site's ward.
 *
 * W1  An owner stays as long as it is not silent, away or off the tree: a change costs a round trip to the root, and a
 *     nearer site is not worth that.
 * W2  Where there are too few others, nothing changes: what one of them has is better than what none has.
 */
import type { Core } from "../core.ts";
import type { SiteOwners } from "../owners/site_owners.ts";
import { OwnersError } from "../owners/choose.ts";
import type { SiteId } from "../ports.ts";

/** The owners of the ward from now on, this site left out; null: those it has. */
export function wantedOwners(
  core: Core,
  owners: SiteOwners,
  current: readonly SiteId[],
): readonly SiteId[] | null {
  const { f, sites } = owners.settings;
  if (core.isRoot || f === 0) return [];
  const nowMs = core.ports.clock.nowMs();
  const kept = current.filter((site) => {
    const standing = owners.detector.standing(site);
    const isAway = nowMs < (core.topology.awayUntilMs(site) ?? -Infinity);
    return standing !== "suspected" && standing !== "dead" && !isAway && !core.topology.isRemoved(site) &&
      (sites === null || sites.includes(site));
  }).slice(0, f);
  if (kept.length === f) return kept;
  try {
    const others = owners.choose().owners.slice(1).filter((site) => !kept.includes(site));
    const all = [...kept, ...others].slice(0, f);
    return all.length === f ? all : null;
  } catch (error) {
    // Too few sites at all, so far: the operator is told so (status.ts, ownersMissing).
    if (error instanceof OwnersError) return null;
    throw error;
  }
}
