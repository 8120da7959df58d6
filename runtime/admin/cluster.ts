/**
 * `GET /_sojourn/admin/cluster`: all sites as this one sees them, once or, with `follow=1`, each second; with
 * `here=1` this site's own part, for another site that collects.
 */
import type { Hono } from "hono";
import { ADMIN_PATH } from "../deploy/admin_api.ts";
import type { Role } from "../deploy/roles.ts";
import { problemResponse } from "../gateway/problem.ts";
import { NDJSON_HEADERS } from "../observe/ndjson.ts";
import { Overview, type OverviewSources, type SiteRates } from "../observe/overview.ts";

/** Readers that may follow: as many as follow logs (logs.ts). */
const READERS_MAX = 32;

/** Services of the site that the overview uses. */
export interface ClusterServices {
  readonly site: string;
  readonly tree: OverviewSources["sites"];
  readonly status: () => unknown;
  readonly rates: () => SiteRates;
  /** Sends an admin request to another site. */
  readonly forward: (site: string, request: Request, role: Role) => Promise<Response>;
  readonly nowMs: () => number;
}

/** Adds the route. */
export function clusterRoutes(
  app: Hono<{ Bindings: { role: Role | null } }>,
  services: ClusterServices,
): void {
  const { site, tree, status, rates, forward, nowMs } = services;
  const here = () => Response.json({ status: status(), rates: rates() });
  const overview = new Overview({
    site,
    sites: tree,
    nowMs,
    ask: (to, signal) =>
      to === site
        ? Promise.resolve(here())
        : forward(to, new Request(`http://${to}${ADMIN_PATH}/cluster?here=1`, { signal }), "read"),
  });
  app.get("/cluster", async (c) => {
    if (c.req.query("here") === "1") return here();
    const follow = c.req.query("follow") ?? "0";
    if (follow !== "0" && follow !== "1") return problemResponse("query_invalid", "follow takes 0 or 1");
    if (follow === "0") return c.json(await overview.look());
    if (overview.readers >= READERS_MAX) {
      return problemResponse("overloaded", `${READERS_MAX} readers follow the cluster at ${site} already`);
    }
    return new Response(overview.follow(), { headers: NDJSON_HEADERS });
  });
}
