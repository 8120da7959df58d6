/** Tuples at rest and in motion (store/owners/tuple_table.ts, rosters.ts, walks.ts, slot_set.ts), against a plain map. */
import assert from "node:assert/strict";
import { Rosters } from "../../../store/owners/rosters.ts";
import { SlotSet } from "../../../store/owners/slot_set.ts";
import type { Roster, TupleSlot, TupleState } from "../../../store/owners/tuple.ts";
import { TupleTable } from "../../../store/owners/tuple_table.ts";
import { Walks } from "../../../store/owners/walks.ts";
import { Draws } from "../../sim/random.ts";

const STATE: TupleState = {
  ...{
    topic: "mail",
    f: 1,
    version: 1,
    owners: ["a", "b"],
    former: [],
    gone: false,
    isUnsure: false,
    isRepeated: false,
  },
  ...{ dueMs: 0, note: "", bytes: 0, rememberUntilS: 0 },
};
/** More than are in motion anyhow. */
const MANY = 12_000;

function drawn(draws: Draws): TupleState {
  const gone = draws.chance(0.2);
  return {
    topic: draws.pick(["mail", "sms"]),
    f: draws.integer(0, 2),
    version: draws.pick([1, 7, 2 ** 32 - 1, 2 ** 40]),
    owners: draws.pick([["a"], ["a", "b"], ["b", "a"]]),
    former: draws.pick([[], ["c"]]),
    gone,
    isUnsure: gone && draws.chance(0.5),
    isRepeated: !gone && draws.chance(0.2),
    dueMs: draws.pick([0, 1_790_000_000_123]),
    note: draws.pick(["", "3 tries"]),
    bytes: draws.integer(0, 5_000),
    rememberUntilS: draws.pick([0, 1_790_000_000, 2 ** 32 - 1]),
  };
}

/** All that is known of a tuple. */
const shown = (one: TupleState & { readonly unacked: readonly string[] }) => {
  const { topic, f, version, owners, former, unacked, gone, isUnsure, isRepeated } = one;
  const { dueMs, note, bytes, rememberUntilS } = one;
  const who = { topic, f, version, owners, former, unacked, gone, isUnsure, isRepeated };
  return { ...who, dueMs, note, bytes, rememberUntilS };
};

Deno.test("tuples are the same at rest as they were in motion, whatever comes and goes (TT1, TT2, RO1)", () => {
  const draws = new Draws("tuple table"), table = new TupleTable();
  const model = new Map<string, ReturnType<typeof shown> & { acting: boolean; how: string }>();
  let bytes = 0;
  for (let step = 0; step < 5 * MANY; step++) {
    const id = `t${draws.integer(0, MANY)}`, known = table.get(id);
    if (known === undefined) {
      const tuple = table.add(id, drawn(draws));
      tuple.held = draws.chance(0.9);
      tuple.acting = draws.chance(0.5);
      tuple.how = draws.pick(["stored", "adopted", "loaded"]);
      if (draws.chance(0.2)) tuple.owe("b");
      model.set(id, { ...shown(tuple), acting: tuple.acting, how: tuple.how });
      bytes += tuple.bytes;
    } else {
      const { acting, how, ...expected } = model.get(id) ?? assert.fail(id);
      assert.deepEqual([shown(known), known.acting, known.how], [expected, acting, how], id);
      if (draws.chance(0.4)) {
        table.delete(known);
        model.delete(id);
        bytes -= known.bytes;
      } else {
        known.version = expected.version + 1;
        table.resize(known, 10);
        bytes += 10 - expected.bytes;
        model.set(id, { ...shown(known), acting, how });
      }
    }
    table.settle(draws.integer(0, 10));
    if (step % 5_000 !== 0) continue;
    assert.deepEqual([table.size, table.bytes], [model.size, bytes]);
    assert.deepEqual(
      new Map([...table.views()].map(([one, view]) => [one, shown(view)])),
      new Map([...model].map(([one, { acting: _, how: __, ...rest }]) => [one, rest])),
    );
  }
  const resting = table.size - table.moving.size;
  assert.ok(resting > 100, `${resting} are at rest`);
});

Deno.test("a tuple rests where it has no payload in memory, all its owners had it once, and none has refused it (TT2)", () => {
  const table = new TupleTable();
  const odd: Record<string, (tuple: ReturnType<TupleTable["add"]>) => void> = {
    payload: (tuple) => tuple.payload = new Uint8Array(1),
    held: (tuple) => tuple.held = false,
    doubt: (tuple) => tuple.doubts = new Map([["b", "asked"]]),
    refusal: (tuple) => tuple.refuses("b", true),
    time: (tuple) => tuple.rememberUntilS = 2 ** 32,
  };
  for (const [id, makeOdd] of Object.entries(odd)) {
    const tuple = table.add(id, STATE);
    tuple.held = true;
    makeOdd(tuple);
  }
  for (let i = 0; i < MANY; i++) table.add(`t${i}`, STATE).held = true;
  for (let i = 0; i < 5; i++) table.settle(MANY);
  assert.equal(table.moves("t0"), undefined);
  assert.ok(table.moving.size < MANY);
  for (const id of Object.keys(odd)) assert.ok(table.moves(id) !== undefined, id);
});

