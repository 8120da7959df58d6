import assert from "node:assert/strict";
import fc from "fast-check";
import { digestOf, RangeDigester, sameDigest } from "../../../store/model/digest.ts";
import { type Key, packKey } from "../../../store/model/key.ts";
import { COMPARE_PARTS_MAX } from "../../../store/model/limits.ts";
import { holds, WHOLE } from "../../../store/model/range.ts";
import { VALUE_TAG } from "../../../store/model/value.ts";

const row = fc.record({
  key: fc.oneof(fc.string(), fc.nat(20)).map((part) => packKey(["row", part])),
  clock: fc.nat(Number.MAX_SAFE_INTEGER),
  replica: fc.nat(0xffffff),
  value: fc.option(fc.uint8Array({ minLength: 1, maxLength: 40 }), { nil: null }),
});
const rowsOf = (max: number) => fc.uniqueArray(row, { selector: ({ key }) => key, maxLength: max });
const inOrder = (a: { key: Key }, b: { key: Key }) => a.key < b.key ? -1 : 1;

Deno.test("digest is the same for the same rows in any order, and another where a version or a row is (G1)", () => {
  fc.assert(fc.property(rowsOf(20), fc.nat(), (rows, nth) => {
    assert.ok(sameDigest(digestOf(rows), digestOf(rows.toReversed())));
    const [one] = rows.slice(nth % (rows.length || 1));
    if (one === undefined) return;
    const others = rows.filter((each) => each !== one);
    assert.ok(!sameDigest(digestOf(rows), digestOf(others)));
    assert.ok(!sameDigest(digestOf(rows), digestOf([...others, { ...one, clock: one.clock ^ 1 }])));
    assert.ok(!sameDigest(digestOf(rows), digestOf([...others, { ...one, replica: one.replica ^ 1 }])));
  }));
});

Deno.test("digest tells merge rows of one version apart by their values, and no others", () => {
  const of = (...value: number[]) =>
    digestOf([{ key: packKey(["k"]), clock: 5, replica: 1, value: Uint8Array.from(value) }]);
  assert.ok(!sameDigest(of(VALUE_TAG.merge, 1), of(VALUE_TAG.merge, 2)));
  assert.ok(!sameDigest(of(VALUE_TAG.merge, 1), of(VALUE_TAG.merge, 1, 0)));
  assert.ok(sameDigest(of(VALUE_TAG.merge + 1, 1), of(VALUE_TAG.merge + 1, 2)));
});

Deno.test("digest of a range has few parts, which hold its rows in order and add up (G3)", () => {
  fc.assert(
    fc.property(rowsOf(300), (unsorted) => {
      const rows = unsorted.toSorted(inOrder), digester = new RangeDigester();
      for (const each of rows) digester.add(each);
      const { digest, parts, rows: count } = digester.done(WHOLE);
      assert.ok(sameDigest(digest, digestOf(rows)));
      assert.equal(count, rows.length);
      assert.ok(parts.length <= COMPARE_PARTS_MAX && parts.length >= Math.min(rows.length, 2));
      let start = WHOLE.start;
      for (const part of parts) {
        const inside = rows.filter(({ key }) => holds({ start, end: part.end }, key));
        assert.ok(part.end > start && inside.length > 0);
        assert.ok(sameDigest(part.digest, digestOf(inside)));
        start = part.end;
      }
      assert.ok(rows.length === 0 || start === WHOLE.end);
    }),
    { numRuns: 200 },
  );
});
