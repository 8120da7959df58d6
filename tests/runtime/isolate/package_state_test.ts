/** What packages hold is each session's own (package_state.ts): in one isolate's state, and with real packages in isolates. */
import assert from "node:assert/strict";
import { Program } from "../../../functions/sessions/turn/program.ts";
import { bundleApp } from "../../../runtime/bundle/mod.ts";
import { fromFileUrl } from "../../../runtime/bundle/file_url.ts";
import { installGuards, isGuarded } from "../../../runtime/isolate/inside/guarded.ts";
import { PackageState, type PackageThunks } from "../../../runtime/isolate/inside/package_state.ts";
import { StatefulPool } from "../../../runtime/isolate/stateful_pool.ts";
import { appOf } from "./apps.ts";
import { TestHome } from "./stateful_home.ts";

const host = { make: () => ({}), envOf: () => ({}), aside: <T>(_: Program, work: () => T): T => work() };
const program = (id: string) => new Program(host, "cart", id);
/** A handler waits. */
const waiting = (id: string): Program => {
  const made = program(id);
  const input = { kind: "timer", name: "" } as const;
  made.handler = { name: "", subject: { kind: "timer", id: "" }, input, request: null, chain: [] };
  return made;
};

const KEYS = [{}, {}] as const;
const upsert = (map: object) => map as { getOrInsert(key: unknown, value: unknown): unknown };

/** What a package's class makes. */
class Made {
  n = 0;
  held: unknown[] = [];
}
const MADE = new Set<object | null>([Made.prototype]);
installGuards();

/** A state with what packages hold, and turns over it. */
function stateOf(
  held: Readonly<Record<string, unknown>>,
  touched: readonly string[] = [],
): { readonly state: PackageState; readonly notes: string[]; turn(of: Program, run: () => void): void } {
  const state = new PackageState();
  const from: PackageThunks = Object.entries(held).map(([name, value]) => ["lib", name, () => value]);
  const notes = state.watch(from, {
    touched: new Set(touched),
    counted: [],
    skips: isGuarded,
    isMade: (object) => MADE.has(Object.getPrototypeOf(object)),
  });
  return {
    state,
    notes,
    turn: (of, run) => {
      state.enter(of);
      run();
      state.leave(of);
    },
  };
}

