/**
 * Backups of a site, made by the site itself (runtime/backup): prepared, held, taken at one moment, fetched, dropped. Any
 * site passes a call on to the one that it names.
 */
import { problemResponse } from "../gateway/problem.ts";
import type { SiteBackups } from "../backup/site_backups.ts";
import type { AdminContext, AdminHono, AdminServices } from "./services.ts";
import { readSites } from "./sites.ts";

const CUT = /^[0-9a-f]{32}$/;

/** Adds the routes. */
export function backupRoutes(app: AdminHono, services: AdminServices): void {
  /** Answers here, or has the site answer that the call is for. */
  const at = async (
    c: AdminContext,
    answer: (backups: SiteBackups, cut: string) => Response | Promise<Response>,
  ): Promise<Response> => {
    const site = c.req.param("site") ?? "", cut = c.req.param("cut") ?? "";
    if (!CUT.test(cut)) {
      return problemResponse("query_invalid", "a backup is named by 32 hexadecimal digits");
    }
    if (site === services.site) {
      const { backups } = services;
      return backups === undefined
        ? problemResponse("not_available", "this site makes no backups")
        : await answer(backups, cut);
    }
    const known = (await readSites(services.system)).some(({ id }) => id === site);
    if (!known) return problemResponse("site_unknown", `no site is called ${JSON.stringify(site)}`);
    return await services.forward(site, c.req.raw, c.env.role ?? "read");
  };
  app.put(
    "/sites/:site/backups/:cut",
    (c) => at(c, async (backups, cut) => c.json(await backups.prepare(cut))),
  );
  app.post("/sites/:site/backups/:cut/hold", (c) => at(c, (backups, cut) => c.json(backups.hold(cut))));
  app.post("/sites/:site/backups/:cut/take", (c) =>
    at(c, (backups, cut) => {
      const held = c.req.query("held") ?? "0";
      if (held !== "0" && held !== "1") return problemResponse("query_invalid", "held takes 0 or 1");
      return c.json(backups.take(cut, held === "1"));
    }));
  app.get("/sites/:site/backups/:cut", (c) => at(c, (backups, cut) => c.json(backups.state(cut))));
  app.get("/sites/:site/backups/:cut/content", (c) =>
    at(c, (backups, cut) => {
      const { bytes, body } = backups.content(cut);
      const headers = {
        "content-type": "application/octet-stream",
        "content-length": String(bytes),
        "cache-control": "no-store",
      };
      return new Response(body, { headers });
    }));
  app.delete("/sites/:site/backups/:cut", (c) =>
    at(c, async (backups, cut) => {
      await backups.drop(cut);
      return c.json({ cut });
    }));
}
