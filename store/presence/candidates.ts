/**
 * The candidates, that is the sites whose round trips a site measures, so that owners can be chosen among them: all
 * where there are few; of many the nearest along the tree, and as many of the others.
 *
 * C1  Each site draws among equals by a hash of its own: with one order for all, the same few would be watched by
 *     every site of the cluster.
 * C2  A site that comes or goes changes at most one of each half: a site that is watched is dialled, too.
 */
import { CANDIDATES_MAX } from "../model/limits.ts";
import type { SiteId } from "../model/ports.ts";

export interface Place {
  readonly site: SiteId;
  /** Ids of the sites from the root to the site's parent. */
  readonly path: readonly SiteId[];
  readonly sites: ReadonlyMap<SiteId, { readonly parent: SiteId | null }>;
}

/** Returns all sites that may be chosen, or {@link CANDIDATES_MAX} of them; never the site itself. */
export function worthMeasuring(may: Iterable<SiteId>, { site, path, sites }: Place): SiteId[] {
  const others = [...may].filter((id) => id !== site);
  if (others.length <= CANDIDATES_MAX) return others;
  const hops = (id: SiteId): number => {
    const seen = new Set<SiteId>();
    for (let at: SiteId | null = id, up = 0; at !== null && !seen.has(at); up++) {
      const depth = path.indexOf(at);
      if (depth >= 0) return up + path.length - depth;
      seen.add(at);
      at = sites.get(at)?.parent ?? null;
    }
    return path.length + 1;
  };
  const drawn = others.map((id) => ({ id, hops: hops(id), order: hash(`${site} ${id}`) })); // C1
  drawn.sort((a, b) => a.hops - b.hops || a.order - b.order || (a.id < b.id ? -1 : 1)); // C1
  const near = drawn.splice(0, CANDIDATES_MAX / 2); // C2
  drawn.sort((a, b) => a.order - b.order || (a.id < b.id ? -1 : 1));
  return [...near, ...drawn.slice(0, CANDIDATES_MAX - near.length)].map(({ id }) => id);
}

/** Returns the FNV-1a hash of a text with a last mix: hashes of similar ids lie far apart. */
function hash(text: string): number {
  let h = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) h = Math.imul(h ^ text.charCodeAt(i), 0x01000193);
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
  return (h ^ (h >>> 13)) >>> 0;
}
