/**
 * Deploying, rolling back and rolling out, at the root: the only place where app rows are written.
 *
 * Stages of a deploy: evaluate the bundle in an isolate (its manifest) → check it against the app's earlier
 * versions → write the chunks, durable → prepare what the version needs of the app's rows (indexes) → write
 * version and app row together, durable → the sites follow → settle → remove what is given up.
 *
 * DE1  Nothing is written before the bundle has been evaluated and its manifest accepted.
 * DE2  Changes take turns, and each is one write (app_rows.ts). Only while a change waits for sites or fills indexes do
 *      other apps' changes pass it; by then the app's row names the version that it is for.
 * DE3  Deploying a version that already serves writes nothing.
 * DE4  A deploy whose caller has gone before the app row was written changes nothing, and leaves nothing.
 */
import { addedIndexes, type IndexFill } from "../../functions/index_fill.ts";
import type { StoreMutation } from "../../store/api/api.ts";
import type { Range } from "../../store/model/range.ts";
import { AppRows, type Change, type ChangeRefusal, type FoundApp, refuse, unchanged } from "./app_rows.ts";
import { changedKey, findVersion, versionBefore, withVersion } from "./app_versions.ts";
import { type BlobRef, Blobs } from "./blobs.ts";
import { removeRange, removeUnused, retire, writeBundle } from "./bundle_rows.ts";
import { Deletion } from "./deletion.ts";
import { Hosts } from "./hosts.ts";
import { QueueOrders } from "./queue_orders.ts";
import {
  APP_NAME,
  appRanges,
  type AppRecord,
  APPS,
  bundleChunks,
  bundleDigest,
  decodeApp,
  DEPLOYED_BYTES_MAX,
  MARKS,
  type StoredManifest,
  storedManifest,
  versionOf,
} from "./records.ts";
import { serving, servingAlone } from "./rollout.ts";
import type { SystemStore } from "./system_store.ts";
import type { Turn } from "./turns.ts";
import { VersionFiles } from "./version_files.ts";

/** Outcome of running a bundle for its manifest. */
export type Evaluation =
  | { readonly ok: true; readonly manifest: unknown }
  | { readonly ok: false; readonly message: string; readonly stack?: string };

/** A bundle to deploy. */
export interface DeployRequest {
  readonly bundle: Uint8Array;
  /** App's name from `--app`; wins over the manifest's name. */
  readonly app?: string;
  /** Name of the module's folder: the app's name where neither `--app` nor the manifest says one. */
  readonly fallback?: string;
  /** Blobs of the static files' index and of the source map, both uploaded before (blobs.ts). */
  readonly files?: BlobRef;
  readonly sourceMap?: BlobRef;
  /** Per cent of the sessions that get it, beside the version that serves; without one it serves all. */
  readonly weight?: number;
  /** Signal that aborts when the caller has gone (DE4). */
  readonly signal?: AbortSignal;
  /** Called as soon as the bundle has a name. */
  readonly begun?: (what: { readonly app: string; readonly version: string }) => void;
}

/** Services of the site that deploying uses. */
export interface DeploymentServices {
  readonly system: SystemStore;
  /** Runs a bundle in an isolate with no store and no network, and returns its validated manifest. */
  evaluate(bundle: Uint8Array): Promise<Evaluation>;
  nowMs(): number;
  /** Returns the ranges of an app's rows beside its own and the control plane's: removed with it. */
  owned?(app: string): readonly Range[];
  /** Prepares what a version needs beside indexes, before it serves anyone. */
  prepare?(app: string, after: StoredManifest): Promise<void>;
  /**
   * Waits until every site has followed a change, and all rows that it wrote before have arrived at the root; returns
   * the sites that have not in time.
   */
  follow?(change: Change): Promise<readonly string[]>;
  /** Fills indexes from the rows at the root; filling twice is harmless. */
  fill?(app: string, indexes: readonly IndexFill[]): Promise<void>;
}

/**
 * Evaluations that are kept: a bundle with static files is deployed twice in a row, without and with them, and
 * evaluated once.
 */
const EVALUATIONS_MAX = 8;

