/**
 * Deleting apps: `DELETE /apps/:app`, and going on with changes that were cut short.
 */
import type { Change } from "../deploy/app_rows.ts";
import type { DeletionProgress } from "../deploy/deletion.ts";
import type { Deployments } from "../deploy/deployments.ts";
import { problemResponse } from "../gateway/problem.ts";
import { placed, waitMsOfRequest } from "./placement.ts";
import { endSessions } from "./sessions.ts";
import { type Tell, withProgress } from "./progress.ts";
import type { AdminHono, AdminServices } from "./services.ts";

/** Adds `DELETE /apps/:app`. */
export function deletionRoutes(app: AdminHono, services: AdminServices): void {
  app.delete("/apps/:app", async (c) => {
    const { deployments } = services;
    if (deployments === null) return await services.forwardToRoot(c.req.raw, c.env.role ?? "read");
    return await withProgress(services, c, async (tell) => {
      const begun = await deployments.deletion.begin(c.req.param("app"));
      if (!begun.ok) return problemResponse(begun.code, begun.message);
      const { app: name, version } = begun;
      tell({ event: "live", app: name, version, changed: true });
      const done = await deployments.deletion.once(
        name,
        () => remove(services, deployments, begun, waitMsOfRequest(c), tell),
      );
      return Response.json({ app: name, version, changed: true, ...done });
    });
  });
}

/** Deletes an app at the root. The name is free again only where no site is missing (deletion.ts, X1). */
async function remove(
  services: AdminServices,
  deployments: Deployments,
  begun: Change,
  timeoutMs: number,
  tell: Tell,
): Promise<DeletionProgress> {
  const { deletion } = deployments;
  const change = { ...begun, version: begun.version || NO_VERSION, mark: crypto.randomUUID() };
  const placement = await placed(services, change, timeoutMs, tell);
  const areEnded = await endSessions(services, begun.app);
  const rows = await deletion.removeRows(begun, (sofar) => tell({ event: "removed", rows: sofar }));
  if (placement.missing.length === 0 && areEnded) {
    await deletion.finish(begun);
    await deployments.settle(begun.app);
  }
  return { ...placement, rows };
}

/** Version in the answer of a change that is about no version. */
const NO_VERSION = "0".repeat(64);

/** Milliseconds to wait for sites when changes go on: a site that is away is asked again with the next look. */
const RESUME_WAIT_MS = 10_000;

/** Goes on, at the root, with changes that were cut short or that waited for a missing site. */
export async function resumeChanges(services: AdminServices): Promise<void> {
  const { deployments } = services;
  if (deployments === null) return;
  for (const change of await deployments.unsettled()) {
    const { missing } = await placed(services, { ...change, mark: crypto.randomUUID() }, RESUME_WAIT_MS);
    if (missing.length === 0) await deployments.settle(change.app);
  }
  const { deletion } = deployments;
  for (const app of await deletion.unfinished()) {
    if (deletion.isGoing(app)) continue;
    const begun = await deletion.begin(app);
    if (!begun.ok) continue;
    const { missing, rows } = await deletion.once(
      app,
      () => remove(services, deployments, begun, RESUME_WAIT_MS, () => {}),
    );
    services.note("app_deletion_resumed", { deleted: app, rows, missing });
  }
}
