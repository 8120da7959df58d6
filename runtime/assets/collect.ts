/**
 * Collecting of a folder's files into an index and blobs, by the command that deploys an app with `assets`.
 *
 * Stages: the folder checked → walked → each file read, hashed, compressed → index.
 *
 * C1  Nothing outside of the folder is read: the folder lies below the module's, and a symbolic link whose target
 *     is elsewhere stops the deploy.
 * C2  Names that begin with a dot are left out (`.env`, `.git`, `.DS_Store`), except `.well-known`.
 * C3  A limit that is passed stops the deploy, and the message names the file.
 */
import { createHash } from "node:crypto";
import { isAbsolute, join, relative, resolve } from "node:path";
import { promisify } from "node:util";
import { brotliCompress, constants, gzip } from "node:zlib";
import {
  type Asset,
  ASSET_BYTES_MAX,
  type AssetContent,
  ASSETS_BYTES_MAX,
  ASSETS_MAX,
  encodeAssetIndex,
  type Encoding,
  isAssetPath,
} from "./asset_index.ts";
import { isCompressible } from "./content_type.ts";

/**
 * Blob that the index names; its bytes are read again when they are to be uploaded: the whole folder would not fit in
 * memory.
 */
export interface CollectedBlob extends AssetContent {
  bytesOf(): Promise<Uint8Array<ArrayBuffer>>;
}

/** Files of a folder. */
export interface CollectedAssets {
  readonly index: Uint8Array<ArrayBuffer>;
  readonly indexDigest: string;
  /** Blobs by digest. */
  readonly blobs: ReadonlyMap<string, CollectedBlob>;
}

/** Error for a folder that cannot be deployed; the message is for the author of the app. */
export class AssetsRefused extends Error {
  override readonly name = "AssetsRefused";
}

const DOT_EXCEPTION = ".well-known";
/** Bytes that a compressed form has to save: less is not worth another blob, and a client's time to unpack it. */
const SAVED_BYTES_MIN = 128;
/** Level of Brotli: 11 saves 3 % more and takes twenty times as long. */
const BROTLI_QUALITY = 9;
const GZIP_LEVEL = 9;
/** Files in the works at once: compressing uses threads, and each holds its file. */
const PARALLEL = 4;

/**
 * Collects the files of an app's `assets`.
 *
 * @param moduleFolder folder of the entry module
 * @param assets folder that the app declared, relative to it
 * @throws AssetsRefused
 */
export async function collectAssets(moduleFolder: string, assets: string): Promise<CollectedAssets> {
  const folder = await assetsFolder(moduleFolder, assets);
  const paths = new Map<string, string>();
  await walk(folder, folder, "", paths);
  const files = new Map<string, Asset>();
  const blobs = new Map<string, CollectedBlob>();
  let total = 0;
  const waiting = [...paths];
  const work = async () => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
      const [path, file] = next;
      const asset = await readAsset(path, file, blobs);
      total += asset.bytes;
      if (total > ASSETS_BYTES_MAX) {
        throw new AssetsRefused(`with ${file} the assets have more than ${ASSETS_BYTES_MAX} bytes`);
      }
      files.set(path, asset);
    }
  };
  await Promise.all(Array.from({ length: PARALLEL }, work));
  const index = encodeAssetIndex(files);
  return { index, indexDigest: sha256(index), blobs };
}

/** Returns the folder of assets, which lies below the module's (C1). */
async function assetsFolder(moduleFolder: string, assets: string): Promise<string> {
  if (isAbsolute(assets)) {
    throw new AssetsRefused(
      `assets is ${assets}; expected a folder relative to the module, such as ./public`,
    );
  }
  const named = resolve(moduleFolder, assets);
  const real = await Deno.realPath(named).catch(() => null);
  if (real === null || !(await Deno.stat(real)).isDirectory) {
    throw new AssetsRefused(`assets is ${assets}, but ${named} is no folder`);
  }
  if (!isBelow(await Deno.realPath(moduleFolder), real)) {
    throw new AssetsRefused(`assets is ${assets}, which is ${real}; expected a folder below the module's`);
  }
  return real;
}

const isBelow = (folder: string, path: string): boolean => {
  const way = relative(folder, path);
  return way !== "" && way !== ".." && !way.startsWith("../") && !isAbsolute(way);
};

