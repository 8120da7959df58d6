import assert from "node:assert/strict";
import fc from "fast-check";
import { Coverage } from "../../../store/rows/coverage.ts";
import type { Key } from "../../../store/model/key.ts";
import { Least } from "../../../store/model/least.ts";
import { Child } from "../../../store/core/child.ts";
import { CodecError } from "../../../store/model/codec.ts";
import { Gaps } from "../../../store/model/gaps.ts";
import { DIRTY_KEYS_MAX, PENDING_ENTRY_BYTES } from "../../../store/model/limits.ts";
import { Pending } from "../../../store/rows/pending.ts";
import { StaleRanges } from "../../../store/rows/stale.ts";
import { pointRange, type Range, WHOLE } from "../../../store/model/range.ts";
import type { Position } from "../../../store/model/row.ts";
import { Steps } from "../../../store/model/steps.ts";
import { RangeTree } from "../../../store/model/range_tree.ts";
import { Subscriptions } from "../../../store/rows/subscriptions.ts";

const LETTERS = "abcdefghij";
const letter = fc.integer({ min: 0, max: LETTERS.length - 1 });
/** Some end where others begin, some between two letters. */
const range = fc.tuple(letter, letter, fc.boolean()).map(([x, y, isBetween]): Range => ({
  start: LETTERS[Math.min(x, y)] as Key,
  end: (isBetween ? LETTERS[Math.max(x, y)] + "\x7f" : LETTERS[Math.max(x, y) + 1] ?? "k") as Key,
}));
const inside = (r: Range, key: string) => key >= r.start && key < r.end;

Deno.test("coverage: agrees with a set of keys, through overlaps, removals and its own records (coverage.ts V1)", () => {
  const step = fc.record({ add: fc.boolean(), range });
  fc.assert(fc.property(fc.array(step, { maxLength: 30 }), (steps) => {
    const records = new Map<string, Uint8Array>();
    const note = (name: string, value: Uint8Array | null) =>
      void (value ? records.set(name, value) : records.delete(name));
    const coverage = new Coverage(note, () => 0);
    const model = new Set<string>();
    for (const { add, range } of steps) {
      if (add) coverage.add(range);
      else coverage.remove(range);
      for (const key of LETTERS) if (inside(range, key)) add ? model.add(key) : model.delete(key);
    }
    const restored = new Coverage(note, () => 0);
    for (const [name, value] of [...records]) assert.equal(restored.restore(name, value), true);
    for (const key of LETTERS) {
      assert.equal(coverage.covers(key as Key), model.has(key));
      assert.equal(restored.covers(key as Key), model.has(key));
    }
    const all = coverage.all();
    all.slice(1).forEach((r, i) => assert.ok((all[i]?.end ?? "") <= r.start, "ranges are disjoint"));
  }));
});

Deno.test("stale ranges: agree with a set of keys, through overlaps, removals and their own records (T3)", () => {
  const step = fc.record({ add: fc.boolean(), range });
  fc.assert(fc.property(fc.array(step, { maxLength: 30 }), (steps) => {
    const records = new Map<string, Uint8Array>();
    const note = (name: string, value: Uint8Array | null) =>
      void (value ? records.set(name, value) : records.delete(name));
    const stale = new StaleRanges(note);
    const model = new Set<string>();
    for (const { add, range } of steps) {
      if (add) stale.add(range);
      else stale.remove(range);
      for (const key of LETTERS) if (inside(range, key)) add ? model.add(key) : model.delete(key);
    }
    const restored = new StaleRanges(note);
    for (const [name, value] of [...records]) assert.equal(restored.restore(name, value), true);
    for (const key of LETTERS) {
      assert.equal(stale.touches(pointRange(key as Key)), model.has(key));
      assert.equal(restored.touches(pointRange(key as Key)), model.has(key));
    }
    assert.deepEqual(restored.within(WHOLE), stale.within(WHOLE));
    stale.within(WHOLE).forEach(({ start }, i, all) =>
      assert.ok(i === 0 || (all[i - 1]?.end ?? "") <= start, "ranges are disjoint")
    );
  }));
});

Deno.test("coverage: the covered part of a range reaches from the end that is read", () => {
  const coverage = new Coverage(() => {}, () => 0);
  const r = (start: string, end: string): Range => ({ start: start as Key, end: end as Key });
  coverage.add(r("a", "c"));
  coverage.add(r("c", "e"));
  coverage.add(r("g", "i"));
  assert.deepEqual(coverage.coveredPart(r("b", "h"), false), r("b", "e"));
  assert.deepEqual(coverage.coveredPart(r("b", "h"), true), r("g", "h"));
  assert.deepEqual(coverage.coveredPart(r("e", "f"), false), r("e", "e"));
  assert.equal(coverage.hasRange(r("a", "e")), true);
  assert.equal(coverage.hasRange(r("a", "f")), false);
});

