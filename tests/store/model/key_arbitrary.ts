/** Tuples of key parts, borders among them, for tests and fuzzing. */
import fc from "fast-check";
import type { KeyPart } from "../../../store/model/key.ts";

/** The largest that eight bytes hold. */
export const MAGNITUDE_MAX = 2n ** 64n - 1n;
/** Any part. */
export const keyPart: fc.Arbitrary<KeyPart> = fc.oneof(
  fc.uint8Array({ maxLength: 12 }),
  fc.array(fc.constantFrom(0, 1, 254, 255), { maxLength: 6 }).map((bytes) => new Uint8Array(bytes)),
  fc.string({ maxLength: 12, unit: "binary" }),
  fc.string({ maxLength: 6, unit: fc.constantFrom("\u0000", "\u0001", "a", "ÿ", "\uffff", "\u{10000}") }),
  fc.bigInt({ min: -MAGNITUDE_MAX, max: MAGNITUDE_MAX }),
  fc.bigInt({ min: -70_000n, max: 70_000n }),
  fc.double(),
  fc.boolean(),
);
/** Any tuple. */
export const keyParts: fc.Arbitrary<KeyPart[]> = fc.array(keyPart, { maxLength: 5 });
