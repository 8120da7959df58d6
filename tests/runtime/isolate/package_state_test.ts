/** What packages hold is each session's own (package_state.ts): in one isolate's state, and with real packages in isolates. */
import assert from "node:assert/strict";
import { Program } from "../../../functions/sessions/turn/program.ts";
import { bundleApp } from "../../../runtime/bundle/mod.ts";
import { fromFileUrl } from "../../../runtime/bundle/file_url.ts";
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

/** A state with what packages hold, and turns over it. */
function stateOf(
  held: Readonly<Record<string, unknown>>,
  touched: readonly string[] = [],
): { readonly state: PackageState; readonly notes: string[]; turn(of: Program, run: () => void): void } {
  const state = new PackageState();
  const from: PackageThunks = Object.entries(held).map(([name, value]) => ["lib", name, () => value]);
  const notes = state.watch(from, touched, (object) => Object.isFrozen(object));
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
    Class: class {
      static made = 0;
      static names: string[] = [];
    },
  });
  const held = make();
  const { turn, notes } = stateOf(held, ["n", "made", "table", "isMade"]);
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
    ["bytes", () => held.bytes[2] = 9],
    ["the first of many bytes", () => held.words[0] = 9],
    ["bytes in the middle", () => held.words[5] = 9],
    ["the last byte, beside the words", () => held.words[12] = 9],
    ["bytes that do not begin at a word", () => held.odd[8] = 9],
    ["a static", () => held.Class.made = 7],
    ["a static list", () => held.Class.names.push("x")],
  ];
  const seen = () => {
    const { Class, ...others } = held;
    return structuredClone({ ...others, made: Class.made, names: Class.names });
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

Deno.test("what counts goes on with its session, a place in a pool begins anew with its pool (PK2)", () => {
  const ids = { next: 0, last: "" };
  const pool: { bytes: Uint8Array | null; at: number } = { bytes: null, at: 0 };
  const { turn, state } = stateOf({ ids }, ["next", "last"]);
  const other = new PackageState();
  other.watch([["pool", "pool", () => pool]], ["bytes", "at"], () => false);
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
  state.watch([], [], () => false);
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
