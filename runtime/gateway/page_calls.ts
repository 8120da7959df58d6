/**
 * Calls that a web page makes to the platform. Apps are served on the same host and port, so "the same origin" says
 * nothing about who wrote a page: the dashboard is not of that origin (its sandbox gives it one of its own, `null`),
 * and no page is believed for where it came from.
 *
 * B1  In dev, a call of a page needs a token like anywhere else. Browsers say that a page made a call, and a page
 *     cannot keep them from it: `Sec-Fetch-Site` (every browser since 2023) or `Origin`.
 * B2  Answers are readable for the sandboxed dashboard, and for no other origin. That gives nobody anything who has
 *     no token, for no cookie and no address stands for one.
 */

/** Whether a page made the call; a person who types an address, or a command, did not. */
export function madeByPage({ method, headers }: Request): boolean {
  if (headers.has("origin")) return true;
  const site = headers.get("sec-fetch-site");
  return site !== null && (site !== "none" || (method !== "GET" && method !== "HEAD"));
}

/** The origin of a sandboxed page. */
const SANDBOXED = "null";

const isSandboxed = (request: Request): boolean => request.headers.get("origin") === SANDBOXED;

/** The answer to a browser that asks whether the dashboard may make a call; null where it is no such question. */
export function preflight(request: Request): Response | null {
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

/** An answer of the admin interface, readable for the dashboard (B2). */
export function readable(request: Request, answer: Response): Response {
  if (!isSandboxed(request)) return answer;
  const shared = new Response(answer.body, answer);
  shared.headers.set("access-control-allow-origin", SANDBOXED);
  shared.headers.append("vary", "origin");
  return shared;
}
