/** Deploying an app to a dev cluster, the way `sojourn deploy` does. */
import type { BundleResult } from "../bundle/mod.ts";
import type { Deployed } from "../deploy/client.ts";
import { deployModule } from "../deploy/upload.ts";
import type { AppSource } from "./app_source.ts";

/** Every site is on this machine: one that takes longer has failed. */
const WAIT_MS = 30_000;

/** How an app is deployed. */
export interface DeployOptions {
  /** Its bundle, where that was begun before. */
  readonly bundled?: Promise<BundleResult> | undefined;
  /** How long to wait for the sites. */
  readonly waitMs?: number;
  readonly warned?: (warning: string) => void;
  readonly signal?: AbortSignal;
}

/** @throws AdminError where the cluster or the bundler refuses it. */
export async function deployApp(
  { module, fallback }: AppSource,
  target: { url: string; token: string },
  { bundled, waitMs = WAIT_MS, ...progress }: DeployOptions,
): Promise<Deployed> {
  return await deployModule({ module, fallback, waitMs, bundled }, target, progress);
}
