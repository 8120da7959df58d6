/** Keys against FoundationDB's documented encoding, an independent implementation, and K1–K3 of store/model/key.ts. */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import fc from "fast-check";
import { z } from "zod";
import {
  bytesOf,
  byteString,
  type Key,
  keyBytes,
  KeyError,
  keyFromBytes,
  type KeyPart,
  packKey,
  unpackKey,
} from "../../../store/model/key.ts";
import {
  holds,
  isPoint,
  KEY_END,
  keyAfter,
  pointRange,
  prefixRange,
  WHOLE,
} from "../../../store/model/range.ts";
import { keyPart as part, keyParts as parts, MAGNITUDE_MAX } from "./key_arbitrary.ts";
import { runPython, storedVectors } from "../../golden/python.ts";

const hex = (key: string) => Buffer.from(key, "latin1").toString("hex");
const keyOfHex = (text: string) => keyFromBytes(Buffer.from(text, "hex"));

/** A part as the vectors write it (tests/golden/keys.py). */
const VectorPart = z.union([
  z.strictObject({ bytes: z.string() }),
  z.strictObject({ string: z.string() }),
  z.strictObject({ bigint: z.string() }),
  z.strictObject({ number: z.string() }),
  z.strictObject({ boolean: z.boolean() }),
]);
const Vectors = z.array(z.strictObject({ parts: z.array(VectorPart), packed: z.string() }));

function partOf(vector: z.infer<typeof VectorPart>): KeyPart {
  if ("bytes" in vector) return new Uint8Array(Buffer.from(vector.bytes, "hex"));
  if ("string" in vector) return vector.string;
  if ("bigint" in vector) return BigInt(vector.bigint);
  if ("number" in vector) return Buffer.from(vector.number, "hex").readDoubleBE();
  return vector.boolean;
}

function vectorOf(part: KeyPart): z.infer<typeof VectorPart> {
  if (typeof part === "string") return { string: part };
  if (typeof part === "bigint") return { bigint: String(part) };
  if (typeof part === "boolean") return { boolean: part };
  if (typeof part !== "number") return { bytes: Buffer.from(part).toString("hex") };
  if (Number.isNaN(part)) return { number: "7ff8000000000000" };
  const bits = Buffer.alloc(8);
  bits.writeDoubleBE(part);
  return { number: bits.toString("hex") };
}

Deno.test("packKey gives what FoundationDB's specification of the tuple layer gives", () => {
  const documented: [KeyPart, string][] = [
    [new TextEncoder().encode("foo\0bar"), "01666f6f00ff62617200"],
    ["F\u00d4O\0bar", "0246c3944f00ff62617200"],
    [0n, "14"],
    [1n, "1501"],
    [-1n, "13fe"],
    [5551212n, "1754b46c"],
    [-5551212n, "11ab4b93"],
    [-42, "213fbaffffffffffff"],
    [false, "26"],
    [true, "27"],
  ];
  for (const [value, packed] of documented) assert.equal(hex(packKey([value])), packed);
});

Deno.test("packKey and unpackKey agree with the vectors, which lie in the order of their tuples", async () => {
  const vectors = Vectors.parse(JSON.parse(await storedVectors("keys.json")));
  assert.ok(vectors.length > 40);
  for (const vector of vectors) {
    const tuple = vector.parts.map(partOf);
    assert.equal(hex(packKey(tuple)), vector.packed);
    assert.deepEqual(unpackKey(keyOfHex(vector.packed)), tuple);
  }
  const keys = vectors.map((vector) => keyOfHex(vector.packed));
  assert.deepEqual(keys.toSorted((a, b) => a < b ? -1 : 1), keys);
});

Deno.test("the stored vectors are those of the independent implementation", async (t) => {
  const made = await runPython("keys.py", []);
  if (made === null) return void await t.step({ name: "no python3 here", ignore: true, fn: () => {} });
  assert.deepEqual(JSON.parse(made), JSON.parse(await storedVectors("keys.json")));
});

Deno.test("packKey agrees with the independent implementation on drawn tuples, in bytes and in order (K1)", async (t) => {
  const drawn = fc.sample(parts, { numRuns: 400, seed: 7 });
  const input = JSON.stringify(drawn.map((tuple) => tuple.map(vectorOf)));
  const packed = await runPython("keys.py", ["--check"], input);
  const order = await runPython("keys.py", ["--order"], input);
  if (packed === null || order === null) {
    return void await t.step({ name: "no python3 here", ignore: true, fn: () => {} });
  }
  const keys = drawn.map((tuple) => packKey(tuple));
  assert.deepEqual(keys.map(hex), JSON.parse(packed));
  const theirs = z.array(z.number()).parse(JSON.parse(order)).map((index) => keys[index]);
  assert.deepEqual(theirs, keys.toSorted((a, b) => a < b ? -1 : a > b ? 1 : 0));
});

Deno.test("packed keys compare as their bytes do (K1)", () => {
  fc.assert(fc.property(parts, parts, (a, b) => {
    const [x, y] = [packKey(a), packKey(b)];
    assert.equal(Math.sign(Buffer.compare(keyBytes(x), keyBytes(y))), x < y ? -1 : x > y ? 1 : 0);
  }));
});

Deno.test("unpackKey undoes packKey (K2)", () => {
  fc.assert(fc.property(parts, (tuple) => {
    assert.deepEqual(unpackKey(packKey(tuple)), tuple);
    assert.equal(keyFromBytes(keyBytes(packKey(tuple))), packKey(tuple));
  }));
});

