/** What no checkpoint can hold is refused with its place, in every structure and at every depth. */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { types } from "node:util";
import { codeOf } from "../../../functions/vocabulary/errors.ts";
import { grid, list, map, nested, SessionState, value } from "../../../functions/tracked/mod.ts";
import { recognizeProxies } from "../../../functions/tracked/owned.ts";
import { type Part, READ, WRITE } from "../../../functions/tracked/part.ts";

class Money {
  cents = 1;
}

/** Values that have no bytes, and how they are called. */
const BAD: readonly [() => unknown, RegExp][] = [
  [() => () => 1, /a function/],
  [() => class Inner {}, /a function \(Inner\)/],
  [() => Symbol("s"), /a symbol/],
  [() => new Money(), /an instance of Money/],
  [() => new WeakMap(), /an instance of WeakMap/],
  [() => new WeakRef({}), /an instance of WeakRef/],
  [() => Promise.resolve(1), /an instance of Promise/],
  [() => (function* () {})(), /an instance of|a Generator|Object/],
  [() => Object.create({ inherited: 1 }), /an instance of/],
  [() => Object.assign(Object.create(Money.prototype), {}), /an instance of Money/],
];

/** Where they may lie inside of a value, and what that is called. */
const INSIDE: readonly [(bad: unknown) => unknown, string][] = [
  [(bad) => bad, ""],
  [(bad) => ({ a: [{ b: bad }] }), ".a[0].b"],
  [(bad) => [1, [bad]], "[1][0]"],
  [(bad) => new Map([["k", { v: bad }]]), '.get("k").v'],
  [(bad) => ({
    get read() {
      return bad;
    },
  }), ".read"],
  [(bad) => {
    const cycle: Record<string, unknown> = { ok: 1 };
    cycle["self"] = cycle;
    cycle["last"] = { bad };
    return cycle;
  }, ".last.bad"],
  [(bad) => Object.assign(new Error("e"), { cause: bad }), ".cause"],
];

class Box {
  one = value<unknown>(0);
  many = list<unknown>([0]);
  named = map<string, unknown>();
  inner = nested({ one: value<unknown>(0), deep: nested({ many: list<unknown>() }) });
  plain: unknown = 0;
}

/** Ways to put a value in, and where it is then. */
const PLACES: readonly [(box: Box, value: unknown) => unknown, string][] = [
  [(box, value) => box.one.set(value), "one"],
  [(box, value) => box.many.push(value), "many[1]"],
  [(box, value) => box.many.set(0, value), "many[0]"],
  [(box, value) => box.many.splice(0, 0, value), "many[0]"],
  [(box, value) => box.named.set("k", value), 'named.get("k")'],
  [(box, value) => box.named.update("k", () => value), 'named.get("k")'],
  [(box, value) => box.inner.one.set(value), "inner.one"],
  [(box, value) => box.inner.deep.many.push(value), "inner.deep.many[0]"],
];

const refuses = (run: () => unknown, place: string, what: RegExp) =>
  assert.throws(
    run,
    (error) => {
      const message = error instanceof Error ? error.message : "";
      const isIt = codeOf(error) === "value_invalid" && message.includes(place) && what.test(message);
      return isIt || assert.fail(`${place} ${what}: ${codeOf(error)} ${message}`);
    },
  );

Deno.test("every structure refuses what has no bytes, with its place, and is as before", () => {
  for (const [make, what] of BAD) {
    for (const [wrap, path] of INSIDE) {
      for (const [put, place] of PLACES) {
        const box = new Box();
        const state = new SessionState(box);
        const before = state.checkpoint();
        refuses(() => put(box, wrap(make())), `${place}${path}`, what);
        const again = new Box();
        new SessionState(again).load(before, state.checkpoint());
        assert.deepEqual([again.one.get(), again.many.toArray(), again.named.size], [0, [0], 0]);
      }
    }
  }
});

Deno.test("a plain field that has no bytes is named when it is asked for and at the checkpoint, at any depth (field_walk.ts FW2)", () => {
  for (const [make, what] of BAD) {
    for (const [wrap, path] of INSIDE) {
      if (path === ".read") continue; // a field has no getters
      const box = new Box();
      const state = new SessionState(box);
      box.plain = wrap(make());
      refuses(() => state.check(), `plain${path}`, what);
      refuses(() => state.checkpoint(), `plain${path}`, what);
      box.plain = "fine";
      const again = new Box();
      new SessionState(again).load(state.checkpoint());
      assert.equal(again.plain, "fine");
    }
  }
});

Deno.test("cycles, shared objects and accessors that can be written down are, in every structure", () => {
  const cycle: Record<string, unknown> = { name: "c" };
  cycle["self"] = cycle;
  const shared = { s: 1 };
  const rows: [unknown, (got: unknown) => boolean, isCopied?: boolean][] = [
    [cycle, (got) => (got as typeof cycle)["self"] === got],
    [[shared, shared], (got) => (got as unknown[])[0] === (got as unknown[])[1]],
    [
      {
        get now() {
          return 5;
        },
      },
      (got) => (got as { now: number }).now === 5,
      true,
    ],
  ];
  for (const [given, holds, isCopied = false] of rows) {
    for (const [put] of PLACES) {
      const box = new Box();
      const state = new SessionState(box);
      put(box, given);
      if (!isCopied) box.plain = given;
      state.check();
      const again = new Box();
      new SessionState(again).load(state.checkpoint());
      const all = [
        again.one.get(),
        ...again.many.toArray(),
        ...again.named.values(),
        again.inner.one.get(),
        ...again.inner.deep.many.toArray(),
      ];
      assert.ok(all.some((got) => typeof got === "object" && got !== null && holds(got)), `${put}`);
      assert.ok(isCopied || holds(again.plain));
    }
  }
});

