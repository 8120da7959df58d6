/** Deploying an app to a dev cluster, the way `sojourn deploy` does. */
import type { BundleResult } from "../bundle/mod.ts";
import type { Deployed } from "../deploy/client.ts";
import { deployModule } from "../deploy/upload.ts";
import type { AppSource } from "./app_source.ts";

/** Every site is on this machine: one that takes longer has failed. */
const WAIT_MS = 30_000;

/** @param bundled its bundle, where that was begun before. @throws AdminError where the cluster or the bundler refuses it. */
export async function deployApp(
  app: AppSource,
  target: { url: string; token: string },
  warned: (warning: string) => void,
  bundled?: Promise<BundleResult>,
): Promise<Deployed> {
  const upload = { module: app.module, fallback: app.fallback, waitMs: WAIT_MS, bundled };
  return await deployModule(upload, target, { warned });
}
