/**
 * Other owners for those of a tuple that are of no use any more, and more owners where there are too few.
 *
 * M1  An owner that may come back is better than none: it stays where nobody can take its place.
 * M2  A tuple stays with the owners that are to leave it until those in their place have it. So it is at as many disks
 *     at each moment, and an owner that comes back meanwhile is one still, and adopts the tuple if those before it have
 *     lost it. The same holds while nobody counts on the tuple: an owner that may have it would adopt it, and those in
 *     its place have to know of that.
 */
import { OWNERS_MAX } from "../model/limits.ts";
import type { SiteId } from "../model/ports.ts";
import type { Choice } from "../presence/choose.ts";
import type { Roster } from "./tuple.ts";

export interface MendPorts {
  readonly site: SiteId;
  readonly isUseless: (owner: SiteId) => boolean;
  /** True where the owner that is to leave may have the tuple (M2). */
  readonly mayStay: (owner: SiteId) => boolean;
  /** True while the owner is not known to have the tuple (M2). */
  readonly lacks: (owner: SiteId) => boolean;
  /** @throws OwnersError */
  readonly choose: (f: number, kept: readonly SiteId[]) => Choice;
}

export interface Mended {
  readonly owners: readonly SiteId[];
  readonly former: readonly SiteId[];
  /** Number of owners that are wanted and not to be had. */
  readonly missing: number;
  readonly isChanged: boolean;
}

/** Finds the owners that a tuple should have, this site first. */
export function mended(
  { f, owners: before, former }: Pick<Roster, "f" | "owners" | "former">,
  { site, isUseless, mayStay, lacks, choose }: MendPorts,
): Mended {
  const others = before.slice(1);
  const out = others.filter(isUseless);
  if (out.length === 0 && others.length === f) {
    return { owners: before, former, missing: 0, isChanged: false };
  }
  const kept = others.filter((owner) => !out.includes(owner));
  const { owners, missing } = chosen(f, kept, { site, choose });
  const added = owners.filter((owner) => owner !== site && !kept.includes(owner));
  const isPending = missing > 0 || added.length > 0 || kept.slice(0, f).some(lacks); // M2
  const wanted = isPending ? [...kept, ...added] : kept.slice(0, f);
  const rest = [...kept, ...out].filter((owner) => !wanted.includes(owner));
  const stays = rest.filter((owner, i) => i < missing || (isPending && mayStay(owner))); // M1, M2
  const next = [site, ...wanted, ...stays].slice(0, OWNERS_MAX);
  const leaves = others.filter((owner) => !next.includes(owner));
  return {
    owners: next,
    former: [...former.filter((one) => !next.includes(one)), ...leaves],
    missing,
    isChanged: added.length + leaves.length > 0,
  };
}

/** Chooses owners; fewer than there should be where there are not so many sites at all. */
function chosen(
  f: number,
  kept: readonly SiteId[],
  { site, choose }: Pick<MendPorts, "site" | "choose">,
): Choice {
  try {
    return choose(f, kept);
  } catch {
    return { owners: [site, ...kept], missing: Math.max(0, f - kept.length) };
  }
}
