/** What goes into tracked structures and plain fields, and what does not. */
import assert from "node:assert/strict";
import fc from "fast-check";
import { codeOf } from "../../../functions/vocabulary/errors.ts";
import {
  bytes,
  grid,
  list,
  map,
  mergeState,
  nested,
  SessionState,
  value,
} from "../../../functions/tracked/mod.ts";
import { decodeContent, encodeContent } from "../../../functions/tracked/content.ts";
import { isPart, KIND } from "../../../functions/tracked/part.ts";
import { encodeValue } from "../../../functions/values/value.ts";
import { anyContent } from "./programs.ts";

class Cart {
  items = list<unknown>();
  carts = map<string, unknown>();
  note = value<unknown>("");
  box = nested({ inner: map<string, unknown>() });
  plain: unknown = { deep: [1] };
}

function bound(): Cart {
  const cart = new Cart();
  new SessionState(cart);
  return cart;
}

class Money {
  cents = 1;
}

Deno.test("a tracked structure refuses what no checkpoint can hold when it is put in, with its path (owned.ts V3)", () => {
  const rows: [(cart: Cart) => void, RegExp][] = [
    [
      (c) => c.items.push(1, 2, 3, { onClick: () => 1 }),
      /can't keep items\[3\]\.onClick: a function \(onClick\)/,
    ],
    [(c) => c.carts.set("ada", { "a b": Symbol("x") }), /carts\.get\("ada"\)\["a b"\]: a symbol/],
    [
      (c) => c.note.set({ price: new Money() }),
      /note\.price: an instance of Money, which would come back as a plain/,
    ],
    [(c) => c.box.inner.set("k", [new WeakMap()]), /box\.inner\.get\("k"\)\[0\]: an instance of WeakMap/],
    [(c) => c.note.set(new Map([["f", () => 1]])), /note\.get\("f"\): a function/],
    [(c) => c.note.set(new Set([new Proxy(() => 1, {})])), /note\.values\(\): a function/],
    [(c) => c.note.set(Promise.resolve(1)), /note: an instance of Promise/],
    [(c) => c.note.set({ inner: map() }), /note\.inner: a tracked structure inside a plain value/],
    [(c) => c.note.set(deep(200)), /more than 100 levels deep/],
    [
      (c) => c.carts.set({} as string, 1),
      /carts\.get\(Object\): a key is a string, number, bigint or boolean/,
    ],
    [(c) => c.carts.set("twice", c.box.inner), /can be in one place only, and this one is at box\.inner/],
    [(c) => c.box.inner.set("self", c.box), /can be in one place only, and this one is at box/],
  ];
  for (const [put, says] of rows) {
    const cart = bound();
    assert.throws(
      () => put(cart),
      (error) => codeOf(error) === "value_invalid" && says.test(String(error)),
      `${says}`,
    );
    assert.deepEqual([cart.items.length, cart.carts.size, cart.note.get(), cart.box.inner.size], [
      0,
      0,
      "",
      0,
    ]);
  }
});

function deep(levels: number): unknown {
  let made: unknown = 1;
  for (let i = 0; i < levels; i++) made = [made];
  return made;
}

Deno.test("a structure that lies nowhere yet can't be put into itself", () => {
  const outer = map<string, unknown>();
  const inner = list<unknown>([outer]);
  assert.throws(() => outer.set("in", inner), /a tracked structure that this one lies in/);
});