Deno.test("coverage: a range is whole since the head at which the last of its parts was covered (V3)", () => {
  let head = 5;
  const records = new Map<string, Uint8Array>();
  const note = (name: string, value: Uint8Array | null) =>
    void (value ? records.set(name, value) : records.delete(name));
  const coverage = new Coverage(note, () => head as Position);
  const r = (start: string, end: string): Range => ({ start: start as Key, end: end as Key });
  coverage.add(r("a", "c"));
  head = 7;
  coverage.add(r("c", "e"));
  coverage.add(r("c", "d")); // It was covered before: nothing of it is newer.
  head = 9;
  coverage.remove(r("h", "j"));
  coverage.add(r("g", "i"));
  coverage.remove(r("gx", "gz"));
  const restored = new Coverage(note, () => 0 as Position);
  for (const [name, value] of [...records]) restored.restore(name, value);
  const rows: readonly (readonly [Range, number, boolean])[] = [
    [r("a", "c"), 4, false],
    [r("a", "c"), 5, true],
    [r("a", "d"), 6, false],
    [r("a", "e"), 7, true],
    [r("a", "f"), 100, false],
    [r("g", "gx"), 8, false],
    [r("g", "gx"), 9, true],
    [r("gz", "i"), 8, false],
    [r("gz", "i"), 9, true],
    [r("g", "i"), 9, false],
  ];
  for (const [range, position, is] of rows) {
    const what = `${range.start} to ${range.end} since ${position}`;
    assert.equal(coverage.hasRangeSince(range, position as Position), is, what);
    assert.equal(restored.hasRangeSince(range, position as Position), is, `${what}, after a restart`);
  }
});

Deno.test("subscriptions: route as a list of ranges a subscriber would (subscriptions.ts U2)", () => {
  const point = letter.map((i) => pointRange(LETTERS[i] as Key));
  const step = fc.record({
    who: fc.integer({ min: 1, max: 4 }),
    what: fc.constantFrom("add", "add", "add", "remove", "leave"),
    range: fc.oneof(range, point),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), range, (steps, asked) => {
      const subscriptions = new Subscriptions<number>();
      const model = new Map<string, Set<number>>([...LETTERS].map((key) => [key, new Set()]));
      for (const { who, what, range } of steps) {
        if (what === "add") subscriptions.add(who, range);
        else if (what === "remove") subscriptions.remove(who, range);
        else subscriptions.removeAll(who);
        for (const [key, set] of model) {
          if (what === "leave" || inside(range, key)) what === "add" ? set.add(who) : set.delete(who);
        }
      }
      const within = new Set<number>();
      for (const [key, set] of model) {
        assert.deepEqual([...subscriptions.at(key as Key)].sort(), [...set].sort());
        for (const who of [1, 2, 3, 4]) assert.equal(subscriptions.has(who, key as Key), set.has(who));
        if (inside(asked, key)) { for (const who of set) within.add(who); }
        const isHeld = subscriptions.ranges().some((held) => inside(held, key));
        assert.equal(isHeld, set.size > 0);
      }
      // Ranges of several letters also hold keys between them, of which the model knows nothing.
      for (const who of within) assert.ok(subscriptions.within(asked).has(who));
      assert.equal(subscriptions.touches(asked), subscriptions.within(asked).size > 0);
      for (const who of [1, 2, 3, 4]) subscriptions.removeAll(who);
      assert.deepEqual(subscriptions.ranges(), []);
      assert.equal(subscriptions.touches(WHOLE), false);
    }),
    { numRuns: 500 },
  );
});

Deno.test("steps: a bound never falls below the truth, and forgetting only makes it coarser (steps.ts T2)", () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.nat(5), fc.nat(5)), { minLength: 1, maxLength: 400 }), (increments) => {
      const steps = new Steps();
      const truth: [number, number][] = [];
      let own = 0, theirs = 0;
      for (const [a, b] of increments) {
        own += a;
        theirs += b;
        steps.add(own, theirs);
        truth.push([own, theirs]);
      }
      for (let l = 1; l <= own; l++) {
        const exact = truth.find(([o]) => o >= l)?.[1] ?? Infinity;
        const bound = steps.bound(l);
        assert.ok(bound !== null && bound >= exact, `bound ${bound} of ${l} is at least ${exact}`);
        const reached = steps.reached(bound);
        assert.ok(reached >= l, "what a bound names has been reached");
      }
      assert.equal(steps.bound(own + 1), null);
    }),
  );
});