/** The control plane's writer. One per root process. */
export class Deployments {
  readonly #services: DeploymentServices;
  readonly rows: AppRows;
  readonly #evaluations = new Map<string, Evaluation>();
  /** Blobs of static files and source maps on their way to a version. */
  readonly blobs: Blobs;
  readonly #files: VersionFiles;
  /** Custom hosts. */
  readonly hosts: Hosts;
  /** Orders of operators for queues. */
  readonly queues: QueueOrders;
  readonly deletion: Deletion;

  constructor(services: DeploymentServices) {
    this.#services = services;
    this.rows = new AppRows(services.system);
    this.deletion = new Deletion(this.rows, {
      owned: (app) => [...appRanges(app), ...services.owned?.(app) ?? []],
      nowMs: () => services.nowMs(),
    });
    this.hosts = new Hosts(this.rows, () => services.nowMs());
    this.queues = new QueueOrders(this.rows, () => services.nowMs());
    this.blobs = new Blobs(services.system, () => services.nowMs());
    this.#files = new VersionFiles(services.system, this.blobs, () => services.nowMs());
  }

  /** Deploys a bundle: it serves all sessions, or with a weight a part of them. */
  async deploy(request: DeployRequest): Promise<Change | ChangeRefusal> {
    const { bundle, signal } = request;
    if (bundle.length > DEPLOYED_BYTES_MAX) {
      return refuse("limit_bundle", `a bundle has at most ${DEPLOYED_BYTES_MAX} bytes, not ${bundle.length}`);
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
    return await this.rows.inTurn(app, async (turn) => {
      try {
        signal?.throwIfAborted();
        const accepted = await this.#files.accept(manifest, request.files);
        return accepted.ok ? await this.#install(app, accepted.manifest, request, turn) : accepted;
      } catch (error) {
        // The next change tries again; the first error is the one that counts.
        await this.#giveUp(app).then(() => this.#removeUnused(null)).catch(() => {});
        if (signal?.aborted === true) {
          return refuse("interrupted", "the caller has gone; nothing was deployed");
        }
        throw error;
      }
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

  /**
   * Makes an earlier version serve all: the one named (by its first digits, if they are unique), or the one that served
   * before. While a rollout runs that is the current one, and the rollout ends.
   */
  rollback(app: string, version?: string): Promise<Change | ChangeRefusal> {
    return this.rows.changing(app, async (found, record, turn) => {
      if (version === undefined && record.rollout !== undefined && record.current !== null) {
        return await this.rows.write(found, servingAlone(record, record.current), record.current);
      }
      const target = version === undefined ? versionBefore(record) : findVersion(record, version);
      if (!("version" in target)) return refuse("version_unknown", target.message);
      if (target.version === record.current && record.rollout === undefined) {
        return unchanged(found, target.version);
      }
      return await this.#serve(found, servingAlone(record, target.version), target.version, turn);
    });
  }

  /** Gives a version to a part of the sessions, or changes the part of the one that has one. */
  rollout(app: string, version: string, weight: number): Promise<Change | ChangeRefusal> {
    return this.rows.changing(app, async (found, record, turn) => {
      const target = findVersion(record, version);
      if (!("version" in target)) return refuse("version_unknown", target.message);
      const next = this.#weighted(record, target.version, weight);
      if ("ok" in next) return next;
      if (record.rollout?.version === target.version && record.rollout.weight === weight) {
        return unchanged(found, target.version);
      }
      return await this.#serve(found, next, target.version, turn);
    });
  }

  /** Ends a rollout: its version serves all sessions, or none. */
  endRollout(app: string, how: "finish" | "abort"): Promise<Change | ChangeRefusal> {
    return this.rows.changing(app, async (found, record) => {
      const { rollout, current } = record;
      if (rollout === undefined || current === null) {
        return refuse(
          "rollout_none",
          `no rollout of app ${app} runs: every session gets ${current ?? "none"}`,
        );
      }
      const version = how === "finish" ? rollout.version : current;
      return await this.rows.write(found, servingAlone(record, version), version);
    });
  }

  /** Reports whether indexes of an app are to be filled again when every site has followed. */
  async isUnsettled(app: string): Promise<boolean> {
    return (await this.rows.find(app)).record?.unsettled !== undefined;
  }

  /**
   * Settles an app when every site has followed, and left its mark where the app is unsettled: fills the index entries
   * of rows that a site may have written without them, and removes versions that are given up.
   */
  async settle(app: string): Promise<void> {
    await this.rows.inTurn(app, async (turn) => {
      const found = await this.rows.find(app);
      const { record } = found;
      if (record === null || record.unsettled === undefined) return;
      const { unsettled, ...rest } = record;
      for (const after of await this.rows.manifests(serving(record))) {
        const added = await this.#addedSince(record, unsettled, after);
        await turn.aside(async () => await this.#services.fill?.(app, added));
      }
      await this.rows.write(found, rest, record.current ?? "");
    });
    await this.rows.inTurn(null, () => this.#removeUnused(app));
  }

  /** Returns the changes of the apps that are to be settled. */
  async unsettled(): Promise<Change[]> {
    const found: Change[] = [];
    for (const row of await this.#services.system.list(APPS)) {
      const record = row.value ? decodeApp(row.value) : null;
      if (record?.unsettled === undefined || record.deleted === true) continue;
      found.push(unchanged({ row, record }, record.current ?? ""));
    }
    return found;
  }

  /** Undoes what the process before left half done: a version that was being prepared is dropped. */
  async recover(): Promise<void> {
    await this.rows.inTurn(null, async () => {
      for (const row of await this.#services.system.list(APPS)) {
        if (row.value) await this.#giveUp(decodeApp(row.value).name);
      }
      await removeRange(this.#services.system, MARKS); // nobody waits for one any more
    });
    await this.tidy();
  }

  async #giveUp(app: string): Promise<void> {
    const found = await this.rows.find(app);
    if (found.record?.preparing === undefined) return;
    const { preparing: _, ...rest } = found.record;
    await this.rows.write(found, rest, rest.current ?? "");
  }

  /** Removes versions that no app names, and the chunks of deploys that did not come to their end. */
  tidy(): Promise<string[]> {
    return this.rows.inTurn(null, () => this.#removeUnused(null));
  }

  async #removeUnused(followed: string | null): Promise<string[]> {
    const { system, nowMs } = this.#services;
    const removed = await removeUnused(system, { followed, nowMs: nowMs() });
    await this.#files.sweep();
    return removed;
  }

  async #install(
    app: string,
    manifest: StoredManifest,
    request: DeployRequest,
    turn: Turn,
  ): Promise<Change | ChangeRefusal> {
    const { system, nowMs } = this.#services;
    const { bundle, weight, signal } = request;
    const version = versionOf(manifest, bundle);
    request.begun?.({ app, version });
    const found = await this.rows.find(app);
    if (found.record?.deleted === true) {
      return refuse(
        "app_deleting",
        `the rows of an app called ${app} are still being removed; try again later`,
      );
    }
    const before = found.record ?? { name: app, versions: [], current: null };
    if (before.current === version && before.rollout === undefined) {
      const map = await this.#files.mapOf(version, request.sourceMap);
      if (map.length > 0) await system.write(map);
      return unchanged(found, version);
    }
    const refused = changedKey(
      manifest,
      await this.rows.manifests(before.versions.map((entry) => entry.version)),
    );
    if (refused !== null) return refuse("deploy_invalid", refused);
    const createdMs = nowMs();
    const served = weight === undefined
      ? servingAlone(before, version)
      : this.#weighted(before, version, weight);
    if ("ok" in served) return served;
    const { record, dropped } = withVersion(served, { version, createdMs });
    const written = await writeBundle(system, {
      version,
      manifest,
      bundleSha256: bundleDigest(bundle),
      bundleBytes: bundle.length,
      bundleChunks: bundleChunks(bundle).length,
      createdMs,
    }, bundle);
    const prepared = await this.#prepare({ ...found, record: before }, { version, manifest, written }, turn);
    signal?.throwIfAborted(); // DE4
    const map = await this.#files.mapOf(version, request.sourceMap); // it may have been swept meanwhile
    return await this.rows.write(
      prepared.found,
      { ...record, ...prepared.more },
      version,
      [...written, ...map, ...retire(app, dropped, createdMs)],
    );
  }

  #weighted(record: AppRecord, version: string, weight: number): AppRecord | ChangeRefusal {
    const { name, current, rollout } = record;
    if (current === null) {
      return refuse("version_unknown", `app ${name} has no version beside which another could be rolled out`);
    }
    if (version === current) {
      return refuse("check_failed", `version ${version.slice(0, 12)} of app ${name} is what serves already`);
    }
    if (rollout !== undefined && rollout.version !== version) {
      return refuse(
        "rollout_running",
        `${rollout.weight} % of the sessions of app ${name} get ${rollout.version.slice(0, 12)}: ` +
          "finish or abort that rollout first",
      );
    }
    const sinceMs = rollout?.sinceMs ?? this.#services.nowMs();
    const { preparing: _, ...rest } = record;
    return { ...rest, rollout: { version, weight, sinceMs } };
  }

  /** Points an app to a version that it has. */
  async #serve(
    found: FoundApp,
    next: AppRecord,
    version: string,
    turn: Turn,
  ): Promise<Change | ChangeRefusal> {
    const [manifest] = await this.rows.manifests([version]);
    if (manifest === undefined || found.record === null) {
      return refuse("version_unknown", `version ${version} of app ${next.name} is not here`);
    }
    const prepared = await this.#prepare(found, { version, manifest, written: [] }, turn);
    return await this.rows.write(prepared.found, { ...next, ...prepared.more }, version);
  }

  /**
   * Makes a version ready to serve. Where it has indexes that the serving versions lack, sites are told first, so that
   * from then on they write the entries of rows that the others put (app_writes.ts); entries of earlier rows are filled
   * here when those have arrived. Returns the app's row as it is then, and the fields that the next row is to have.
   */
  async #prepare(
    { row, record }: FoundApp,
    next: {
      readonly version: string;
      readonly manifest: StoredManifest;
      readonly written: readonly StoreMutation[];
    },
    turn: Turn,
  ): Promise<{ found: FoundApp; more: Pick<AppRecord, "unsettled"> }> {
    const { fill, follow, prepare, nowMs } = this.#services;
    if (record === null) return { found: { row, record }, more: {} };
    const { name: app } = record;
    await prepare?.call(this.#services, app, next.manifest);
    const before = serving(record);
    if (before.includes(next.version)) return { found: { row, record }, more: {} };
    const added = await this.#addedSince(record, before, next.manifest);
    if (added.length === 0 || fill === undefined) return { found: { row, record }, more: {} };
    const preparing = { version: next.version, sinceMs: nowMs() };
    const told = await this.rows.write({ row, record }, { ...record, preparing }, next.version, next.written);
    if (!told.ok) throw new Error(told.message);
    const missing = await turn.aside(async () => {
      const missing = await follow?.call(this.#services, told) ?? [];
      await fill.call(this.#services, app, added);
      return missing;
    });
    const unsettled = [...new Set([...record.unsettled ?? [], ...missing.length === 0 ? [] : before])];
    return {
      found: await this.rows.find(app),
      more: unsettled.length === 0 ? {} : { unsettled },
    };
  }

  /**
   * Returns the indexes of a manifest that one of these versions does not know. A table that it does not know either
   * may have rows of an earlier version.
   */
  async #addedSince(
    { versions: all }: AppRecord,
    versions: readonly string[],
    { tables }: StoredManifest,
  ): Promise<IndexFill[]> {
    const earlier = await this.rows.manifests(all.map(({ version }) => version));
    const bare = Object.entries(tables).filter(([name]) =>
      earlier.some((older) => Object.hasOwn(older.tables, name))
    )
      .map(([name, { key }]) => [name, { key, indexes: {} }] as const);
    const manifests = await this.rows.manifests(versions);
    return manifests.flatMap((before) =>
      addedIndexes({ ...Object.fromEntries(bare), ...before.tables }, tables)
    );
  }
}

const place = (stack: string | undefined): { place?: string } => stack === undefined ? {} : { place: stack };
