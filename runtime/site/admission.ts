/** Which sites that have proved their membership are let in over a link, and what the others are told. */
import type { Replica } from "../../store/api.ts";
import { CHILDREN_MAX } from "../../store/limits.ts";

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
  const known = sites.get(site);
  if (known !== undefined) return known.parent === id ? null : `site ${site} is a child of ${known.parent}`;
  if (members.children < CHILDREN_MAX) return null;
  return `site ${id} has ${CHILDREN_MAX} children, which is the most: ` +
    `give ${site} another parent, or put sites between (docs/scaling.md)`;
}

/** Why a site that was removed is not let in. */
export const removedText = (site: string): string =>
  `site ${site} was removed: \`sojourn sites add ${site}\` lets it in again, with an empty data folder`;
/** Why one that was let in again is not. */
export const oldDiskText = (site: string): string =>
  `the disk of site ${site} is from before its removal: start it with an empty data folder`;
