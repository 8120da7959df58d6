/**
 * `GET /_sojourn/admin/logs`: the lines of all sites at any site, or with `here=1` those of this one, for another
 * site that gathers. Bad parameters are 400; a site that is not in the tree is 404.
 */
import type { Hono } from "hono";
import { ADMIN_PATH } from "../deploy/admin_api.ts";
import type { Role } from "../deploy/roles.ts";
import { problemResponse } from "../gateway/problem.ts";
import { gatherLogs } from "../observe/log_gather.ts";
import { parseLogQuery } from "../observe/log_line.ts";
import type { LogRing } from "../observe/log_ring.ts";
import { logTail } from "../observe/log_tail.ts";
import { NDJSON_HEADERS } from "../observe/ndjson.ts";

/**
 * Readers that may follow logs: each holds a request to every site. A terminal and a dashboard for each of a few
 * operators.
 */
const READERS_MAX = 32;

/** Services of the site that logs use. */
export interface LogServices {
  readonly site: string;
  readonly ring: LogRing;
  /** Returns all sites that are known. */
  readonly sites: () => readonly string[];
  /** Sends an admin request to another site. */
  readonly forward: (site: string, request: Request, role: Role) => Promise<Response>;
  readonly nowMs: () => number;
}

/** Adds the route. */
export function logRoutes(app: Hono<{ Bindings: { role: Role | null } }>, services: LogServices): void {
  const { site, ring, nowMs } = services;
  let readers = 0;
  const ask = (to: string, params: URLSearchParams, signal: AbortSignal): Promise<Response> => {
    if (to === site) return Promise.resolve(here(params));
    return services.forward(to, new Request(`http://${to}${ADMIN_PATH}/logs?${params}`, { signal }), "read");
  };
  const here = (params: URLSearchParams): Response => {
    const query = parseLogQuery(params, nowMs());
    if (typeof query === "string") return problemResponse("query_invalid", query);
    return new Response(logTail({ site, ring, nowMs }, query), { headers: NDJSON_HEADERS });
  };
  app.get("/logs", (c) => {
    const params = new URL(c.req.url).searchParams;
    const query = parseLogQuery(params, nowMs());
    if (typeof query === "string") return problemResponse("query_invalid", query);
    if (query.here) return here(params);
    const sites = () => [...new Set([site, ...services.sites()])];
    if (query.site !== null && !sites().includes(query.site)) {
      return problemResponse(
        "not_found",
        `no site is called ${JSON.stringify(query.site)}; there are ${sites().join(", ")}`,
      );
    }
    if (readers >= READERS_MAX) {
      return problemResponse("overloaded", `${READERS_MAX} readers follow the logs at ${site} already`);
    }
    const counted = { begun: () => void readers++, ended: () => void readers-- };
    return new Response(gatherLogs({ sites, ask, nowMs }, query, counted), { headers: NDJSON_HEADERS });
  });
}
