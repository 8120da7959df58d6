/**
 * The apps as a site sees them: a live view of the system rows, so that a request finds its app, version and
 * routes by one Map lookup.
 *
 * Life: `AppTable.open` reads the rows → a watch on them marks the view stale → it reads again, one pass at a time
 * → `close` ends the watch. Bundles are fetched when first asked for, and kept while their version is referred to.
 *
 * T1  A reader never sees an app whose current version's record has not been read: until it has been, the app's
 *     former state stays.
 * T2  A bundle is given out only when its bytes have the digest of its record.
 */
import type { Replica } from "../../store/api.ts";
import { unpackKey } from "../../store/key.ts";
import type { Range } from "../../store/range.ts";
import { type Row, versionstamp } from "../../store/row.ts";
import type { Asset } from "../assets/asset_index.ts";
import { BlobReader, type BlobRef } from "./blobs.ts";
import { readFiles } from "./version_files.ts";
import {
  type AppRecord,
  APPS,
  bundleDigest,
  bundleRange,
  decodeApp,
  decodeVersion,
  type StoredManifest,
  type Tier,
  versionKey,
  type VersionRecord,
} from "./records.ts";

/** The part of a replica that the control plane uses. */
export type SystemStore = Replica["system"];

/** One deployed version of an app, ready to be called. */
export interface LiveVersion {
  readonly app: string;
  readonly version: string;
  readonly manifest: StoredManifest;
  /** Where a request for this path (the app's own, prefix stripped) runs; "edge" where it arrived. */
  tierOf(pathname: string): Tier;
  /** The bundle's bytes; fetched once, shared by all who ask. */
  bundle(): Promise<Uint8Array>;
  /** Its static files by path, read once; undefined for a version that has none. */
  files?(): Promise<ReadonlyMap<string, Asset>>;
}

/** An app that is not deleted and has a current version. */
export interface LiveApp {
  readonly name: string;
  readonly record: AppRecord;
  readonly current: LiveVersion;
}

type Note = (event: string, detail?: Record<string, unknown>) => void;

/** Bytes of bundles kept in memory; beyond it the one fetched first is given back, and read again on need. */
const BUNDLE_CACHE_BYTES = 64 * 1024 * 1024;

/** A live view of the deployed apps at one site. */
export class AppTable {
  readonly #system: SystemStore;
  readonly #note: Note;
  readonly #apps = new Map<string, { stamp: string; live: LiveApp }>();
  readonly #versions = new Map<string, VersionRecord>();
  readonly #bundles = new Map<string, { bytes: number; fetched: Promise<Uint8Array> }>();
  readonly #listeners = new Set<() => void>();
  /** Reads what versions have in blobs: static files, source maps. */
  readonly blobs: BlobReader;
  #unwatch = () => {};
  #stale = false;
  #pass: Promise<void> | null = null;
  #closed = false;

  private constructor(system: SystemStore, note: Note) {
    this.#system = system;
    this.#note = note;
    this.blobs = new BlobReader(system);
  }

  /** Reads the rows and watches them. Call when the replica is ready: before that the rows may not be here. */
  static async open(system: SystemStore, note: Note = () => {}): Promise<AppTable> {
    const table = new AppTable(system, note);
    table.#unwatch = system.watch([APPS], () => table.#changed());
    await table.refresh();
    return table;
  }

  /** The app of a name, or undefined where there is none that serves. */
  get(name: string): LiveApp | undefined {
    return this.#apps.get(name)?.live;
  }

