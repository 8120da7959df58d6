/** Routes of an app: its hosts, and the paths that it pins to a tier. */
import { problemResponse } from "../gateway/problem.ts";
import { changing } from "./deploy.ts";
import { type AdminHono, type AdminServices, unknownApp } from "./services.ts";

/** Adds `GET /apps/:app/routes`, and `PUT` and `DELETE /apps/:app/hosts/:host`. */
export function hostRoutes(app: AdminHono, services: AdminServices): void {
  app.get("/apps/:app/routes", (c) => {
    const live = services.apps.get(c.req.param("app"));
    if (live === undefined) return unknownApp(c.req.param("app"));
    const { name, record, current: { manifest, version } } = live;
    return c.json({
      app: name,
      version,
      hosts: record.hosts ?? [],
      paths: Object.entries(manifest.routes).map(([path, { at }]) => ({ path, at })),
    });
  });
  for (const [method, verb] of [["PUT", "add"], ["DELETE", "remove"]] as const) {
    app.on(method, "/apps/:app/hosts/:host", async (c) => {
      const { app: name, host } = c.req.param();
      if (host === undefined || name === undefined) return problemResponse("not_found", "which host?");
      return await changing(services, c, (deployments) => deployments.hosts[verb](name, host));
    });
  }
}
