/**
 * Joining of a restored site with those that were restored with it, before it serves anybody and before other sites
 * hear of the logs that it has (backup/restored.ts RS2).
 *
 *   ["s", "restored", site] → {cut, copy, isRoot}   of each site that was restored, written by itself as it joins
 *
 * Life: `join` when the replica is ready → the root writes its row; a site below waits until that row names the moment
 * of its own copy → it writes its own row, and has joined.
 *
 * RJ1  A site whose root was restored from another moment, or from none, does not join: the logs that it has and the rows
 *      of the arbiter may be of different times, which nothing else would notice.
 * RJ2  Neither does a site in whose place another copy of that moment has joined before: the tree went on with that
 *      one. A feed brings all rows up to one position: a site that sees the root's row also sees the row under its own
 *      id.
 */
import { z } from "zod";
import { packKey } from "../../store/model/key.ts";
import { prefixRange } from "../../store/model/range.ts";
import { SYSTEM } from "../../store/api/api.ts";
import type { Restored } from "../backup/restored.ts";
import { LiveView } from "../deploy/live_view.ts";
import { decodeSystem, encodeSystem } from "../../store/model/system_value.ts";
import type { SystemStore } from "../deploy/system_store.ts";

const SPACE = "restored";
const RANGE = prefixRange(packKey([SYSTEM, SPACE]));

const schema = z.object({ site: z.string(), cut: z.string(), copy: z.string(), isRoot: z.boolean() });
type Row = z.infer<typeof schema>;

/** Services of the site that joining uses. */
export interface RestoredTreeParts {
  readonly system: SystemStore;
  readonly site: string;
  readonly isRoot: boolean;
  readonly restored: Pick<Restored, "cut" | "copy">;
  readonly note: (event: string, fields: Record<string, unknown>) => void;
}

/** A restored site's joining; see the file's header. */
export class RestoredTree {
  readonly #parts: RestoredTreeParts;
  readonly #view: LiveView;
  readonly #same = Promise.withResolvers<void>();
  /** Reason for waiting that was logged last. */
  #said = "";

  constructor(parts: RestoredTreeParts) {
    this.#parts = parts;
    this.#view = new LiveView({
      read: () => this.#look(),
      failed: (error) => parts.note("restored_unread", { error: String(error) }),
    });
  }

  /** Resolves when the site has joined, or this was closed before. */
  async join(): Promise<void> {
    const { system, site, isRoot, restored: { cut, copy } } = this.#parts;
    try {
      if (!isRoot) {
        await this.#view.follow(system, [RANGE]);
        await this.#same.promise;
        if (this.#view.closed) return;
      }
      const row: Row = { site, cut, copy, isRoot };
      await system.write([{ kind: "set", key: packKey([SYSTEM, SPACE, site]), value: encodeSystem(row) }]);
    } finally {
      this.#view.close();
    }
  }

  /** Gives up the joining. */
  close(): void {
    this.#view.close();
    this.#same.resolve();
  }

  async #look(): Promise<void> {
    const { system, site, restored: { cut, copy } } = this.#parts;
    const rows: Row[] = [];
    for (const { value } of await system.list(RANGE)) {
      const row = value === null ? undefined : schema.safeParse(decodeSystem(value)).data;
      if (row !== undefined) rows.push(row);
    }
    const root = rows.find(({ isRoot }) => isRoot), own = rows.find((row) => row.site === site);
    if (root?.cut !== cut) {
      return this.#waits({
        ...{ cut, root: root?.cut ?? null },
        says: "nobody is served before the root was heard of, restored from the same moment (RJ1)",
      });
    }
    if (own?.cut === cut && own.copy !== copy) {
      return this.#waits({
        cut,
        says:
          "another copy of this moment has joined before, and the tree went on with it: start the site with an empty " +
          "data folder (RJ2)",
      });
    }
    this.#same.resolve();
  }

  #waits(fields: Record<string, unknown>): void {
    const said = JSON.stringify(fields);
    if (said !== this.#said) this.#parts.note("restored_waits", fields);
    this.#said = said;
  }
}
