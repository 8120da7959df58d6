/** Admission of sites that have proved their membership over a link, and the texts that refused ones are told. */
import type { Replica } from "../../store/api/api.ts";
import { CHILDREN_MAX } from "../../store/model/limits.ts";

/** State that admission goes by: the members as the replica knows them, their rows from when this site is ready. */
export interface Admission {
  readonly id: string;
  readonly members: Pick<Replica["members"], "isRemoved" | "children">;
  readonly sites: ReadonlyMap<string, { readonly parent: string | null }>;
}

/** Returns the reason why a site is not let in; null where it is. */
export function refusalOf(
  site: string,
  role: "child" | "peer",
  { id, members, sites }: Admission,
): string | null {
  if (members.isRemoved(site)) return removedText(site);
  if (role === "peer") return null;
  // A child of another site comes with its disk, or the replica refuses it (store/change/removal.ts R5).
  if (sites.get(site)?.parent === id) return null;
  if (members.children < CHILDREN_MAX) return null;
  return `site ${id} has ${CHILDREN_MAX} children, which is the most: ` +
    `give ${site} another parent, or put sites between (docs/scaling.md)`;
}

/** Returns the reason why a site that was let in is no child of this one after all. */
export function dismissalOf(child: string, why: string, parent: string): string {
  if (why === "removed") return removedText(child);
  if (why === "above") return `site ${child} stands above this one: it cannot be its child`;
  if (why === "other_disk") return otherDiskText(child);
  if (why === "ahead") return aheadText(child);
  return why === "elsewhere" ? elsewhereText(child, parent) : oldDiskText(child);
}

/** Returns the text for a site that has another disk than the one known under its id. */
const elsewhereText = (site: string, parent: string): string =>
  `site ${site} lives under ${parent}, with another disk: do two sites have this id? If that disk is lost, ` +
  `\`sojourn sites remove ${site}\` and \`sojourn sites add ${site}\` let it in here; if ${parent} is, name it ` +
  "in parent.lost";
/** Returns the text for a site that was removed. */
const removedText = (site: string): string =>
  `site ${site} was removed: \`sojourn sites add ${site}\` lets it in again, with an empty data folder`;
/** Returns the text for a site that was started over a copy of another site's data. */
const otherDiskText = (site: string): string =>
  `the disk of site ${site} is, or is a copy of, another site's: start it with an empty data folder`;
/** Returns the text for a site that knows more of this site's journal than this site's disk has. */
const aheadText = (site: string): string =>
  `site ${site} has had more of this site's journal, or numbers, than its disk has: that is an older copy of itself; ` +
  'see docs/operating.md, "What is on disk"';
/** Returns the text for a site that was let in again with its disk of before. */
const oldDiskText = (site: string): string =>
  `the disk of site ${site} is from before its removal: start it with an empty data folder`;
