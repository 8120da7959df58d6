/**
 * The choice of a tuple's owners: the site that takes it first, then f others (GeoRep, section 2.1.2).
 *
 * C1  Only sites that live are chosen.
 * C2  No two owners share a failure area while another area has a site left. A site without an area has one of its own.
 * C3  Then the nearest at or beyond `nearMs`; where there are too few, the farthest of those nearer than that; then
 *     those not measured yet.
 * C4  f > n − 1 can't be met whichever sites live, and is refused at once; where too few live, `missing` says so.
 * C5  A site that is marked as last (`isLast`) is taken only where another would share a failure area, or there is no
 *     other.
 */
import { F_MAX } from "../model/limits.ts";
import type { SiteId } from "../model/ports.ts";
import type { DetectorTimes } from "./detector.ts";

/** Settings of a site's operator for owners. */
export interface OwnersSettings extends DetectorTimes {
  /** Number of sites that may be lost at once: each tuple is at that many others, too. */
  readonly f: number;
  /** Failure area of this site, whose sites fail together: a building, a provider. null: this site fails alone. */
  readonly area: string | null;
  /** Sites that may be chosen, and no others; null: any of the tree. */
  readonly sites: readonly SiteId[] | null;
  /** Round trip in milliseconds; sites nearer than this are a second choice. */
  readonly nearMs: number;
  /** Treatment of an answer whose owners can't be reached: it fails, or leaves without them and an alert says so. */
  readonly unreachable: "fail" | "acknowledge";
}

/** Site that may be chosen. */
export interface Candidate {
  readonly id: SiteId;
  readonly area: string | null;
  /** Round trip in milliseconds; null: not measured yet. */
  readonly rttMs: number | null;
  readonly isAlive: boolean;
  /** True where the loss of this site costs more than that of another (C5). */
  readonly isLast?: boolean;
}

/** Owners that were chosen, and how many are missing because too few live. */
export interface Choice {
  /** Ids of the owners, with the choosing site first. */
  readonly owners: readonly SiteId[];
  readonly missing: number;
}

/** Error for settings that no state of the cluster can satisfy. */
export class OwnersError extends Error {
  override readonly name = "OwnersError";
  constructor(readonly code: "owners_too_many" | "owners_unknown", message: string) {
    super(message);
  }
}

/**
 * Refuses settings that can't be met by the sites there are.
 *
 * @param known ids of all sites of the tree, this one's among them.
 * @throws OwnersError
 */
export function checkOwners(
  self: SiteId,
  { f, sites }: Pick<OwnersSettings, "f" | "sites">,
  known: readonly SiteId[],
): void {
  const unknown = (sites ?? []).filter((id) => !known.includes(id));
  if (unknown.length > 0) {
    const shown = known.slice(0, 20).join(", ") + (known.length > 20 ? ", …" : "");
    throw new OwnersError(
      "owners_unknown",
      `cannot take ${unknown.join(", ")} as owners: no such site; the sites of the tree are ${shown}`,
    );
  }
  const n = 1 + new Set((sites ?? known).filter((id) => id !== self)).size;
  if (f > n - 1 || f > F_MAX) { // C4
    throw new OwnersError(
      "owners_too_many",
      `cannot keep tuples of ${self} at f = ${f} other sites: ${
        sites === null ? "the tree" : "the list of owners, with this site,"
      } has n = ${n} sites, so f may be up to ${Math.min(n - 1, F_MAX)}`,
    );
  }
}

/**
 * Chooses the owners of tuples that arrive at a site now (C1–C3).
 *
 * @param candidates other sites only.
 * @param kept other owners that the tuple has already.
 */
export function chooseOwners(
  self: { readonly id: SiteId; readonly area: string | null },
  { f, nearMs }: Pick<OwnersSettings, "f" | "nearMs">,
  candidates: readonly Candidate[],
  kept: readonly { readonly id: SiteId; readonly area: string | null }[] = [],
): Choice {
  const areaOf = ({ id, area }: { id: SiteId; area: string | null }) =>
    area === null ? `site ${id}` : `area ${area}`;
  const used = new Map<string, number>();
  for (const site of [self, ...kept]) used.set(areaOf(site), (used.get(areaOf(site)) ?? 0) + 1);
  const owners = [self.id, ...kept.map(({ id }) => id)];
  const left = candidates.filter((site) => site.isAlive && !owners.includes(site.id)).sort(
    byDistance(nearMs),
  );
  while (owners.length <= f && left.length > 0) {
    let best = 0;
    left.forEach((site, i) => {
      const before = left[best];
      if (before !== undefined && (used.get(areaOf(site)) ?? 0) < (used.get(areaOf(before)) ?? 0)) best = i;
    });
    const [chosen] = left.splice(best, 1);
    if (chosen === undefined) break;
    owners.push(chosen.id);
    used.set(areaOf(chosen), (used.get(areaOf(chosen)) ?? 0) + 1);
  }
  return { owners, missing: Math.max(0, f + 1 - owners.length) };
}

/** Returns sites by round trip, those that are not measured last; by id where that is the same. */
export function nearestFirst(
  sites: readonly { readonly site: SiteId; readonly rttMs: number | null }[],
): SiteId[] {
  const far = (rttMs: number | null) => rttMs ?? Infinity;
  return sites.toSorted((a, b) =>
    far(a.rttMs) === far(b.rttMs) ? (a.site < b.site ? -1 : 1) : far(a.rttMs) - far(b.rttMs)
  ).map(({ site }) => site);
}

/** Compares candidates by C3; by id where all else is the same, so that a choice can be told from its circumstances. */
function byDistance(nearMs: number): (a: Candidate, b: Candidate) => number {
  const rank = ({ rttMs }: Candidate) => rttMs === null ? 2 : rttMs >= nearMs ? 0 : 1;
  return (a, b) => {
    if ((a.isLast === true) !== (b.isLast === true)) return a.isLast === true ? 1 : -1;
    if (rank(a) !== rank(b)) return rank(a) - rank(b);
    const nearer = (a.rttMs ?? 0) - (b.rttMs ?? 0);
    const sign = rank(a) === 1 ? -1 : 1;
    return nearer * sign || (a.id < b.id ? -1 : 1);
  };
}
