/** Deploying an app to a dev cluster: bundle, upload, wait for the sites; the path of `sojourn deploy`. */
import { resolve } from "node:path";
import { runDenoBundle } from "../bundle/deno_bundle.ts";
import { AdminClient, AdminError, type Deployed } from "../deploy/client.ts";
import type { AppSource } from "./app_source.ts";

const DENO_CONFIG = resolve(import.meta.dirname ?? ".", "..", "..", "deno.json");
/** Every site is on this machine: one that takes longer has failed. */
const WAIT_MS = 30_000;

/** @throws AdminError where the cluster or the bundler refuses it. */
export async function deployApp(app: AppSource, target: { url: string; token: string }): Promise<Deployed> {
  const bundled = await runDenoBundle({ entry: app.module, config: DENO_CONFIG });
  if (bundled.kind === "failed") throw new AdminError("deploy_invalid", bundled.message);
  return await new AdminClient(target).deploy({
    bundle: bundled.code,
    fallback: app.fallback,
    waitMs: WAIT_MS,
  });
}
