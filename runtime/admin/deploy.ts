/**
 * Deploys and rollbacks, made at the root and answered with the sites at which they have arrived.
 *
 * A1  A change that was answered is durable at the root.
 */
import type { Change, ChangeRefusal } from "../deploy/app_rows.ts";
import type { Deployments } from "../deploy/deployments.ts";
import { DEPLOYED_BYTES_MAX } from "../deploy/records.ts";
import { parseBlobRef } from "../deploy/version_files.ts";
import { parseWeight } from "../deploy/rollout.ts";
import { problemResponse } from "../gateway/problem.ts";
import { readLimited } from "./body.ts";
import { placed, waitMsOfRequest } from "./placement.ts";
import { type Tell, withProgress } from "./progress.ts";
import type { AdminContext, AdminHono, AdminServices } from "./services.ts";

/** Adds `POST /deploy` and `/apps/:app/rollback`. */
export function deployRoutes(app: AdminHono, services: AdminServices): void {
  app.post("/deploy", async (c) => {
    if (services.deployments === null) return await services.forwardToRoot(c.req.raw, c.env.role ?? "read");
    const bundle = await readLimited(c.req.raw.body, DEPLOYED_BYTES_MAX);
    if (bundle === null) {
      return problemResponse("limit_bundle", `a bundle has at most ${DEPLOYED_BYTES_MAX} bytes`);
    }
    return await changing(services, c, (deployments, tell) => deploy(deployments, c, bundle, tell));
  });
  app.post("/apps/:app/rollback", (c) =>
    changing(
      services,
      c,
      (deployments) => deployments.rollback(c.req.param("app"), c.req.query("version")),
    ));
}

/** Runs a change at the root, or forwards the request there; then waits for the sites. */
export async function changing(
  services: AdminServices,
  c: AdminContext,
  change: (deployments: Deployments, tell: Tell) => Promise<Change | ChangeRefusal>,
): Promise<Response> {
  const { deployments } = services;
  if (deployments === null) return await services.forwardToRoot(c.req.raw, c.env.role ?? "read");
  return await withProgress(services, c, async (tell) => {
    const result = await change(deployments, tell);
    if (!result.ok) {
      const more = result.place === undefined ? {} : { place: result.place };
      return problemResponse(result.code, result.message, more);
    }
    const { app, version, changed } = result;
    tell({ event: "live", app, version, changed });
    const isUnsettled = await deployments.isUnsettled(app);
    const mark = isUnsettled ? crypto.randomUUID() : undefined;
    const placement = await placed(services, { ...result, mark }, waitMsOfRequest(c), tell);
    if (placement.missing.length === 0) {
      const settled = deployments.settle(app);
      // No caller waits for the removal of old versions; it is tried again with the next change.
      if (isUnsettled) await settled;
      else settled.catch((error) => services.note("apps_not_tidied", { error: String(error) }));
    }
    return Response.json({ app, version, changed, ...placement });
  });
}

async function deploy(
  deployments: Deployments,
  c: AdminContext,
  bundle: Uint8Array,
  tell: Tell,
): Promise<Change | ChangeRefusal> {
  const text = c.req.query("weight");
  const weight = text === undefined ? undefined : parseWeight(text);
  if (weight === null) {
    return {
      ok: false,
      code: "deploy_invalid",
      message: `${JSON.stringify(text)} is no weight from 0 to 100`,
    };
  }
  const app = c.req.query("app");
  const fallback = c.req.query("fallback");
  const files = parseBlobRef(c.req.query("files"));
  const sourceMap = parseBlobRef(c.req.query("map"));
  return await deployments.deploy({
    bundle,
    ...(files === undefined ? {} : { files }),
    ...(sourceMap === undefined ? {} : { sourceMap }),
    signal: c.req.raw.signal,
    begun: (what) => tell({ event: "evaluated", ...what }),
    ...(app === undefined ? {} : { app }),
    ...(fallback === undefined ? {} : { fallback }),
    ...(weight === undefined ? {} : { weight }),
  });
}
