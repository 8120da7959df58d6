/**
 * The apps as a site sees them: a live view of the system rows, so that a request finds its app, version and
 * routes by one Map lookup.
 *
 * Life: `AppTable.open` reads the rows, and again whenever they change (live_view.ts) → `close` ends that. Bundles are
 * fetched when first asked for, and kept as long as their version is referred to.
 *
 * APT1  A reader never sees an app whose current version's record has not been read: until it has been, the app's
 *       former state stays.
 * APT2  A bundle is given out only when its bytes have the digest of its record.
 */
import { LiveView } from "./live_view.ts";
import type { SystemStore } from "./system_store.ts";
import { unpackKey } from "../../store/model/key.ts";
import { type Row, versionstamp } from "../../store/model/row.ts";
import type { Asset } from "../assets/asset_index.ts";
import { BlobReader, type BlobRef } from "./blobs.ts";
import { readFiles } from "./version_files.ts";
import type { Tier } from "../../functions/define.ts";
import {
  type AppRecord,
  APPS,
  decodeApp,
  decodeVersion,
  type StoredManifest,
  versionKey,
  type VersionRecord,
} from "./records.ts";
import { fetchBundle } from "./bundle_fetch.ts";
import { tierMatcher } from "./route_tiers.ts";

export type { SystemStore } from "./system_store.ts";

/** A deployed version of an app, ready to be called. */
export interface LiveVersion {
  readonly app: string;
  readonly version: string;
  readonly manifest: StoredManifest;
  /**
   * Returns the tier at which a request for this path (the app's own, prefix stripped) runs; "edge" is the site where
   * it arrived. Null for a path that is too long for the routes.
   */
  tierOf(pathname: string): Tier | null;
  /** Returns the bundle's bytes; fetched once, shared by all callers. */
  bundle(): Promise<Uint8Array>;
  /** Returns the version's static files by path, read once; absent for a version that has none. */
  files?(): Promise<ReadonlyMap<string, Asset>>;
}

/** An app that is not deleted and has a current version. */
export interface LiveApp {
  readonly name: string;
  readonly record: AppRecord;
  readonly current: LiveVersion;
  /** Version that a part of the sessions gets instead of the current one. */
  readonly rollout?: { readonly next: LiveVersion; readonly weight: number };
  /** Version that is being prepared to serve: every write has entries in its indexes already. */
  readonly preparing?: LiveVersion;
}

type Note = (event: string, detail?: Record<string, unknown>) => void;

/** Bytes of bundles kept in memory; beyond it the one fetched first is dropped, and read again on need. */
const BUNDLE_CACHE_BYTES = 64 * 1024 * 1024;

/** A live view of the deployed apps at one site. */
export class AppTable {
  readonly #system: SystemStore;
  readonly #note: Note;
  readonly #apps = new Map<string, LiveApp>();
  /** Versionstamp of each app's row as it is shown, also of apps that do not serve. */
  #shown = new Map<string, string>();
  readonly #versions = new Map<string, VersionRecord>();
  /** Versions that were asked for by name, by app and version. */
  readonly #previews = new Map<string, LiveVersion>();
  readonly #bundles = new Map<string, { bytes: number; fetched: Promise<Uint8Array> }>();
  readonly #listeners = new Set<() => void>();
  /** Reads the blobs of versions: static files, source maps. */
  readonly blobs: BlobReader;
  #hosts: ReadonlyMap<string, string> = new Map();
  readonly #view: LiveView;

