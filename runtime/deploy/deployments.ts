/**
 * Deploying and rolling back, at the root: the only place where app rows are written.
 *
 * Stages of a deploy: evaluate the bundle in an isolate (its manifest) → check it against the app's earlier
 * versions → write the chunks, durable → write version and app row together, durable → remove what is too old.
 *
 * P1  Nothing is written before the bundle has been evaluated and its manifest accepted.
 * P2  The app row is written under a check of the row it was computed from; deploys of one root take turns, so
 *     that a failed check means another root process and is reported, not retried blindly.
 * P3  Deploying what already serves writes nothing.
 * P4  Chunks of a version are removed only when no app's row names it.
 */
import type { StoreMutation } from "../../store/api.ts";
import type { Row } from "../../store/row.ts";
import type { SystemStore } from "./app_table.ts";
import { type BlobRef, Blobs } from "./blobs.ts";
import { type FilesRefusal, VersionFiles } from "./version_files.ts";
import {
  APP_NAME,
  APP_VERSIONS_MAX,
  appKey,
  type AppRecord,
  APPS,
  BUNDLE_BYTES_MAX,
  bundleChunks,
  bundleDigest,
  chunkKey,
  decodeApp,
  decodeVersion,
  encodeSystem,
  type StoredManifest,
  storedManifest,
  versionKey,
  versionOf,
  type VersionRecord,
} from "./records.ts";

/** What became of a bundle that was run for its manifest. */
export type Evaluation =
  | { readonly ok: true; readonly manifest: unknown }
  | { readonly ok: false; readonly message: string; readonly stack?: string };

/** Why a change of the control plane was refused. */
export interface Refusal {
  readonly ok: false;
  readonly code:
    | "deploy_invalid"
    | "app_unknown"
    | "version_unknown"
    | "limit_bundle"
    | "check_failed"
    | FilesRefusal["code"];
  readonly message: string;
  /** Stack or place in the bundle, where there is one. */
  readonly place?: string;
}

/** What a deploy or rollback did. */
export interface Change {
  readonly ok: true;
  readonly app: string;
  readonly version: string;
  /** false: it already served. */
  readonly changed: boolean;
}

/** A bundle to deploy. */
export interface DeployRequest {
  readonly bundle: Uint8Array;
  /** From `--app`; wins over the manifest's name. */
  readonly app?: string;
  /** The module's folder: what the app is called when neither `--app` nor the manifest says. */
  readonly fallback?: string;
  /** The index of the static files, and the source map, both uploaded before (blobs.ts). */
  readonly files?: BlobRef;
  readonly sourceMap?: BlobRef;
}

/** What deploying needs of its site. */
export interface DeploymentServices {
  readonly system: SystemStore;
  /** Runs a bundle in an isolate with no store and no network, and answers its validated manifest. */
  evaluate(bundle: Uint8Array): Promise<Evaluation>;
  nowMs(): number;
  /**
   * Fills indexes that a version has and the one before it has not. Called before the version goes live, and
   * again when it is live everywhere, for what the older one wrote meanwhile; filling twice is harmless.
   */
  prepare?(app: string, before: StoredManifest | null, after: StoredManifest): Promise<void>;
}

/** Chunks in one write: about 2 MB, half of what an app may put in an atomic. */
const CHUNKS_A_WRITE = 32;

/** A bundle with static files is deployed twice in a row, without and with them: it is evaluated once. */
const EVALUATIONS_MAX = 8;

/** The control plane's writer. One per root process. */
export class Deployments {
  readonly #services: DeploymentServices;
  #turn: Promise<unknown> = Promise.resolve();
  /** Changes of what serves, until every site has followed. */
  readonly #unsettled = new Map<string, { before: StoredManifest | null; after: StoredManifest }>();
  readonly #evaluations = new Map<string, Evaluation>();
  /** Static files and source maps on their way to a version. */
  readonly blobs: Blobs;
  readonly #files: VersionFiles;

  constructor(services: DeploymentServices) {
    this.#services = services;
    this.blobs = new Blobs(services.system, () => services.nowMs());
    this.#files = new VersionFiles(services.system, this.blobs);
  }

