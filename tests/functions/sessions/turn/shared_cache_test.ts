import assert from "node:assert/strict";
import { type CacheRead, readShared, SharedCache } from "../../../../functions/sessions/turn/shared_cache.ts";

Deno.test("a shared cache holds so many bytes, and lets go what was read longest ago", () => {
  const cache = new SharedCache(() => 0, 1_000);
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
  const cache = new SharedCache(() => 0, 1_000);
  for (let i = 0; i < 100; i++) cache.set(`name ${i}`, new Uint8Array(1));
  const kept = Array.from({ length: 100 }, (_, i) => cache.get(`name ${i}`)).filter((each) =>
    each !== undefined
  );
  assert.equal(kept.length, 6);
});

/** A program whose log is `log`: reads go on from there at a replay. */
function reader(log: Uint8Array[], isReplaying = false): Parameters<typeof readShared>[0] {
  return {
    isReplaying,
    call: (call) => {
      const answered = isReplaying
        ? Promise.resolve(log.shift() ?? assert.fail("not in the log"))
        : call.start();
      answered.then((bytes) => {
        if (!isReplaying) log.push(bytes.slice());
        call.done(bytes);
      });
      return 0;
    },
  };
}

Deno.test("a value is made anew when it is older than a read wants it, and a replay sees what was read (SC1, SC4)", async () => {
  let nowMs = 0, made = 0;
  const cache = new SharedCache(() => nowMs), log: Uint8Array[] = [];
  const read = (program: ReturnType<typeof reader>, ttlMs?: number) =>
    readShared(program, cache, { name: "menu", load: () => `menu ${++made}`, ttlMs });
  const live = reader(log), seen: unknown[] = [];
  const steps: [number, number | undefined][] = [[0, 100], [99, 100], [100, undefined], [100, 200], [
    100,
    100,
  ], [
    199,
    100,
  ]];
  for (const [atMs, ttlMs] of steps) {
    nowMs = atMs;
    seen.push(await read(live, ttlMs));
  }
  assert.deepEqual(seen, ["menu 1", "menu 1", "menu 1", "menu 1", "menu 2", "menu 2"]);
  made = 0;
  nowMs = 10_000;
  const again = reader(log, true), replayed: unknown[] = [];
  for (const [, ttlMs] of steps) replayed.push(await read(again, ttlMs));
  assert.deepEqual(replayed, seen);
  assert.equal(await read(live), "menu 2", "a replay leaves the cache as it is");
});

Deno.test("a time to live that is none is refused", async () => {
  const cache = new SharedCache(() => 0);
  for (const ttlMs of [0, -1, NaN, "1", null] as unknown as CacheRead["ttlMs"][]) {
    await assert.rejects(readShared(reader([]), cache, { name: "menu", load: () => 1, ttlMs }), {
      code: "value_invalid",
      message: /ttlMs is .*above 0/,
    });
  }
});

Deno.test("each read gives a value of its own, frozen through and through (SC3)", async () => {
  const cache = new SharedCache(() => 0), log: Uint8Array[] = [];
  const read = async () =>
    await readShared(reader(log), cache, { name: "menu", load: () => ({ dishes: [{ name: "soup" }] }) }) as {
      dishes: { name: string }[];
    };
  const [made, found] = [await read(), await read()];
  for (const each of [made, found]) {
    assert.throws(() => each.dishes.push({ name: "pie" }), TypeError);
    assert.throws(() => Object.assign(each.dishes[0] ?? {}, { name: "pie" }), TypeError);
  }
  assert.notEqual(made.dishes, found.dishes);
});
