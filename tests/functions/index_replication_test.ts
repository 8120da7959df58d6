/**
 * Index entries under replication: sites that write, list (and so clean up) and exchange rows as the store
 * does, newest version first, in any order. Whatever they did, once they have all met, each index shows every row
 * once, at its place. A shared entry key per row and value (I2 left out) fails this test.
 */
import assert from "node:assert/strict";
import fc from "fast-check";
import { z } from "zod";
import { table } from "../../functions/define.ts";
import { PreparedTable } from "../../functions/prepared_table.ts";
import { ReadBatch } from "../../functions/read_batch.ts";
import type {
  Check,
  CommitResult,
  ListRequest,
  Mutation,
  RowPage,
  StoreClient,
  StoredRow,
} from "../../functions/vocabulary/store_client.ts";
import { RequestTable } from "../../functions/table.ts";
import type { Key } from "../../store/model/key.ts";
import { compareVersions, type Version, versionstamp } from "../../store/model/row.ts";

interface Cell extends Version {
  readonly value: Uint8Array | null;
}

/** One site's rows, tombstones included, under a clock that all sites read: what is later is newer. */
class SiteStore implements StoreClient {
  readonly cells = new Map<Key, Cell>();
  readonly #replica: number;
  readonly #clock: { now: number };

  constructor(replica: number, clock: { now: number }) {
    this.#replica = replica;
    this.#clock = clock;
  }

  get(keys: readonly Key[]): Promise<(StoredRow | null)[]> {
    return Promise.resolve(keys.map((key) => this.#row(key)));
  }

  list({ start, end, limit, reverse }: ListRequest): Promise<RowPage> {
    const keys = [...this.cells.keys()].filter((key) => key >= start && key < end).sort();
    if (reverse) keys.reverse();
    const rows = keys.map((key) => this.#row(key)).filter((row) => row !== null);
    return Promise.resolve({ rows: rows.slice(0, limit), more: rows.length > limit });
  }

  commit(_: readonly Check[], mutations: readonly Mutation[]): Promise<CommitResult> {
    const version = { clock: ++this.#clock.now, replica: this.#replica };
    for (const mutation of mutations) {
      this.cells.set(mutation.key, { ...version, value: mutation.kind === "delete" ? null : mutation.value });
    }
    return Promise.resolve({ ok: true, versionstamp: versionstamp(version) });
  }

  // deno-lint-ignore require-yield -- never used here
  async *watch(): AsyncGenerator<void> {
    await Promise.reject(new Error("not part of this test"));
  }

  /** Takes over whatever is newer there; all of it, as a mark does. */
  hear(other: SiteStore): void {
    for (const [key, cell] of other.cells) {
      const own = this.cells.get(key);
      if (own === undefined || compareVersions(cell, own) > 0) this.cells.set(key, cell);
    }
  }

  #row(key: Key): StoredRow | null {
    const cell = this.cells.get(key);
    return cell === undefined || cell.value === null
      ? null
      : { key, value: cell.value, versionstamp: versionstamp(cell) };
  }
}

const definition = table({
  schema: z.object({ id: z.number(), state: z.string() }),
  key: ["id"],
  indexes: { state: ["state"] },
});

const SITES = 2;
const site = fc.nat(SITES - 1);
const step = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({ do: fc.constant("put"), site, id: fc.nat(1), state: fc.constantFrom("a", "b") }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("delete"), site, id: fc.nat(1) }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant("list"), site }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant("hear"), site, from: site }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("restart"), site }) },
);

Deno.test("an index shows every row once, whatever sites did while they were apart (I1, I2, I3)", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 40, size: "max" }), async (steps) => {
      const clock = { now: 0 };
      const stores = Array.from({ length: SITES }, (_, i) => new SiteStore(i + 1, clock));
      const fresh = (store: SiteStore) =>
        new RequestTable(new PreparedTable("t", definition), store, new ReadBatch(store));
      const tables = stores.map(fresh);
      for (const s of steps) {
        const [store, t] = [stores[s.site], tables[s.site]];
        if (store === undefined || t === undefined) continue;
        if ("state" in s) await t.put({ id: s.id, state: s.state });
        else if ("id" in s) await t.delete([s.id]);
        else if ("from" in s) store.hear(stores[s.from] ?? store);
        else if (s.do === "restart") tables[s.site] = fresh(store);
        else await t.list({ index: "state", limit: 2 });
      }
      for (let round = 0; round < 2; round++) {
        for (const a of stores) for (const b of stores) a.hear(b);
      }
      for (const t of tables) {
        const rows = (await t.list()).rows.map((row) => row.value);
        const byState = [...rows].sort((x, y) => String(x["state"]).localeCompare(String(y["state"])));
        assert.deepEqual((await t.list({ index: "state" })).rows.map((row) => row.value), byState);
      }
    }),
    { numRuns: 1000 },
  );
});
