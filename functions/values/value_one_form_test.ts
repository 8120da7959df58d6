/** Values as isolates of stateful sessions write them; a file of its own, for it is so for all of a process. */
import assert from "node:assert/strict";
import fc from "fast-check";
import { VALUE_TAG } from "../../store/model/value.ts";
import { codeOf } from "../vocabulary/errors.ts";
import { decodeValue, encodeValue, useOneForm } from "./value.ts";

useOneForm();

/** Bits of a number, as they are: V8 keeps what a view of the memory said. */
const withBits = (bits: bigint): number => new Float64Array(new BigUint64Array([bits]).buffer)[0] ?? 0;
/** A whole number that V8 holds as a double, and one that it holds as an integer, when the code is young. */
const times = (a: number, b: number): number => a * b;

Deno.test("a value has one form, whatever V8 holds it as (V4)", () => {
  const roomy = new Array(3);
  roomy.fill(0);
  const cut = `\u2192${"a".repeat(40)}`.slice(1);
  const pairs: [unknown, unknown][] = [
    [withBits(0xfff8000000000000n), NaN],
    [withBits(0x7ff8000000000123n), NaN],
    [{ a: withBits(0xfffefffffff6ffffn) }, { a: NaN }],
    [[withBits(0xfff8000000000000n), 1.5], [NaN, 1.5]],
    [new Map([["a", times(0.5, 4)]]), new Map([["a", 2]])],
    [[times(0.5, 4), undefined], [2, undefined]],
    [{ of: roomy, none: undefined }, { of: [0, 0, 0], none: undefined }],
    [{ cut, none: undefined }, { cut: "a".repeat(40), none: undefined }],
    [new Date(NaN), new Date(withBits(0xfff8000000000000n))],
  ];
  for (const [one, other] of pairs) {
    assert.deepEqual(one, other);
    assert.equal(encodeValue(one).toHex(), encodeValue(other).toHex(), Deno.inspect(one));
  }
});

Deno.test("in one form decodeValue gives a structured clone too, and the same bytes again (V1, V4)", () => {
  const options = {
    withBigInt: true,
    withDate: true,
    withMap: true,
    withSet: true,
    withTypedArray: true,
    withSparseArray: true,
    withNullPrototype: true,
  };
  fc.assert(
    fc.property(fc.anything(options), (value) => {
      const bytes = encodeValue(value);
      const read = decodeValue(bytes);
      assert.deepEqual(read, structuredClone(value));
      assert.deepEqual(encodeValue(read), bytes);
    }),
    { numRuns: 500 },
  );
});

Deno.test("in one form a view holds what it shows, and what has no node is V8's", () => {
  const part = new Uint8Array(100_000).subarray(10, 13);
  part.set([1, 2, 3]);
  const bytes = encodeValue({ part });
  assert.equal(bytes[0], VALUE_TAG.content);
  assert.ok(bytes.length < 40, `${bytes.length} bytes`);
  assert.deepEqual(decodeValue(bytes), { part: new Uint8Array([1, 2, 3]) });
  let deep: unknown = 1;
  for (let i = 0; i < 200; i++) deep = [deep];
  for (const value of [deep, { boxed: Object(5) }]) {
    assert.equal(encodeValue(value)[0], VALUE_TAG.clone);
    assert.deepEqual(decodeValue(encodeValue(value)), structuredClone(value));
  }
  for (const value of [() => 1, { promise: Promise.resolve() }, { f: () => 1 }, new WeakMap()]) {
    assert.throws(() => encodeValue(value), { code: "value_invalid" });
  }
});

Deno.test("decodeValue answers broken content with value_corrupt (V3)", () => {
  const whole = encodeValue({ a: new Map([[1, new Date(2)]]), b: new Uint8Array(9), c: /x/g, d: [1, , 2] }); // deno-lint-ignore-line no-sparse-arrays
  assert.equal(whole[0], VALUE_TAG.content);
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.nat(), fc.nat(255))), fc.nat(), (changes, cut) => {
      const bytes = Uint8Array.from(whole);
      for (const [at, byte] of changes) bytes[1 + at % (bytes.length - 1)] = byte;
      try {
        decodeValue(bytes.subarray(0, cut % (bytes.length + 1)));
      } catch (error) {
        assert.equal(codeOf(error), "value_corrupt");
      }
    }),
    { numRuns: 1000 },
  );
});
