/**
 * Permission (CORS) for pages to call another site of the cluster than the one they came from, as the client library
 * does when it moves: a browser lets a page read an answer of another origin only where the answer says so.
 *
 * XO1  Answers of an app are readable for pages of that app: of a host of its own, or from below a site's address.
 *      (Below one address all apps are one origin, and can read each other there already.)
 * XO2  Such answers are never readable with credentials: no cookie takes part in them. A session moves by its token.
 * XO3  An app's own CORS headers are left as they are.
 * XO4  The platform's public paths are readable for every page.
 */
import { type Address, addressOf, isLoopback } from "./address.ts";

/** An address of an app. */
type AppAddress = Extract<Address, { kind: "app" }>;

/** Addresses of the cluster's sites and of its apps. */
export interface ClusterAddresses {
  readonly sites: () => readonly { readonly url: string }[];
  /** Apps that have hosts of their own, by host. */
  readonly hosts: ReadonlyMap<string, string> | undefined;
}

/**
 * Returns the origin of the page of this app that made a request from another origin; null where none of its pages did
 * (XO1).
 */
export function pageOrigin(request: Request, address: AppAddress, known: ClusterAddresses): string | null {
  const origin = request.headers.get("origin");
  if (origin === null || origin === address.origin || !/^https?:/.test(origin)) return null;
  if (!URL.canParse(origin)) return null;
  const page = new URL(origin);
  const named = addressOf(`${page.origin}/`, known.hosts);
  if (named.kind === "app" && named.app !== address.app) return null;
  if (named.kind === "app" && !isLoopback(page.hostname)) return origin;
  return known.sites().some(({ url }) => URL.canParse(url) && isSame(new URL(url), page)) ? origin : null;
}

/** Reports whether a page is of a site's origin; this machine has many names, and a port of it is one site's. */
const isSame = (site: URL, page: URL): boolean =>
  site.origin === page.origin ||
  (site.protocol === page.protocol && site.port === page.port && isLoopback(site.hostname) &&
    isLoopback(page.hostname));

/**
 * Returns the answer to a CORS preflight, by which a browser asks whether a page may make a call; null for any other
 * request.
 */
export function allowed(request: Request, origin: string): Response | null {
  const { headers } = request;
  const method = headers.get("access-control-request-method");
  if (request.method !== "OPTIONS" || method === null) return null;
  return new Response(null, {
    status: 204,
    headers: {
      "access-control-allow-origin": origin,
      "access-control-allow-methods": method,
      "access-control-allow-headers": headers.get("access-control-request-headers") ?? "",
      "access-control-max-age": "600",
      "vary": "origin, access-control-request-method, access-control-request-headers",
    },
  });
}

/** Makes an answer readable for pages of another origin (XO2, XO3). */
export function shared(answer: Response, origin: string): Response {
  if (answer.headers.has("access-control-allow-origin") || answer.status === 101) return answer;
  const readable = new Response(answer.body, answer);
  readable.headers.set("access-control-allow-origin", origin);
  readable.headers.set("access-control-expose-headers", "*");
  if (origin !== "*") readable.headers.append("vary", "origin");
  return readable;
}
