/**
 * The control plane's rows: which apps exist, which versions they have, and the bundles. Deploying is writing
 * these rows at the root; the feed brings those under "s" to every site, while the bundle chunks under "b" are
 * fetched by ordinary reads where they are needed.
 *
 *   ["s", "app", name]        → {@link AppRecord}      one row an app; `current` is the pointer that rollback moves
 *   ["s", "version", version] → {@link VersionRecord}  immutable once written
 *   ["b", version, i]         → tag and raw bytes      chunk i of the bundle, i a number from 0
 *   ["b", "blob" | "part" | "map", …]                  static files and source maps (blobs.ts, version_files.ts)
 *
 * System values are in the bytes of store/model/system_value.ts.
 *
 * REC1  A version row is written only after all of its chunks are durable, and in one atomic write with the app row
 *       that names it: a half-finished deploy leaves nothing that any reader looks at.
 * REC2  A version is the SHA-256 of its manifest and its bundle, so a record or a bundle never changes under it.
 */
import { createHash } from "node:crypto";
import { z } from "zod";
import { type Key, packKey } from "../../store/model/key.ts";
import { prefixRange, type Range } from "../../store/model/range.ts";
import { decodeSystem } from "../../store/model/system_value.ts";
import { VALUE_TAG } from "../../store/model/value.ts";

/**
 * Bytes of a bundle's chunk: below Deno KV's 64 KiB value limit with room for its own framing, so that a chunk is one
 * engine value.
 */
export const BUNDLE_CHUNK_BYTES = 60 * 1024;
/** Bytes of the largest bundle taken (docs/http.md): 171 chunks. */
export const DEPLOYED_BYTES_MAX = 10 * 1024 * 1024;
/** Versions an app keeps to roll back to; the next deploy gives up the oldest that does not serve. */
export const APP_VERSIONS_MAX = 50;

/** Pattern of an app's name, as `--app` accepts it (docs/app-api.md). */
export const APP_NAME = /^[a-z][a-z0-9-]{0,39}$/;
/** Pattern of a version: 64 hexadecimal digits. */
export const VERSION = /^[0-9a-f]{64}$/;

const appRecordSchema = z.object({
  name: z.string().regex(APP_NAME),
  /** Versions, oldest first. */
  versions: z.array(z.object({ version: z.string().regex(VERSION), createdMs: z.number() })),
  current: z.string().regex(VERSION).nullable(),
  /** Version that a part of the sessions gets instead of the current one (rollout.ts). */
  rollout: z.object({
    version: z.string().regex(VERSION),
    /** Per cent of the sessions. */
    weight: z.number().min(0).max(100),
    sinceMs: z.number(),
  }).optional(),
  /** Hosts at which the app is served beside its path (hosts.ts); sorted. */
  hosts: z.array(z.string()).optional(),
  /** Version that is being prepared to serve: sites write the entries of its indexes already (index_keeper.ts). */
  preparing: z.object({ version: z.string().regex(VERSION), sinceMs: z.number() }).optional(),
  /**
   * Versions that served before and that some site may still have run when the indexes of what serves now were
   * filled: those are filled again when every site has followed.
   */
  unsettled: z.array(z.string().regex(VERSION)).optional(),
  /** What operators ordered for its queues (queue_orders.ts). */
  queues: z.record(
    z.string(),
    z.object({ paused: z.boolean().optional(), purgedBeforeMs: z.number().optional() }),
  ).optional(),
  /** True while the app is being deleted: it serves nowhere, and its name is taken until its rows are removed. */
  deleted: z.boolean().optional(),
});

/** Record of an app: its versions, and which one serves. */
export type AppRecord = z.infer<typeof appRecordSchema>;

/**
 * The part of a manifest that sites act on, read loosely: a site of an older release must be able to read the
 * manifest of a newer one. functions/ validates the whole of it when it is deployed.
 */
const manifestSchema = z.looseObject({
  name: z.string().optional(),
  routes: z.record(z.string(), z.looseObject({ at: z.enum(["root", "core", "edge"]) })).default({}),
  vars: z.record(z.string(), z.string()).default({}),
  fetchHosts: z.array(z.string()).default([]),
  cron: z.record(z.string(), z.string()).default({}),
  secrets: z.record(z.string(), z.looseObject({ at: z.string().optional() })).default({}),
  tables: z.record(
    z.string(),
    z.looseObject({
      key: z.array(z.string()),
      at: z.string().optional(),
      indexes: z.record(z.string(), z.array(z.string())).default({}),
    }),
  ).default({}),
  sessions: z.record(
    z.string(),
    z.looseObject({
      origin: z.string().optional(),
      standby: z.boolean().optional(),
      retention: z.looseObject({ logMs: z.number().optional() }).optional(),
    }),
  ).default({}),
  queues: z.record(
    z.string(),
    z.looseObject({
      f: z.number().optional(),
      maxAttempts: z.number().optional(),
      pull: z.boolean().optional(),
      webhook: z.looseObject({
        url: z.string(),
        secret: z.string(),
        timeoutMs: z.number().optional(),
        headers: z.record(z.string(), z.string()).optional(),
      }).optional(),
      batchMax: z.number().optional(),
      batchWaitMs: z.number().optional(),
      concurrency: z.number().optional(),
      retryMinMs: z.number().optional(),
      retryMaxMs: z.number().optional(),
      dedupeMs: z.number().optional(),
      perSecond: z.number().optional(),
      messagesMax: z.number().optional(),
      bytesMax: z.number().optional(),
    }),
  ).default({}),
  handlers: z.array(z.string()).optional(),
  /** Folder of static files, as the app declared it. */
  assets: z.string().optional(),
  /** Blob of the index of those files (blobs.ts); added by the root, so that the version's name covers them. */
  files: z.object({ sha256: z.string().regex(/^[0-9a-f]{64}$/), bytes: z.number().int().min(0) }).optional(),
});

