/**
 * The ranges of keys, half-open: `start` is in, `end` is not. A get is the range of one key, a prefix list is the range
 * of its extensions.
 */
import type { Key } from "./key.ts";

/** Range of all keys k with start ≤ k < end. */
export interface Range {
  readonly start: Key;
  readonly end: Key;
}

/** End above every packed key: no part begins with 0xff. */
export const KEY_END = "\xff" as Key;

/** Range of every key. */
export const WHOLE: Range = { start: "" as Key, end: KEY_END };

/** Returns the key right after `key` in byte order. */
export const keyAfter = (key: Key): Key => key + "\x00" as Key;

/** Returns the range that holds one key. */
export const pointRange = (key: Key): Range => ({ start: key, end: keyAfter(key) });

/** Reports whether a range holds one key only. */
export const isPoint = (range: Range): boolean => range.end === range.start + "\x00";

/** Returns the range of all proper extensions of a tuple (as a Deno KV prefix: the tuple itself is not in it). */
export const prefixRange = (prefix: Key): Range => ({
  start: prefix + "\x00" as Key,
  end: prefix + "\xff" as Key,
});

/** Reports whether a range holds a key. */
export const holds = (range: Range, key: Key): boolean => key >= range.start && key < range.end;

/** Reports whether two ranges share a key. */
export const overlap = (a: Range, b: Range): boolean => a.start < b.end && b.start < a.end;

/** Returns the parts of a range that lie below and above another. */
export const partsOutside = (range: Range, other: Range): Range[] =>
  [
    { start: range.start, end: least(range.end, other.start) },
    { start: range.start < other.end ? other.end : range.start, end: range.end },
  ].filter((part) => !isEmpty(part));

/** Returns the part that two ranges share; empty where they share none. */
export const common = (a: Range, b: Range): Range => ({
  start: a.start < b.start ? b.start : a.start,
  end: least(a.end, b.end),
});

const least = (a: Key, b: Key): Key => a < b ? a : b;

/** Reports whether a range holds no key. */
export const isEmpty = (range: Range): boolean => range.start >= range.end;