Deno.test("least: is the smallest number that anyone holds (least.ts L1)", () => {
  const step = fc.record({ who: fc.nat(9), value: fc.option(fc.nat(20), { freq: 4 }) });
  fc.assert(fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
    const least = new Least<number>(), model = new Map<number, number>();
    for (const { who, value } of steps) {
      if (value === null) {
        least.delete(who);
        model.delete(who);
      } else {
        least.set(who, value);
        model.set(who, value);
      }
      assert.equal(least.value, Math.min(Infinity, ...model.values()));
    }
  }));
});

Deno.test("pending: only the newest place of a key counts, and what is settled is forgotten", () => {
  const pending = new Pending();
  const add = (key: string, position: number, known: number, clock: number, bytes = 0) =>
    pending.add({ key: key as Key, position, known, clock, value: new Uint8Array(bytes) });
  add("x", 5, 2, 1);
  add("y", 6, 1, 3);
  add("x", 7, 2, 4);
  assert.deepEqual([...pending.after(0, 0)].map((e) => [e.key, e.position]), [["y", 6], ["x", 7]]);
  assert.deepEqual([...pending.after(0, 2)].map((e) => e.key), ["x"]);
  assert.deepEqual([...pending.after(6, 0)].map((e) => e.key), ["x"]);
  add("z", 8, 2, 5, 30);
  assert.deepEqual(pending.measure(6, 2), { rows: 2, bytes: 32 });
  assert.equal(pending.least, 1);
  pending.findLeast();
  assert.equal(pending.least, 3);
  pending.remove("z" as Key);
  pending.settle(6);
  assert.equal(pending.get("y" as Key), undefined);
  assert.equal(pending.size, 1);
});

Deno.test("pending: a key that is written again and again leaves no trail, and bytes are of what is live", () => {
  const pending = new Pending();
  const row = { key: "x" as Key, known: 1, clock: 1, value: new Uint8Array(10) };
  for (let position = 1; position <= 100_000; position++) pending.add({ ...row, position });
  assert.equal(pending.size, 1);
  assert.equal(pending.bytes, 11 + PENDING_ENTRY_BYTES);
  assert.ok(pending.remembered < 5_000, `${pending.remembered} entries`);
  assert.deepEqual([...pending.after(0, 0)].map((e) => e.position), [100_000]);
  pending.settle(100_000);
  assert.equal(pending.bytes, 0);
});

Deno.test("pending: what is live is found when what was settled, and what was written over, is forgotten (N1, N3)", () => {
  const pending = new Pending();
  const row = { known: 1, clock: 1, value: null };
  for (let position = 1; position <= 20; position++) {
    pending.add({ ...row, key: `${position}` as Key, position });
  }
  pending.settle(15);
  for (let position = 21; position <= 5_000; position++) pending.add({ ...row, key: "x" as Key, position });
  assert.ok(pending.remembered < 2_000);
  const positions = [...pending.after(0, 0)].map((entry) => entry.position);
  assert.deepEqual(positions, [16, 17, 18, 19, 20, 5_000]);
  pending.settle(18);
  assert.deepEqual(pending.measure(0, 0).rows, 3);
});

Deno.test("pending: agrees with a list of all that was ever added, also when what is over is forgotten (N1, N2, N3)", () => {
  const step = fc.oneof(
    {
      weight: 8,
      arbitrary: fc.record({ op: fc.constant("add"), key: fc.nat(40), known: fc.nat(3), clock: fc.nat(99) }),
    },
    {
      weight: 2,
      arbitrary: fc.record({
        op: fc.constant("remove"),
        key: fc.nat(40),
        known: fc.nat(3),
        clock: fc.nat(99),
      }),
    },
    {
      weight: 1,
      arbitrary: fc.record({
        op: fc.constant("settle"),
        key: fc.nat(40),
        known: fc.nat(3),
        clock: fc.nat(99),
      }),
    },
  );
  // As many entries as it takes to forget some: of one run of steps, again and again.
  fc.assert(
    fc.property(fc.array(step, { minLength: 1, maxLength: 40 }), (steps) => {
      const pending = new Pending();
      const model = new Map<Key, { position: number; known: number; clock: number }>();
      let position = 0;
      for (let round = 0; round < 100; round++) {
        for (const { op, key: n, known, clock } of steps) {
          const key = `${n}` as Key;
          if (op === "add") {
            pending.add({ key, position: ++position, known, clock, value: null });
            model.delete(key);
            model.set(key, { position, known, clock });
          } else if (op === "remove") {
            pending.remove(key);
            model.delete(key);
          } else {
            const upTo = position - n;
            pending.settle(upTo);
            for (const [each, entry] of model) if (entry.position <= upTo) model.delete(each);
          }
        }
        assert.equal(pending.size, model.size);
        assert.ok(pending.remembered >= model.size && pending.remembered <= 2 * 41 + 2_048, "it is bounded");
        assert.ok(pending.least <= Math.min(Infinity, ...[...model.values()].map(({ clock }) => clock)));
      }
      for (const after of [0, position - 20]) {
        const expected = [...model].filter(([, entry]) => entry.position > after && entry.known >= 1);
        assert.deepEqual(
          [...pending.after(after, 1)].map((entry) => [entry.key, entry.position]),
          expected.map(([key, entry]) => [key, entry.position]),
        );
      }
      pending.findLeast();
      assert.equal(pending.least, Math.min(Infinity, ...[...model.values()].map(({ clock }) => clock)));
    }),
    { numRuns: 60 },
  );
});

