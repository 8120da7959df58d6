/** Tables over the in-memory store: rows, keys, indexes, pages, watch. */
import assert from "node:assert/strict";
import fc from "fast-check";
import { z } from "zod";
import { table, type TableDefinition } from "../../functions/define.ts";
import { PreparedTable } from "../../functions/prepared_table.ts";
import { ReadBatch } from "../../functions/read_batch.ts";
import { RequestTable } from "../../functions/table.ts";
import type { Table } from "../../functions/table_interface.ts";
import { packKey } from "../../store/model/key.ts";
import { MemoryStore } from "./memory_store.ts";

type Opened<D> = D extends TableDefinition<infer S, infer K, infer I> ? Table<S, K, I> : never;

/** A table of one isolate; `store` may be another isolate's too. */
function open<D extends TableDefinition>(definition: D, store = new MemoryStore()) {
  const prepared = new PreparedTable("orders", definition);
  const opened = new RequestTable(prepared, store, new ReadBatch(store)) as unknown as Opened<D>;
  return { store, orders: opened };
}

const orders = table({
  schema: z.object({
    by: z.string(),
    id: z.string(),
    at: z.number(),
    drink: z.string().optional(),
    open: z.boolean().default(true),
  }),
  key: ["by", "id"],
  indexes: { newest: ["by", "at"], drinks: ["drink"] },
});

const ann = (id: string, at: number, drink?: string) =>
  drink === undefined ? { by: "ann", id, at } : { by: "ann", id, at, drink };

Deno.test("a table gives back the row that was put, as the schema made it", async () => {
  const { orders: t } = open(orders);
  assert.equal(await t.get(["ann", "1"]), null);
  const put = await t.put(ann("1", 5));
  assert.deepEqual(put.value, { by: "ann", id: "1", at: 5, open: true });
  assert.deepEqual(put.key, ["ann", "1"]);
  assert.deepEqual(await t.get(["ann", "1"]), put);
  assert.deepEqual(await t.getMany([["ann", "2"], ["ann", "1"]]), [null, put]);
  await t.delete(["ann", "1"]);
  assert.equal(await t.get(["ann", "1"]), null);
});

Deno.test("what could not be read back of a row is refused with its path, and nothing of its atomic is written", async () => {
  class Secret {
    readonly #inside = 1;
    get inside() {
      return this.#inside;
    }
  }
  const definition = table({ schema: z.object({ id: z.string(), of: z.any() }), key: ["id"] });
  const { store, orders: t } = open(definition);
  const key = await crypto.subtle.generateKey({ name: "HMAC", hash: "SHA-256" }, true, ["sign"]);
  const things: [unknown, string][] = [
    [new Blob(["x"]), "Blob"],
    [new File([], "f"), "File"],
    [key, "CryptoKey"],
    [new Secret(), "Secret"],
  ];
  for (const [thing, name] of things) {
    const message = new RegExp(`^value\\.of\\.list\\[0\\] is an object of the class ${name}`);
    const row = { id: "1", of: { list: [thing] } };
    await assert.rejects(async () => await t.put(row), { code: "value_invalid", message });
    await assert.rejects(async () => await t.atomic().put({ id: "2", of: 1 }).put(row).commit(), {
      code: "value_invalid",
    });
  }
  assert.deepEqual(await open(definition, store).orders.getMany([["1"], ["2"]]), [null, null]);
});

Deno.test("a bad row throws row_invalid and writes nothing (T3)", async () => {
  const { store, orders: t } = open(orders);
  await assert.rejects(() => t.put({ by: "ann", id: "1", at: "soon" as never }), {
    code: "row_invalid",
    message: /^a row for the table orders does not match its schema: at: /,
  });
  await assert.rejects(() => t.atomic().put(ann("1", 1)).put({} as never).commit(), { code: "row_invalid" });
  await assert.rejects(() => t.get(["ann"] as never), {
    code: "key_invalid",
    message: /\[by, id\], not 1 parts/,
  });
  await assert.rejects(() => t.put(ann("x".repeat(2048), 1)), { code: "limit_key" });
  assert.deepEqual(store.calls, []);
});