  /** The apps that serve, by name. */
  list(): LiveApp[] {
    return [...this.#apps.values()].map((entry) => entry.live)
      .sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  /** A version of an app that is not its current one (a preview), or undefined where the app has none such. */
  async version(name: string, version: string): Promise<LiveVersion | undefined> {
    const app = this.get(name);
    if (app === undefined || app.current.version === version) return app?.current;
    if (!app.record.versions.some((entry) => entry.version === version)) return undefined;
    const record = await this.#record(version);
    return record && this.#live(name, record);
  }

  /** Calls back after the view changed; the result unsubscribes. */
  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** Resolves when the view shows every change that the replica had applied when it was called. */
  async refresh(): Promise<void> {
    this.#stale = true;
    while (this.#stale && !this.#closed) {
      this.#pass ??= this.#drain().finally(() => this.#pass = null);
      await this.#pass;
    }
  }

  /** Ends the watch. */
  close(): void {
    this.#closed = true;
    this.#unwatch();
    this.#listeners.clear();
  }

  #changed(): void {
    if (this.#closed) return;
    this.refresh().catch((error: unknown) => this.#note("apps_unread", { error: String(error) }));
  }

  async #drain(): Promise<void> {
    while (this.#stale && !this.#closed) {
      this.#stale = false;
      if (await this.#read()) {
        for (const listener of [...this.#listeners]) listener();
      }
    }
  }

  async #read(): Promise<boolean> {
    const rows = await this.#system.list(APPS);
    const names = new Set<string>();
    let changed = false;
    for (const row of rows) {
      const name = String(unpackKey(row.key)[2]);
      names.add(name);
      if (this.#apps.get(name)?.stamp !== versionstamp(row)) {
        changed = await this.#readApp(name, row) || changed;
      }
    }
    for (const name of [...this.#apps.keys()]) {
      if (!names.has(name)) changed = this.#apps.delete(name) || changed;
    }
    this.#forget();
    return changed;
  }

  async #readApp(name: string, row: Row): Promise<boolean> {
    try {
      const record = decodeApp(row.value ?? new Uint8Array());
      if (record.deleted === true || record.current === null) return this.#apps.delete(name);
      const version = await this.#record(record.current);
      if (version === undefined) {
        this.#note("version_missing", { app: name, version: record.current });
        return false;
      }
      const live = { name, record, current: this.#live(name, version) };
      this.#apps.set(name, { stamp: versionstamp(row), live });
      return true;
    } catch (error) {
      this.#note("app_row_invalid", { app: name, error: String(error) });
      return false;
    }
  }

  async #record(version: string): Promise<VersionRecord | undefined> {
    const known = this.#versions.get(version);
    if (known !== undefined) return known;
    const [row] = await this.#system.get([versionKey(version)]);
    if (row === undefined || row.value === null) return undefined;
    const record = decodeVersion(row.value);
    this.#versions.set(version, record);
    return record;
  }

  #live(app: string, record: VersionRecord): LiveVersion {
    return {
      app,
      version: record.version,
      manifest: record.manifest,
      tierOf: tierMatcher(record.manifest),
      bundle: () => this.#bundle(record),
      ...record.manifest.files === undefined ? {} : { files: this.#files(record.manifest.files) },
    };
  }

  /** The index is read when first asked for; a failure is not kept. */
  #files(ref: BlobRef): () => Promise<ReadonlyMap<string, Asset>> {
    let reading: Promise<ReadonlyMap<string, Asset>> | undefined;
    return () => {
      reading ??= readFiles(this.blobs, ref).catch((error: unknown) => {
        reading = undefined;
        throw error;
      });
      return reading;
    };
  }

  #bundle(record: VersionRecord): Promise<Uint8Array> {
    const known = this.#bundles.get(record.version);
    if (known !== undefined) return known.fetched;
    const fetched = fetchBundle(this.#system, record);
    this.#bundles.set(record.version, { bytes: record.bundleBytes, fetched });
    fetched.catch(() => this.#bundles.delete(record.version)); // the next who asks tries again
    let bytes = 0;
    for (const bundle of this.#bundles.values()) bytes += bundle.bytes;
    for (const [oldest, bundle] of this.#bundles) {
      if (bytes <= BUNDLE_CACHE_BYTES) break;
      this.#bundles.delete(oldest);
      bytes -= bundle.bytes;
    }
    return fetched;
  }

  /** Gives back what no app refers to any more. */
  #forget(): void {
    const kept = new Set<string>();
    for (const { live } of this.#apps.values()) {
      for (const entry of live.record.versions) kept.add(entry.version);
    }
    for (const version of [...this.#versions.keys()]) if (!kept.has(version)) this.#versions.delete(version);
    for (const version of [...this.#bundles.keys()]) if (!kept.has(version)) this.#bundles.delete(version);
  }
}

/** The tier of a path by the first route that matches, in the order the app declared them. */
function tierMatcher(manifest: StoredManifest): (pathname: string) => Tier {
  const routes = Object.entries(manifest.routes)
    .map(([pathname, route]) => ({ pattern: new URLPattern({ pathname }), at: route.at }));
  if (routes.length === 0) return () => "edge";
  return (pathname) => routes.find((route) => route.pattern.test({ pathname }))?.at ?? "edge";
}

/** The bundle's rows in chunks of this many, to stay within what one read should hold in memory. */
const CHUNKS_A_READ = 32;

/**
 * A version's bundle, read through the replica (which fetches it from the parent where it is not here).
 *
 * @throws Error where a chunk is missing or the bytes are not the version's.
 */
export async function fetchBundle(system: SystemStore, record: VersionRecord): Promise<Uint8Array> {
  const bundle = new Uint8Array(record.bundleBytes);
  let at = 0;
  let range: Range = bundleRange(record.version);
  for (let left = record.bundleChunks; left > 0;) {
    const rows = await system.list(range, { limit: Math.min(left, CHUNKS_A_READ) });
    for (const row of rows) {
      if (row.value === null || at + row.value.length > bundle.length) break;
      bundle.set(row.value, at);
      at += row.value.length;
    }
    const last = rows.at(-1);
    if (last === undefined) break;
    range = { start: last.key + "\x00" as Range["start"], end: range.end };
    left -= rows.length;
  }
  if (at !== bundle.length || bundleDigest(bundle) !== record.bundleSha256) {
    throw new Error(
      `the bundle of version ${record.version} is not whole here: ${at} of ${bundle.length} bytes`,
    );
  }
  return bundle;
}
