/**
 * Blobs of a version, beside its bundle: static files by their index (its manifest's `files`), and a source map, which
 * is no part of the version's name: places in a source may move while the code stays.
 *
 *   ["b", "map", version] → {@link BlobRef} as JSON
 *
 * VF1  A version that declares `assets` is written only with an index whose files are all whole here.
 */
import { z } from "zod";
import type { Replica, StoreMutation } from "../../store/api/api.ts";
import { type Key, packKey, unpackKey } from "../../store/model/key.ts";
import { prefixRange } from "../../store/model/range.ts";
import { type Asset, ASSET_INDEX_BYTES_MAX, contentsOf, decodeAssetIndex } from "../assets/asset_index.ts";
import { ANNOUNCED_MS, type BlobReader, type BlobRef, type Blobs, DIGEST } from "./blobs.ts";
import { decodeVersion, type StoredManifest, VERSION } from "./records.ts";
import { decodeSystem, encodeSystem } from "../../store/model/system_value.ts";

type SystemStore = Replica["system"];

const blobRef = z.object({ sha256: z.string().regex(DIGEST), bytes: z.number().int().min(0) });

/** Parses `DIGEST.BYTES`, as a query names a blob; undefined for anything else. */
export function parseBlobRef(text: string | undefined): BlobRef | undefined {
  const [, sha256, bytes] = /^([0-9a-f]{64})\.(\d{1,12})$/.exec(text ?? "") ?? [];
  return sha256 === undefined ? undefined : { sha256, bytes: Number(bytes) };
}
/** Returns the text of a blob that {@link parseBlobRef} reads. */
export const showBlobRef = (ref: BlobRef): string => `${ref.sha256}.${ref.bytes}`;

/** Refusal of a version's files, with its reason. */
export interface FilesRefusal {
  readonly ok: false;
  readonly code: "assets_needed" | "blobs_missing" | "deploy_invalid";
  readonly message: string;
  /** Folder that the app declared, for `assets_needed`. */
  readonly place?: string;
}

const mapKey = (version: string) => packKey(["b", "map", version]);
const MAPS = prefixRange(packKey(["b", "map"]));
const VERSIONS = prefixRange(packKey(["s", "version"]));

/** The files of versions, at the root. Its methods are called in the turn that writes the version. */
export class VersionFiles {
  readonly #system: SystemStore;
  readonly #blobs: Blobs;
  readonly #nowMs: () => number;
  #sweptMs = -Infinity;
  /** Digests that an index names; an index never changes. */
  readonly #named = new Map<string, readonly string[]>();

  constructor(system: SystemStore, blobs: Blobs, nowMs: () => number) {
    this.#system = system;
    this.#blobs = blobs;
    this.#nowMs = nowMs;
  }

  /** Returns the manifest with its files (VF1). */
  async accept(
    manifest: StoredManifest,
    given: BlobRef | undefined,
  ): Promise<{ readonly ok: true; readonly manifest: StoredManifest } | FilesRefusal> {
    const { files: _, ...own } = manifest;
    if (manifest.assets === undefined) return { ok: true, manifest: own };
    if (given === undefined) {
      return {
        ok: false,
        code: "assets_needed",
        message: `the app has static files in ${manifest.assets}, which were not sent with it`,
        place: manifest.assets,
      };
    }
    if (!await this.#blobs.has(given)) return blobsMissing(1);
    if (given.bytes > ASSET_INDEX_BYTES_MAX) {
      return invalid(
        `the index of the static files has ${given.bytes} bytes, not at most ${ASSET_INDEX_BYTES_MAX}`,
      );
    }
    let digests: readonly string[];
    try {
      digests = await this.#digestsOf(given);
    } catch (error) {
      return invalid(
        `the index of the static files cannot be read: ${error instanceof Error ? error.message : error}`,
      );
    }
    const missing = await this.#blobs.missing(digests);
    if (missing.length > 0) return blobsMissing(missing.length);
    return { ok: true, manifest: { ...own, files: given } };
  }

  /**
   * Returns the mutation that names a version's source map; none where it is named so already, or the map is not here.
   */
  async mapOf(version: string, map: BlobRef | undefined): Promise<StoreMutation[]> {
    if (map === undefined || !await this.#blobs.has(map)) return [];
    const before = await readMapRef(this.#system, version);
    if (before?.sha256 === map.sha256) return [];
    return [{ kind: "set", key: mapKey(version), value: encodeSystem(map) }];
  }

  /** Removes the maps of versions that are gone, and the blobs that no remaining version refers to. */
  async sweep(): Promise<void> {
    const nowMs = this.#nowMs();
    if (nowMs - this.#sweptMs < ANNOUNCED_MS) return; // blobs that could go by now could go then, but for a few
    this.#sweptMs = nowMs;
    const referred = new Set<string>();
    const indexes = new Set<string>();
    const versions = new Set<string>();
    for (const row of await this.#system.list(VERSIONS)) {
      if (row.value === null) continue;
      const { version, manifest } = decodeVersion(row.value);
      versions.add(version);
      if (manifest.files === undefined) continue;
      indexes.add(manifest.files.sha256);
      referred.add(manifest.files.sha256);
      const digests = await this.#digestsOf(manifest.files).catch(() => null);
      if (digests === null) return; // the version's blobs are not known: nothing goes, and no deploy fails for it
      for (const digest of digests) referred.add(digest);
    }
    const maps: Key[] = [];
    for (const row of await this.#system.list(MAPS)) {
      const map = row.value === null ? undefined : blobRef.safeParse(decodeSystem(row.value)).data;
      if (map !== undefined && versions.has(String(unpackKey(row.key)[2]))) referred.add(map.sha256);
      else maps.push(row.key);
    }
    if (maps.length > 0) await this.#system.write(maps.map((key) => ({ kind: "delete", key })));
    for (const index of [...this.#named.keys()]) if (!indexes.has(index)) this.#named.delete(index);
    await this.#blobs.sweep(referred);
  }

  async #digestsOf(index: BlobRef): Promise<readonly string[]> {
    const known = this.#named.get(index.sha256);
    if (known !== undefined) return known;
    const files = decodeAssetIndex(await this.#blobs.reader.whole(index));
    const digests = [...new Set([...contentsOf(files)].map((content) => content.sha256))];
    this.#named.set(index.sha256, digests);
    return digests;
  }
}

const invalid = (message: string): FilesRefusal => ({ ok: false, code: "deploy_invalid", message });
const blobsMissing = (count: number): FilesRefusal => ({
  ok: false,
  code: "blobs_missing",
  message: `${count} of the app's files have not arrived; send them, and deploy again`,
});

/** Reads an index, uncached: a version's live view keeps the result. */
export async function readFiles(reader: BlobReader, ref: BlobRef): Promise<ReadonlyMap<string, Asset>> {
  return decodeAssetIndex(await reader.whole(ref));
}

/** Returns the source map that was deployed last with a version, where there is one. */
export async function readMapRef(system: SystemStore, version: string): Promise<BlobRef | undefined> {
  if (!VERSION.test(version)) return undefined;
  const [row] = await system.get([mapKey(version)]);
  if (!row?.value) return undefined;
  const parsed = blobRef.safeParse(decodeSystem(row.value));
  return parsed.success ? parsed.data : undefined;
}