Deno.test("a stored row that no longer parses throws row_invalid, unless the table upgrades it (T1, T2)", async () => {
  const old = table({ schema: z.object({ id: z.string(), name: z.string() }), key: ["id"] });
  const schema = z.object({ id: z.string(), first: z.string() });
  const { store, orders: before } = open(old);
  await before.put({ id: "1", name: "Ann" });
  const { orders: strict } = open(table({ schema, key: ["id"] }), store);
  await assert.rejects(() => strict.get(["1"]), { code: "row_invalid" });
  await assert.rejects(async () => await strict.list(), { code: "row_invalid" });
  const upgrade = (row: unknown) => ({ id: "1", first: z.object({ name: z.string() }).parse(row).name });
  const { orders: upgrading } = open(table({ schema, key: ["id"], upgrade }), store);
  assert.deepEqual((await upgrading.get(["1"]))?.value, { id: "1", first: "Ann" });
  await before.put({ id: "3", name: "Eve" });
  const throwing = table({
    schema,
    key: ["id"],
    upgrade: (row) => z.object({ age: z.number() }).parse(row) as never,
  });
  await assert.rejects(() => open(throwing, store).orders.get(["3"]), (error: Error & { code?: string }) => {
    assert.equal(error.code, "row_invalid");
    assert.match(error.message, /the upgrade of a row of the table orders threw/);
    assert(error.cause instanceof z.ZodError);
    return true;
  });
  const moving = table({ schema, key: ["id"], upgrade: () => ({ id: "2", first: "" }) });
  await assert.rejects(() => open(moving, store).orders.get(["1"]), {
    code: "row_invalid",
    message: /changed its key/,
  });
});

Deno.test("an asynchronous Standard Schema works like a synchronous one", async () => {
  const schema = z.object({ id: z.string().refine((id) => Promise.resolve(id !== "bad")) });
  const { orders: t } = open(table({ schema, key: ["id"] }));
  await t.put({ id: "good" });
  assert.deepEqual((await t.get(["good"]))?.value, { id: "good" });
  await assert.rejects(() => t.put({ id: "bad" }), { code: "row_invalid" });
});

Deno.test("a list by key covers prefix, start and end, in pages, in both directions", async () => {
  const { store, orders: t } = open(orders);
  for (const by of ["ann", "bob"]) for (let i = 0; i < 5; i++) await t.put({ by, id: `${i}`, at: i });
  const ids = (page: { rows: { value: { id: string } }[] }) => page.rows.map((r) => r.value.id).join("");
  assert.equal(ids(await t.list()), "0123401234");
  assert.equal(ids(await t.list({ prefix: ["bob"] })), "01234");
  assert.equal(ids(await t.list({ prefix: ["bob"], start: ["bob", "2"] })), "234");
  assert.equal(ids(await t.list({ prefix: ["ann"], end: ["ann", "2"], reverse: true })), "10");
  assert.equal(ids(await t.list({ start: ["ann", "3"], end: ["bob", "1"] })), "340");
  store.calls.length = 0;
  const first = await t.list({ prefix: ["ann"], limit: 2 });
  assert.deepEqual(store.calls, [{ kind: "list", size: 2, level: "session" }]);
  const second = await t.list({ prefix: ["ann"], limit: 3, cursor: first.cursor });
  const third = await t.list({ prefix: ["ann"], limit: 3, cursor: second.cursor });
  assert.deepEqual([ids(first), ids(second), ids(third), third.cursor], ["01", "234", "", null]);
  await assert.rejects(async () => await t.list({ prefix: ["bob"], cursor: first.cursor }), {
    code: "key_invalid",
  });
  assert.throws(() => t.list({ index: "oldest" as never }), {
    message: /no index oldest; it has: newest, drinks/,
  });
});

Deno.test("a list by index is one list and one get a page (T4)", async () => {
  const { store, orders: t } = open(orders);
  for (let i = 0; i < 30; i++) await t.put(ann(`${i}`, 100 - i));
  await t.put({ by: "bob", id: "0", at: 1 });
  store.calls.length = 0;
  const page = await t.list({ index: "newest", prefix: ["ann"], reverse: true, limit: 20 });
  assert.deepEqual(page.rows.map((r) => r.value.at), Array.from({ length: 20 }, (_, i) => 100 - i));
  assert.deepEqual(store.calls.map((c) => [c.kind, c.size]), [["list", 20], ["get", 20]]);
  const rest = await t.list({
    index: "newest",
    prefix: ["ann"],
    reverse: true,
    limit: 20,
    cursor: page.cursor,
  });
  assert.deepEqual([rest.rows.length, rest.cursor], [10, null]);
  assert.deepEqual(
    (await t.list({ index: "newest", start: ["ann", 99], end: ["bob", 1] })).rows.map((r) => r.value.at),
    [
      99,
      100,
    ],
  );
});

