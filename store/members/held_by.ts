/**
 * Sites that count on what another site holds for them: asked for before its disk is given up.
 *
 * HB1 All that a lost site had told is at its owners alone until one of them has put it into the tree
 *     (wards/recovery.ts), or the site has taken it back. Where neither is known, an owner that has not said what it
 *     had may be the only one.
 * HB2 An owner of a living site is one of the f + 1 disks that have what is pending there, until others have all of it.
 *     Only the site itself knows when that is so: its row names who was owner before it, whatever has become of that.
 */
import type { HeldBy } from "../api/api.ts";
import type { SiteId } from "../model/ports.ts";
import type { ReplicaNumber } from "../model/row.ts";
import type { Topology } from "./topology.ts";

/** Finds the sites for which a site may hold something, as far as rows tell. */
export function heldBy(topology: Topology, id: SiteId): HeldBy {
  const left = new Set<SiteId>(), owned = new Set<SiteId>();
  for (const number of topology.wards.all()) {
    const site = topology.incarnation(number)?.site;
    if (site === undefined || site === id || !topology.wards.owners(number).includes(id)) continue;
    if (topology.recordedEnd(number) !== undefined) {
      if (isLeft(topology, number, id)) left.add(site);
    } else if (!topology.succession.isUnused(number)) owned.add(site);
  }
  return { left: [...left].sort(), owned: [...owned].sort() };
}

/** Reports whether a site may have what no other has of an incarnation that is over (HB1). */
function isLeft(topology: Topology, number: ReplicaNumber, id: SiteId): boolean {
  const { wards, succession } = topology, recovered = wards.recovered(number);
  // The incarnation's disk is in use, under another number.
  if (succession.heir(number) !== null || topology.goesOn(number)) return false;
  const newest = wards.of(number)?.number;
  return !recovered.has(id) &&
    ![...recovered.values()].some(({ config, position }) => config === newest && position > 0);
}
