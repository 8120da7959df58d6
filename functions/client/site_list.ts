/** The list of sites, as a site answers it or as it was kept: read here, since nobody has read it before. */
import { appUrl } from "./address.ts";
import { SITES_MAX } from "./limits.ts";
import type { ListedSite } from "./site_choice.ts";

const TIERS: ReadonlySet<unknown> = new Set(["edge", "core", "root"]);

/**
 * The addresses of an app at all sites; none where the text is no list.
 *
 * The site that was asked comes first, with the address that the program gave: it is of the page's own origin, or the
 * one that works from where the program is. Then the others, edges before those above them.
 *
 * @param own the address that the program gave; below the others' the app is at the same path, or at `/APP`.
 * @param app the app, where `own` is a host of its own; null: as `own` has it.
 * @param from the site at `own`; null: not known.
 */
export function listedSites(
  text: string,
  { own, app, from }: { readonly own: string; readonly app: string | null; readonly from: string | null },
): readonly ListedSite[] {
  const prefix = app === null ? new URL(own).pathname.replace(/(?<!\/)\/+$/, "") : `/${app}`;
  const isSecure = own.startsWith("https:");
  const found: ListedSite[] = [];
  const list = parsedList(text);
  if (list === null) return [];
  for (const item of list) {
    const { id, url, tier } = item as Partial<Record<"id" | "url" | "tier", unknown>>;
    if (typeof url !== "string" || !/^https?:/.test(url) || !URL.canParse(url)) continue;
    const name = typeof id === "string" && id !== "" ? id : null;
    const level = TIERS.has(tier) ? tier as NonNullable<ListedSite["tier"]> : null;
    if (name !== null && name === from) found.unshift({ id: name, url: own, tier: level });
    // A page that came over https may not speak to others.
    else if (!isSecure || url.startsWith("https:")) {
      found.push({ id: name, url: addressAt(url, prefix), tier: level });
    }
  }
  if (found[0]?.url !== own) found.unshift({ id: null, url: own, tier: null });
  const [first, ...others] = found;
  return first === undefined ? [] : [first, ...others.sort((a, b) => rank(a) - rank(b))];
}

/** As it was kept it has the path already. */
function addressAt(url: string, prefix: string): string {
  const at = appUrl(url, null);
  return prefix !== "" && at.endsWith(prefix) ? at : at + prefix;
}

const rank = ({ tier }: ListedSite): number => tier === "edge" ? 0 : tier === "root" ? 2 : 1;

function parsedList(text: string): readonly object[] | null {
  try {
    const list: unknown = JSON.parse(text);
    if (!Array.isArray(list)) return null;
    return list.slice(0, SITES_MAX).filter((item) => typeof item === "object" && item !== null);
  } catch {
    return null;
  }
}
