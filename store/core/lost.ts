/** Errors for what is lost: for a client whose session saw it, and for a disk that has gone back. */
import { StoreUnavailable, type TokenState } from "../api/api.ts";
import type { Core } from "./core.ts";
import type { Gap } from "../model/gaps.ts";
import type { SiteId } from "../model/ports.ts";
import { type Position, unixMs } from "../model/row.ts";

/** Makes the problem `source_lost` for a token. */
export function sourceLost(
  core: Core,
  { replica, clock }: Pick<TokenState, "replica" | "clock">,
): StoreUnavailable {
  const { topology } = core;
  const site = topology.incarnation(replica)?.site ?? "";
  const why = topology.succession.heir(replica) === null
    ? `the disk of site ${site} was lost before all that this session saw there had left it`
    : `the parent of site ${site} was lost before all that this session saw there had left it`;
  return new StoreUnavailable("source_lost", why, {
    mayBeLost: { site, incarnation: replica, from: unixMs(topology.ended(replica) ?? 0), to: unixMs(clock) },
  });
}

/**
 * Makes the problem `source_lost` for a token that has seen what a disk has had and has no more: beyond its journal, or
 * in a gap of it.
 */
export function wentBack(
  site: SiteId,
  { replica, clock }: Pick<TokenState, "replica" | "clock">,
  gap: Gap | undefined,
): StoreUnavailable {
  const why = `the disk of site ${site} went back: some of what this session saw is not there any more`;
  return new StoreUnavailable("source_lost", why, {
    mayBeLost: { site, incarnation: replica, from: unixMs(gap?.clock ?? 0), to: unixMs(clock) },
  });
}

/**
 * Checks that this site has not had more of the root's journal than the root has. Where it has, the root's disk went
 * back, and this site came below another parent or a blank one since: sessions here have seen what is not in the tree
 * any more, and their tokens need not say so.
 *
 * @throws OlderRoot
 */
export function assertRooted({ config: { site }, topology, rootFloor, path }: Core): void {
  const gap = topology.rootGaps.around(rootFloor);
  if (gap !== undefined) throw new OlderRoot(site, path[0] ?? "", { position: rootFloor, gap });
}

/** Error of a site that has had more of the root's journal than the root has ({@link assertRooted}). */
export class OlderRoot extends StoreUnavailable {
  override readonly name = "OlderRoot";

  constructor(
    site: SiteId,
    root: SiteId,
    { position, gap }: { readonly position: Position; readonly gap: Gap },
  ) {
    super(
      "disk_failed",
      `the disk of site ${root} was found ending at position ${gap.from}, and site ${site} has had its journal up to ` +
        `${position}: it is an older copy; restore the tree, or start site ${site} with an empty data folder`,
    );
  }
}

/**
 * Error of a site whose disk is from a backup that was put back: positions would be given out again, and what is
 * written at them taken for known elsewhere.
 */
export class OlderDisk extends StoreUnavailable {
  override readonly name = "OlderDisk";

  /** @param witness the neighbour or session that has had more of the journal. */
  constructor({ config: { site }, gaps }: Core, witness: string, position: Position) {
    const gap = gaps.around(position) ?? gaps.last;
    super(
      "disk_failed",
      `the disk of site ${site} was found ending at position ${
        gap?.from ?? 0
      }, and ${witness} has had its journal up to ` +
        `${position}: it is an older copy; start the site with an empty data folder`,
    );
  }
}
