import { strict as assert } from "node:assert";
import type { Mutation } from "../../functions/vocabulary/store_client.ts";
import type { ListOptions, StoreMutation } from "../../store/api/api.ts";
import { type Key, KeyError, packKey } from "../../store/model/key.ts";
import { contribute } from "../../store/model/merge.ts";
import { prefixRange, type Range } from "../../store/model/range.ts";
import type { Row } from "../../store/model/row.ts";
import { VALUE_TAG } from "../../store/model/value.ts";
import { Problem } from "../../functions/vocabulary/problem.ts";
import { appSpace, RequestStore, type StoreAccess } from "./session_store.ts";

const LIMITS = { keyBytes: 64, valueBytes: 100, atomicMutations: 3, atomicBytes: 500 };

function setUp(rows: readonly Row[] = []) {
  const seen = {
    ranges: [] as Range[],
    keys: [] as Key[],
    writes: [] as StoreMutation[],
    lists: [] as ListOptions[],
  };
  const watchers = new Set<() => void>();
  const session: StoreAccess = {
    get: (keys) => {
      seen.keys.push(...keys);
      return Promise.resolve(keys.map((key) => rows.find((row) => row.key === key)));
    },
    list: (range, options) => {
      seen.ranges.push(range);
      if (options !== undefined) seen.lists.push(options);
      return Promise.resolve(rows.filter((row) => row.key >= range.start && row.key < range.end));
    },
    write: (mutations) => {
      seen.writes.push(...mutations);
      return Promise.resolve({ ok: true, version: { clock: 0x1234, replica: 5 } });
    },
    watch: (_ranges, changed) => {
      watchers.add(changed);
      return () => watchers.delete(changed);
    },
  };
  const use = { storeMs: 0, step: () => {} };
  const store = new RequestStore(session, {
    space: appSpace("book"),
    limits: LIMITS,
    nowMs: () => 1_000,
    use,
  });
  return { store, seen, watchers, use };
}

const row = (key: Key, value: Uint8Array): Row => ({
  key,
  value,
  clock: 9,
  replica: 1,
  position: 1,
  known: 0,
  expiresAtMs: 0,
});
const text = (value: string) => new Uint8Array([VALUE_TAG.text, ...new TextEncoder().encode(value)]);
const number = (value: number) => {
  const out = new Uint8Array(9);
  out[0] = VALUE_TAG.number;
  new DataView(out.buffer).setFloat64(1, value, true);
  return out;
};

Deno.test("an app's keys are its own, in two spaces (GS1)", async () => {
  const { store, seen } = setUp([row(packKey(["a", "book", "kv", "x"]), text("v"))]);
  const [found, absent] = await store.get(
    [packKey(["kv", "x"]), packKey(["root", "t", "users", "ann"])],
    "session",
  );
  assert.equal(found?.key, packKey(["kv", "x"]));
  assert.equal(found?.versionstamp, "00000000000009000001");
  assert.equal(absent, null);
  assert.deepEqual(seen.keys, [
    packKey(["a", "book", "kv", "x"]),
    packKey(["r", "book", "t", "users", "ann"]),
  ]);
});

Deno.test("a range from an isolate cannot leave the app (GS1)", async () => {
  const { store, seen } = setUp();
  const ends = ["", "\x00", "\xff\xff", packKey(["kv"]), packKey(["a"]), packKey(["s", "site"])] as Key[];
  for (const start of ends) {
    for (const end of ends) {
      await store.list({ start, end, limit: 10, reverse: false, level: "session" });
    }
  }
  const inside = packKey(["a", "book"]);
  for (const { start, end } of seen.ranges) {
    assert.ok(start.startsWith(inside) && end.startsWith(inside), "both ends lie in the app");
  }
  const root = prefixRange(packKey(["root", "t"]));
  await assert.rejects(
    store.list({ start: root.start, end: "\xff" as Key, limit: 1, reverse: false, level: "session" }),
  );
});

Deno.test("what is over a limit is refused whole (GS2)", async () => {
  const { store, seen } = setUp();
  const set = (key: string, bytes: number): Mutation => ({
    kind: "set",
    key: packKey(["kv", key]),
    value: new Uint8Array(bytes),
  });
  const rows: [Mutation[], string][] = [
    [[set("k".repeat(400), 1)], "limit_key"],
    [[set("a", 102)], "limit_value"],
    [[set("a", 1), set("b", 1), set("c", 1), set("d", 1)], "limit_atomic"],
    [[set("a".repeat(150), 101), set("b".repeat(150), 101), set("c", 101)], "limit_atomic"],
  ];
  for (const [mutations, code] of rows) {
    await assert.rejects(
      store.commit([], mutations),
      (error) => error instanceof Problem && error.code === code,
      code,
    );
  }
  for (const key of ["\x02open", "\x02a\x00\xff", "\x02\x80\x00", "\x99", "\x02a\x00\x02b"]) {
    await assert.rejects(store.commit([], [{ kind: "delete", key: key as Key }]), /key/, JSON.stringify(key));
  }
  assert.deepEqual(seen.writes, []);
  assert.deepEqual(await store.commit([], [set("a", 101)]), {
    ok: true,
    versionstamp: "00000000001234000005",
  });
});

