/**
 * The values of rows: a tag byte, then a body. The store itself looks only at merge values; the other tags are for the
 * app API (functions/values/value.ts), and listed here so that one table holds them all.
 */
export const VALUE_TAG = {
  /** Structured clone in V8's form. */
  clone: 0x00,
  /** JSON in UTF-8, for values that survive it unchanged. */
  json: 0x01,
  /** Text in UTF-8. */
  text: 0x02,
  /** Raw bytes (Uint8Array). */
  bytes: 0x03,
  /** Deno.KvU64: 8 bytes, little endian. */
  u64: 0x04,
  /** Number of JSON's, for sums of plain numbers: 8 bytes, IEEE 754, little endian. */
  number: 0x05,
  /** Structured clone in a form of our own (functions/tracked/content.ts): what stateful sessions write. */
  content: 0x06,
  /** Merge value: see store/model/merge.ts. */
  merge: 0x10,
} as const;

const NUMBER_BYTES = 9;

/** Reports whether a value is a number, as it is added to a merge value. */
export const isNumberValue = (value: Uint8Array): boolean =>
  value.length === NUMBER_BYTES && (value[0] === VALUE_TAG.u64 || value[0] === VALUE_TAG.number);

/** Reports whether an app may write a value as it is: any but a merge value, which the store alone makes. */
export const isPlainValue = (value: Uint8Array): boolean => value[0] !== VALUE_TAG.merge;