Deno.test("what packages hold is as it was loaded when a turn begins, whatever a turn has made of it (PK1, PK3)", () => {
  const make = () => ({
    small: {} as Record<string, unknown>,
    deep: { of: { it: { n: 1 } } } as { of: { it: { n: unknown } } },
    lazy: { table: null as unknown, isMade: false },
    list: [1, 2],
    long: Array.from({ length: 100 }, (_, i) => i),
    map: new Map([["a", 1]]),
    set: new Set(["a"]),
    bytes: Uint8Array.of(1, 2, 3),
    words: new Uint8Array(13),
    odd: new Uint8Array(new ArrayBuffer(16), 1, 9),
    weak: new WeakMap([[KEYS[0], 1]]),
    weakSet: new WeakSet([KEYS[0]]),
    table: new Map([["a", { n: 1 }]]),
    rows: [{ n: 1 }],
    single: new Made(),
    library: { log: (): number => 1 },
    Class: class {
      static made = 0;
      static names: string[] = [];
    },
  });
  const held = make();
  const { turn, notes } = stateOf(held, ["n", "made", "table", "isMade", "log", "held"]);
  assert.deepEqual(notes, []);
  const rows: readonly (readonly [what: string, change: () => void])[] = [
    ["a new property", () => held.small["x"] = { y: 1 }],
    ["a property deep in it", () => held.deep.of.it.n = {}],
    ["one made on first use", () => Object.assign(held.lazy, { table: {}, isMade: true })],
    ["one that is gone", () => Reflect.deleteProperty(held.lazy, "table")],
    ["a list that grows", () => held.list.push(3)],
    ["a place of a short list", () => held.list[0] = 9],
    ["a long list that shrinks", () => held.long.pop()],
    ["an entry", () => held.map.set("b", 2)],
    ["an entry that is gone", () => held.set.delete("a")],
    ["a place in the middle of a long list", () => held.long[50] = -1],
    ["an entry's value", () => held.map.set("a", 2)],
    ["one entry instead of another", () => (held.map.delete("a"), held.map.set("b", 1))],
    ["one member instead of another", () => (held.set.delete("a"), held.set.add("b"))],
    ["an entry where there was none", () => upsert(held.map).getOrInsert("b", 2)],
    ["an entry of a WeakMap", () => held.weak.set(KEYS[0], 2)],
    ["a new entry of a WeakMap", () => held.weak.set(KEYS[1], 2)],
    ["an entry of a WeakMap that is gone", () => held.weak.delete(KEYS[0])],
    ["a member of a WeakSet", () => held.weakSet.add(KEYS[1])],
    ["an object in a Map", () => Object.assign(held.table.get("a") ?? {}, { n: 2 })],
    ["an object in a list", () => Object.assign(held.rows[0] ?? {}, { n: 2 })],
    ["what a class made", () => held.single.n = 2],
    ["a list of what a class made", () => held.single.held.push(1)],
    ["a method", () => held.library.log = () => 2],
    ["bytes", () => held.bytes[2] = 9],
    ["the first of many bytes", () => held.words[0] = 9],
    ["bytes in the middle", () => held.words[5] = 9],
    ["the last byte, beside the words", () => held.words[12] = 9],
    ["bytes that do not begin at a word", () => held.odd[8] = 9],
    ["a static", () => held.Class.made = 7],
    ["a static list", () => held.Class.names.push("x")],
  ];
  const seen = () => {
    const { Class, weak, weakSet, single, library, ...others } = held;
    const more = {
      ...{ made: Class.made, names: Class.names, n: single.n, held: single.held, said: library.log() },
      weak: KEYS.map((key) => [weak.get(key), weakSet.has(key)]),
    };
    return structuredClone({ ...others, ...more });
  };
  const before = seen();
  for (const [what, change] of rows) {
    const a = waiting("a");
    turn(a, change);
    assert.deepEqual(seen(), before, what);
    turn(program("b"), () => assert.deepEqual(seen(), before, `${what}: another session`));
    turn(a, () => assert.notDeepEqual(seen(), before, `${what}: the handler goes on`));
    assert.deepEqual(seen(), before, what);
  }
});

Deno.test("what packages hold goes on for as long as a session is not at rest (PK1)", () => {
  const queue: { jobs: (() => void)[] } = { jobs: [] };
  const { turn } = stateOf({ queue }, ["jobs"]);
  const a = program("a");
  a.locals.arm(1, { ms: 1, run: () => {} }, null);
  turn(a, () => queue.jobs.push(() => {}));
  turn(program("b"), () => assert.equal(queue.jobs.length, 0));
  a.locals.delete(1);
  turn(a, () => assert.equal(queue.jobs.length, 1, "the closure timer finds what its handler has left"));
  turn(a, () => assert.equal(queue.jobs.length, 0, "it was at rest"));
});

Deno.test("who goes through a collection while a handler waits sees once what was there before", () => {
  const map = new Map([["a", 1]]), set = new Set(["a"]);
  const { turn } = stateOf({ map, set });
  const a = waiting("a");
  const [keys, values] = [map.keys(), set.values()];
  turn(a, () => {
    for (const each of ["b", "c"]) [map.set(each, 1), set.add(each)];
    assert.deepEqual([keys.next().value, values.next().value], ["a", "a"]);
  });
  assert.deepEqual([[...map.keys()], [...set]], [["a"], ["a"]]);
  turn(a, () => {
    assert.deepEqual([[...keys], [...values]], [["b", "c"], ["b", "c"]]);
    assert.deepEqual([...map.keys()], ["a", "b", "c"]);
  });
});