Deno.test("what is written is a plain value, and what is added a number, whatever an isolate says (GS6)", async () => {
  const { store, seen } = setUp();
  const key = packKey(["kv", "x"]),
    merged = contribute(undefined, "sum", number(3), { clock: 1, replica: 1 });
  const bytes = (...all: number[]) => Uint8Array.from(all);
  const values = [merged, bytes(VALUE_TAG.merge), bytes(VALUE_TAG.merge, 9)];
  const none = [bytes(), bytes(0xff, 1), bytes(VALUE_TAG.u64, 1), text("1"), bytes(VALUE_TAG.number)];
  const forged: Mutation[] = [
    ...values.map((value): Mutation => ({ kind: "set", key, value })),
    ...[...values, ...none].flatMap((value): Mutation[] =>
      (["sum", "min", "max"] as const).map((kind) => ({ kind, key, value }))
    ),
  ];
  for (const mutation of forged) {
    const isRefused = (error: unknown) => error instanceof Problem && error.code === "row_invalid";
    await assert.rejects(store.commit([], [mutation]), isRefused);
    assert.throws(() => store.absolute([mutation]), isRefused);
  }
  assert.deepEqual(seen.writes, []);
});

Deno.test("an expiry is counted from the site's clock, and a versionstamp that is none fails its check", async () => {
  const { store, seen } = setUp();
  const key = packKey(["kv", "x"]);
  await store.commit([], [{ kind: "set", key, value: text("v"), expireInMs: 500 }]);
  assert.deepEqual(seen.writes, [{
    kind: "set",
    key: packKey(["a", "book", "kv", "x"]),
    value: text("v"),
    expiresAtMs: 1_500,
  }]);
  assert.deepEqual(await store.commit([{ key, versionstamp: "nonsense" }], []), { ok: false });
});

Deno.test("merge values read as plain ones", async () => {
  const key = packKey(["a", "book", "kv", "n"]);
  const merged = contribute(undefined, "sum", number(3), { clock: 1, replica: 1 });
  const { store } = setUp([row(key, merged)]);
  const [found] = await store.get([packKey(["kv", "n"])], "session");
  assert.deepEqual(found?.value, number(3));
});

Deno.test("strong reads are not available yet", async () => {
  const { store } = setUp();
  await assert.rejects(
    store.get([packKey(["kv"])], "strong"),
    (error) => error instanceof Problem && error.code === "not_available",
  );
});

Deno.test("a watch yields first at once, then coalesced, and ends with its signal", async () => {
  const { store, watchers } = setUp();
  const controller = new AbortController();
  const watch = store.watch([prefixRange(packKey(["kv"]))], controller.signal)[Symbol.asyncIterator]();
  assert.equal((await watch.next()).done, false);
  for (const changed of watchers) {
    changed();
    changed();
  }
  assert.equal((await watch.next()).done, false);
  const last = watch.next();
  controller.abort();
  assert.equal((await last).done, true);
  assert.equal(watchers.size, 0);
});

Deno.test("an expiry beyond all time, or before now, is a time that a message can carry (GS3)", async () => {
  const { store, seen } = setUp();
  for (const expireInMs of [Infinity, Number.MAX_VALUE, Number.MAX_SAFE_INTEGER, -5, 0.5]) {
    await store.commit([], [{ kind: "set", key: packKey(["k"]), value: text("x"), expireInMs }]);
  }
  const times = seen.writes.map((write) => write.kind === "set" ? write.expiresAtMs : undefined);
  assert.deepEqual(times, [8.64e15, 8.64e15, 8.64e15, 1_001, 1_001]);
});

Deno.test("an answer ends with the row that fills it, and says so (GS4)", async () => {
  const keys = Array.from({ length: 40 }, (_, i) => packKey(["kv", i]));
  const rows = keys.map((key) => row(appSpace("book").app + key as Key, new Uint8Array(300_000)));
  const { store, seen } = setUp(rows);
  assert.equal((await store.get(keys, "session")).length, 4);
  assert.equal((await store.get(keys.slice(0, 1), "session")).length, 1);
  const range = prefixRange(packKey(["kv"]));
  const page = await store.list({ ...range, limit: 1000, reverse: false, level: "session" });
  assert.equal(page.more, true, "the rows given have more than an answer may");
  assert.deepEqual(seen.lists, [{ limit: 256, reverse: false, bytesMax: 1024 * 1024 }]);
});

Deno.test("keys that no row can have are refused before they are read or watched (GS5)", async () => {
  const { store, seen } = setUp();
  const long = packKey(["kv", "k".repeat(400)]);
  const isLong = (error: unknown) => error instanceof Problem && error.code === "limit_key";
  const range = prefixRange(long);
  const signal = new AbortController().signal;
  await assert.rejects(store.get([long], "session"), isLong);
  await assert.rejects(store.list({ ...range, limit: 1, reverse: false, level: "session" }), isLong);
  await assert.rejects(store.watch([range], signal)[Symbol.asyncIterator]().next(), isLong);
  await assert.rejects(store.commit([{ key: long, versionstamp: null }], []), isLong);
  for (const key of ["\x02open", "\x02a\x00\xff", "\x99"]) {
    await assert.rejects(store.get([key as Key], "session"), KeyError, JSON.stringify(key));
  }
  assert.deepEqual(seen.keys, []);
  assert.deepEqual(seen.ranges, []);
});

Deno.test("a list without a limit is refused (GS3)", async () => {
  const { store, seen } = setUp();
  const range = prefixRange(packKey(["k"]));
  for (const limit of [0, Infinity, -1, 1.5, NaN]) {
    await assert.rejects(() => store.list({ ...range, limit, reverse: false, level: "session" }), KeyError);
  }
  assert.deepEqual(seen.ranges, []);
});
