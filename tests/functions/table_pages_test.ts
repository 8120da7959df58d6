/**
 * Pages of a table by index, while atomic operations come between all that is read for them (table_list.ts, L3): each
 * page is the beginning of the list in one state that the table had while the page was read.
 */
import assert from "node:assert/strict";
import fc from "fast-check";
import { z } from "zod";
import { table } from "../../functions/define.ts";
import { decodeCursor, intervalOf } from "../../functions/key_space.ts";
import { PreparedTable } from "../../functions/prepared_table.ts";
import { ReadBatch } from "../../functions/read_batch.ts";
import type { ListRequest, ReadLevel, StoreClient } from "../../functions/vocabulary/store_client.ts";
import { RequestTable } from "../../functions/table.ts";
import { type Key, packKey } from "../../store/model/key.ts";
import { MemoryStore } from "./memory_store.ts";

const IDS = 8;
const GROUPS = ["a", "b", "c"] as const;

const definition = table({
  schema: z.object({ id: z.number(), group: z.string().nullable(), n: z.number() }),
  key: ["id"],
  indexes: { group: ["group"] },
});

/** What somebody else does to two rows at once; a row that has no group is in no index. */
interface Change {
  readonly ids: readonly [number, number];
  readonly group: string | null;
  readonly deletes: boolean;
  /** By an isolate that knows of no entry: it leaves the one before to readers. */
  readonly fresh: boolean;
}

type Row = { id: number; group: string | null; n: number };
type State = ReadonlyMap<number, Row>;

/** A table with its history, whose readers are interrupted before each thing that they read. */
class BusyTable {
  readonly store = new MemoryStore();
  readonly states: State[] = [new Map()];
  #n = 0;
  readonly #known = this.#open(this.store);

  #open(store: StoreClient) {
    return new RequestTable(new PreparedTable("t", definition), store, new ReadBatch(store));
  }

  async change({ ids, group, deletes, fresh }: Change): Promise<void> {
    const rows = fresh ? this.#open(this.store) : this.#known;
    const state = new Map(this.states.at(-1));
    const atomic = rows.atomic(), n = this.#n++;
    for (const id of new Set(ids)) {
      const row = { id, group, n };
      if (deletes) {
        atomic.delete([id]);
        state.delete(id);
      } else {
        atomic.put(row);
        state.set(id, row);
      }
    }
    await atomic.commit();
    this.states.push(state);
  }

  /** A reader; some of `changes` come before each of its calls. */
  reader(changes: Change[][]) {
    const interrupt = async () => {
      for (const change of changes.shift() ?? []) await this.change(change);
    };
    const { store } = this;
    return this.#open({
      get: async (keys: readonly Key[], level: ReadLevel) => {
        await interrupt();
        return await store.get(keys, level);
      },
      list: async (request: ListRequest) => {
        await interrupt();
        return await store.list(request);
      },
      commit: (checks, mutations) => store.commit(checks, mutations),
      watch: (ranges, signal) => store.watch(ranges, signal),
    });
  }
}

/** The list by index in one state. */
function listed(state: State, reverse: boolean): Row[] {
  const rows = [...state.values()].filter(({ group }) => group !== null);
  const orderOf = ({ group, id }: Row) => `${group}${id}`;
  rows.sort((a, b) => orderOf(a) < orderOf(b) ? -1 : 1);
  return reverse ? rows.reverse() : rows;
}

const INDEX = new PreparedTable("t", definition).indexes.get("group") ?? assert.fail();

/** What of a list in one state comes behind a cursor, which may stand behind entries that show no row. */
function restOf(all: readonly Row[], cursor: string | null, reverse: boolean): readonly Row[] {
  if (cursor === null) return all;
  const at = decodeCursor(INDEX.space, intervalOf(INDEX.space, {}), cursor);
  return all.filter((row) => {
    const entry = `${INDEX.place({ ...row }, packKey([row.id]))}${packKey([0])}`;
    return reverse ? entry < at : entry >= at;
  });
}

const change: fc.Arbitrary<Change> = fc.record({
  ids: fc.tuple(fc.nat(IDS - 1), fc.nat(IDS - 1)),
  group: fc.constantFrom(...GROUPS, null),
  deletes: fc.oneof({ weight: 4, arbitrary: fc.constant(false) }, {
    weight: 1,
    arbitrary: fc.constant(true),
  }),
  fresh: fc.boolean(),
});

Deno.test("a page by index is one state of its table, whatever comes between its reads (L3)", async () => {
  let pages = 0, changed = 0;
  await fc.assert(
    fc.asyncProperty(
      fc.array(change, { maxLength: 12 }),
      fc.array(fc.array(change, { maxLength: 2 }), { maxLength: 12 }),
      fc.integer({ min: 1, max: 10 }),
      fc.boolean(),
      async (first, changes, limit, reverse) => {
        const busy = new BusyTable();
        for (const each of first) await busy.change(each);
        const reader = busy.reader([...changes]);
        let cursor: string | null = null;
        do {
          const from = busy.states.length - 1;
          const page: { rows: { value: unknown }[]; cursor: string | null } = await reader.list({
            ...{ index: "group", limit, reverse, cursor },
          });
          const rows = page.rows.map(({ value }) => value as Row);
          const states = busy.states.slice(from);
          const isOne = states.some((state) => {
            const rest = restOf(listed(state, reverse), cursor, reverse);
            return (page.cursor !== null || rest.length === rows.length) &&
              JSON.stringify(rest.slice(0, rows.length)) === JSON.stringify(rows);
          });
          assert.ok(isOne, `${JSON.stringify(rows)} was never the list`);
          assert.ok(rows.length <= limit);
          pages++;
          if (states.length > 1) changed++;
          cursor = page.cursor;
        } while (cursor !== null);
      },
    ),
    { numRuns: 2_000 },
  );
  assert.ok(changed > pages / 10, `${changed} of ${pages} pages were interrupted`);
});

Deno.test("a list of rows that change all the time ends when they hold still, and is no page before (L3)", async () => {
  const busy = new BusyTable();
  const ids = Array.from({ length: IDS }, (_, id) => id);
  const all = ids.map((id): Change => ({ ids: [id, id], group: "a", deletes: false, fresh: true }));
  for (const each of all) await busy.change(each);
  const seen: number[] = [];
  for await (const { value } of busy.reader(Array.from({ length: 60 }, () => all)).list({ index: "group" })) {
    seen.push((value as Row).id);
  }
  assert.deepEqual(seen, ids);
  await assert.rejects(
    async () => await busy.reader(Array.from({ length: 90 }, () => all)).list({ index: "group" }),
    {
      code: "check_failed",
    },
  );
});

Deno.test("a page that nobody interrupts takes two calls, also where a put left an entry of the same fields (I3)", async () => {
  const busy = new BusyTable();
  for (let round = 0; round < 3; round++) {
    for (let id = 0; id < IDS; id++) {
      await busy.change({ ids: [id, id], group: "a", deletes: false, fresh: true });
    }
  }
  const calls = async () => {
    busy.store.calls.length = 0;
    const { rows } = await busy.reader([]).list({ index: "group", limit: 50 });
    assert.equal(rows.length, IDS);
    return busy.store.calls.map(({ kind }) => kind).join(" ");
  };
  assert.equal(await calls(), "list get commit", "entries of puts before are removed");
  assert.equal(await calls(), "list get");
  assert.equal(busy.store.rows.size, 2 * IDS);
});