Deno.test("a package is put back as a whole, where only a part of it is compared in each turn (PK5)", () => {
  const tables = Array.from({ length: 5_000 }, () => ({ rule: "text" as unknown }));
  const cache: { compiled: unknown } = { compiled: null };
  const { turn, notes } = stateOf({ tables, cache }, ["rule", "compiled"]);
  assert.match(notes.join(), /^tables\[\d+\] of lib and \d+ more of what it holds$/);
  /** As a package does that compiles its rules in their place, once. */
  const use = () => {
    cache.compiled ??= tables.map((table) => {
      if (typeof table.rule !== "string") throw new TypeError("it is no text");
      return table.rule = [table.rule];
    });
  };
  for (const id of ["a", "b", "a"]) turn(program(id), use);
  assert.deepEqual([tables.at(-1)?.rule, cache.compiled], ["text", null]);
});

Deno.test("what counts goes on with its session, a place in a pool begins anew with its pool (PK2)", () => {
  const ids = { next: 0, last: "" };
  const pool: { bytes: Uint8Array | null; at: number } = { bytes: null, at: 0 };
  const { turn, state } = stateOf({ ids }, ["next", "last"]);
  const other = new PackageState();
  other.watch([["pool", "pool", () => pool]], {
    ...{ touched: new Set(["bytes", "at"]), counted: [], skips: () => false, isMade: () => false },
  });
  const [a, b] = [program("a"), program("b")];
  const next = (of: Program) => {
    let got = 0;
    turn(of, () => {
      got = ++ids.next;
      ids.last = `${of.id}${got}`;
    });
    return got;
  };
  assert.deepEqual([next(a), next(a), next(b), next(a), next(b)], [1, 2, 1, 3, 2]);
  assert.deepEqual([ids.next, ids.last, [...a.counts.values()]], [0, "", [3, "a3"]]);
  const again = program("a");
  for (const [name, value] of a.counts) again.counts.set(name, value);
  assert.equal(next(again), 4, "from a checkpoint");
  state.enter(program("c"));
  assert.equal(ids.next, 0);
  for (let i = 0; i < 2; i++) {
    other.enter(a);
    assert.deepEqual([pool.bytes, pool.at], [null, 0]);
    pool.bytes = new Uint8Array(8);
    pool.at = 4;
    other.leave(a);
  }
  assert.equal(a.counts.size, 2);
});

Deno.test("a variable that is only counted up is kept, whatever else its package changes (PK2)", () => {
  const state = new PackageState();
  let [counted, placed, cache] = [0, 0, null as unknown];
  const slot = (name: string, isCounted: boolean, get: () => unknown, set: (value: unknown) => void) =>
    state.variable("lib", name, isCounted, { get, set });
  const slots = [
    slot("counted", true, () => counted, (value) => counted = Number(value)),
    slot("n", false, () => placed, (value) => placed = Number(value)),
    slot("n", false, () => cache, (value) => cache = value),
  ];
  state.watch([], { touched: new Set(), counted: [], skips: () => false, isMade: () => false });
  const late = slot("late", true, () => counted, () => {});
  const a = program("a");
  for (let i = 0; i < 3; i++) {
    state.enter(a);
    assert.deepEqual([counted, placed, cache], [i, 0, null]);
    for (const each of slots) state.change(each);
    counted++;
    placed++;
    cache = {};
    state.leave(a);
    assert.deepEqual([counted, placed, cache], [0, 0, null]);
  }
  assert.deepEqual([...a.counts], [["lib: counted", 3]]);
  assert.equal(late.name, undefined, "made by a session: nobody finds it again");
  assert.deepEqual(slots.map(({ name }) => name), ["lib: counted", "lib: n", "lib: n (2)"]);
});

