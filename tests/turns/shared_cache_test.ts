import assert from "node:assert/strict";
import { SharedCache } from "../../functions/turns/shared_cache.ts";

Deno.test("a shared cache holds so many bytes, and lets go what was read longest ago", () => {
  const cache = new SharedCache(10);
  const bytes = (length: number) => new Uint8Array(length);
  cache.set("a", bytes(4));
  cache.set("b", bytes(4));
  assert.equal(cache.get("a")?.length, 4);
  cache.set("c", bytes(4));
  assert.deepEqual(["a", "b", "c"].map((name) => cache.get(name)?.length), [4, undefined, 4]);
  cache.set("a", bytes(6));
  assert.deepEqual(["a", "c"].map((name) => cache.get(name)?.length), [6, 4]);
  cache.set("d", bytes(11));
  assert.deepEqual(["a", "c", "d"].map((name) => cache.get(name)), [undefined, undefined, undefined]);
});
