/**
 * The index of an app version's static files: which paths there are, and which blobs hold their bytes. It is made
 * by the command that deploys, stored as a blob itself (runtime/deploy/blobs.ts), and read by the sites that serve.
 *
 * X1  A URL's decoded path must equal a path of the index, which begins with "/", has no segments that are empty, "."
 *     or "..", and none with a backslash, NUL or slash. Nothing else is ever looked up, so no request names another
 *     file.
 * X2  Equal folders have equal indexes: paths are sorted, and nothing of the machine is in it.
 */
import { z } from "zod";

/**
 * Bytes of one file; a larger one belongs in an object store. Also what a site may hold of one blob while it is
 * compressed.
 */
export const ASSET_BYTES_MAX = 25 * 1024 * 1024;
/** Files of one version: their index, which every serving site keeps in memory, then takes about 2 MiB. */
export const ASSETS_MAX = 5_000;
/** Bytes of all files of one version; the root keeps them for as long as the version can be rolled back to. */
export const ASSETS_BYTES_MAX = 256 * 1024 * 1024;
/** Characters of one path; above, the index grows past what {@link ASSETS_MAX} reckons with. */
export const ASSET_PATH_CHARS_MAX = 512;
/** Bytes of an index: {@link ASSETS_MAX} of the longest entries. */
export const ASSET_INDEX_BYTES_MAX = 8 * 1024 * 1024;

const digest = z.string().regex(/^[0-9a-f]{64}$/);
const content = z.object({ sha256: digest, bytes: z.number().int().min(0).max(ASSET_BYTES_MAX) });
const asset = content.extend({ br: content.optional(), gzip: content.optional() });
const assetIndex = z.object({
  files: z.record(z.string().refine(isAssetPath, "expected a path like /style.css"), asset)
    .refine((files) => Object.keys(files).length <= ASSETS_MAX, `expected at most ${ASSETS_MAX} files`),
});

/** Digest and size of stored bytes. */
export type AssetContent = z.infer<typeof content>;
/** A file, with its compressed forms where they are smaller. */
export type Asset = z.infer<typeof asset>;
/** The encodings that files are compressed with, preferred first. */
export const ENCODINGS = ["br", "gzip"] as const;
/** An encoding: one of {@link ENCODINGS}. */
export type Encoding = (typeof ENCODINGS)[number];

/** Reports whether a path can be one of an index (X1). */
export function isAssetPath(path: string): boolean {
  return path.startsWith("/") && path.length <= ASSET_PATH_CHARS_MAX && !/[\\\0]/.test(path) &&
    path.slice(1).split("/").every((segment) => segment !== "" && segment !== "." && segment !== "..");
}

/** Encodes an index (X2). */
export function encodeAssetIndex(files: ReadonlyMap<string, Asset>): Uint8Array<ArrayBuffer> {
  const sorted = [...files].sort(([a], [b]) => (a < b ? -1 : 1));
  return new TextEncoder().encode(JSON.stringify({ files: Object.fromEntries(sorted) }));
}

/** Decodes an index. @throws SyntaxError or ZodError where the bytes are none. */
export function decodeAssetIndex(bytes: Uint8Array): ReadonlyMap<string, Asset> {
  const { files } = assetIndex.parse(JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes)));
  return new Map(Object.entries(files));
}

/** Yields every blob that an index names. */
export function* contentsOf(index: ReadonlyMap<string, Asset>): Iterable<AssetContent> {
  for (const file of index.values()) {
    yield { sha256: file.sha256, bytes: file.bytes };
    for (const encoding of ENCODINGS) if (file[encoding] !== undefined) yield file[encoding];
  }
}
