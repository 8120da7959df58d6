/**
 * The relative key spaces of an app (store_client.ts), packed: prefixes, ranges within them, cursors.
 *
 * Packing a concatenation is concatenating packings (store/model/key.ts, K3), so a prefix is packed once and a row's
 * packed key is sliced, never unpacked whole.
 */
import { type Key, KeyError, type KeyPart, packKey } from "../store/model/key.ts";
import { KvTypeError } from "./vocabulary/errors.ts";
import { KEY_BYTES_MAX } from "./vocabulary/limits.ts";

/** Half-open range of packed keys. */
export interface KeyInterval {
  start: Key;
  end: Key;
}

/** Packs a key that an app wrote. @throws KvTypeError `limit_key`, `key_invalid`. */
export function packBounded(parts: readonly KeyPart[]): Key {
  if (!Array.isArray(parts)) {
    throw new KvTypeError("key_invalid", `a key is an array of parts, not ${typeof parts}`);
  }
  const packed = packParts(parts);
  if (packed.length > KEY_BYTES_MAX) {
    throw new KvTypeError(
      "limit_key",
      `Key too large (max ${KEY_BYTES_MAX} bytes, this one has ${packed.length})`,
    );
  }
  return packed;
}

/** Packs parts. A part of a wrong type is a TypeError to apps, as in Deno. */
function packParts(parts: readonly KeyPart[]): Key {
  try {
    return packKey(parts);
  } catch (error) {
    throw error instanceof KeyError ? new KvTypeError("key_invalid", error.message) : error;
  }
}

/** Space of `env.kv`. */
export const KV_SPACE: Key = packKey(["kv"]);

/** Packs a key behind the space of `env.kv`. @throws KvTypeError `limit_key`, `key_invalid`. */
export function packUserKey(key: readonly KeyPart[]): Key {
  const packed = packBounded(key);
  if (packed.length === 0) throw new KvTypeError("key_invalid", "key cannot be empty");
  return KV_SPACE + packed as Key;
}

/** Bounds of a list, in packed parts relative to a space. */
export interface Bounds {
  readonly prefix?: readonly KeyPart[] | undefined;
  readonly start?: readonly KeyPart[] | undefined;
  readonly end?: readonly KeyPart[] | undefined;
}

/** Returns the range of a selector behind `space`. @throws KvTypeError `key_invalid`. */
export function intervalOf(space: Key, bounds: Bounds): KeyInterval {
  const { prefix, start, end } = bounds;
  const lead = space + (prefix === undefined ? "" : packBounded(prefix));
  const all = { start: lead + "\x00", end: lead + "\xff" };
  const from = start === undefined ? all.start : space + packBounded(start);
  const to = end === undefined ? all.end : space + packBounded(end);
  if (start !== undefined && !(from >= lead && from < all.end)) throw outsideError("Start");
  if (end !== undefined && !(to >= lead && to <= all.end)) throw outsideError("End");
  if (from > to) throw new KvTypeError("key_invalid", "Start key is greater than end key");
  return { start: from as Key, end: to as Key };
}

/** Makes the error of a bound that lies outside the prefix. */
export const outsideError = (which: string): KvTypeError =>
  new KvTypeError("key_invalid", `${which} key is not in the keyspace defined by prefix`);

/** Returns a cursor: a place in a list, relative to its space. */
export const encodeCursor = (space: Key, at: string): string =>
  btoa(at.slice(space.length)).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");

/**
 * Returns the packed place that a cursor names, which must lie in the list's range.
 *
 * @throws KvTypeError `key_invalid`.
 */
export function decodeCursor(space: Key, interval: KeyInterval, cursor: string): Key {
  let rest: string;
  try {
    rest = atob(cursor.replaceAll("-", "+").replaceAll("_", "/"));
  } catch {
    throw badCursor(cursor);
  }
  const at = space + rest as Key;
  if (rest === "" || at < interval.start || at > interval.end) throw badCursor(cursor);
  return at;
}

const badCursor = (cursor: string): KvTypeError =>
  new KvTypeError(
    "key_invalid",
    `invalid cursor: ${JSON.stringify(String(cursor).slice(0, 40))} is not one of this list`,
  );
