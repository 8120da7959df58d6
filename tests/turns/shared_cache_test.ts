import assert from "node:assert/strict";
import { SharedCache } from "../../functions/turns/shared_cache.ts";

Deno.test("a shared cache holds so many bytes, and lets go what was read longest ago", () => {
  const cache = new SharedCache(1_000);
  const bytes = (length: number) => new Uint8Array(100 * length - 130);
  cache.set("a", bytes(4));
  cache.set("b", bytes(4));
  assert.equal(cache.get("a")?.length, 270);
  cache.set("c", bytes(4));
  assert.deepEqual(["a", "b", "c"].map((name) => cache.get(name)?.length), [270, undefined, 270]);
  cache.set("a", bytes(6));
  assert.deepEqual(["a", "c"].map((name) => cache.get(name)?.length), [470, 270]);
  cache.set("d", bytes(11));
  assert.deepEqual(["a", "c", "d"].map((name) => cache.get(name)), [undefined, undefined, undefined]);
});

Deno.test("a shared cache counts what small values cost, too", () => {
  const cache = new SharedCache(1_000);
  for (let i = 0; i < 100; i++) cache.set(`name ${i}`, new Uint8Array(1));
  const kept = Array.from({ length: 100 }, (_, i) => cache.get(`name ${i}`)).filter((each) =>
    each !== undefined
  );
  assert.equal(kept.length, 6);
});
