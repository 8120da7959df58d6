import assert from "node:assert/strict";
import fc from "fast-check";
import { batches, decodeRedo, encodeRedo } from "./denokv_batch.ts";
import { type DenoKvMutation, type KvPart, PIECE_BYTES, rowKey } from "./denokv_layout.ts";
import { keyFromBytes } from "../../store/model/key.ts";

const part: fc.Arbitrary<KvPart> = fc.oneof(
  fc.constantFrom("r", "j", "c", "cursor/ü"),
  fc.maxSafeNat(),
  fc.uint8Array({ maxLength: 40 }),
  fc.nat(300).map((length) => new Uint8Array(length)), // zeros count twice
);
const mutation: fc.Arbitrary<DenoKvMutation> = fc.record({
  key: fc.array(part, { minLength: 1, maxLength: 3 }),
  value: fc.option(fc.oneof(
    { weight: 5, arbitrary: fc.uint8Array({ maxLength: 60 }) },
    { weight: 1, arbitrary: fc.nat(PIECE_BYTES).map((length) => new Uint8Array(length).fill(length)) },
  )),
}, { noNullPrototype: true });

/** Fails with the seed, and not with megabytes of values. */
function brief<T>(run: fc.RunDetails<T>): void {
  if (run.failed) throw new Error(`seed ${run.seed}, path ${run.counterexamplePath}: ${run.errorInstance}`);
}

Deno.test("batches keep all mutations in order, each batch within what Deno KV takes", async () => {
  const folder = await Deno.makeTempDir({ prefix: "sojourn-batch-" });
  const kv = await Deno.openKv(`${folder}/kv.db`);
  try {
    const many = fc.tuple(
      fc.array(mutation, { minLength: 1, maxLength: 60 }),
      fc.integer({ min: 1, max: 60 }),
    );
    await fc.assert(
      fc.asyncProperty(many, async ([some, times]) => {
        const all = Array.from({ length: times }, () => some).flat();
        const split = batches(all);
        assert.deepEqual(split.flat(), all);
        for (const batch of split) {
          const atomic = kv.atomic();
          for (const { key, value } of batch) {
            if (value === null) atomic.delete(key);
            else atomic.set(key, value);
          }
          await atomic.commit(); // throws beyond a limit
        }
      }),
      // A failure's values are megabytes: the seed tells enough.
      { numRuns: 12, reporter: brief },
    );
  } finally {
    kv.close();
    await Deno.remove(folder, { recursive: true });
  }
});

Deno.test("Deno KV takes the longest row keys, whatever their bytes (L2)", async () => {
  const kv = await Deno.openKv(":memory:");
  try {
    for (const length of [999, 1000, 1001, 2048, 2200]) {
      for (const byte of [0, 1, 255]) {
        const key = rowKey(keyFromBytes(new Uint8Array(length).fill(byte)));
        await kv.set(key, length);
        assert.equal((await kv.get(key)).value, length);
      }
    }
  } finally {
    kv.close();
  }
});

Deno.test("decodeRedo undoes encodeRedo", () => {
  fc.assert(
    fc.property(fc.array(mutation, { maxLength: 30 }), (mutations) => {
      const pieces = encodeRedo(mutations);
      assert.ok(pieces.every((piece) => piece.length <= PIECE_BYTES));
      assert.deepEqual(decodeRedo(pieces), mutations);
    }),
    { numRuns: 50 },
  );
});