  private constructor(system: SystemStore, note: Note) {
    this.#system = system;
    this.#note = note;
    this.blobs = new BlobReader(system);
    this.#view = new LiveView({
      read: () => this.#read(),
      failed: (error) => note("apps_unread", { error: String(error) }),
    });
  }

  /** Reads the rows and watches them. Call when the replica is ready: before that the rows may not be here. */
  static async open(system: SystemStore, note: Note = () => {}): Promise<AppTable> {
    const table = new AppTable(system, note);
    await table.#view.follow(system, [APPS]);
    return table;
  }

  /** Returns the app of a name, or undefined where none of that name serves. */
  get(name: string): LiveApp | undefined {
    return this.#apps.get(name);
  }

  /** Returns the apps that serve, by name. */
  list(): LiveApp[] {
    return [...this.#apps.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  /**
   * Returns a version of an app whether it serves or not (a preview), or undefined where the app has none such. The
   * version has to be named whole: a few digits could be guessed, and whoever knows a version may have it run.
   */
  async version(name: string, version: string): Promise<LiveVersion | undefined> {
    const app = this.get(name);
    if (!app?.record.versions.some((entry) => entry.version === version)) return undefined;
    const known = [app.current, app.rollout?.next, this.#previews.get(name + version)]
      .find((live) => live?.version === version);
    if (known !== undefined) return known;
    const record = await this.#record(version);
    if (record === undefined) return undefined;
    const live = this.#live(name, record);
    this.#previews.set(name + version, live);
    return live;
  }

  /** Reports whether the view shows an app's row as of a versionstamp, or a newer one; of a deleted app too. */
  shows(name: string, stamp: string): boolean {
    return (this.#shown.get(name) ?? "") >= stamp;
  }

  /** Apps that have hosts of their own, by host. */
  get hosts(): ReadonlyMap<string, string> {
    return this.#hosts;
  }

  /** Adds a callback for changes of the view; the result removes it. */
  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** Resolves when the view shows every change that the replica had applied when it was called. */
  refresh(): Promise<void> {
    return this.#view.refresh();
  }

  /** Ends the watch. */
  close(): void {
    this.#view.close();
    this.#listeners.clear();
  }

  async #read(): Promise<void> {
    const rows = await this.#system.list(APPS);
    const shown = new Map<string, string>();
    let changed = false;
    for (const row of rows) {
      const name = String(unpackKey(row.key)[2]);
      const before = this.#shown.get(name);
      const stamp = versionstamp(row);
      if (before === stamp || await this.#readApp(name, row)) shown.set(name, stamp);
      else if (before !== undefined) shown.set(name, before);
      changed ||= shown.get(name) !== before;
    }
    for (const name of [...this.#apps.keys()]) {
      if (!rows.some((row) => String(unpackKey(row.key)[2]) === name)) {
        changed = this.#apps.delete(name) || changed;
      }
    }
    this.#shown = shown;
    this.#forget();
    if (!changed) return;
    this.#hosts = new Map(
      this.list().flatMap(({ name, record }) => (record.hosts ?? []).map((host) => [host, name])),
    );
    for (const listener of [...this.#listeners]) listener();
  }

  async #readApp(name: string, row: Row): Promise<boolean> {
    try {
      const record = decodeApp(row.value ?? new Uint8Array());
      if (record.deleted === true || record.current === null) {
        this.#apps.delete(name);
        return true;
      }
      const current = await this.#serving(name, record.current);
      if (current === undefined) return false;
      const { rollout } = record;
      const next = rollout && await this.#serving(name, rollout.version);
      const preparing = record.preparing && await this.#serving(name, record.preparing.version);
      if (rollout !== undefined && next === undefined) return false;
      if (record.preparing !== undefined && preparing === undefined) return false;
      this.#apps.set(name, {
        name,
        record,
        current,
        ...rollout === undefined || next === undefined ? {} : { rollout: { next, weight: rollout.weight } },
        ...preparing === undefined ? {} : { preparing },
      });
      return true;
    } catch (error) {
      this.#note("app_row_invalid", { app: name, error: String(error) });
      return false;
    }
  }

  /**
   * Returns a version that an app's row points to; the same object while it stays so, since a site keeps what it has
   * prepared for a version by that object.
   */
  async #serving(app: string, version: string): Promise<LiveVersion | undefined> {
    const before = this.#apps.get(app);
    const same = [before?.current, before?.rollout?.next, this.#previews.get(app + version)]
      .find((live) => live?.version === version);
    if (same !== undefined) return same;
    const record = await this.#record(version);
    if (record === undefined) this.#note("version_missing", { app, version });
    return record && this.#live(app, record);
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
      tierOf: tierMatcher(
        record.manifest.routes,
        (route, why) => this.#note("route_ignored", { app, version: record.version, route, why }),
      ),
      bundle: () => this.#bundle(record),
      ...record.manifest.files === undefined ? {} : { files: this.#files(record.manifest.files) },
    };
  }

  /** Returns a function that reads the index of static files when first called; a failure is not kept. */
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
    fetched.catch(() => this.#bundles.delete(record.version)); // the next caller tries again
    let bytes = 0;
    for (const bundle of this.#bundles.values()) bytes += bundle.bytes;
    for (const [oldest, bundle] of this.#bundles) {
      if (bytes <= BUNDLE_CACHE_BYTES) break;
      this.#bundles.delete(oldest);
      bytes -= bundle.bytes;
    }
    return fetched;
  }

  /** Drops versions and bundles that no app refers to any more. */
  #forget(): void {
    const kept = new Set<string>();
    const previews = new Set<string>();
    for (const { name, record } of this.#apps.values()) {
      for (const { version } of record.versions) {
        kept.add(version);
        previews.add(name + version);
      }
    }
    for (const preview of [...this.#previews.keys()]) {
      if (!previews.has(preview)) this.#previews.delete(preview);
    }
    for (const version of [...this.#versions.keys()]) if (!kept.has(version)) this.#versions.delete(version);
    for (const version of [...this.#bundles.keys()]) if (!kept.has(version)) this.#bundles.delete(version);
  }
}
