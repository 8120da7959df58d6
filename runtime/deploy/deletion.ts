/**
 * Deleting an app, at the root.
 *
 * Life: begun (the app's row says `deleted`: it serves nowhere, gives up its versions and hosts, and its name is taken)
 * → every site has followed, and what sites had written before has arrived → its rows are removed in bounded steps →
 * the app's row goes, and the name is free. A deletion that is cut short goes on from the app's row.
 *
 * DD1  An app that is deployed under the name later finds no row of this one: the name is free only when no site can
 *      write one any more.
 * DD2  One deletion removes rows and frees the name, however often it is asked for: each step reads the app's row
 *      again, and checks that it is still this deletion's.
 */
import type { Range } from "../../store/model/range.ts";
import { versionstamp } from "../../store/model/row.ts";
import {
  type AppRows,
  type Change,
  type ChangeRefusal,
  type FoundApp,
  refuse,
  unchanged,
} from "./app_rows.ts";
import { named, removeStep, retire } from "./bundle_rows.ts";
import { releaseHosts } from "./hosts.ts";
import { appKey, APPS, decodeApp } from "./records.ts";

/** Services of the site that deleting uses. */
export interface DeletionServices {
  /** Returns the ranges of all rows that an app has beside those of the control plane. */
  readonly owned: (app: string) => readonly Range[];
  readonly nowMs: () => number;
}

/** Result of a deletion's work: which sites have followed, and how many rows it removed. */
export interface DeletionProgress {
  readonly sites: readonly { readonly id: string; readonly ms: number }[];
  readonly missing: readonly string[];
  readonly rows: number;
}

/** Deletes apps. One per root process. */
export class Deletion {
  readonly #rows: AppRows;
  readonly #services: DeletionServices;
  readonly #going = new Map<string, Promise<DeletionProgress>>();

  constructor(rows: AppRows, services: DeletionServices) {
    this.#rows = rows;
    this.#services = services;
  }

  /**
   * Begins a deletion: the app serves nowhere from now on; none of its rows is removed yet. The change names the
   * version that served. For an app that is being deleted it is the change that began the deletion.
   */
  begin(app: string): Promise<Change | ChangeRefusal> {
    return this.#rows.inTurn(app, async () => {
      const found = await this.#rows.find(app);
      const { record } = found;
      if (record === null) return refuse("app_unknown", `no app is called ${JSON.stringify(app)}`);
      const version = record.current ?? "";
      if (record.deleted === true) return unchanged(found, version);
      return await this.#rows.write(
        found,
        { name: app, versions: [], current: null, deleted: true },
        version,
        [...retire(app, named(record), this.#services.nowMs()), ...releaseHosts(record.hosts)],
      );
    });
  }

  /** Reports whether the work of a deletion is being done. */
  isGoing(app: string): boolean {
    return this.#going.has(app);
  }

  /** Does the work of a deletion; callers that come while it is being done get the same result. */
  async once(app: string, work: () => Promise<DeletionProgress>): Promise<DeletionProgress> {
    const going = this.#going.get(app);
    if (going !== undefined) return await going;
    const begun = work().finally(() => this.#going.delete(app));
    this.#going.set(app, begun);
    return await begun;
  }

  /** Removes the rows that a deleted app has at the root; returns how many (DD2). */
  async removeRows({ app, stamp }: Change, removed: (rows: number) => void = () => {}): Promise<number> {
    let total = 0;
    for (const range of this.#services.owned(app)) {
      for (;;) {
        const rows = await this.#rows.inTurn(
          app,
          async () =>
            isOf(await this.#rows.find(app), stamp) ? await removeStep(this.#rows.system, range) : 0,
        );
        if (rows === 0) break;
        removed(total += rows);
      }
    }
    return total;
  }

  /** Frees the name of a deleted app (DD1, DD2); call when every site has followed and no row is left. */
  finish({ app, stamp }: Change): Promise<void> {
    return this.#rows.inTurn(app, async () => {
      const found = await this.#rows.find(app);
      const { row } = found;
      if (row === undefined || !isOf(found, stamp)) return;
      const key = appKey(app);
      await this.#rows.system.write([{ kind: "delete", key }], [{ key, version: row }]);
      await this.#rows.system.durable();
    });
  }

  /** Returns the apps whose deletion has not come to its end. */
  async unfinished(): Promise<string[]> {
    const rows = await this.#rows.system.list(APPS);
    return rows.flatMap((row) => {
      const record = row.value ? decodeApp(row.value) : null;
      return record?.deleted === true ? [record.name] : [];
    });
  }
}

/** Reports whether an app's row is still the one that a deletion wrote. */
const isOf = ({ row, record }: FoundApp, stamp: string): boolean =>
  record?.deleted === true && row !== undefined && versionstamp(row) === stamp;
