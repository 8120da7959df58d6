/** Filling the indexes that a new version of an app adds. */
import assert from "node:assert/strict";
import { z } from "zod";
import { table, type TableDefinition } from "../../functions/define.ts";
import { addedIndexes, fillIndexes } from "../../functions/index_fill.ts";
import { PreparedTable } from "../../functions/prepared_table.ts";
import { ReadBatch } from "../../functions/read_batch.ts";
import { RequestTable } from "../../functions/table.ts";
import { encodeValue } from "../../functions/values/value.ts";
import { packKey } from "../../store/model/key.ts";
import { MemoryStore } from "./memory_store.ts";

const schema = z.object({ id: z.number(), drink: z.string().optional() });
const before = table({ schema, key: ["id"], indexes: { same: ["id"] } });
const after = table({ schema, key: ["id"], indexes: { same: ["id"], drinks: ["drink", "id"] } });
const open = (definition: typeof before | typeof after, store: MemoryStore) =>
  new RequestTable(new PreparedTable("orders", definition), store, new ReadBatch(store));

Deno.test("addedIndexes finds new and changed indexes of tables that there were", () => {
  const fills = addedIndexes({ orders: { key: ["id"], indexes: { a: ["x"], b: ["y"] } } }, {
    orders: { key: ["id"], indexes: { a: ["x"], b: ["y", "z"], c: ["z"] }, at: "root" },
    fresh: { key: ["id"], indexes: { d: ["x"] } },
  });
  assert.deepEqual(fills, [{ table: "orders", at: "root", indexes: { b: ["y", "z"], c: ["z"] } }]);
  assert.deepEqual(addedIndexes({}, { constructor: { key: ["id"], indexes: { d: ["x"] } } }), []);
});

Deno.test("a filled index lists the rows of before, once, also when it is filled twice (F1)", async () => {
  const store = new MemoryStore();
  const old = open(before, store);
  for (let id = 0; id < 250; id++) {
    await old.put(id % 5 === 0 ? { id } : { id, drink: id % 2 ? "tea" : "milk" });
  }
  const [fill] = addedIndexes({ orders: before as never }, { orders: after as never });
  assert.ok(fill);
  await store.commit([], [{ kind: "set", key: packKey(["t", "orders", 999]), value: Uint8Array.of(7) }]);
  assert.deepEqual(await fillIndexes(store, fill), { rows: 251, entries: 200, skipped: 1 });
  assert.deepEqual((await fillIndexes(store, fill)).entries, 0);
  const current = open(after, store);
  assert.equal((await Array.fromAsync(current.list({ index: "drinks", prefix: ["tea"] }))).length, 100);
  await old.put({ id: 1, drink: "milk" });
  assert.deepEqual((await fillIndexes(store, fill)).entries, 1);
  const milk = await Array.fromAsync(
    current.list({ index: "drinks", prefix: ["milk"] }),
    (row) => row.value["id"],
  );
  assert.ok(milk.includes(1) && milk.length === 101);
  assert.equal((await Array.fromAsync(current.list({ index: "drinks", prefix: ["tea"] }))).length, 99);
});

Deno.test("a row that changes while its index is filled gets no entry of its past (F2)", async () => {
  const store = new MemoryStore();
  await open(before, store).put({ id: 1, drink: "tea" });
  const commit = store.commit.bind(store);
  let raced = false;
  store.commit = async (checks, mutations) => {
    if (!raced) {
      raced = true;
      await commit([], [{
        kind: "set",
        key: packKey(["t", "orders", 1]),
        value: encodeValue({ id: 1, drink: "milk" }),
      }]);
    }
    return commit(checks, mutations);
  };
  const fill = { table: "orders", at: undefined, indexes: { drinks: ["drink", "id"] } };
  assert.deepEqual(await fillIndexes(store, fill), { rows: 1, entries: 1, skipped: 0 });
  const listed = await open(after, store).list({ index: "drinks" });
  assert.deepEqual(listed.rows.map((row) => row.value["drink"]), ["milk"]);
  assert.equal(
    [...store.rows.keys()].filter((key) => key.startsWith(packKey(["i", "orders", "drinks"]))).length,
    1,
  );
});

Deno.test("a row is in an index by the fields that it was stored with, whatever upgrade makes of it", async () => {
  const store = new MemoryStore();
  const old = table({ schema: z.object({ id: z.number(), town: z.string() }), key: ["id"] });
  const people = (definition: TableDefinition) =>
    new RequestTable(new PreparedTable("people", definition), store, new ReadBatch(store));
  await people(old).put({ id: 1, town: "Rome" });
  const next = table({
    schema: z.object({ id: z.number(), town: z.string(), zip: z.number(), done: z.boolean().default(false) }),
    key: ["id"],
    indexes: { byTown: ["town"], byZip: ["zip"], byDone: ["done"] },
    upgrade: (row) => ({ ...row as { id: number; town: string }, zip: 7 }),
  });
  const fill = { table: "people", at: undefined, indexes: next.indexes };
  assert.deepEqual(await fillIndexes(store, fill), { rows: 1, entries: 1, skipped: 0 });
  const now = people(next);
  const found = async (index: string) => (await now.list({ index })).rows.map((row) => row.value["zip"]);
  assert.deepEqual(await found("byTown"), [7], "stored with it");
  assert.deepEqual([await found("byZip"), await found("byDone")], [[], []], "stored without");
  const row = await now.get([1]);
  assert.deepEqual(row?.value, { id: 1, town: "Rome", zip: 7, done: false });
  await now.put(row?.value);
  assert.deepEqual([await found("byTown"), await found("byZip"), await found("byDone")], [[7], [7], [7]]);
});
