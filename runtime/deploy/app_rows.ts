/**
 * The rows of apps at the root, each changed by one at a time.
 *
 * R1  An app's row is written under a check of the row that it was computed from. Changes of one root take turns
 *     (turns.ts), so that a failed check means another root process: it is reported, not retried blindly.
 * R2  A change that was answered is durable.
 */
import type { StoreCheck, StoreMutation } from "../../store/api/api.ts";
import { type Row, versionstamp } from "../../store/model/row.ts";
import {
  appKey,
  type AppRecord,
  decodeApp,
  decodeVersion,
  encodeSystem,
  type StoredManifest,
  versionKey,
} from "./records.ts";
import type { SystemStore } from "./system_store.ts";
import { type Turn, Turns } from "./turns.ts";
import type { FilesRefusal } from "./version_files.ts";

/** Why a change of the control plane was refused. */
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
    | FilesRefusal["code"];
  readonly message: string;
  /** Stack or place in the bundle, where there is one. */
  readonly place?: string;
}

/** What a change of an app did. */
export interface Change {
  readonly ok: true;
  readonly app: string;
  /** The version that it is about: the one that serves now, or a part of the sessions gets. */
  readonly version: string;
  /** false: it was so already. */
  readonly changed: boolean;
  /** Versionstamp of the app's row: a site that shows it has followed. */
  readonly stamp: string;
}

/** An app's row, and what it says. */
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

  /** A change of an app, or of what all share (null), in its turn. */
  inTurn<T>(app: string | null, step: (turn: Turn) => Promise<T>): Promise<T> {
    return this.#turns.take(app, step);
  }

  /** A change of an app that there is, in its turn. */
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

  /** An app's row. */
  async find(name: string): Promise<FoundApp> {
    const [row] = await this.system.get([appKey(name)]);
    return { row, record: row?.value ? decodeApp(row.value) : null };
  }

  /** Writes an app's row, and what belongs to the same change, together (R1). */
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

  /** The manifests of versions, in their order; those that are not here are left out. */
  async manifests(versions: readonly string[]): Promise<StoredManifest[]> {
    const rows = await this.system.get(versions.map(versionKey));
    return rows.flatMap((row) => row?.value ? [decodeVersion(row.value).manifest] : []);
  }
}

/** A refusal. */
export const refuse = (code: ChangeRefusal["code"], message: string): ChangeRefusal => ({
  ok: false,
  code,
  message,
});

/** What a change answers that changed nothing. */
export const unchanged = ({ row, record }: FoundApp, version: string): Change => ({
  ok: true,
  app: record?.name ?? "",
  version,
  changed: false,
  stamp: row === undefined ? "" : versionstamp(row),
});
