/** Deploying an app to a dev cluster, the way `sojourn deploy` does. */
import type { BundleResult } from "../bundle/mod.ts";
import type { Deployed } from "../deploy/client.ts";
import { deployModule } from "../deploy/upload.ts";
import type { AppSource } from "./app_source.ts";

/** Milliseconds to wait for the sites: every one is on this machine, and one that takes longer has failed. */
const WAIT_MS = 30_000;

/** Options of a deploy. */
export interface DeployOptions {
  /** The app's bundle, where bundling was begun before. */
  readonly bundled?: Promise<BundleResult> | undefined;
  /** Milliseconds to wait for the sites. */
  readonly waitMs?: number;
  readonly warned?: (warning: string) => void;
  readonly signal?: AbortSignal;
}

/** Deploys an app. @throws AdminError where the cluster or the bundler refuses it. */
export async function deployApp(
  { module, fallback }: AppSource,
  target: { url: string; token: string },
  { bundled, waitMs = WAIT_MS, ...progress }: DeployOptions,
): Promise<Deployed> {
  return await deployModule({ module, fallback, waitMs, bundled }, target, progress);
}
