/**
 * The apps that serve, their versions and their rows: reads that the site where they arrive answers, but for rows,
 * which only the root has all of.
 */
import type { AppTable } from "../deploy/app_table.ts";
import { answerRows } from "./inspection.ts";
import { type AdminHono, type AdminServices, unknownApp } from "./services.ts";

/** Adds `GET /apps`, `/apps/:app/versions` and `/apps/:app/rows`. */
export function appRoutes(app: AdminHono, services: AdminServices): void {
  app.get("/apps", (c) => c.json(services.apps.list().map(describeApp)));
  app.get("/apps/:app/versions", (c) => {
    const live = services.apps.get(c.req.param("app"));
    if (live === undefined) return unknownApp(c.req.param("app"));
    return c.json(
      live.record.versions.map((entry) => ({
        ...entry,
        current: entry.version === live.record.current,
        ...entry.version === live.record.rollout?.version ? { weight: live.record.rollout.weight } : {},
      })).reverse(),
    );
  });
  app.get("/apps/:app/rows", async (c) => {
    const name = c.req.param("app");
    if (services.apps.get(name) === undefined) return unknownApp(name);
    if (services.deployments === null) return await services.forwardToRoot(c.req.raw, "admin");
    return await answerRows(services.system, name, new URL(c.req.url).searchParams);
  });
}

function describeApp(live: ReturnType<AppTable["list"]>[number]) {
  const newest = live.record.versions.find((entry) => entry.version === live.record.current);
  return {
    app: live.name,
    version: live.current.version,
    versions: live.record.versions.length,
    ...live.record.rollout === undefined ? {} : { rollout: live.record.rollout },
    deployedMs: newest?.createdMs ?? 0,
    tables: Object.keys(live.current.manifest.tables),
  };
}
