import assert from "node:assert/strict";
import fc from "fast-check";
import { contribute, equalBytes, joinRows, type MergeError, resolve } from "../../../store/model/merge.ts";
import type { Incoming } from "../../../store/rows/rows.ts";
import type { Key } from "../../../store/model/key.ts";
import { VALUE_TAG } from "../../../store/model/value.ts";

function number(value: number): Uint8Array {
  const out = new Uint8Array(9);
  out[0] = VALUE_TAG.number;
  new DataView(out.buffer).setFloat64(1, value, true);
  return out;
}

const read = (value: Uint8Array | null): number | null => {
  const plain = resolve(value);
  return plain === null ? null : new DataView(plain.buffer, plain.byteOffset).getFloat64(1, true);
};

const row = (clock: number, replica: number, value: Uint8Array | null): Incoming => ({
  key: "k" as Key,
  clock,
  replica,
  value,
  known: 0,
  expiresAtMs: 0,
});

/** A row of a site after `sum` by that site, on top of what it had. */
const summed = (before: Incoming | undefined, clock: number, replica: number, amount: number): Incoming =>
  row(clock, replica, contribute(before, "sum", number(amount), { clock, replica }));

Deno.test("merge: sums of two sites on one base add up when they join", () => {
  const base = row(1, 1, number(10));
  const a = summed(base, 2, 1, 5), b = summed(base, 3, 2, 7);
  assert.equal(read(joinRows(a, b).value), 22);
  assert.equal(read(joinRows(b, a).value), 22);
});

Deno.test("merge: a site's own later sum replaces its earlier part, never adds to it twice", () => {
  const first = summed(undefined, 1, 1, 5);
  const second = summed(first, 2, 1, 5);
  assert.equal(read(joinRows(first, second).value), 10);
});

Deno.test("merge: a set ends what was summed onto an older base, whatever the order of arrival (G2)", () => {
  const base = row(1, 1, number(10));
  const sum = summed(base, 9, 1, 5), set = row(5, 2, number(100));
  assert.equal(read(joinRows(sum, set).value), 100);
  assert.equal(read(joinRows(set, sum).value), 100);
  assert.equal(joinRows(set, sum).clock, 9);
});

Deno.test("merge: min and max keep the extreme of all sites", () => {
  const a = row(2, 1, contribute(undefined, "max", number(3), { clock: 2, replica: 1 }));
  const b = row(3, 2, contribute(undefined, "max", number(8), { clock: 3, replica: 2 }));
  assert.equal(read(joinRows(a, b).value), 8);
  const low = row(4, 3, contribute(row(1, 1, number(4)), "min", number(6), { clock: 4, replica: 3 }));
  assert.equal(read(low.value), 4);
});

Deno.test("merge: a contribution of another type is refused", () => {
  const text = row(1, 1, new Uint8Array([VALUE_TAG.text, 65]));
  assert.throws(() => contribute(text, "sum", number(1), { clock: 2, replica: 1 }), (error: MergeError) => {
    assert.equal(error.code, "value_type");
    return true;
  });
});

/** Histories of a few sites that sum and set the row as they see it, each on its own chain of versions. */
const histories = fc.array(
  fc.record({
    site: fc.integer({ min: 1, max: 4 }),
    set: fc.boolean(),
    amount: fc.integer({ min: -9, max: 9 }),
  }),
  { minLength: 2, maxLength: 8 },
);

function rowsOf(steps: { site: number; set: boolean; amount: number }[]): Incoming[] {
  const seen = new Map<number, Incoming>();
  const rows: Incoming[] = [];
  steps.forEach((step, i) => {
    const made = step.set
      ? row(i + 1, step.site, number(step.amount))
      : summed(seen.get(step.site), i + 1, step.site, step.amount);
    const before = seen.get(step.site);
    const joined = before === undefined ? made : joinAny(before, made);
    seen.set(step.site, joined);
    rows.push(joined);
  });
  return rows;
}

const isPlain = (r: Incoming) => r.value?.[0] !== VALUE_TAG.merge;
const joinAny = (a: Incoming, b: Incoming): Incoming =>
  isPlain(a) && isPlain(b)
    ? (a.clock > b.clock || (a.clock === b.clock && a.replica >= b.replica) ? a : b)
    : joinRows(a, b);

Deno.test("merge: joins are commutative, associative and idempotent in what they read as (G1, store/model/row.ts R1)", () => {
  fc.assert(
    fc.property(histories, fc.infiniteStream(fc.nat()), (steps, order) => {
      const rows = rowsOf(steps);
      const forward = rows.reduce(joinAny);
      const shuffled = rows.map((r) => [order.next().value ?? 0, r] as const).sort((x, y) => x[0] - y[0]).map(
        ([, r]) => r,
      );
      const other = [...shuffled, ...shuffled].reduce(joinAny);
      assert.equal(read(other.value), read(forward.value));
      assert.equal(other.clock, forward.clock);
      assert.equal(read(joinAny(forward, forward).value), read(forward.value));
    }),
    { numRuns: 500 },
  );
});

Deno.test("merge: equal bytes are told from unequal ones", () => {
  assert.equal(equalBytes(null, null), true);
  assert.equal(equalBytes(null, number(1)), false);
  assert.equal(equalBytes(number(1), number(1)), true);
  assert.equal(equalBytes(number(1), number(2)), false);
});