Deno.test("a row without an indexed field is not in that index", async () => {
  const { orders: t } = open(orders);
  await t.put(ann("1", 1, "tea"));
  await t.put(ann("2", 2));
  assert.deepEqual((await t.list({ index: "drinks" })).rows.map((r) => r.key[1]), ["1"]);
  assert.deepEqual((await t.list({ index: "drinks", prefix: ["tea", "ann", "1"], limit: 1 })).rows.length, 1);
});

Deno.test("iterating a list gives every row, or as many as its limit", async () => {
  const { store, orders: t } = open(orders);
  for (let i = 0; i < 250; i++) await t.put(ann(`${i}`.padStart(3, "0"), i));
  const count = async (list: AsyncIterable<unknown>) => (await Array.fromAsync(list)).length;
  store.calls.length = 0;
  assert.equal(await count(t.list()), 250);
  assert.deepEqual(store.calls.map((c) => c.size), [100, 100, 100]);
  assert.equal(await count(t.list({ index: "newest", limit: 120 })), 120);
});

Deno.test("an entry that its row has outlived is not shown, and is removed by the reader (I1, I3)", async () => {
  const { store, orders: writer } = open(orders);
  await writer.put(ann("1", 1));
  // Another isolate does not know the entry of the first put.
  await open(orders, store).orders.put(ann("1", 2));
  await open(orders, store).orders.put(ann("2", 3));
  await open(orders, store).orders.delete(["ann", "2"]);
  assert.equal(store.rows.size, 4);
  const { orders: reader } = open(orders, store);
  const page = await reader.list({ index: "newest", limit: 2 });
  assert.deepEqual(page.rows.map((r) => r.value.at), [2]);
  assert.equal(store.rows.size, 2);
  store.calls.length = 0;
  assert.equal((await reader.list({ index: "newest", limit: 2, consistency: "eventual" })).rows.length, 1);
  assert.deepEqual(store.calls.map((c) => c.kind), ["list", "get"]);
});

Deno.test("a put removes the entry that its isolate wrote before", async () => {
  const { store, orders: t } = open(orders);
  for (let i = 0; i < 5; i++) await t.put(ann("1", i));
  assert.equal(store.rows.size, 2);
  await t.delete(["ann", "1"]);
  assert.equal(store.rows.size, 0);
});

Deno.test("a page is filled where entries were stale, and the next one asks for more at once", async () => {
  const { store, orders: reader } = open(orders);
  for (let i = 0; i < 20; i++) await open(orders, store).orders.put(ann(`${i % 10}`, i));
  store.calls.length = 0;
  const page = await reader.list({ index: "newest", limit: 5 });
  assert.deepEqual(page.rows.map((r) => r.value.at), [10, 11, 12, 13, 14]);
  assert.ok(store.calls.filter((c) => c.kind !== "commit").length <= 6, JSON.stringify(store.calls));
});

Deno.test("writes are checked against a version", async () => {
  const { orders: t } = open(orders);
  const { versionstamp } = await t.put(ann("1", 1), { check: null });
  await assert.rejects(() => t.put(ann("1", 2), { check: null }), { code: "check_failed" });
  await t.put(ann("1", 3), { check: versionstamp });
  await assert.rejects(() => t.delete(["ann", "1"], { check: versionstamp }), { code: "check_failed" });
  assert.deepEqual(await t.atomic().check(["ann", "1"], versionstamp).put(ann("2", 1)).commit(), {
    ok: false,
  });
  assert.equal(await t.get(["ann", "2"]), null);
  const done = await t.atomic().check(["ann", "2"], null).put(ann("2", 1)).delete(["ann", "1"]).commit();
  assert.ok(done.ok);
  assert.equal((await t.get(["ann", "2"]))?.versionstamp, done.versionstamp);
  assert.equal(await t.get(["ann", "1"]), null);
});