  /** Deploys a bundle and makes it the app's current version. */
  async deploy(request: DeployRequest): Promise<Change | Refusal> {
    const { bundle } = request;
    if (bundle.length > BUNDLE_BYTES_MAX) {
      return refuse("limit_bundle", `a bundle has at most ${BUNDLE_BYTES_MAX} bytes, not ${bundle.length}`);
    }
    const evaluation = await this.#evaluate(bundle);
    if (!evaluation.ok) {
      return { ...refuse("deploy_invalid", evaluation.message), ...place(evaluation.stack) };
    }
    const manifest = storedManifest(evaluation.manifest);
    const app = request.app ?? manifest.name ?? request.fallback;
    if (app === undefined || !APP_NAME.test(app)) {
      return refuse(
        "deploy_invalid",
        app === undefined
          ? "the app has no name: give --app, or a name in defineApp"
          : `${JSON.stringify(app)} can't be an app's name, which matches ${APP_NAME.source}: ` +
            "give --app, or a name in defineApp",
      );
    }
    return await this.#inTurn(async () => {
      const accepted = await this.#files.accept(manifest, request.files);
      return accepted.ok ? await this.#install(app, accepted.manifest, bundle, request.sourceMap) : accepted;
    });
  }

  async #evaluate(bundle: Uint8Array): Promise<Evaluation> {
    const digest = bundleDigest(bundle);
    const known = this.#evaluations.get(digest);
    if (known !== undefined) return known;
    const evaluation = await this.#services.evaluate(bundle);
    if (evaluation.ok) this.#evaluations.set(digest, evaluation);
    for (const oldest of this.#evaluations.keys()) {
      if (this.#evaluations.size <= EVALUATIONS_MAX) break;
      this.#evaluations.delete(oldest);
    }
    return evaluation;
  }

  /** Makes an earlier version current: the one named (by its first digits, if they are unique), or the previous. */
  rollback(app: string, version?: string): Promise<Change | Refusal> {
    return this.#inTurn(async () => {
      const { row, record } = await this.#app(app);
      if (record === null) return refuse("app_unknown", `no app is called ${JSON.stringify(app)}`);
      const target = rollbackTarget(record, version);
      if (typeof target !== "string") return target;
      if (target === record.current) return { ok: true, app, version: target, changed: false };
      const after = await this.#manifest(target);
      if (after === null) return refuse("version_unknown", `version ${target} of app ${app} is not here`);
      await this.#prepare(app, await this.#manifest(record.current), after);
      return await this.#point(app, row, { ...record, current: target }, []);
    });
  }

  /** Every site serves what was changed last: fills again what its predecessor may have written meanwhile. */
  async settle(app: string): Promise<void> {
    const change = this.#unsettled.get(app);
    if (change === undefined) return;
    this.#unsettled.delete(app);
    await this.#services.prepare?.(app, change.before, change.after);
  }

  async #prepare(app: string, before: StoredManifest | null, after: StoredManifest): Promise<void> {
    this.#unsettled.set(app, { before, after });
    await this.#services.prepare?.(app, before, after);
  }

  #inTurn<T>(step: () => Promise<T>): Promise<T> {
    const turn = this.#turn.then(step);
    this.#turn = turn.catch(() => undefined);
    return turn;
  }

  async #app(name: string): Promise<{ row: Row | undefined; record: AppRecord | null }> {
    const [row] = await this.#services.system.get([appKey(name)]);
    return { row, record: row?.value ? decodeApp(row.value) : null };
  }

  async #install(
    app: string,
    manifest: StoredManifest,
    bundle: Uint8Array,
    sourceMap: BlobRef | undefined,
  ): Promise<Change | Refusal> {
    const version = versionOf(manifest, bundle);
    const { row, record } = await this.#app(app);
    const map = await this.#files.mapOf(version, sourceMap);
    if (record?.current === version) {
      if (map.length > 0) await this.#services.system.write(map);
      return { ok: true, app, version, changed: false };
    }
    const earlier = await this.#manifests(record);
    const refused = changedKey(manifest, earlier);
    if (refused !== null) return refuse("deploy_invalid", refused);
    const createdMs = this.#services.nowMs();
    const written = await this.#writeBundle({
      version,
      manifest,
      bundleSha256: bundleDigest(bundle),
      bundleBytes: bundle.length,
      bundleChunks: bundleChunks(bundle).length,
      createdMs,
    }, bundle);
    await this.#prepare(app, await this.#manifest(record?.current ?? null), manifest);
    const versions = [
      ...(record?.versions ?? []).filter((entry) => entry.version !== version),
      { version, createdMs },
    ];
    const next = { name: app, versions: versions.slice(-APP_VERSIONS_MAX), current: version };
    const change = await this.#point(app, row, next, [...written, ...map]);
    if (change.ok) await this.#remove(versions.slice(0, -APP_VERSIONS_MAX).map((entry) => entry.version));
    return change;
  }

  /** Writes a bundle's chunks unless its version is known, and answers the mutation that makes it known (D1). */
  async #writeBundle(record: VersionRecord, bundle: Uint8Array): Promise<StoreMutation[]> {
    const { system } = this.#services;
    const key = versionKey(record.version);
    const [known] = await system.get([key]);
    if (known?.value) return [];
    const chunks = bundleChunks(bundle).map((value, index): StoreMutation => ({
      kind: "set",
      key: chunkKey(record.version, index),
      value,
    }));
    for (let at = 0; at < chunks.length; at += CHUNKS_A_WRITE) {
      await system.write(chunks.slice(at, at + CHUNKS_A_WRITE));
    }
    await system.durable();
    return [{ kind: "set", key, value: encodeSystem(record) }];
  }

  async #point(
    app: string,
    row: Row | undefined,
    next: AppRecord,
    also: readonly StoreMutation[],
  ): Promise<Change | Refusal> {
    const { system } = this.#services;
    const key = appKey(app);
    const result = await system.write(
      [...also, { kind: "set", key, value: encodeSystem(next) }],
      [{ key, version: row ?? null }],
    );
    if (!result.ok) {
      return refuse("check_failed", `app ${app} was changed by someone else meanwhile; try again`);
    }
    await system.durable();
    return { ok: true, app, version: next.current ?? "", changed: true };
  }

  async #manifest(version: string | null): Promise<StoredManifest | null> {
    if (version === null) return null;
    const [row] = await this.#services.system.get([versionKey(version)]);
    return row?.value ? decodeVersion(row.value).manifest : null;
  }

  /** The manifests of an app's versions, oldest first. */
  async #manifests(record: AppRecord | null): Promise<StoredManifest[]> {
    const keys = (record?.versions ?? []).map((entry) => versionKey(entry.version));
    const rows = await this.#services.system.get(keys);
    return rows.flatMap((row) => row?.value ? [decodeVersion(row.value).manifest] : []);
  }

  async #remove(versions: readonly string[]): Promise<void> {
    const { system } = this.#services;
    const used = new Set<string>();
    for (const row of await system.list(APPS)) {
      if (row.value) { for (const entry of decodeApp(row.value).versions) used.add(entry.version); }
    }
    const unused = versions.filter((candidate) => !used.has(candidate));
    for (const version of unused) {
      const [row] = await system.get([versionKey(version)]);
      const chunks = row?.value ? decodeVersion(row.value).bundleChunks : 0;
      const keys = Array.from({ length: chunks }, (_, index) => chunkKey(version, index));
      await system.write([versionKey(version), ...keys].map((key) => ({ kind: "delete", key })));
    }
    await this.#files.forget(unused);
    await system.durable();
  }
}

