/** `env.kv` against the Deno KV interface, over the in-memory store. */
import assert from "node:assert/strict";
import { z } from "zod";
import { codeOf } from "../../functions/vocabulary/errors.ts";
import { RequestKv } from "../../functions/kv.ts";
import type { KvKey } from "../../functions/kv_interface.ts";
import { KvAtomicOperation } from "../../functions/kv_atomic.ts";
import { RequestQueue } from "../../functions/request_queue.ts";
import { KvU64 } from "../../functions/values/kv_u64.ts";
import { MemoryStore } from "./memory_store.ts";

const open = (): { store: MemoryStore; kv: RequestKv } => {
  const store = new MemoryStore();
  return { store, kv: new RequestKv(store) };
};

async function keysOf(list: AsyncIterable<{ key: KvKey }>): Promise<KvKey[]> {
  const keys: KvKey[] = [];
  for await (const { key } of list) keys.push(key);
  return keys;
}

Deno.test("kv gives back what was set, with its versionstamp", async () => {
  const { kv } = open();
  assert.deepEqual(await kv.get(["a"]), { key: ["a"], value: null, versionstamp: null });
  const { ok, versionstamp } = await kv.set(["a"], { x: [1, "two", null] });
  assert.equal(ok, true);
  assert.match(versionstamp, /^[0-9a-f]{20}$/);
  assert.deepEqual(await kv.get(["a"]), { key: ["a"], value: { x: [1, "two", null] }, versionstamp });
  await kv.delete(["a"]);
  assert.equal((await kv.get(["a"])).versionstamp, null);
});

Deno.test("kv joins gets of one turn into one store call", async () => {
  const { store, kv } = open();
  await kv.set(["b"], 2);
  store.calls.length = 0;
  const [a, b] = await Promise.all([kv.get(["a"]), kv.get<number>(["b"])]);
  assert.deepEqual([a.value, b.value], [null, 2]);
  assert.deepEqual(store.calls, [{ kind: "get", size: 2, level: "session" }]);
});

Deno.test("kv.getMany answers in the order of its keys", async () => {
  const { store, kv } = open();
  await kv.set(["n", 1], "one");
  await kv.set(["n", 2n], new KvU64(2n));
  store.calls.length = 0;
  const [two, none, one] = await kv.getMany<[KvU64, string, string]>([["n", 2n], ["n", 3], ["n", 1]], {
    consistency: "eventual",
  });
  assert.deepEqual([two.value, none.value, one.value], [new KvU64(2n), null, "one"]);
  assert.deepEqual(store.calls, [{ kind: "get", size: 3, level: "eventual" }]);
});

Deno.test("kv.list takes Deno KV's selectors", async () => {
  const { kv } = open();
  const keys: KvKey[] = [["a"], ["a", "1"], ["a", "2"], ["a", "2", true], ["a", "3"], ["a\0b"], ["b"]];
  for (const key of keys) await kv.set(key, 0);
  const at = (...indexes: number[]) => indexes.map((i) => keys[i]);
  const table = [
    [{ prefix: [] }, at(0, 1, 2, 3, 4, 5, 6)],
    [{ prefix: ["a"] }, at(1, 2, 3, 4)],
    [{ prefix: ["a"], start: ["a", "2"] }, at(2, 3, 4)],
    [{ prefix: ["a"], end: ["a", "2", true] }, at(1, 2)],
    [{ start: ["a"], end: ["b"] }, at(0, 1, 2, 3, 4, 5)],
    [{ start: ["a", "2", false], end: ["a", "2", true] }, []],
  ] as const;
  for (const [selector, expected] of table) {
    assert.deepEqual(await keysOf(kv.list(selector)), expected, JSON.stringify(selector));
    assert.deepEqual(await keysOf(kv.list(selector, { reverse: true })), expected.toReversed());
    assert.deepEqual(await keysOf(kv.list(selector, { batchSize: 1 })), expected);
  }
});

Deno.test("kv.list goes on at a cursor, in both directions", async () => {
  const { kv } = open();
  for (let i = 0; i < 10; i++) await kv.set(["n", i], i);
  for (const reverse of [false, true]) {
    const seen: KvKey[] = [];
    let cursor = "";
    do {
      const list = kv.list({ prefix: ["n"] }, { limit: 3, reverse, cursor });
      assert.throws(() => list.cursor, /before first iteration/);
      seen.push(...await keysOf(list));
      cursor = list.cursor;
    } while (cursor !== "");
    assert.deepEqual(seen, await keysOf(kv.list({ prefix: ["n"] }, { reverse })));
  }
});

