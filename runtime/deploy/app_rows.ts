/**
 * The rows of apps at the root; each has one change at a time.
 *
 * APR1  An app's row is written under a check of the row that it was computed from. Changes of one root take turns
 *       (turns.ts), so that a failed check means another root process: it is reported, not retried blindly.
 * APR2  A change that was answered is durable.
 */
import type { StoreCheck, StoreMutation } from "../../store/api/api.ts";
import { type Row, versionstamp } from "../../store/model/row.ts";
import {
  appKey,
  type AppRecord,
  decodeApp,
  decodeVersion,
  type StoredManifest,
  versionKey,
} from "./records.ts";
import { encodeSystem } from "../../store/model/system_value.ts";
import type { SystemStore } from "./system_store.ts";
import { type Turn, Turns } from "./turns.ts";
import type { FilesRefusal } from "./version_files.ts";

/** Refusal of a change of the control plane, with its reason. */
export interface ChangeRefusal {
  readonly ok: false;
  readonly code:
    | "deploy_invalid"
    | "app_unknown"
    | "version_unknown"
    | "limit_bundle"
    | "check_failed"
    | "rollout_running"
    | "rollout_none"
    | "app_deleting"
    | "interrupted"
    | "host_taken"
    | "host_unknown"
    | "queue_unknown"
    | FilesRefusal["code"];
  readonly message: string;
  /** Stack or place in the bundle, where there is one. */
  readonly place?: string;
}

/** Result of a change of an app. */
export interface Change {
  readonly ok: true;
  readonly app: string;
  /** Version that the change is about: the one that serves now, or that a part of the sessions gets. */
  readonly version: string;
  /** False where nothing had to be changed. */
  readonly changed: boolean;
  /** Versionstamp of the app's row: a site that shows it has followed. */
  readonly stamp: string;
}

/** An app's row, and its decoded record. */
export interface FoundApp {
  readonly row: Row | undefined;
  readonly record: AppRecord | null;
}

/** Reads and writes the rows of apps. One per root process. */
export class AppRows {
  readonly system: SystemStore;
  readonly #turns = new Turns();

  constructor(system: SystemStore) {
    this.system = system;
  }

  /** Runs a change of an app, or of what all apps share (null), in its turn. */
  inTurn<T>(app: string | null, step: (turn: Turn) => Promise<T>): Promise<T> {
    return this.#turns.take(app, step);
  }

  /** Runs a change of an existing app in its turn; refuses where there is none. */
  changing(
    app: string,
    change: (found: FoundApp, record: AppRecord, turn: Turn) => Promise<Change | ChangeRefusal>,
  ): Promise<Change | ChangeRefusal> {
    return this.inTurn(app, async (turn) => {
      const found = await this.find(app);
      if (found.record === null || found.record.deleted === true) {
        return refuse("app_unknown", `no app is called ${JSON.stringify(app)}`);
      }
      return await change(found, found.record, turn);
    });
  }

  /** Reads an app's row. */
  async find(name: string): Promise<FoundApp> {
    const [row] = await this.system.get([appKey(name)]);
    return { row, record: row?.value ? decodeApp(row.value) : null };
  }

  /** Writes an app's row, and the other rows of the same change, together (APR1). */
  async write(
    { row }: FoundApp,
    next: AppRecord,
    version: string,
    also: readonly StoreMutation[] = [],
    checks: readonly StoreCheck[] = [],
  ): Promise<Change | ChangeRefusal> {
    const key = appKey(next.name);
    const result = await this.system.write(
      [...also, { kind: "set", key, value: encodeSystem(next) }],
      [{ key, version: row ?? null }, ...checks],
    );
    if (!result.ok) {
      return refuse("check_failed", `app ${next.name} was changed by someone else meanwhile; try again`);
    }
    await this.system.durable();
    return { ok: true, app: next.name, version, changed: true, stamp: versionstamp(result.version) };
  }

  /** Returns the manifests of versions, in their order; those that are not here are left out. */
  async manifests(versions: readonly string[]): Promise<StoredManifest[]> {
    const rows = await this.system.get(versions.map(versionKey));
    return rows.flatMap((row) => row?.value ? [decodeVersion(row.value).manifest] : []);
  }
}

/** Returns a refusal. */
export const refuse = (code: ChangeRefusal["code"], message: string): ChangeRefusal => ({
  ok: false,
  code,
  message,
});

/** Returns the result of a change that changed nothing. */
export const unchanged = ({ row, record }: FoundApp, version: string): Change => ({
  ok: true,
  app: record?.name ?? "",
  version,
  changed: false,
  stamp: row === undefined ? "" : versionstamp(row),
});
