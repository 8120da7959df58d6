/**
 * The class `KvU64`, Deno KV's unsigned 64-bit integer. It has the same name, shape and string tag as `Deno.KvU64`,
 * because an isolate runs without Deno's own KV: there the bootstrap puts this class in its place.
 */

const U64_MAX = 0xffff_ffff_ffff_ffffn;
const TAG = "Deno.KvU64";

/**
 * Unsigned 64-bit integer that `sum`, `min` and `max` work on.
 *
 * ```ts
 * import { KvU64 } from "sojourn";
 * import assert from "node:assert/strict";
 * assert.equal(new KvU64(7n).value, 7n);
 * assert.throws(() => new KvU64(-1n), RangeError);
 * ```
 */
export class KvU64 {
  /** Integer, 0 … 2⁶⁴ − 1. */
  readonly value: bigint;

  /** Makes one of a bigint. @throws TypeError when `value` is no bigint, RangeError when it does not fit. */
  constructor(value: bigint) {
    // These are Deno's own words, which programs test for.
    if (typeof value !== "bigint") throw new TypeError(`Value must be a bigint: received ${typeof value}`);
    if (value < 0n) throw new RangeError(`Value must be a positive bigint: received ${value}`);
    if (value > U64_MAX) {
      throw new RangeError("Value must fit in a 64-bit unsigned integer");
    }
    this.value = value;
    Object.freeze(this);
  }

  /** Returns the integer, for comparisons. */
  valueOf(): bigint {
    return this.value;
  }

  /** Returns the integer in decimal digits. */
  toString(): string {
    return this.value.toString();
  }

  /** Tag by which every copy of this class, and Deno's own, is recognised. */
  get [Symbol.toStringTag](): string {
    return TAG;
  }

  /** Returns the text that Deno prints for its own KvU64. */
  [Symbol.for("Deno.customInspect")](
    inspect: (value: unknown, options?: unknown) => string,
    options?: unknown,
  ): string {
    return `[${TAG}: ${inspect(this.value, options)}]`;
  }
}

/** Reports whether a value is a KvU64 of this module, of another copy of it, or of Deno. */
export function isKvU64(value: unknown): value is KvU64 {
  if (typeof value !== "object" || value === null) return false;
  if (value instanceof KvU64) return true;
  return Symbol.toStringTag in value && value[Symbol.toStringTag] === TAG && "value" in value &&
    typeof value.value === "bigint" && value.value >= 0n && value.value <= U64_MAX;
}