Deno.test("kv.list asks the store for no more than its limit (Q2)", async () => {
  const { store, kv } = open();
  for (let i = 0; i < 10; i++) await kv.set(["n", i], i);
  store.calls.length = 0;
  assert.equal((await keysOf(kv.list({ prefix: ["n"] }, { limit: 5, batchSize: 3 }))).length, 5);
  assert.deepEqual(store.calls.map((c) => c.size), [3, 2]);
});

Deno.test("kv.atomic applies all or nothing", async () => {
  const { kv } = open();
  const first = await kv.set(["a"], 1);
  assert.deepEqual(await kv.atomic().check({ key: ["a"], versionstamp: null }).set(["b"], 2).commit(), {
    ok: false,
  });
  assert.equal((await kv.get(["b"])).value, null);
  const done = await kv.atomic().check({ key: ["a"], versionstamp: first.versionstamp }, {
    key: ["b"],
    versionstamp: null,
  }).set(["b"], 2).delete(["a"]).commit();
  assert.ok(done.ok);
  assert.deepEqual(await kv.get(["b"]), { key: ["b"], value: 2, versionstamp: done.versionstamp });
  assert.equal((await kv.get(["a"])).value, null);
});

Deno.test("kv.atomic merges KvU64 and numbers", async () => {
  const { kv } = open();
  await kv.atomic().sum(["u"], 5n).sum(["n"], 1.5).commit();
  await kv.atomic().sum(["u"], new KvU64(2n ** 64n - 3n)).sum(["n"], 2).commit();
  await kv.atomic().mutate({ type: "max", key: ["m"], value: new Deno.KvU64(9n) }).commit();
  await kv.atomic().min(["m"], 4n).commit();
  const [u, n, m] = await kv.getMany<[KvU64, number, KvU64]>([["u"], ["n"], ["m"]]);
  assert.deepEqual([u.value?.value, n.value, m.value?.value], [2n, 3.5, 4n]);
});

Deno.test("kv rows expire", async () => {
  const { store, kv } = open();
  await kv.set(["a"], 1, { expireIn: 10 });
  assert.equal((await kv.get(["a"])).value, 1);
  store.nowMs += 10;
  assert.equal((await kv.get(["a"])).value, null);
});

Deno.test("kv.watch gives the rows first, then after each change, and ends when cancelled", async () => {
  const { store, kv } = open();
  const reader = kv.watch<[number, number]>([["a"], ["b"]]).getReader();
  const next = async () => (await reader.read()).value?.map((e) => e.value);
  assert.deepEqual(await next(), [null, null]);
  await kv.set(["a"], 1);
  assert.deepEqual(await next(), [1, null]);
  const pending = next();
  await kv.set(["c"], 3);
  await kv.set(["b"], 2);
  assert.deepEqual(await pending, [1, 2]);
  await reader.cancel();
  await kv.set(["a"], 2);
  assert.equal(store.watching, 0);
});

