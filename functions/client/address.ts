/**
 * The addresses of an app: at each site it is below an address, `https://edge-1.example/shop` or a host of its own. A
 * path is relative to the app: `/x` is `/x` for the app, whatever its address is.
 */
import { ClientError } from "./client_error.ts";

/** Returns an address of the app, without a slash at its end. @throws ClientError `site_invalid` */
export function appUrl(text: string | URL, base: string | null): string {
  const url = parsed(String(text), base);
  if (url === null || !/^(https?|wss?):$/.test(url.protocol)) {
    throw new ClientError(
      "site_invalid",
      `can't find a site at ${JSON.stringify(String(text).slice(0, 200))}: an address such as ` +
        "https://edge-1.example/shop is accepted",
    );
  }
  return `${url.origin.replace(/^ws/, "http")}${trimmed(url.pathname)}`;
}

/** Returns the address of one of a site's own paths. */
export const platformUrl = (app: string, name: string): string => `${new URL(app).origin}/_sojourn/${name}`;

/**
 * Returns what an app is asked for: path, query and fragment, as the app sees them; null for an address that is below
 * none of the app's.
 */
export function appPath(input: string | URL, apps: readonly string[]): string | null {
  const text = String(input);
  // Not an address: a path of the app's, with its slash or without.
  if (!/^[a-z][a-z0-9+.-]*:|^\/\//i.test(text)) return text.startsWith("/") ? text : `/${text}`;
  const url = parsed(text.replace(/^ws/i, "http"), null);
  if (url === null) return null;
  for (const app of apps) {
    const { origin, pathname } = new URL(app);
    const prefix = trimmed(pathname);
    const isBelow = url.pathname === prefix || url.pathname.startsWith(`${prefix}/`);
    if (url.origin !== origin || !isBelow) continue;
    const path = url.pathname.slice(prefix.length);
    return `${path === "" ? "/" : path}${url.search}${url.hash}`;
  }
  return null;
}

const trimmed = (path: string): string => path.replace(/(?<!\/)\/+$/, "");

function parsed(text: string, base: string | null): URL | null {
  const from = base ?? undefined;
  return URL.canParse(text, from) ? new URL(text, from) : null;
}
