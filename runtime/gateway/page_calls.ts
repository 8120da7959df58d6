/**
 * Calls that a web page makes to the platform. Apps are served on the same host and port, so "the same origin" says
 * nothing about who wrote a page: the dashboard is not of that origin (its sandbox gives it one of its own, `null`),
 * and no page is believed for where it came from.
 *
 * PC1  In dev, a call of a page needs a token like anywhere else. Browsers say that a page made a call, and a page
 *      cannot keep them from it: `Sec-Fetch-Site` (every browser since 2023) or `Origin`.
 * PC2  Answers are readable for the sandboxed dashboard, and for no other origin. That gives nobody anything who has no
 *      token, for no cookie and no address stands for one.
 * PC3  Public paths are readable for every page (cross_origin.ts, XO4): the client library asks other sites for it.
 */
import { allowed, shared } from "./cross_origin.ts";

/** Reports whether a page made the call; a person who types an address, or a command, did not. */
export function madeByPage({ method, headers }: Request): boolean {
  if (headers.has("origin")) return true;
  const site = headers.get("sec-fetch-site");
  return site !== null && (site !== "none" || (method !== "GET" && method !== "HEAD"));
}

/** Value of `Origin` for a sandboxed page. */
const SANDBOXED = "null";

const isSandboxed = (request: Request): boolean => request.headers.get("origin") === SANDBOXED;

/** Paths that every page may read (PC3). */
const PUBLIC: ReadonlySet<string> = new Set(
  ["healthz", "readyz", "sites", "session", "client.js"].map((name) => `/_sojourn/${name}`),
);

/**
 * Returns the answer to a CORS preflight, by which a browser asks whether a page may make a call; null for any other
 * request.
 */
export function preflight(request: Request, path: string): Response | null {
  if (PUBLIC.has(path)) return allowed(request, "*");
  if (request.method !== "OPTIONS" || !isSandboxed(request)) return null;
  return new Response(null, {
    status: 204,
    headers: {
      "access-control-allow-origin": SANDBOXED,
      "access-control-allow-methods": "GET, POST",
      "access-control-allow-headers": "authorization, content-type",
      "access-control-max-age": "600",
      "vary": "origin",
    },
  });
}

/** Makes an answer of the platform readable for the pages that may read it (PC2, PC3). */
export function readable(request: Request, path: string, answer: Response): Response {
  if (PUBLIC.has(path)) return shared(answer, "*");
  if (!isSandboxed(request)) return answer;
  const told = new Response(answer.body, answer);
  told.headers.set("access-control-allow-origin", SANDBOXED);
  told.headers.append("vary", "origin");
  return told;
}