Deno.test("kv refuses what exceeds a limit or is no key, before anything is sent", async () => {
  const { store, kv } = open();
  const text = (bytes: number) => "x".repeat(bytes);
  const many = kv.atomic();
  for (let i = 0; i < 1000; i++) many.delete(["k", i]);
  const wide = kv.atomic();
  for (let i = 0; i < 4; i++) wide.set(["k", i], text(1024 * 1024 - 100));
  const table: [string, () => unknown, RegExp][] = [
    ["limit_key", () => kv.set([text(2047)], 1), /Key too large \(max 2048 bytes/],
    ["limit_key", () => kv.get([text(2047)]), /Key too large/],
    ["limit_value", () => kv.set(["a"], text(1024 * 1024 + 1)), /Value too large \(max 1048576 bytes/],
    ["limit_value", () => kv.set(["a"], new Uint8Array(1024 * 1024 + 1)), /Value too large/],
    ["limit_atomic", () => many.delete(["one more"]), /Too many mutations \(max 1000\)/],
    [
      "limit_atomic",
      () => wide.set(["k"], text(1000)),
      /Total mutation size too large \(max 4194304 bytes\)/,
    ],
    ["limit_list", () => kv.list({ prefix: [] }, { batchSize: 1001 }), /Too many entries/],
    ["key_invalid", () => kv.get([]), /key cannot be empty/],
    ["key_invalid", () => kv.set([null as never], 1), /not null/],
    ["key_invalid", () => kv.get("a" as never), /array/],
    ["key_invalid", () => kv.list({ prefix: ["a"], start: ["b"] }), /Start key is not in the keyspace/],
    [
      "key_invalid",
      () => kv.list({ prefix: ["a"], start: ["a", 1], end: ["a", 2] } as never),
      /Selector/,
    ],
    ["key_invalid", () => kv.list({ start: ["b"], end: ["a"] }), /Start key is greater than end key/],
    ["key_invalid", () => kv.list({ prefix: ["a"] }, { cursor: "AmIA" }), /cursor/],
    ["key_invalid", () => kv.list({ prefix: ["a"] }, { cursor: "%" }), /cursor/],
    ["key_invalid", () => kv.get(["a"], { consistency: "serial" as never }), /consistency/],
    ["key_invalid", () => kv.atomic().check({ key: ["a"], versionstamp: "1" }), /versionstamp/],
    ["value_invalid", () => kv.set(["a"], () => 1), /can't be stored/],
    ["value_invalid", () => kv.set(["a"], 1, { expireIn: NaN }), /expireIn/],
    ["value_invalid", () => kv.atomic().sum(["a"], "1" as never), /Value must be a bigint/],
    ["not_available", () => kv.listenQueue(), /not available/],
    ["not_available", () => kv.commitVersionstamp(), /not available/],
    ["message_invalid", () => kv.enqueue(1, { delay: -1 }), /Delay must be >= 0: received -1/],
    ["message_invalid", () => kv.atomic().enqueue(1, { backoffSchedule: [-1] }), /Invalid backoffSchedule/],
  ];
  for (const [code, act, message] of table) {
    await assert.rejects(async () => await act(), (error: Error) => {
      assert.match(error.message, message);
      assert.equal(codeOf(error), code, error.message);
      return true;
    });
  }
  assert.deepEqual(store.calls, []);
  assert.ok((await kv.set([text(2046)], text(1024 * 1024))).ok);
});

Deno.test("kv.list goes on where a reply ended early for its bytes", async () => {
  const { store, kv } = open();
  store.replyBytesMax = 2_500;
  for (let i = 0; i < 25; i++) await kv.set(["big", i], new Uint8Array(1_000));
  const all = Array.from({ length: 25 }, (_, i) => ["big", i]);
  assert.deepEqual(await keysOf(kv.list({ prefix: ["big"] })), all);
  assert.deepEqual(await keysOf(kv.list({ prefix: ["big"] }, { reverse: true })), all.toReversed());
  assert.deepEqual(await keysOf(kv.list({ prefix: ["big"] }, { limit: 7 })), all.slice(0, 7));
});

Deno.test("messages go with the mutations of an atomic, in one call, and each counts as a mutation (kv_atomic.ts Q4)", async () => {
  const committed: unknown[][] = [];
  const store = {
    commit: (checks: unknown[], mutations: { kind: string }[], sends: { queue: string; id?: string }[]) => {
      committed.push([
        checks.length,
        mutations.map(({ kind }) => kind),
        sends.map(({ queue, id }) => [queue, id]),
      ]);
      return Promise.resolve({ ok: true, versionstamp: "0".repeat(20) });
    },
  } as never;
  const queueOf = (name: string) => new RequestQueue(name, { schema: z.unknown() }, {} as never);
  const atomic = () => new KvAtomicOperation(store, queueOf);
  assert.ok((await atomic().set(["a"], 1).send("jobs", "x", { id: "one" }).send("mails", 2).commit()).ok);
  assert.deepEqual(committed, [[0, ["set"], [["jobs", "one"], ["mails", undefined]]]]);
  const many = atomic().set(["a"], 1);
  for (let i = 0; i < 1_000; i++) many.send("jobs", i);
  await assert.rejects(async () => await many.commit(), { code: "limit_atomic" });
  assert.equal(committed.length, 1);
});