Deno.test("a plain field that can't be serialised is named at the checkpoint, and nothing counts as written (state.ts S2)", () => {
  const cart = new Cart();
  const state = new SessionState(cart);
  const first = state.checkpoint();
  cart.items.push(1);
  cart.plain = { open: [{ socket: new Money() }] };
  assert.throws(() => state.checkpoint(), /can't keep plain\.open\[0\]\.socket: an instance of Money/);
  cart.plain = 2;
  const loaded = new Cart();
  new SessionState(loaded).load(first, state.checkpoint());
  assert.deepEqual([loaded.items.toArray(), loaded.plain], [[1], 2]);
});

Deno.test("what a structure hands out can't change what is in it (owned.ts V1, V2, part.ts T3)", () => {
  const cart = bound();
  const mine = { tags: ["a"], at: new Date(0) };
  cart.items.push({ tags: ["a"] }, mine, Uint8Array.of(1));
  mine.tags.push("b");
  const plain = cart.items.at(0) as { tags: string[] };
  assert.throws(() => plain.tags.push("b"), TypeError);
  assert.equal(cart.items.at(0), plain, "plain data is one frozen copy");
  const dated = cart.items.at(1) as typeof mine;
  dated.at.setTime(5);
  assert.throws(() => dated.tags.push("b"), TypeError);
  (cart.items.at(2) as Uint8Array)[0] = 9;
  assert.deepEqual(cart.items.toArray(), [
    { tags: ["a"] },
    { tags: ["a"], at: new Date(0) },
    Uint8Array.of(1),
  ]);
});

Deno.test("plain fields after a checkpoint are what a load would give: nothing lies in two places (state.ts S1)", () => {
  class Team {
    players = map<string, { name: string }>([["a", { name: "ada" }]]);
    captain: unknown = null;
    other: unknown = null;
  }
  const team = new Team();
  const state = new SessionState(team);
  team.captain = team.players.get("a");
  team.other = team.captain;
  const segment = state.checkpoint();
  const loaded = new Team();
  new SessionState(loaded).load(segment);
  for (const each of [team, loaded]) {
    assert.notEqual(each.captain, each.players.get("a"));
    assert.equal(each.captain, each.other, "the fields are one value");
    assert.ok(Object.isFrozen(each.captain), "it was, as the structure handed it out");
  }
});

Deno.test("a structure in two fields, and a name that nested has, are refused (part.ts T2)", () => {
  const shared = map();
  assert.throws(() => new SessionState({ one: shared, other: shared }), /can be in one place only.*at one/);
  assert.throws(
    () => nested({ toString: map() }),
    /can't name a structure "toString": every object has that/,
  );
  const { path, top, write } = nested({ path: list([1]), top: map(), write: value(2) });
  assert.deepEqual([path.toArray(), top.size, write.get()], [[1], 0, 2]);
  assert.throws(() => nested({ a: 1 as never }), /nested\.a: no tracked structure/);
});

Deno.test("a structure that is taken out can be put in elsewhere, whole", () => {
  const cart = new Cart();
  const state = new SessionState(cart);
  cart.carts.set("ada", list(["beans"]));
  const segments = [state.checkpoint()];
  const taken = cart.carts.get("ada");
  cart.carts.delete("ada");
  cart.items.push(taken);
  segments.push(state.checkpoint());
  const loaded = new Cart();
  new SessionState(loaded).load(...segments);
  assert.deepEqual((loaded.items.at(0) as ReturnType<typeof list>).toArray(), ["beans"]);
  assert.equal(loaded.carts.size, 0);
});

Deno.test("fields that come, go and change their kind are as they were", () => {
  const cart = new Cart() as unknown as Record<string, unknown>;
  const state = new SessionState(cart);
  const segments = [state.checkpoint()];
  cart.late = map([["a", 1]]);
  cart.carts = "plain now";
  delete cart.items;
  segments.push(state.checkpoint());
  cart.carts = list([7]);
  segments.push(state.checkpoint());
  for (const all of [segments, [mergeState(...segments)]]) {
    const loaded = new Cart() as unknown as Record<string, unknown>;
    new SessionState(loaded).load(...all);
    assert.deepEqual([...loaded.late as Iterable<unknown>], [["a", 1]]);
    assert.deepEqual([...loaded.carts as Iterable<unknown>], [7]);
    assert.ok(!("items" in loaded));
  }
});

Deno.test("a list has no holes, bytes and grids no places beyond their ends", () => {
  assert.throws(() => list().set(1, 2), /has 0 items: can't set the one in place 1/);
  assert.throws(() => bytes(3).put(3, 1), /has 3 bytes: can't put one in place 3/);
  assert.throws(() => bytes(3).set([1, 2], 2), /can't set 2 from 2 on/);
  assert.throws(() => bytes(-1), /can't have a length of -1/);
  assert.throws(() => bytes(2 ** 40), (error) => codeOf(error) === "limit_value");
  const board = grid({ width: 2, height: 2, type: "uint8" });
  assert.throws(() => board.set(2, 0, 1), /2 × 2 cells: there is no cell 2, 0/);
  assert.throws(() => board.row(-1), /there is no row -1/);
  assert.throws(() => grid({ width: 1.5, height: 1 }), /there is no grid of 1\.5 × 1 float64/);
});

Deno.test("changes that would outgrow what they change are written as a whole", () => {
  class Counter {
    counts = map<string, number>([["a", 0]]);
  }
  const counter = new Counter();
  const state = new SessionState(counter);
  let merged = state.checkpoint();
  for (let i = 1; i <= 5_000; i++) {
    counter.counts.set("a", i);
    merged = mergeState(merged, state.checkpoint());
    assert.ok(merged.length < 10_000, `${merged.length} bytes after ${i} changes`);
  }
  const loaded = new Counter();
  new SessionState(loaded).load(merged);
  assert.equal(loaded.counts.get("a"), 5_000);
});

Deno.test("a value as bytes is a structured clone, and the same bytes when it is written again (content.ts C1)", () => {
  fc.assert(
    fc.property(anyContent, (content) => {
      const written = encodeContent(content);
      const read = decodeContent(written);
      assert.deepEqual(read, structuredClone(content));
      assert.deepEqual(encodeContent(read), written);
    }),
    { numRuns: 500 },
  );
});

Deno.test("values that hold themselves, errors, views of one buffer and texts that are no Unicode are kept", () => {
  const ring: Record<string, unknown> = { name: "\udc00" };
  ring.self = [ring];
  const buffer = Uint8Array.of(1, 2, 3, 4).buffer;
  const error = new RangeError("far", { cause: { at: 3 } });
  const all = { ring, views: [new Uint8Array(buffer, 1, 2), new DataView(buffer, 2)], error, at: /x/gi };
  const read = decodeContent(encodeContent(all)) as typeof all;
  assert.deepEqual(read, structuredClone(all));
  assert.equal((read.ring.self as unknown[])[0], read.ring);
  assert.equal(read.views[0]?.buffer, read.views[1]?.buffer);
});

Deno.test("a structure is shown as what is in it by JSON, and refused where a value is wanted", () => {
  const all = nested({ counts: map([["a", 1]]), lines: list([{ n: 1 }]), note: value("x") });
  assert.equal(JSON.stringify(all), '{"counts":{"a":1},"lines":[{"n":1}],"note":"x"}');
  for (const wrong of [all.counts, { deep: [all.lines] }, all]) {
    assert.throws(() => encodeValue(wrong), (error) => {
      return codeOf(error) === "value_invalid" &&
        /a tracked (map|list|nested) is no value/.test(String(error));
    });
  }
});

/** Objects as whoever has them can tell: what is fixed, prototypes, order, and which are the same. */
function told(value: unknown, seen = new Map<object, number>()): unknown {
  if (typeof value !== "object" || value === null) return Object.is(value, -0) ? "-0" : value;
  const before = seen.get(value);
  if (before !== undefined) return `object ${before}`;
  seen.set(value, seen.size);
  return [
    Object.getPrototypeOf(value)?.constructor.name ?? "none",
    [Object.isExtensible(value), Object.isSealed(value), Object.isFrozen(value)].join(" "),
    value instanceof Map ? [...value].map(([key, each]) => [key, told(each, seen)]) : [],
    ...Object.entries(value).map(([name, each]) => [name, isPart(each) ? each[KIND] : told(each, seen)]),
  ];
}

const fixes = [(each: object) => each, Object.preventExtensions, Object.seal, Object.freeze];

/** Values of plain fields, with what is frozen, sealed or without a prototype anywhere in them. */
const { fixed } = fc.letrec<{ fixed: unknown; object: object }>((tie) => ({
  fixed: fc.oneof(
    { depthSize: "small", withCrossShrink: true },
    fc.constantFrom(1, "a", -0, null, undefined, 5n),
    tie("object"),
  ),
  object: fc.tuple(
    fc.oneof(
      fc.dictionary(fc.constantFrom("a", "b", "7", "__proto__"), tie("fixed")),
      fc.array(tie("fixed"), { maxLength: 3 }),
      fc.array(tie("fixed"), { maxLength: 2 }).map((each) => new Map(each.entries())),
      fc.constantFrom(() => new Date(5), () => /a/g, () => new Error("e")).map((make) => make()),
    ),
    fc.constantFrom(...fixes),
  ).map(([object, fix]) => fix(object)),
}));

Deno.test("plain fields come back as they are, what is fixed in them, their order, and one that goes on has no others", () => {
  interface Fields {
    [name: string]: unknown;
  }
  class Board {
    first: unknown = 1;
    tracked = map();
    last: unknown = 2;
  }
  const name = fc.constantFrom("first", "tracked", "last", "more", "other", "3", "01");
  const change = fc.oneof(
    fc.record({ name, value: fixed }),
    fc.record({ name, isTracked: fc.constant(true) }),
    fc.record({ name, isGone: fc.constant(true) }),
    fc.record({ name, of: name }),
  );
  fc.assert(
    fc.property(fc.array(fc.array(change, { maxLength: 4 }), { maxLength: 4 }), (all) => {
      const board = new Board() as unknown as Fields;
      const state = new SessionState(board);
      const segments: Uint8Array[] = [];
      for (const changes of all) {
        for (const each of changes) {
          if ("value" in each) board[each.name] = each.value;
          else if ("isTracked" in each) board[each.name] = map();
          else if ("isGone" in each) delete board[each.name];
          else if (!isPart(board[each.of])) board[each.name] = board[each.of];
        }
        const before = told(board);
        segments.push(state.checkpoint());
        assert.deepEqual(told(board), before);
        const loaded = new Board() as unknown as Fields;
        const again = new SessionState(loaded);
        again.load(...segments);
        assert.deepEqual(told(loaded), before);
        const third = new Board() as unknown as Fields;
        new SessionState(third).load(again.checkpoint(true));
        assert.deepEqual(told(third), before);
      }
    }),
    { numRuns: 2_000 },
  );
});
