/**
 * Parsing of a request's URL into its destination: the platform, an app, or the site's front page. Slices the URL text
 * that `Deno.serve` gives instead of parsing it: this runs for every request.
 *
 * GA0  The platform's own paths are the platform's at every host.
 * GA1  The app sees the same path in both forms: `/APP/x?q` at any host and `/x?q` at `APP.localhost` are `/x?q`.
 * GA2  A request whose host is not a valid host (`Deno.serve` puts into the URL whatever the header said) has no
 *      destination: apps parse URLs, and would fail for what a client sent. Nor has one whose `Host` header is more
 *      than the URL's host: with a slash in it the path differs from that of the client's request line, and from the
 *      one that a proxy before us has seen.
 */

import { bareHost } from "../deploy/hosts.ts";

/** A request's destination. */
export type Address =
  | { readonly kind: "platform"; readonly path: string }
  | { readonly kind: "front" }
  | { readonly kind: "invalid" }
  | {
    readonly kind: "app";
    readonly app: string;
    /** "/APP", or "" where the host names the app. */
    readonly prefix: string;
    /** Origin, as the client named it. */
    readonly origin: string;
    /** Path and query as the app sees them; begins with "/". */
    readonly target: string;
  };

const PLATFORM = "/_sojourn/";
const HOST_SUFFIX = ".localhost";

const NO_HOSTS: ReadonlyMap<string, string> = new Map();

/**
 * Returns the destination that an absolute http(s) URL names.
 *
 * @param hosts apps that have hosts of their own.
 * @param named what the `Host` header of a client's request said; null or "" where there was none.
 */
export function addressOf(
  url: string,
  hosts: ReadonlyMap<string, string> = NO_HOSTS,
  named: string | null = null,
): Address {
  const hostAt = url.indexOf("//") + 2;
  let pathAt = url.indexOf("/", hostAt);
  if (pathAt < 0) pathAt = url.length;
  const target = url.slice(pathAt) || "/";
  const host = url.slice(hostAt, pathAt);
  if (!isHost(host) || (named !== host && named !== null && named !== "")) return { kind: "invalid" };
  if (target.startsWith(PLATFORM) || target === "/_sojourn") {
    return { kind: "platform", path: pathOf(target) };
  }
  const origin = url.slice(0, pathAt);
  const bare = bareHost(host);
  const app = (hosts.size === 0 ? undefined : hosts.get(bare)) ?? appOfHost(bare);
  if (app !== null) return { kind: "app", app, prefix: "", origin, target };
  const end = segmentEnd(target);
  const name = target.slice(1, end);
  if (name === "") return { kind: "front" };
  const rest = target.slice(end);
  return {
    kind: "app",
    app: name,
    prefix: "/" + name,
    origin,
    target: rest.startsWith("/") ? rest : "/" + rest,
  };
}

/** Returns the path of a target, without its query. */
export function pathOf(target: string): string {
  const query = target.indexOf("?");
  return query < 0 ? target : target.slice(0, query);
}

/** Returns the app that a host (without its port) names: the label before `.localhost`. Null for any other host. */
function appOfHost(host: string): string | null {
  if (!host.endsWith(HOST_SUFFIX)) return null;
  const label = host.slice(0, -HOST_SUFFIX.length);
  return label === "" || label.includes(".") ? null : label;
}

/** Valid hosts, as requests named them: a site is reached by few, and parsing costs more than the rest. */
const knownHosts = new Set<string>();
const KNOWN_HOSTS_MAX = 1_000;

/** Reports whether a text is a host with or without a port, and nothing else of a URL (GA2). */
function isHost(host: string): boolean {
  if (knownHosts.has(host)) return true;
  if (/[\s/?#@\\]/.test(host) || !URL.canParse(`http://${host}/`)) return false;
  if (knownHosts.size >= KNOWN_HOSTS_MAX) knownHosts.clear();
  knownHosts.add(host);
  return true;
}

/** Host names that always mean this machine. A name that somebody else's DNS could point here is not among them. */
const LOOPBACK = /^(127(\.\d+){3}|localhost|[a-z0-9-]+\.localhost|\[::1\])$/;

/** Reports whether a host, without its port, is a name of this machine that nobody else's DNS can give away. */
export const isLoopback = (hostname: string): boolean => LOOPBACK.test(hostname);

/** Returns the index at which the first path segment ends. */
function segmentEnd(target: string): number {
  for (let at = 1; at < target.length; at++) {
    const code = target.charCodeAt(at);
    if (code === 0x2f || code === 0x3f) return at; // "/" or "?"
  }
  return target.length;
}
