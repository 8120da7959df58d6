/**
 * Who owns a tuple: the site that takes it first, then f others (GeoRep, section 2.1.2).
 *
 * C1  Only sites that live are chosen.
 * C2  No two share a failure area while another area has a site left. A site without an area has one of its own.
 * C3  Then the nearest at or beyond `nearMs`; where there are too few, the farthest of those nearer than that; then
 *     those not measured yet.
 * C4  f > n − 1 can't be met whatever lives, and is refused at once; with too few that live, `missing` says so.
 * C5  One that is to be the last is taken only where another would share a failure area, or there is none.
 */
import { F_MAX } from "../model/limits.ts";
import type { SiteId } from "../model/ports.ts";
import type { DetectorTimes } from "./detector.ts";

/** What a site's operator says of owners. */
export interface OwnersSettings extends DetectorTimes {
  /** How many sites may be lost at once: each tuple is at so many others too. */
  readonly f: number;
  /** What fails together: a building, a provider. null: this site fails alone. */
  readonly area: string | null;
  /** The only sites that may be chosen; null: any of the tree. */
  readonly sites: readonly SiteId[] | null;
  /** Sites nearer than this many milliseconds (round trip) are a second choice. */
  readonly nearMs: number;
  /** An answer whose owners can't be reached fails, or leaves without them and an alert says so. */
  readonly unreachable: "fail" | "acknowledge";
}

/** A site that may be chosen. */
export interface Candidate {
  readonly id: SiteId;
  readonly area: string | null;
  /** null: not measured yet. */
  readonly rttMs: number | null;
  readonly isAlive: boolean;
  /** Its loss costs more than that of another (C5). */
  readonly isLast?: boolean;
}

/** Owners, and how many are missing because too few live. */
export interface Choice {
  /** Self first. */
  readonly owners: readonly SiteId[];
  readonly missing: number;
}

/** Thrown for settings that no state of the cluster can satisfy. */
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
 * The owners of what arrives at a site now (C1–C3).
 *
 * @param candidates other sites only.
 * @param kept other owners that it has already.
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

/** By round trip, those that are not measured last; by id where that is the same. */
export function nearestFirst(
  sites: readonly { readonly site: SiteId; readonly rttMs: number | null }[],
): SiteId[] {
  const far = (rttMs: number | null) => rttMs ?? Infinity;
  return sites.toSorted((a, b) =>
    far(a.rttMs) === far(b.rttMs) ? (a.site < b.site ? -1 : 1) : far(a.rttMs) - far(b.rttMs)
  ).map(({ site }) => site);
}

/** C3; by id where all else is the same, so that a choice can be told from its circumstances. */
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
