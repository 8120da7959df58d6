/** `env.kv` against the Deno KV interface, over the in-memory store. */
import assert from "node:assert/strict";
import { codeOf } from "../../functions/errors.ts";
import { RequestKv } from "../../functions/kv.ts";
import type { KvKey } from "../../functions/kv_interface.ts";
import { KvU64 } from "../../functions/kv_u64.ts";
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

Deno.test("a RequestKv is a Deno.Kv to the type checker", () => {
  const kv: Omit<Deno.Kv, "commitVersionstamp"> = open().kv;
  assert.ok(kv);
});

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
