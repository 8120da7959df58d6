/** The baselines' six sites. */
import type { SiteId } from "../../../store/model/ports.ts";
import type { Datum } from "./queries.ts";
import { PARENTS } from "./topology.ts";
import { type Around, TreeSite } from "./tree_site.ts";

/** Opens them, the root with these rows; the result finds a site. */
export function openTreeSites(around: Around, data: Iterable<Datum> = []): (site: SiteId) => TreeSite {
  const sites = new Map<SiteId, TreeSite>();
  for (const [id, parent] of PARENTS) {
    sites.set(id, new TreeSite(id, around, parent === null ? null : sites.get(parent) ?? null));
  }
  sites.get("cloud")?.load(data);
  return (id) => {
    const site = sites.get(id);
    if (site === undefined) throw new Error(`there is no site ${id}`);
    return site;
  };
}
