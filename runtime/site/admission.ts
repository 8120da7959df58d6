/** Which sites that have proved their membership are let in over a link, and what the others are told. */
import type { Replica } from "../../store/api/api.ts";
import { CHILDREN_MAX } from "../../store/model/limits.ts";

/** What it goes by: the members as the replica knows them, their rows from when this site is ready. */
export interface Admission {
  readonly id: string;
  readonly members: Pick<Replica["members"], "isRemoved" | "children">;
  readonly sites: ReadonlyMap<string, { readonly parent: string | null }>;
}

/** Why a site is not let in; null where it is. */
export function refusalOf(
  site: string,
  role: "child" | "peer",
  { id, members, sites }: Admission,
): string | null {
  if (members.isRemoved(site)) return removedText(site);
  if (role === "peer") return null;
  // Another's child comes with its disk, or the replica refuses it (store/change/removal.ts R5).
  if (sites.get(site)?.parent === id) return null;
  if (members.children < CHILDREN_MAX) return null;
  return `site ${id} has ${CHILDREN_MAX} children, which is the most: ` +
    `give ${site} another parent, or put sites between (docs/scaling.md)`;
}

/** Why a site that was let in is no child of this one after all. */
export function dismissalOf(child: string, why: string, parent: string): string {
  if (why === "removed") return removedText(child);
  if (why === "above") return `site ${child} stands above this one: it cannot be its child`;
  if (why === "other_disk") return otherDiskText(child);
  if (why === "ahead") return aheadText(child);
  return why === "elsewhere" ? elsewhereText(child, parent) : oldDiskText(child);
}

/** Why another disk is not taken for a site that has one. */
const elsewhereText = (site: string, parent: string): string =>
  `site ${site} lives under ${parent}, with another disk: do two sites have this id? If that disk is lost, ` +
  `\`sojourn sites remove ${site}\` and \`sojourn sites add ${site}\` let it in here; if ${parent} is, name it ` +
  "in parent.lost";
/** Why a site that was removed is not let in. */
const removedText = (site: string): string =>
  `site ${site} was removed: \`sojourn sites add ${site}\` lets it in again, with an empty data folder`;
/** Why one that was started over a copy of another site's data is not let in. */
const otherDiskText = (site: string): string =>
  `the disk of site ${site} is, or is a copy of, another site's: start it with an empty data folder`;
/** Why one is not that this site should know more of. */
const aheadText = (site: string): string =>
  `site ${site} has had more of this site's journal, or numbers, than its disk has: that is an older copy of itself; ` +
  'see docs/operating.md, "What is on disk"';
/** Why one that was let in again is not. */
const oldDiskText = (site: string): string =>
  `the disk of site ${site} is from before its removal: start it with an empty data folder`;
