/**
 * From a module to a version that serves: bundled here, uploaded, waited for. What `sojourn deploy` and the dev
 * cluster do.
 */
import { bundleApp } from "../bundle/mod.ts";
import { AdminClient, AdminError, type AdminTarget, type Deployed } from "./client.ts";

/** A module to deploy. */
export interface ModuleUpload {
  /** Path of the entry module. */
  readonly module: string;
  /** From `--app`; wins over the manifest's name. */
  readonly app?: string | undefined;
  /** What the app is called where neither says. */
  readonly fallback: string;
  /** How long to wait for the sites. */
  readonly waitMs: number;
}

/**
 * Bundles and deploys a module.
 *
 * @throws AdminError where the bundler or the cluster refuses it; places are those in the module's own files.
 */
export async function deployModule(upload: ModuleUpload, to: AdminTarget | AdminClient): Promise<Deployed> {
  const { module, app, fallback, waitMs } = upload;
  const client = to instanceof AdminClient ? to : new AdminClient(to);
  const bundled = await bundleApp(module);
  if (bundled.kind === "failed") throw new AdminError("deploy_invalid", bundled.message);
  const { code, locate } = bundled;
  try {
    return await client.deploy({ bundle: code, app, fallback, waitMs });
  } catch (error) {
    if (!(error instanceof AdminError) || error.place === undefined) throw error;
    throw new AdminError(error.code, error.message, locate(error.place));
  }
}
