/**
 * Another parent for a site: `POST /sites/:site/move?to=PARENT`, made by the site itself.
 *
 * V1  The site that is asked first looks the new parent up and adds its link address: the site to be moved may be cut
 *     off from the tree, and know of no site that has joined since.
 * V2  A site that still answers is not given up as lost.
 */
import type { SiteRecord } from "../../store/api/api.ts";
import { problemResponse } from "../gateway/problem.ts";
import { connection } from "./membership.ts";
import type { AdminHono, AdminServices, NewParent } from "./services.ts";
import { readSites } from "./sites.ts";

/** Pattern of site ids, as the site file has them. */
const SITE_ID = /^[a-z][a-z0-9-]{0,39}$/;
/** Sites that may be named as lost: as many as fit a region. */
const LOST_MAX = 1_000;

/** Adds the route. */
export function movingRoutes(app: AdminHono, services: AdminServices): void {
  app.post("/sites/:site/move", async (c) => {
    const id = c.req.param("site"), url = c.req.query("url");
    const wanted = parsed(c.req.query("to"), c.req.query("lost") ?? "");
    if (wanted instanceof Response) return wanted;
    // V1: the call came from another site, which has looked the parent up.
    if (url !== undefined && id === services.site) {
      return await moved(services, { ...wanted, url });
    }
    const sites = new Map((await readSites(services.system)).map((site) => [site.id, site]));
    const refused = refusal(sites, id, wanted.id) ?? await stillThere(services, sites, wanted.lost);
    if (refused !== null) return refused;
    const parent = { ...wanted, url: sites.get(wanted.id)?.linkAddress ?? "" };
    if (id === services.site) return await moved(services, parent);
    const to = new URL(c.req.url);
    to.searchParams.set("url", parent.url);
    const request = new Request(to, { method: "POST", headers: c.req.raw.headers, signal: c.req.raw.signal });
    return await services.forwardTwice(id, request, c.env.role ?? "read");
  });
}

function parsed(to: string | undefined, lost: string): Omit<NewParent, "url"> | Response {
  const ids = lost === "" ? [] : lost.split(",");
  const bad = [to ?? "", ...ids].find((id) => !SITE_ID.test(id));
  if (bad !== undefined || to === undefined) {
    return problemResponse(
      "query_invalid",
      `to and lost take ids of sites, not ${JSON.stringify(bad ?? "")}`,
    );
  }
  if (ids.length > LOST_MAX) {
    return problemResponse("query_invalid", `lost takes up to ${LOST_MAX} sites, not ${ids.length}`);
  }
  return { id: to, lost: ids };
}

function refusal(sites: ReadonlyMap<string, SiteRecord>, id: string, to: string): Response | null {
  const site = sites.get(id);
  for (const each of [id, to]) {
    if (!sites.has(each)) {
      return problemResponse("site_unknown", `no site is called ${JSON.stringify(each)}`);
    }
  }
  if (site?.parent === null) {
    return problemResponse("site_needed", `site ${id} is the root: it has no parent`);
  }
  for (let at = sites.get(to), hops = 0; at !== undefined && hops <= sites.size; hops++) {
    if (at.id === id) {
      const text = to === id ? `site ${id} cannot be its own parent` : `site ${to} stands below ${id}`;
      return problemResponse("site_needed", `${text}: its parent must be a site that is not below it`);
    }
    at = sites.get(at.parent ?? "");
  }
  return null;
}

/** Returns the refusal where a site named as lost still answers (V2). */
async function stillThere(
  services: AdminServices,
  sites: ReadonlyMap<string, SiteRecord>,
  lost: readonly string[],
): Promise<Response | null> {
  for (const id of lost) {
    if (!sites.has(id)) {
      return problemResponse(
        "site_unknown",
        `no site is called ${JSON.stringify(id)}; one that was removed need not be named as lost`,
      );
    }
    if (await connection(services, id) !== null) {
      return problemResponse(
        "site_connected",
        `site ${id} is there: it is not lost. Without --lost it is asked for what others still need of it`,
      );
    }
  }
  return null;
}

async function moved(services: AdminServices, parent: NewParent): Promise<Response> {
  const { site, move } = services;
  if (move === undefined) return problemResponse("not_available", "this site cannot be moved");
  return Response.json({ site, from: await move(parent), to: parent.id });
}