const refuse = (code: Refusal["code"], message: string): Refusal => ({ ok: false, code, message });
const place = (stack: string | undefined): { place?: string } => stack === undefined ? {} : { place: stack };

function rollbackTarget(record: AppRecord, wanted: string | undefined): string | Refusal {
  const versions = record.versions.map((entry) => entry.version);
  if (wanted === undefined) {
    const before = versions[versions.indexOf(record.current ?? "") - 1];
    return before ?? refuse("version_unknown", `app ${record.name} has no version before its current one`);
  }
  const matches = versions.filter((version) => version.startsWith(wanted));
  const [only] = matches;
  if (matches.length === 1 && only !== undefined) return only;
  return refuse(
    "version_unknown",
    matches.length === 0
      ? `app ${record.name} has no version ${wanted}`
      : `${wanted} begins ${matches.length} versions of app ${record.name}; give more digits`,
  );
}

/**
 * Rows are found by their table's key, so a table that changes its key (or where it lives) would lose them.
 * Compared with the newest earlier version that has the table.
 */
function changedKey(manifest: StoredManifest, earlier: readonly StoredManifest[]): string | null {
  for (const [name, table] of Object.entries(manifest.tables)) {
    const before = earlier.findLast((older) => older.tables[name] !== undefined)?.tables[name];
    if (before === undefined) continue;
    if (before.key.join("\0") !== table.key.join("\0")) {
      return `table ${name} has the key [${before.key.join(", ")}] and cannot get the key ` +
        `[${table.key.join(", ")}]: make another table, and copy the rows`;
    }
    if (before.at !== table.at) {
      return `table ${name} lives ${whereOf(before.at)} and cannot move ${
        whereOf(table.at)
      }: make another table`;
    }
  }
  return null;
}

const whereOf = (at: string | undefined): string => at === "root" ? "at the root" : "at every site";