Deno.test("a child that takes nothing is remembered by a bounded number of keys, and then by the journal", () => {
  const child = new Child("edge", 0, { stables: new Least(), floors: new Least() });
  child.cursor = 7;
  for (let i = 0; i <= DIRTY_KEYS_MAX; i++) child.changed(`${i}` as Key);
  assert.equal(child.dirty.size, 0);
  assert.equal(child.scanFrom, 7);
});

Deno.test("range tree: finds what a list of ranges would, in the order in which they were added (RT2)", () => {
  const step = fc.record({ adds: fc.integer({ min: 0, max: 3 }).map((n) => n > 0), range });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 80 }), range, (steps, asked) => {
      const tree = new RangeTree<number>();
      let list: { range: Range; value: number }[] = [];
      const isSame = (a: Range, b: Range) => a.start === b.start && a.end === b.end;
      for (const [value, { adds, range }] of steps.entries()) {
        assert.equal(tree.get(range), list.find((one) => isSame(one.range, range))?.value);
        if (!adds) {
          tree.remove(range);
          list = list.filter((one) => !isSame(one.range, range));
        } else if (tree.get(range) === undefined && range.start < range.end) {
          tree.add(range, value);
          list.push({ range, value });
        }
      }
      for (const key of LETTERS as unknown as Iterable<Key>) {
        const holding = list.filter(({ range: { start, end } }) => start <= key && key < end);
        assert.deepEqual(tree.at(key), holding.map(({ value }) => value));
      }
      const sharing = list.filter(({ range: { start, end } }) => start < asked.end && end > asked.start);
      assert.deepEqual(
        tree.overlapping(asked),
        asked.start < asked.end ? sharing.map(({ value }) => value) : [],
      );
      assert.deepEqual(
        tree.ranges().map(({ start, end }) => start + end).sort(),
        list.map(({ range: { start, end } }) => start + end).sort(),
      );
      for (const { range } of list) tree.remove(range);
      assert.ok(tree.isEmpty);
    }),
    { numRuns: 500 },
  );
});

Deno.test("subscriptions: ranges that nest a thousand deep come and go as quickly as others (RT1, subscriptions.ts U1)", () => {
  const subscriptions = new Subscriptions<number>(), count = 1_000;
  const nested = (i: number): Range => ({ start: `a${i + 1_000}` as Key, end: `b${9_000 - i}` as Key });
  let looked = 0;
  // As many comparisons as the tree makes: each looks at the start of what it is given.
  const counted = (i: number): Range => {
    const { start, end } = nested(i);
    return {
      get start() {
        looked++;
        return start;
      },
      end,
    };
  };
  const tree = new RangeTree<number>();
  for (let i = 0; i < count; i++) {
    subscriptions.add(i, nested(i));
    tree.add(nested(i), i);
  }
  for (let i = 0; i < count; i++) tree.remove(counted(i));
  assert.ok(looked < 100 * count, `${looked} looks`);
  assert.deepEqual(subscriptions.at("b" as Key), Array.from({ length: count }, (_, i) => i));
  for (let i = 0; i < count; i++) subscriptions.removeAll(i);
  assert.deepEqual(subscriptions.ranges(), []);
});

Deno.test("gaps: what is written is read, and nothing may follow it", () => {
  const gaps = new Gaps([{ from: 3, to: 9, clock: 4, atMs: 5 }]), bytes = gaps.encode();
  assert.deepEqual(Gaps.decode(bytes), gaps);
  assert.throws(() => Gaps.decode(new Uint8Array([...bytes, 0])), CodecError);
});