Deno.test("a grid refuses what it is not made of", () => {
  for (const options of [{ width: -1, height: 1 }, { width: 1.5, height: 1 }, { width: 1e9, height: 1e9 }]) {
    assert.throws(() => grid({ ...options, type: "uint8" }), (error) => codeOf(error) !== undefined);
  }
});

Deno.test("items that came at the end of a list are as many as it says, or it is corrupt", () => {
  const { many } = new Box();
  many.push(1, 2);
  const whole = (many as unknown as Part)[WRITE](true);
  many.push(3);
  const grown = (many as unknown as Part)[WRITE](false);
  // Runs: three that are kept from 0 on, one that is new; then the pages.
  assert.deepEqual([...grown.subarray(0, 5)], [2, 3 * 2 + 1, 0, 1 * 2, 1]);
  const rows: readonly (readonly [byte: number, value: number, what: RegExp | null])[] = [
    [3, 1 * 2, null],
    [3, 2 * 2, /has 4 items, and says 5/],
    [3, 0 * 2, /has 4 items, and says 3/],
    [1, 4 * 2 + 1, /has no 4 items from 0 on/],
    [2, 1, /has no 3 items from 1 on/],
  ];
  for (const [at, byte, what] of rows) {
    const again = list<number>() as unknown as Part & typeof many;
    again[READ](whole);
    const read = () => again[READ](grown.with(at, byte));
    if (what !== null) assert.throws(read, what);
    else {
      read();
      assert.deepEqual(again.toArray(), [0, 1, 2, 3]);
    }
  }
});

const { rawJSON: rawJson } = JSON as unknown as { rawJSON(text: string): unknown };

/** What a copy, or a checkpoint, would leave out: `field` may refuse it only where it stays as it is, in a plain field. */
const VANISHING: readonly [() => unknown, path: string, RegExp, field?: "field"][] = [
  [() => ({ [Symbol("s")]: 1 }), "", /name is a symbol \(Symbol\(s\)\)/],
  [() => Object.assign([1], { [Symbol.for("s")]: 1 }), "", /name is a symbol/],
  [() => [{ a: Object.defineProperty({}, "x", { value: 1 }) }], "[0].a.x", /not enumerable/],
  [() => new ArrayBuffer(1, { maxByteLength: 2 }), "", /can be resized/],
  [() => [new Uint8Array(new ArrayBuffer(1, { maxByteLength: 2 }))], "[0]", /can be resized/],
  [() => Object.assign(new Error("e"), { code: 1 }), ".code", /of Error, .* plain object/],
  [() => Object.assign(new Map(), { x: 1 }), ".x", /of its own of Map/],
  [() => Object.assign(new Set(), { x: 1 }), ".x", /of its own of Set/],
  [() => Object.assign(new Date(0), { x: 1 }), ".x", /of its own of Date/],
  [() => Object.assign(/a/, { x: 1 }), ".x", /of its own of RegExp/],
  [() => Object.assign(new Uint8Array(2), { x: 1 }), ".x", /of its own of Uint8Array/],
  [() => Object.assign(/a/, { lastIndex: "x" }), "", /lastIndex/],
  [() => Buffer.from("q"), "", /Buffer.*use a Uint8Array/],
  [() => new (class TypeError extends Error {})(), "", /an instance of TypeError/],
  [() => new URL("http://a/"), "", /an instance of URL, .* keep its href/],
  [() => Object.create(Map.prototype), "", /./],
  [() => new Proxy({}, {}), "", /a Proxy/, "field"],
  [
    () => Object.defineProperty({ y: 1 }, "x", { value: 1, enumerable: true }),
    ".x",
    /can't be written or/,
    "field",
  ],
  [
    () => [Object.defineProperty([1], "length", { writable: false })],
    "[0].length",
    /can't be written or/,
    "field",
  ],
  [() => rawJson("1"), "", /JSON\.rawJSON/],
  [() => [new Proxy([], {})], "[0]", /a Proxy/, "field"],
  [() => Object.defineProperty([1], 0, { get: () => 1, enumerable: true }), "[0]", /a getter/, "field"],
  [
    () => ({
      get x() {
        return 1;
      },
    }),
    ".x",
    /a getter/,
    "field",
  ], // deno-fmt-ignore
];

Deno.test("what would vanish is refused where it is put in, and in plain fields when they are asked for", () => {
  recognizeProxies(types.isProxy);
  for (const [make, path, what, only] of VANISHING) {
    for (const [put, place] of only === undefined ? PLACES : []) {
      const box = new Box();
      const state = new SessionState(box);
      assert.throws(() => put(box, make()), what, `${what} at ${place}${path}`);
      state.checkpoint();
    }
    const box = new Box();
    const state = new SessionState(box);
    state.check();
    // Seen before it was odd, as one that has been there for a while.
    for (const isLate of [false, true]) {
      box.plain = isLate ? { deep: [] } : make();
      if (isLate) state.check();
      if (isLate) (box.plain as { deep: unknown[] }).deep.push(make());
      const wanted = isLate ? `plain.deep[0]${path}` : `plain${path}`;
      assert.throws(
        () => state.check(),
        (error) => what.test(String(error)) && String(error).includes(wanted),
      );
      assert.throws(() => state.checkpoint(), what);
    }
    box.plain = 1;
    state.check();
    state.checkpoint();
  }
});

Deno.test("a session with another prototype is refused", () => {
  const box = new Box();
  const state = new SessionState(box);
  state.check();
  Object.setPrototypeOf(box, {});
  assert.throws(() => state.check(), /can't keep the session's class: it was given another prototype/);
});
