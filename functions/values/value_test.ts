import assert from "node:assert/strict";
import fc from "fast-check";
import { byteString } from "../../store/model/key.ts";
import { VALUE_TAG } from "../../store/model/value.ts";
import { codeOf } from "../vocabulary/errors.ts";
import { KvU64 } from "./kv_u64.ts";
import { decodeValue, encodeValue } from "./value.ts";

const shared = { x: 1 };
const cyclic: { self?: unknown } = {};
cyclic.self = cyclic;
const match = /b/.exec("abc");

Deno.test("encodeValue picks the encoding by what the value survives (V2)", () => {
  const table: [keyof typeof VALUE_TAG, unknown][] = [
    ["json", null],
    ["json", true],
    ["json", {}],
    ["json", { a: [1, "x", { b: null }], __proto__: null }],
    ["json", { a: "\ud800" }],
    ["json", JSON.parse('{"__proto__": 1}')],
    ["text", ""],
    ["text", "grüße\u0000"],
    ["clone", "\ud800"],
    ["number", 0],
    ["number", -0],
    ["number", NaN],
    ["u64", new KvU64(7n)],
    ["bytes", new Uint8Array([1, 2])],
    ["bytes", new Uint8Array()],
    ["clone", undefined],
    ["clone", 7n],
    ["clone", new Date(5)],
    ["clone", new Map([[{ a: 1 }, new Set([1])]])],
    ["clone", { a: undefined }],
    ["clone", { a: -0 }],
    ["clone", { a: NaN }],
    ["clone", [1, , 2]], // deno-lint-ignore-line no-sparse-arrays
    ["clone", match],
    ["clone", [shared, shared]],
    ["clone", cyclic],
    ["clone", { at: new Uint8Array([1, 2, 3]) }],
    ["clone", new Float32Array([1.5])],
    ["clone", /a/gi],
  ];
  for (const [tag, value] of table) {
    const bytes = encodeValue(value);
    assert.equal(bytes[0], VALUE_TAG[tag], `not ${tag}: ${Deno.inspect(value)}`);
    if (tag !== "u64") assert.deepEqual(decodeValue(bytes), structuredClone(value));
  }
  assert.deepEqual(decodeValue(encodeValue(new KvU64(7n))), new KvU64(7n));
});

Deno.test("decodeValue gives a structured clone of what was encoded (V1)", () => {
  const anything = fc.anything({
    withBigInt: true,
    withDate: true,
    withMap: true,
    withSet: true,
    withTypedArray: true,
    withSparseArray: true,
    withObjectString: true,
    withNullPrototype: true,
  });
  fc.assert(
    fc.property(anything, (value) => {
      assert.deepEqual(decodeValue(encodeValue(value)), structuredClone(value));
    }),
    { numRuns: 500 },
  );
});

Deno.test("decodeValue answers any bytes with a value or value_corrupt (V3)", () => {
  const seeds = [
    { a: new Map([[1, 2]]), b: new Uint8Array(20) },
    { a: [1, "x"] },
    "text",
    new KvU64(3n),
    5,
    match,
  ];
  const mutated = fc.tuple(fc.constantFrom(...seeds), fc.array(fc.tuple(fc.nat(), fc.nat(255))), fc.nat())
    .map(
      ([seed, changes, cut]) => {
        const bytes = encodeValue(seed);
        for (const [at, byte] of changes) bytes[at % bytes.length] = byte;
        return bytes.subarray(0, cut % (bytes.length + 1));
      },
    );
  fc.assert(
    fc.property(fc.oneof(fc.uint8Array({ maxLength: 64 }), mutated), (bytes) => {
      try {
        decodeValue(bytes);
      } catch (error) {
        assert.equal(codeOf(error), "value_corrupt");
      }
    }),
    { numRuns: 2000 },
  );
  for (const bad of [[], [0x10, 1], [0x07], [0x04, 1], [0x05], [0x01], [0x01, 0x7b], [0x02, 0xff], [0x00]]) {
    assert.throws(
      () => decodeValue(Uint8Array.from(bad)),
      { code: "value_corrupt" },
      byteString(Uint8Array.from(bad)),
    );
  }
  assert.throws(() => decodeValue(new Uint8Array(20).fill(3), 10), { code: "value_corrupt" });
});

Deno.test("a decoded value shares no memory with its bytes (V3)", () => {
  const bytes = encodeValue({ at: new Uint8Array([1, 2, 3]) });
  const value = decodeValue(bytes) as { at: Uint8Array };
  bytes.fill(0);
  assert.deepEqual(value.at, new Uint8Array([1, 2, 3]));
});

Deno.test("deep and wide values are stored without JSON", () => {
  let deep: unknown = 1;
  for (let i = 0; i < 200; i++) deep = [deep];
  const wide = Array.from({ length: 70_000 }, () => 1);
  for (const value of [deep, wide]) {
    const bytes = encodeValue(value);
    assert.equal(bytes[0], VALUE_TAG.clone);
    assert.deepEqual(decodeValue(bytes), value);
  }
});

Deno.test("what a clone would make nothing of is refused, with its path (CL1)", async () => {
  class Secret {
    readonly #inside = 1;
    get inside() {
      return this.#inside;
    }
  }
  const key = await crypto.subtle.generateKey({ name: "HMAC", hash: "SHA-256" }, true, ["sign"]);
  const refused: [unknown, RegExp][] = [
    [new Blob(["x"]), /^The value is an object of the class Blob, which can't be stored/],
    [{ a: [1, { file: new File([], "f") }] }, /^value\.a\[1\]\.file is an object of the class File/],
    [new Map([["k", key]]), /^value\.get\("k"\) is an object of the class CryptoKey/],
    [new Set([new Secret()]), /^value \(an item\) is an object of the class Secret/],
    [{ "not a name": new URL("http://localhost/") }, /^value\["not a name"\] is an object of the class URL/],
    [new Headers(), /class Headers/],
    [new Response("x"), /class Response/],
    [new WeakMap(), /WeakMap/],
    [Promise.resolve(), /could not be cloned/],
    [{ f() {} }, /could not be cloned/],
    [[Symbol("s")], /could not be cloned/],
  ];
  for (const [value, message] of refused) {
    assert.throws(() => encodeValue(value), { code: "value_invalid", message });
  }
  class Point {
    x = 1;
  }
  class Named extends Map<number, number> {}
  class Failure extends Error {}
  for (
    const kept of [
      new Point(),
      [new Point()],
      new Named([[1, 2]]),
      new Failure("m"),
      new String("s"),
      Object.create(null),
    ]
  ) {
    assert.deepEqual(decodeValue(encodeValue(kept)), structuredClone(kept));
  }
  let deep: unknown = new Map([["end", 1]]);
  for (let i = 0; i < 3_000; i++) deep = [deep];
  assert.ok(encodeValue(deep).length > 3_000);
});
