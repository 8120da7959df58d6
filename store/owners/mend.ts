/**
 * Other owners for those of a tuple that are of no use any more, and more of them where there are too few.
 *
 * M1  One that may come back is better than none: it stays where nobody can take its place.
 */
import type { SiteId } from "../model/ports.ts";
import type { Choice } from "../presence/choose.ts";
import type { Tuple } from "./tuple.ts";

export interface MendPorts {
  readonly site: SiteId;
  /** Other owners wanted. */
  readonly f: number;
  readonly isUseless: (owner: SiteId) => boolean;
  /** @throws OwnersError */
  readonly choose: (kept: readonly SiteId[]) => Choice;
}

export interface Mended {
  readonly owners: readonly SiteId[];
  readonly former: readonly SiteId[];
  readonly leaves: readonly SiteId[];
  /** Owners that are wanted and not to be had. */
  readonly missing: number;
  readonly isChanged: boolean;
}

/** The owners that a tuple should have, this site first. */
export function mended(tuple: Tuple, { site, f, isUseless, choose }: MendPorts): Mended {
  const others = tuple.owners.slice(1);
  const out = others.filter(isUseless);
  if (out.length === 0 && others.length >= f) {
    return { owners: tuple.owners, former: tuple.former, leaves: [], missing: 0, isChanged: false };
  }
  const kept = others.filter((owner) => !out.includes(owner));
  const { owners, missing } = chosen(kept, { site, f, choose });
  const added = owners.filter((owner) => owner !== site && !kept.includes(owner));
  const stays = out.slice(0, missing), leaves = out.slice(missing); // M1
  const next = [site, ...kept, ...added, ...stays];
  const former = [...tuple.former.filter((one) => !next.includes(one)), ...leaves];
  return { owners: next, former, leaves, missing, isChanged: added.length + leaves.length > 0 };
}

/** Fewer than there should be where there are not so many sites at all. */
function chosen(kept: readonly SiteId[], { site, f, choose }: Omit<MendPorts, "isUseless">): Choice {
  try {
    return choose(kept);
  } catch {
    return { owners: [site, ...kept], missing: Math.max(0, f - kept.length) };
  }
}
