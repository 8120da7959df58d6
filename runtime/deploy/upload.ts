/**
 * Deploying of a module, for `sojourn deploy` and the dev cluster: it is bundled here, uploaded, and waited for until
 * it serves.
 */
import { createHash } from "node:crypto";
import { dirname } from "node:path";
import { ASSET_BYTES_MAX, AssetsRefused, collectAssets } from "../assets/mod.ts";
import type { BundleResult } from "../bundle/mod.ts";
import type { BlobRef } from "./blobs.ts";
import { AdminClient, type AdminTarget, type BundleUpload, type Deployed, type Progress } from "./client.ts";
import { AdminError } from "./admin_api.ts";

/** A module to deploy. */
export interface ModuleUpload {
  /** Path of the entry module. */
  readonly module: string;
  /** App's name from `--app`; wins over the manifest's name. */
  readonly app?: string | undefined;
  /** App's name where neither says one. */
  readonly fallback: string;
  /** Per cent of the sessions that get it; all where not given. */
  readonly weight?: number | undefined;
  /** Milliseconds to wait for the sites. */
  readonly waitMs: number;
  /** The module's bundle, where bundling was begun before. */
  readonly bundled?: Promise<BundleResult> | undefined;
}

/** Callbacks for an upload under way. */
export interface UploadProgress extends Progress {
  readonly bundled?: (bytes: number) => void;
  /** Called with what may go wrong with the module, and its place. */
  readonly warned?: (warning: string) => void;
  /** Called when static files that the cluster lacks are about to be sent. */
  readonly sending?: (files: { readonly count: number; readonly of: number }) => void;
}

/** Bundles a module. The bundler is imported only here: every command would wait for a parser that most don't need. */
export async function bundle(module: string): Promise<BundleResult> {
  const { bundleApp } = await import("../bundle/mod.ts");
  return await bundleApp(module);
}

/**
 * Bundles and deploys a module.
 *
 * @throws AdminError where the bundler or the cluster refuses it; places are those in the module's own files.
 */
export async function deployModule(
  upload: ModuleUpload,
  to: AdminTarget | AdminClient,
  progress: UploadProgress = {},
): Promise<Deployed> {
  const { module, app, fallback, weight, waitMs } = upload;
  const client = to instanceof AdminClient ? to : new AdminClient(to);
  const bundled = await (upload.bundled ?? bundle(module));
  if (bundled.kind === "failed") throw new AdminError("deploy_invalid", bundled.message);
  const { code, locate } = bundled;
  progress.signal?.throwIfAborted();
  progress.bundled?.(code.length);
  for (const warning of bundled.warnings) progress.warned?.(warning);
  try {
    const sourceMap = await sendMap(client, bundled.map, progress.signal);
    const upload = { bundle: code, app, fallback, weight, waitMs, sourceMap };
    return await deployWithFiles(client, dirname(module), upload, progress);
  } catch (error) {
    if (!(error instanceof AdminError) || error.place === undefined) throw error;
    throw new AdminError(error.code, error.message, locate(error.place));
  }
}

/** A blob that a deploy sends: its bytes are read when they turn out to be needed. */
interface Outgoing {
  bytesOf(): Promise<Uint8Array<ArrayBuffer>>;
}

/**
 * Tries of a deploy with files: deploys of one folder at the same time may sweep each other's files between sending and
 * naming them.
 */
const TRIES_MAX = 3;
/** Blobs on their way at once: a link's round trip is waited for less often. */
const PARALLEL = 4;

/** Deploys a module with static files. Only the app itself, when the root has run it, says which folder they are in. */
async function deployWithFiles(
  client: AdminClient,
  folder: string,
  upload: BundleUpload,
  progress: UploadProgress,
): Promise<Deployed> {
  let files: BlobRef | undefined;
  let assets = "";
  for (let tries = 1;; tries++) {
    try {
      progress.signal?.throwIfAborted();
      return await client.deploy({ ...upload, files }, progress);
    } catch (error) {
      if (!(error instanceof AdminError) || tries >= TRIES_MAX) throw error;
      if (error.code === "assets_needed") assets = error.place ?? "";
      else if (error.code !== "blobs_missing") throw error;
      files = await sendFiles(client, folder, assets, progress);
    }
  }
}

async function sendFiles(
  client: AdminClient,
  folder: string,
  assets: string,
  progress: UploadProgress,
): Promise<BlobRef> {
  try {
    const { index, indexDigest, blobs } = await collectAssets(folder, assets);
    await sendBlobs(client, new Map<string, Outgoing>([...blobs, [indexDigest, held(index)]]), progress);
    return { sha256: indexDigest, bytes: index.length };
  } catch (error) {
    if (error instanceof AssetsRefused) throw new AdminError("deploy_invalid", error.message);
    throw error;
  }
}

async function sendMap(
  client: AdminClient,
  map: Uint8Array<ArrayBuffer>,
  signal: AbortSignal | undefined,
): Promise<BlobRef | undefined> {
  if (map.length > ASSET_BYTES_MAX) return undefined; // stacks then name places in the bundle
  const sha256 = createHash("sha256").update(map).digest("hex");
  await sendBlobs(client, new Map([[sha256, held(map)]]), { signal });
  return { sha256, bytes: map.length };
}

const held = (bytes: Uint8Array<ArrayBuffer>): Outgoing => ({ bytesOf: () => Promise.resolve(bytes) });

/** Sends the blobs that the cluster lacks. */
async function sendBlobs(
  client: AdminClient,
  blobs: ReadonlyMap<string, Outgoing>,
  progress: Pick<UploadProgress, "sending" | "signal">,
): Promise<void> {
  const missing = await client.missingBlobs([...blobs.keys()]);
  progress.sending?.({ count: missing.length, of: blobs.size });
  const send = async () => {
    for (let digest = missing.pop(); digest !== undefined; digest = missing.pop()) {
      progress.signal?.throwIfAborted();
      const blob = blobs.get(digest);
      if (blob !== undefined) await client.putBlob(digest, await blob.bytesOf());
    }
  };
  await Promise.all(Array.from({ length: PARALLEL }, send));
}