/** A manifest as stored. */
export type StoredManifest = z.infer<typeof manifestSchema>;

const versionRecordSchema = z.object({
  version: z.string().regex(VERSION),
  manifest: manifestSchema,
  /** SHA-256 of the bundle alone, which sites check: defaults read into a manifest are not hashed. */
  bundleSha256: z.string().regex(VERSION),
  bundleBytes: z.number().int().min(0).max(DEPLOYED_BYTES_MAX),
  bundleChunks: z.number().int().min(1),
  createdMs: z.number(),
});

/** Record of an immutable version of an app. */
export type VersionRecord = z.infer<typeof versionRecordSchema>;

/** Returns the key of an app's row. */
export const appKey = (name: string): Key => packKey(["s", "app", name]);
/** Returns the ranges of all rows that an app's functions have written, replicated below the root and not. */
export const appRanges = (name: string): Range[] => [
  prefixRange(packKey(["a", name])),
  prefixRange(packKey(["r", name])),
];
/** Range of all app rows. */
export const APPS: Range = prefixRange(packKey(["s", "app"]));
/** Returns the key of a version's row. */
export const versionKey = (version: string): Key => packKey(["s", "version", version]);
/** Returns the key of a bundle's chunk. */
export const chunkKey = (version: string, index: number): Key => packKey(["b", version, index]);
/** Returns the range of a bundle's chunks. */
export const bundleRange = (version: string): Range => prefixRange(packKey(["b", version]));
/** Range of all version rows. */
export const VERSIONS: Range = prefixRange(packKey(["s", "version"]));
/** Range of all chunks of all bundles. */
export const BUNDLES: Range = prefixRange(packKey(["b"]));
/** Returns the key of the row that says since when no app names a version any more. */
export const retiredKey = (version: string): Key => packKey(["s", "retired", version]);
/** Range of the rows of retired versions. */
export const RETIRED: Range = prefixRange(packKey(["s", "retired"]));
/**
 * Returns the key of a mark: a row that a site writes behind all that it wrote before. Where the mark has arrived, so
 * has that.
 */
export const markKey = (site: string, mark: string): Key => packKey(["s", "mark", site, mark]);
/** Range of all marks. */
export const MARKS: Range = prefixRange(packKey(["s", "mark"]));
/** Range of all site rows (store/api/api.ts: SiteRecord). */
export const SITES: Range = prefixRange(packKey(["s", "site"]));

/** Decodes an app's record. @throws where the bytes are no app record. */
export const decodeApp = (bytes: Uint8Array): AppRecord => appRecordSchema.parse(decodeSystem(bytes));
/** Decodes a version's record. @throws where the bytes are no version record. */
export const decodeVersion = (bytes: Uint8Array): VersionRecord =>
  versionRecordSchema.parse(decodeSystem(bytes));
/** Returns a manifest as it is stored; it was evaluated, and validated by functions/. */
export const storedManifest = (manifest: unknown): StoredManifest => manifestSchema.parse(manifest);

/** Returns the name of a version: SHA-256 over the manifest's canonical JSON, a zero byte, and the bundle. */
export function versionOf(manifest: unknown, bundle: Uint8Array): string {
  return createHash("sha256").update(canonicalJson(manifest)).update("\0").update(bundle).digest("hex");
}

/** Returns the SHA-256 of a bundle, in hexadecimal. */
export const bundleDigest = (bundle: Uint8Array): string => createHash("sha256").update(bundle).digest("hex");

/** Returns JSON with object keys sorted, so that equal manifests have equal text. */
export function canonicalJson(value: unknown): string {
  return JSON.stringify(value, (_key, field: unknown) => {
    if (typeof field !== "object" || field === null || Array.isArray(field)) return field;
    return Object.fromEntries(Object.entries(field).sort(([a], [b]) => (a < b ? -1 : 1)));
  });
}

/** Cuts a bundle into chunk values; an empty bundle has one empty chunk. */
export function bundleChunks(bundle: Uint8Array): Uint8Array[] {
  const chunks: Uint8Array[] = [];
  for (let at = 0; at === 0 || at < bundle.length; at += BUNDLE_CHUNK_BYTES) {
    chunks.push(taggedBytes(bundle.subarray(at, at + BUNDLE_CHUNK_BYTES)));
  }
  return chunks;
}

/** Returns bytes as a value: without the tag, some would be taken for one of the store's own kinds. */
export function taggedBytes(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  const value = new Uint8Array(bytes.length + 1);
  value[0] = VALUE_TAG.bytes;
  value.set(bytes, 1);
  return value;
}
