/**
 * Deleting an app, at the root.
 *
 * Life: begun (the app's row says `deleted`: it serves nowhere, gives up its versions and hosts, and its name is
 * taken) → every site has followed, and what its sites had written before has arrived → its rows are removed in
 * bounded steps → the app's row goes, and the name is free. Whatever is cut short is gone on with from the row.
 *
 * X1  An app that is deployed under the name later finds no row of this one: the name is free only when no site can
 *     write one any more.
 */
import type { Range } from "../../store/range.ts";
import { type AppRows, type Change, type Refusal, refuse } from "./app_rows.ts";
import { named, removeRange, retire } from "./bundle_rows.ts";
import { releaseHosts } from "./hosts.ts";
import { appKey, APPS, decodeApp } from "./records.ts";

/** What deleting needs of its site. */
export interface DeletionServices {
  /** Ranges of all that an app has beside what the control plane knows. */
  readonly owned: (app: string) => readonly Range[];
  readonly nowMs: () => number;
}

/** Deletes apps. One per root process. */
export class Deletion {
  readonly #rows: AppRows;
  readonly #services: DeletionServices;

  constructor(rows: AppRows, services: DeletionServices) {
    this.#rows = rows;
    this.#services = services;
  }

  /** The app serves nowhere from now on; nothing of its rows is removed yet. The change names what served. */
  begin(app: string): Promise<Change | Refusal> {
    return this.#rows.inTurn(async () => {
      const found = await this.#rows.find(app);
      const { record } = found;
      if (record === null) return refuse("app_unknown", `no app is called ${JSON.stringify(app)}`);
      const version = record.current ?? "";
      if (record.deleted === true) return await this.#rows.write(found, record, version); // asks all sites again
      return await this.#rows.write(
        found,
        { name: app, versions: [], current: null, deleted: true },
        version,
        [...retire(app, named(record), this.#services.nowMs()), ...releaseHosts(record.hosts)],
      );
    });
  }

  /** Removes the rows that a deleted app has at the root; answers how many. */
  async removeRows(app: string, removed: (rows: number) => void = () => {}): Promise<number> {
    let total = 0;
    for (const range of this.#services.owned(app)) {
      await removeRange(this.#rows.system, range, (rows) => removed(total += rows));
    }
    return total;
  }

  /** Frees the name of a deleted app (X1); call when every site has followed and nothing is left. */
  finish(app: string): Promise<void> {
    return this.#rows.inTurn(async () => {
      const { row, record } = await this.#rows.find(app);
      if (row === undefined || record?.deleted !== true) return;
      const key = appKey(app);
      await this.#rows.system.write([{ kind: "delete", key }], [{ key, version: row }]);
      await this.#rows.system.durable();
    });
  }

  /** The apps whose deletion has not come to its end. */
  async unfinished(): Promise<string[]> {
    const rows = await this.#rows.system.list(APPS);
    return rows.flatMap((row) => {
      const record = row.value ? decodeApp(row.value) : null;
      return record?.deleted === true ? [record.name] : [];
    });
  }
}