Deno.test("who asks for a tuple at rest gets one object until that rests again, and its roster is counted once (TT1)", () => {
  const table = new TupleTable();
  const counted = () => [...table.counted()].reduce((sum, { count }) => sum + count, 0);
  for (let i = 0; i < MANY; i++) table.add(`t${i}`, STATE).held = true;
  for (let i = 0; i < 5; i++) table.settle(MANY);
  const ids = Array.from({ length: 100 }, (_, i) => `t${i}`);
  for (const id of ids) {
    assert.equal(table.moves(id), undefined);
    const tuple = table.get(id) ?? assert.fail();
    assert.ok(table.moving.has(tuple));
    assert.equal(table.get(id), tuple);
    assert.equal(table.moves(id), tuple);
    assert.equal(counted(), MANY);
  }
  for (let i = MANY; i < 2 * MANY; i++) table.add(`t${i}`, STATE).held = true;
  for (let i = 0; i < 5; i++) table.settle(2 * MANY);
  for (const id of ids) assert.equal(table.moves(id), undefined, "it rests again");
  assert.equal(counted(), 2 * MANY);
});

Deno.test("a tuple of the disk that may not rest is in motion from the beginning (TT2)", () => {
  const table = new TupleTable(), how = { unacked: ["b"], isAmended: true };
  table.addAtRest("rests", STATE, how);
  table.addAtRest("moves", { ...STATE, rememberUntilS: 2 ** 32 }, how);
  assert.deepEqual(["rests", "moves"].map((id) => table.moves(id)?.isAmended), [undefined, true]);
  assert.deepEqual(["rests", "moves"].map((id) => table.peek(id)?.unacked), [["b"], ["b"]]);
  assert.equal(table.moving.size, 1);
});

Deno.test("a walk finds all that it wants, in parts of the size that was asked for (TT3)", () => {
  const table = new TupleTable(), wanted = new Set<string>();
  for (let i = 0; i < MANY; i++) {
    const topic = i % 3 === 0 ? "sms" : "mail";
    table.add(`t${i}`, { ...STATE, topic }).held = true;
    if (topic === "sms") wanted.add(`t${i}`);
  }
  table.settle(MANY);
  for (let i = 0; i < 300; i++) {
    table.delete(table.get(`t${i}`) ?? assert.fail());
    wanted.delete(`t${i}`);
  }
  const found: string[] = [];
  for (let at: TupleSlot = 0, before = 0; at < table.end; before = found.length) {
    const next = table.walk(at, { slots: 1_000, tuples: 100 }, {
      wants: ({ topic }) => topic === "sms",
      visit: (id, slot) => {
        assert.equal(table.idAt(slot), id);
        found.push(id);
      },
    });
    assert.ok(found.length - before <= 100 && next - at <= 1_000 && next > at);
    at = next;
  }
  assert.deepEqual([found.length, new Set(found)], [wanted.size, wanted]);
});

Deno.test("walks take turns, and one that is begun again goes all around once more", () => {
  const table = new TupleTable(), visited: Record<string, number> = { one: 0, two: 0 }, turns: string[] = [];
  for (let i = 0; i < MANY; i++) table.add(`t${i}`, STATE);
  const walks = new Walks(table, (reason) => {
    turns.push(reason);
    return { wants: () => true, visit: () => visited[reason] = (visited[reason] ?? 0) + 1 };
  });
  walks.begin("one");
  walks.step();
  walks.begin("two");
  walks.begin("one");
  for (let steps = 0; !walks.isOver; steps++) {
    assert.ok(steps < 100);
    walks.step();
  }
  assert.deepEqual(visited, { one: MANY + 1_000, two: MANY });
  assert.deepEqual(turns.slice(0, 5), ["one", "one", "two", "one", "two"]);
  walks.begin("one");
  walks.end("one");
  assert.ok(walks.isOver);
});

Deno.test("a roster keeps its number while it is used, and is told apart from all others (RO1)", () => {
  const rosters = new Rosters();
  const of = (rest: Partial<Roster> = {}): Roster => ({
    ...{ topic: "q", f: 1, owners: ["a", "b"], former: [], unacked: [], gone: false },
    ...rest,
  });
  const all = [
    of(),
    of({ topic: "r" }),
    of({ f: 2 }),
    of({ owners: ["b", "a"] }),
    of({ owners: ["a"], former: ["b"] }),
    of({ owners: ["a"], unacked: ["b"] }),
    of({ gone: true }),
  ];
  const numbers = all.map((roster) => rosters.use(roster));
  assert.equal(new Set(numbers).size, all.length);
  for (const [i, number] of numbers.entries()) {
    assert.deepEqual(rosters.at(number), all[i]);
    assert.equal(rosters.use(all[i] ?? assert.fail()), number);
    rosters.release(number);
    assert.deepEqual(rosters.at(number), all[i], "used once still");
  }
  assert.deepEqual([...rosters.counted()].map(({ count }) => count), all.map(() => 1));
  rosters.release(numbers[2] ?? assert.fail());
  assert.throws(() => rosters.at(numbers[2] ?? assert.fail()), /RO1/);
  assert.equal(rosters.use(of({ topic: "new" })), numbers[2]);
});

Deno.test("a set of slots has what was added", () => {
  const slots = new SlotSet(), draws = new Draws("slots"), model = new Set<number>();
  for (let i = 0; i < 2_000; i++) {
    const slot = draws.integer(0, draws.pick([100, 3_000, 100_000]));
    slots.add(slot);
    model.add(slot);
  }
  for (let slot = 0; slot <= 100_100; slot++) assert.equal(slots.has(slot), model.has(slot), `${slot}`);
  slots.clear();
  assert.ok([...model].every((slot) => !slots.has(slot)));
});