async function walk(root: string, folder: string, prefix: string, paths: Map<string, string>): Promise<void> {
  const entries = await Array.fromAsync(Deno.readDir(folder));
  for (const { name } of entries.sort((a, b) => (a.name < b.name ? -1 : 1))) {
    if (name.startsWith(".") && name !== DOT_EXCEPTION) continue; // C2
    const file = join(folder, name);
    const path = `${prefix}/${name}`.normalize("NFC");
    const real = await Deno.realPath(file).catch(() => null);
    if (real === null) throw new AssetsRefused(`${file} cannot be read: a symbolic link that leads nowhere`);
    if (real !== root && !isBelow(root, real)) {
      throw new AssetsRefused(`${file} is a symbolic link to ${real}, outside of ${root}: copy it instead`);
    }
    const { isDirectory, isFile, size } = await Deno.stat(real);
    if (isDirectory) {
      // A link to a folder in which the link lies would never end.
      if (isBelow(real, join(await Deno.realPath(folder), name)) || real === root) {
        throw new AssetsRefused(`${file} is a symbolic link to a folder that contains it`);
      }
      await walk(root, file, path, paths);
      continue;
    }
    if (!isFile) throw new AssetsRefused(`${file} is neither a file nor a folder`);
    if (!isAssetPath(path)) {
      throw new AssetsRefused(`${file} has a name that no URL can have, or a too long one`);
    }
    if (paths.has(path)) throw new AssetsRefused(`${file} and ${paths.get(path)} have one name in URLs`);
    checkSize(file, size);
    if (paths.size >= ASSETS_MAX) throw new AssetsRefused(`${file} is one file more than ${ASSETS_MAX}`);
    paths.set(path, file);
  }
}

function checkSize(file: string, bytes: number): void {
  if (bytes > ASSET_BYTES_MAX) {
    throw new AssetsRefused(`${file} has ${bytes} bytes; an asset has at most ${ASSET_BYTES_MAX}`);
  }
}

async function readAsset(path: string, file: string, blobs: Map<string, CollectedBlob>): Promise<Asset> {
  const bytes = await Deno.readFile(file);
  checkSize(file, bytes.length);
  const asset: Asset = { sha256: sha256(bytes), bytes: bytes.length };
  blobs.set(asset.sha256, {
    sha256: asset.sha256,
    bytes: asset.bytes,
    bytesOf: async () => {
      const again = await Deno.readFile(file);
      if (sha256(again) !== asset.sha256) {
        throw new AssetsRefused(`${file} was changed while it was deployed`);
      }
      return again;
    },
  });
  if (!isCompressible(path)) return asset;
  for (const [encoding, packed] of Object.entries(await compressed(asset.sha256, bytes))) {
    const blob = { sha256: sha256(packed), bytes: packed.length };
    blobs.set(blob.sha256, { ...blob, bytesOf: () => Promise.resolve(packed) });
    asset[encoding as Encoding] = blob;
  }
  return asset;
}

type Compressed = Partial<Record<Encoding, Uint8Array<ArrayBuffer>>>;

/** Compressed forms of the files compressed last: a dev cluster deploys one folder again and again. */
const packedBefore = new Map<string, Compressed>();
/** Files whose compressed forms are kept: those of a site with many small ones; larger ones push older ones out. */
const PACKED_MAX = 1_000;

async function compressed(digest: string, bytes: Uint8Array): Promise<Compressed> {
  const known = packedBefore.get(digest);
  if (known !== undefined) return known;
  const [br, gz] = await Promise.all([
    promisify(brotliCompress)(bytes, {
      params: {
        [constants.BROTLI_PARAM_QUALITY]: BROTLI_QUALITY,
        [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length,
      },
    }),
    promisify(gzip)(bytes, { level: GZIP_LEVEL }),
  ]);
  const smaller = (packed: Uint8Array) => packed.length + SAVED_BYTES_MIN <= bytes.length;
  const result: Compressed = {
    ...smaller(br) ? { br: new Uint8Array(br) } : {},
    ...smaller(gz) ? { gzip: new Uint8Array(gz) } : {},
  };
  packedBefore.set(digest, result);
  for (const oldest of packedBefore.keys()) {
    if (packedBefore.size <= PACKED_MAX) break;
    packedBefore.delete(oldest);
  }
  return result;
}

const sha256 = (bytes: Uint8Array): string => createHash("sha256").update(bytes).digest("hex");
