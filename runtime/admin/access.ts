/**
 * Roles that admin paths need: one table, which docs/operating.md shows and a test compares with the routes that exist.
 * A route that is not in it needs a role by its method, and fails that test.
 *
 * N1  No handler runs for a caller whose role does not include the one needed.
 */
import type { Context } from "hono";
import { matchedRoutes } from "hono/route";
import { ADMIN_PATH } from "../deploy/admin_api.ts";
import { allows, type Role } from "../deploy/roles.ts";
import { problemResponse } from "../gateway/problem.ts";

/** Role that each admin path needs, by method and path below `/_sojourn/admin`. */
export const ADMIN_ROLES: Readonly<Record<string, Role>> = {
  "GET /apps": "read",
  "GET /apps/:app/versions": "read",
  "GET /sites": "read",
  "DELETE /sites/:site": "admin",
  "POST /sites/:site/admit": "admin",
  "POST /sites/:site/clock": "admin",
  "POST /sites/:site/drain": "admin",
  "POST /sites/:site/move": "admin",
  "PUT /sites/:site/backups/:cut": "admin",
  "POST /sites/:site/backups/:cut/hold": "admin",
  "POST /sites/:site/backups/:cut/take": "admin",
  "GET /sites/:site/backups/:cut": "admin",
  "GET /sites/:site/backups/:cut/content": "admin",
  "DELETE /sites/:site/backups/:cut": "admin",
  "GET /ready/:app/:version": "read",
  "GET /logs": "read",
  "GET /cluster": "read",
  "GET /apps/:app/rows": "admin",
  "DELETE /apps/:app": "admin",
  "GET /apps/:app/routes": "read",
  "PUT /apps/:app/hosts/:host": "admin",
  "DELETE /apps/:app/hosts/:host": "admin",
  "GET /apps/:app/secrets": "read",
  "PUT /apps/:app/secrets/:name": "admin",
  "GET /apps/:app/secrets/:name/ready": "read",
  "POST /apps/:app/secrets/:name/placed": "read",
  "DELETE /apps/:app/secrets/:name": "admin",
  "GET /apps/:app/cron": "read",
  "POST /apps/:app/cron/:name/run": "deploy",
  "GET /sessions": "read",
  "GET /sessions/:app/:class/:id": "read",
  "POST /sessions/:app/:class/:id/move": "admin",
  "DELETE /sessions/:app/:class/:id": "admin",
  "GET /sessions/:app/:class/:id/log": "admin",
  "POST /sessions/:app/:class/:id/resume": "admin",
  "POST /sessions/:app/:class/:id/reset": "admin",
  "GET /queues": "read",
  "GET /queues/:app/:queue/dead": "admin",
  "POST /queues/:app/:queue/redrive": "admin",
  "POST /queues/:app/:queue/remove": "admin",
  "POST /queues/:app/:queue/pause": "admin",
  "POST /queues/:app/:queue/resume": "admin",
  "POST /queues/:app/:queue/purge": "admin",
  "POST /deploy": "deploy",
  "POST /blobs/missing": "deploy",
  "PUT /blobs/:digest": "deploy",
  "POST /apps/:app/rollback": "deploy",
  "GET /apps/:app/rollout": "read",
  "POST /apps/:app/rollout": "deploy",
  "POST /apps/:app/rollout/finish": "deploy",
  "POST /apps/:app/rollout/abort": "deploy",
};

/** Returns the name of a route in {@link ADMIN_ROLES}. */
export const routeName = ({ method, path }: { method: string; path: string }): string =>
  `${method} ${path.slice(ADMIN_PATH.length)}`;

/**
 * Returns the role that a call needs. A path that no handler takes needs one, too: only readers are told that it does
 * not exist.
 */
export function roleNeeded(c: Context): Role {
  const { method } = c.req;
  const route = matchedRoutes(c).findLast((each) => each.method !== "ALL");
  const listed = route === undefined ? undefined : ADMIN_ROLES[routeName(route)];
  return listed ?? (method === "GET" || method === "HEAD" ? "read" : "admin");
}

/** Returns the refusal of a call, or null where the role includes the one needed (N1). */
export function refusedRole(role: Role | null, needed: Role): Response | null {
  if (role === null) {
    return problemResponse(
      "admin_token_invalid",
      `this needs a valid token with the role ${needed}: Authorization: Bearer …`,
    );
  }
  if (allows(role, needed)) return null;
  return problemResponse("admin_role", `this needs a token with the role ${needed}, not ${role}`);
}