Deno.test("packing a concatenation is the concatenation of packings (K3)", () => {
  fc.assert(fc.property(parts, parts, (a, b) => {
    assert.equal(packKey([...a, ...b]), packKey(a) + packKey(b));
  }));
});

Deno.test("unpackKey takes canonical encodings only, and throws a KeyError for all else (K2)", () => {
  const alphabet = fc.oneof(
    fc.constantFrom(0x00, 0x01, 0x02, 0x0c, 0x13, 0x14, 0x15, 0x1c, 0x21, 0x26, 0xff),
    fc.nat(255),
  );
  const altered = fc.tuple(parts, fc.nat(), fc.nat(255)).map(([tuple, at, byte]) => {
    const bytes = keyBytes(packKey(tuple));
    if (bytes.length > 0) bytes[at % bytes.length] = byte;
    return bytes;
  });
  const bytes = fc.oneof(fc.array(alphabet, { maxLength: 14 }).map((some) => new Uint8Array(some)), altered);
  let accepted = 0;
  fc.assert(
    fc.property(bytes, (some) => {
      const key = keyFromBytes(some);
      let tuple: KeyPart[];
      try {
        tuple = unpackKey(key);
      } catch (error) {
        assert.ok(error instanceof KeyError, String(error));
        return;
      }
      accepted++;
      assert.equal(packKey(tuple), key);
    }),
    { numRuns: Number(Deno.env.get("SOJOURN_FUZZ_KEYS") ?? 5_000) },
  );
  assert.ok(accepted > 50, `only ${accepted} were keys`);
});

Deno.test("unpackKey refuses by table", () => {
  const refused: [string, string][] = [
    ["00", "a type that we leave out (null)"],
    ["05", "a nested tuple"],
    ["0b00", "an integer of more than 8 bytes"],
    ["1d09", "an integer of more than 8 bytes"],
    ["20c2280000", "a single float"],
    ["ff", "the end of all keys"],
    ["0161", "bytes without an end"],
    ["02ff00", "a string that is not UTF-8"],
    ["02c08000", "an overlong zero"],
    ["02eda08000", "a lone surrogate"],
    ["1500", "an integer with a leading zero"],
    ["13ff", "a negative integer with a leading zero"],
    ["16ff", "an integer cut short"],
    ["2180000000000000", "a double cut short"],
    ["21fff8000000000001", "another NaN"],
    ["210007ffffffffffff", "a negative NaN"],
    ["27ff", "a part, then nothing that is one"],
  ];
  for (const [text, why] of refused) assert.throws(() => unpackKey(keyOfHex(text)), KeyError, why);
  assert.throws(() => unpackKey("\x02\u0141\x00"), KeyError, "a code unit that is no byte");
});

Deno.test("packKey refuses what is no part", () => {
  const refused: unknown[] = [
    undefined,
    null,
    {},
    [],
    Symbol("x"),
    2n ** 64n,
    -(2n ** 64n),
    "\ud800",
    new ArrayBuffer(1),
  ];
  for (const value of refused) assert.throws(() => packKey([value as KeyPart]), KeyError);
  assert.equal(hex(packKey([MAGNITUDE_MAX])), "1cffffffffffffffff");
});

Deno.test("byteString and bytesOf undo each other at any size", () => {
  for (const length of [0, 1, 8191, 8192, 8193, 100_000]) {
    const bytes = new Uint8Array(length).map((_, i) => i * 7);
    assert.deepEqual(bytesOf(byteString(bytes)), bytes);
  }
});

Deno.test("prefixRange holds the proper extensions of a tuple, and nothing else", () => {
  const startsWith = (tuple: readonly KeyPart[], prefix: readonly KeyPart[]) =>
    tuple.length > prefix.length && packKey(tuple.slice(0, prefix.length)) === packKey(prefix);
  const related = fc.tuple(parts, fc.array(part, { maxLength: 2 }), fc.boolean());
  fc.assert(fc.property(related, parts, ([prefix, more, near], other) => {
    const tuple = near ? [...prefix, ...more] : other;
    assert.equal(holds(prefixRange(packKey(prefix)), packKey(tuple)), startsWith(tuple, prefix));
  }));
  const cases: [KeyPart[], KeyPart[], boolean][] = [
    [["a"], ["a"], false],
    [["a"], ["a", "\0"], true],
    [["a"], ["a\0"], false],
    [["a"], ["a\0", 1], false],
    [["a"], ["a\0b", "c"], false],
    [["a\0"], ["a\0", ""], true],
    [["a\0"], ["a", ""], false],
    [["a"], ["a", new Uint8Array([0])], true],
    [["a"], ["a", true], true],
    [[new Uint8Array([0])], [new Uint8Array([0, 255]), 1], false],
    [[1n], [1n, 1n], true],
    [[1n], [257n], false],
    [[], [new Uint8Array()], true],
    [[], [], false],
  ];
  for (const [prefix, tuple, expected] of cases) {
    assert.equal(holds(prefixRange(packKey(prefix)), packKey(tuple)), expected);
  }
});

Deno.test("pointRange holds its key only; no key lies between a key and keyAfter of it", () => {
  fc.assert(fc.property(parts, parts, (a, b) => {
    const [x, y] = [packKey(a), packKey(b)];
    assert.equal(holds(pointRange(x), y), x === y);
    assert.equal(x < y, keyAfter(x) <= y);
    assert.ok(isPoint(pointRange(x)) && holds(WHOLE, x) && x < KEY_END);
    assert.ok(!isPoint(prefixRange(x)));
  }));
  assert.ok(isPoint(pointRange("" as Key)));
});
