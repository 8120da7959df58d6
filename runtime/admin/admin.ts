/**
 * The admin handlers that every site mounts at `/_sojourn/admin`: a Hono app over the control plane's rows, one
 * file a subject.
 *
 * Reads are answered where they arrive, from the rows that every site has, so that they work with the root away.
 * Changes are forwarded to the root over the links. The caller's role is decided by the site where the request
 * arrives and travels with it, since a link is authenticated; access.ts says which role a path needs.
 */
import { Hono } from "hono";
import { ADMIN_PATH } from "../deploy/admin_api.ts";
import { problemResponse } from "../gateway/problem.ts";
import { refusedRole, roleNeeded } from "./access.ts";
import { appRoutes } from "./apps.ts";
import { cronRoutes } from "./cron.ts";
import { clusterRoutes } from "./cluster.ts";
import { backupRoutes } from "./backups.ts";
import { blobRoutes } from "./blobs.ts";
import { deletionRoutes } from "./deletion.ts";
import { deployRoutes } from "./deploy.ts";
import { failure } from "./failure.ts";
import { logRoutes } from "./logs.ts";
import { membershipRoutes } from "./membership.ts";
import { movingRoutes } from "./moving.ts";
import { readyRoutes } from "./placement.ts";
import { queueRoutes } from "./queues.ts";
import { secretRoutes } from "./secrets.ts";
import type { AdminBindings, AdminHono, AdminServices } from "./services.ts";
import { rolloutRoutes } from "./rollout.ts";
import { sessionRoutes } from "./sessions.ts";
import { hostRoutes } from "./routes.ts";
import { siteRoutes } from "./sites.ts";

/** The admin handlers of a site. */
export function adminApp(services: AdminServices): AdminHono {
  const app = new Hono<{ Bindings: AdminBindings }>().basePath(ADMIN_PATH);
  app.onError((error) => failure(error, services));
  app.notFound((c) =>
    problemResponse("not_available", `${c.req.method} ${new URL(c.req.url).pathname} is not available`)
  );
  app.use("*", async (c, next) => refusedRole(c.env.role, roleNeeded(c)) ?? await next());

  appRoutes(app, services);
  siteRoutes(app, services);
  membershipRoutes(app, services, services.members ?? null);
  movingRoutes(app, services);
  backupRoutes(app, services);
  readyRoutes(app, services);
  blobRoutes(app, services);
  deployRoutes(app, services);
  rolloutRoutes(app, services);
  hostRoutes(app, services);
  cronRoutes(app, services, services.cron ?? null);
  deletionRoutes(app, services);
  if (services.secrets !== undefined) {
    secretRoutes(app, { ...services, ...services.secrets });
  }
  if (services.stateful !== undefined) sessionRoutes(app, services, services.stateful);
  if (services.queues !== undefined) queueRoutes(app, services, services.queues);
  if (services.observed !== undefined) {
    const { site, forward, nowMs, observed } = services;
    const observing = { ...observed, site, forward, nowMs };
    logRoutes(app, observing);
    clusterRoutes(app, observing);
  }

  return app;
}
