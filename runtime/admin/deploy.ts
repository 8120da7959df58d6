/**
 * Changes of what serves: deploys and rollbacks, made at the root and answered with where they have arrived.
 *
 * A1  A change that was answered is durable at the root.
 */
import type { Change, Deployments, Refusal } from "../deploy/deployments.ts";
import { BUNDLE_BYTES_MAX } from "../deploy/records.ts";
import { parseBlobRef } from "../deploy/version_files.ts";
import { problemResponse } from "../gateway/problem.ts";
import { readLimited } from "./body.ts";
import { placed, waitMs } from "./placement.ts";
import type { AdminContext, AdminHono, AdminServices } from "./services.ts";

/** Adds `POST /deploy` and `/apps/:app/rollback`. */
export function deployRoutes(app: AdminHono, services: AdminServices): void {
  app.post("/deploy", (c) => changing(services, c, (deployments) => deploy(deployments, c)));
  app.post("/apps/:app/rollback", (c) =>
    changing(
      services,
      c,
      (deployments) => deployments.rollback(c.req.param("app"), c.req.query("version")),
    ));
}

/** Runs a change at the root, or forwards the request there; then waits for the sites. */
async function changing(
  services: AdminServices,
  c: AdminContext,
  change: (deployments: Deployments) => Promise<Change | Refusal>,
): Promise<Response> {
  if (services.deployments === null) {
    return await services.forwardToRoot(c.req.raw, c.env.role ?? "read");
  }
  const result = await change(services.deployments);
  if (!result.ok) {
    const more = result.place === undefined ? {} : { place: result.place };
    return problemResponse(result.code, result.message, more);
  }
  const placement = await placed(services, result, waitMs(c));
  if (placement.missing.length === 0) await services.deployments.settle(result.app);
  const { app, version, changed } = result;
  return Response.json({ app, version, changed, ...placement });
}

async function deploy(deployments: Deployments, c: AdminContext): Promise<Change | Refusal> {
  const bundle = await readLimited(c.req.raw.body, BUNDLE_BYTES_MAX);
  if (bundle === null) {
    return { ok: false, code: "limit_bundle", message: `a bundle has at most ${BUNDLE_BYTES_MAX} bytes` };
  }
  const app = c.req.query("app");
  const fallback = c.req.query("fallback");
  const files = parseBlobRef(c.req.query("files"));
  const sourceMap = parseBlobRef(c.req.query("map"));
  return await deployments.deploy({
    bundle,
    ...(files === undefined ? {} : { files }),
    ...(sourceMap === undefined ? {} : { sourceMap }),
    ...(app === undefined ? {} : { app }),
    ...(fallback === undefined ? {} : { fallback }),
  });
}