Deno.test("watch gives a row, then its changes, until the signal aborts", async () => {
  const { store, orders: t } = open(orders);
  const stop = new AbortController();
  const seen: (number | null)[] = [];
  for await (const row of t.watch(["ann", "1"], { signal: stop.signal })) {
    seen.push(row?.value.at ?? null);
    if (seen.length === 1) await t.put(ann("1", 1));
    if (seen.length === 2) await t.delete(["ann", "1"]);
    if (seen.length === 3) stop.abort();
  }
  assert.deepEqual(seen, [null, 1, null]);
  assert.equal(store.watching, 0);
});

Deno.test("watchList gives a page, then its changes, until the reader stops", async () => {
  const { store, orders: t } = open(orders);
  const seen: number[][] = [];
  for await (const page of t.watchList({ index: "newest", prefix: ["ann"], reverse: true, limit: 2 })) {
    seen.push(page.rows.map((r) => r.value.at));
    if (seen.length === 4) break;
    if (seen.length < 3) await t.put(ann(`${seen.length}`, seen.length));
    else await open(orders, store).orders.delete(["ann", "2"]);
  }
  assert.deepEqual(seen, [[], [1], [2, 1], [1]]);
  assert.equal(store.watching, 0);
});

Deno.test("tables declared at the root, and eventual ones, say so to the store", async () => {
  const { store, orders: t } = open({ ...orders, at: "root" });
  await t.put(ann("1", 1, "tea"));
  for (const key of store.rows.keys()) assert.ok(key.startsWith(packKey(["root"])));
  const eventual = open(table({ schema: orders.schema, key: ["id"], consistency: "eventual" }));
  await eventual.orders.get(["1"]);
  await eventual.orders.get(["1"], { consistency: "session" });
  assert.deepEqual(eventual.store.calls.map((c) => c.level), ["eventual", "session"]);
});

const part = fc.oneof(
  fc.string(),
  fc.double({ noNaN: true }),
  fc.boolean(),
  fc.bigInt(-(2n ** 63n), 2n ** 63n),
);

Deno.test("an index lists rows in the order of their fields, whatever these are", async () => {
  const schema = z.object({
    id: z.number(),
    a: z.custom<string | number>(() => true),
    b: z.custom<string | number>(() => true),
  });
  const definition = table({ schema, key: ["id"], indexes: { ab: ["a", "b"] } });
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.tuple(part, part), { maxLength: 20 }),
      fc.boolean(),
      fc.integer({ min: 1, max: 7 }),
      async (rows, reverse, limit) => {
        const { orders: t } = open(definition);
        for (const [id, [a, b]] of rows.entries()) await t.put({ id, a: a as string, b: b as string });
        const expected = [...rows.keys()].sort((x, y) => {
          const [kx, ky] = [packKey([...rows[x] ?? [], x]), packKey([...rows[y] ?? [], y])];
          return kx < ky ? -1 : 1;
        });
        const listed: number[] = [];
        let cursor: string | null = null;
        do {
          const page: Awaited<ReturnType<typeof t.list>> = await t.list({
            index: "ab",
            reverse,
            limit,
            cursor,
          });
          listed.push(...page.rows.map((r) => r.value.id));
          cursor = page.cursor;
        } while (cursor !== null);
        assert.deepEqual(listed, reverse ? expected.reverse() : expected);
      },
    ),
    { numRuns: 100 },
  );
});

Deno.test("a page of long rows ends early with a cursor; iterating goes on (L2)", async () => {
  const schema = z.object({ id: z.number(), text: z.string() });
  const { store, orders: t } = open(table({ schema, key: ["id"] }));
  store.replyBytesMax = 2_500_000;
  for (let id = 0; id < 12; id++) await t.put({ id, text: "x".repeat(1_000_000) });
  const sizes: number[] = [];
  let cursor: string | null = null;
  do {
    const page: { rows: unknown[]; cursor: string | null } = await t.list({ cursor });
    sizes.push(page.rows.length);
    cursor = page.cursor;
  } while (cursor !== null);
  assert.deepEqual(sizes, [3, 3, 3, 3, 0], "the third brings it over 2.5 MB");
  let rows = 0;
  for await (const _ of t.list()) rows++;
  assert.equal(rows, 12);
});