Deno.test("a count whose place other code has not, or has something else in, is left alone and not lost", () => {
  const ids: Record<string, unknown> = { next: {} };
  const { turn } = stateOf({ ids }, ["next"]);
  const a = program("a");
  a.counts.set("lib: ids\u0000next", 5).set("lib: gone", 6).set("lib: gone\u0000next", 7);
  turn(a, () => assert.deepEqual(ids["next"], {}));
  assert.deepEqual([...a.counts.values()], [5, 6, 7]);
  for (const [next, then] of [["a text", "a text"], [true, true], [1, 5], [undefined, 5]]) {
    const ids: Record<string, unknown> = { next };
    stateOf({ ids }, ["next"]).turn(a, () => assert.equal(ids["next"], then));
  }
});

Deno.test("what is not compared, because there is too much of it, is said (PK4)", () => {
  const many = Object.fromEntries(Array.from({ length: 3_000 }, (_, i) => [`n${i}`, { n: 0 }]));
  const [note = "", ...others] = stateOf({ many }, ["n"]).notes;
  assert.match(note, /^many\.n\d+ of lib and \d+ more of what it holds$/);
  assert.deepEqual(others, []);
  const large = stateOf({ pool: new Uint8Array(1024 * 1024), ids: { next: 0 } }, ["next"]);
  assert.deepEqual(large.notes, ["pool, 1048576 bytes, of lib"]);
});

const bundled = await bundleApp(fromFileUrl(new URL("packages_app.ts", import.meta.url)));
if (bundled.kind === "failed") throw new Error(bundled.message);
const app = appOf(new TextDecoder().decode(bundled.code), { limits: { cpuMs: 2_000 } });

/** What some give to one session's first ten draws. */
const COUNTED: Readonly<Record<string, (n: number) => unknown>> = {
  uniqueId: (n) => `x${n + 1}`,
  matter: (n) => n,
  cannon: (n) => n,
};

Deno.test("packages that count or fill a cache in their modules answer each session as if it were alone, at every site", async () => {
  const notes: string[] = [];
  const pools = ["edge-1", "edge-2"].map((site) =>
    new StatefulPool({ site, log: (_, __, text) => void notes.push(`${text}`), note: () => {} })
  );
  try {
    const [busy, other] = pools;
    if (busy === undefined || other === undefined) throw new Error("two sites");
    for (const name of ["uuid", "uniqueId", "ulid", "objectId", "cuid", "matter", "cannon", "luxon"]) {
      const [a, b, away] = [
        new TestHome(busy, app, `${name}-a`),
        new TestHome(busy, app, `${name}-b`),
        new TestHome(other, app, `${name}-c`),
      ];
      for (const home of [a, b, away]) await home.open();
      await away.value("draw", name);
      const drawn: unknown[] = [];
      const draw = async (home: TestHome) => void drawn.push(...await home.value("draw", name) as unknown[]);
      for (let i = 0; i < 4; i++) {
        await draw(a);
        await b.value("draw", name);
        if (i === 1) a.checkpointNow();
      }
      await a.until(() => a.checkpoint !== null);
      for (const pool of [other, busy]) {
        const moved: TestHome = new TestHome(pool, app, `${name}-a`);
        moved.commits.push(...a.commits);
        moved.checkpoint = a.checkpoint;
        moved.epoch = a.epoch + 1;
        await moved.open();
        assert.equal(moved.parked, null, name);
        await draw(moved);
        if (pool === other) drawn.length -= 2;
        moved.leave();
      }
      const counted = COUNTED[name];
      if (counted !== undefined) assert.deepEqual(drawn, drawn.map((_, n) => counted(n)), name);
      if (name !== "luxon") assert.equal(new Set(drawn).size, 10, `${name}: ${JSON.stringify(drawn)}`);
    }
    assert.equal(notes.length, pools.length);
    for (const note of notes) assert.match(note, /share buffer, \d+ bytes, of bson, and nobody watches/);
  } finally {
    for (const pool of pools) await pool.close();
  }
});
