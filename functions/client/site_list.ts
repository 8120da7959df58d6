/**
 * The parser of the list of sites, as a site answers it or as it was kept: it is parsed here first, so nothing in it is
 * trusted.
 */
import { appUrl } from "./address.ts";
import { SITES_MAX } from "./limits.ts";
import type { ListedSite } from "./site_choice.ts";

const TIERS: ReadonlySet<unknown> = new Set(["edge", "core", "root"]);

/**
 * Returns the addresses of an app at all sites; none where the text is no list.
 *
 * The site that was asked comes first, with the address that the program gave: that is of the page's own origin, or
 * works from where the program is. Then the others, edges before those above them.
 *
 * @param own the address that the program gave; at the other sites the app has the same path, or `/APP`.
 * @param app the app's name, where `own` is a host of its own; null: the path is that of `own`.
 * @param from the id of the site at `own`; null: not known.
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
    // A page that came over https may not speak to sites over http.
    else if (!isSecure || url.startsWith("https:")) {
      found.push({ id: name, url: addressAt(url, prefix), tier: level });
    }
  }
  if (found[0]?.url !== own) found.unshift({ id: null, url: own, tier: null });
  const [first, ...others] = found;
  return first === undefined ? [] : [first, ...others.sort((a, b) => rank(a) - rank(b))];
}

/** Returns the app's address at a site. An address of a list that was kept has the path already. */
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
