/**
 * The entries of indexes: rows whose keys order a table by other fields.
 *
 *     key    [...("root"), "i", table, index, ...indexed fields, ...key fields, nonce]
 *     value  tag "bytes", then the length of the packed key fields as 2 bytes, big endian
 *
 * Every put writes the row and, in the same atomic operation, one entry per index under a fresh *nonce* (a number: 9
 * bytes packed). A put does not read the row that it replaces, so that writes stay local; the replaced row's entries
 * become stale, are never shown, and are removed by readers that meet them and by later puts that know of them.
 *
 * I1  An entry shows a row only while the row's fields are the entry's (verified on each read).
 * I2  An entry's key is written by one put only. So removing an entry that its row has outlived can't hide
 *     another put of the same values at a site that is not heard yet; with a key shared between puts, the
 *     removal's newer version would.
 * I3  An entry is removed only (a) in the same operation as a later put or delete of its row, or (b) where its row
 *     was read after it and is absent or newer. Then the row's version can never come back to the entry's, and no
 *     removal of the winning row's entries exists anywhere.
 */
import { type Key, type KeyPart, packKey } from "../store/model/key.ts";
import { VALUE_TAG } from "../store/model/value.ts";
import { AppError, KvTypeError } from "./vocabulary/errors.ts";
import { packBounded } from "./key_space.ts";
import { KEY_BYTES_MAX } from "./vocabulary/limits.ts";
import type { StoredRow } from "./vocabulary/store_client.ts";

/** Bytes of a packed number. */
const NONCE_BYTES = 9;
/** Bytes of an entry's value: a tag, and 2 bytes that hold the length of any key within KEY_BYTES_MAX. */
const VALUE_BYTES = 3;

/** Declared index of a table. */
export class TableIndex {
  readonly name: string;
  readonly fields: readonly string[];
  /** Packed lead of the keys of all entries. */
  readonly space: Key;
  /** Number of stale entries met on the last page: the next page asks for as many more rows. */
  slack = 0;

  constructor(name: string, fields: readonly string[], space: Key) {
    this.name = name;
    this.fields = fields;
    this.space = space;
  }

  /**
   * Returns the key of a row's entries without their nonce; null while an indexed field is null or absent.
   *
   * @throws KvTypeError `limit_key`; KeyError `key_invalid` for a field that is no key part.
   */
  place(row: Readonly<Record<string, unknown>>, rowKey: Key): Key | null {
    const parts: KeyPart[] = [];
    for (const field of this.fields) {
      const part = row[field];
      if (part === undefined || part === null) return null;
      parts.push(part as KeyPart);
    }
    const packed = packBounded(parts) + rowKey;
    if (packed.length > KEY_BYTES_MAX) {
      throw new KvTypeError(
        "limit_key",
        `Key too large (max ${KEY_BYTES_MAX} bytes, an entry of the index ${this.name} has ${packed.length})`,
      );
    }
    return this.space + packed as Key;
  }

  /** Reports whether an entry is at a row's place (I1). */
  stands(entry: Key, place: Key | null): boolean {
    return place !== null && entry.length === place.length + NONCE_BYTES && entry.startsWith(place);
  }

  /** Returns the packed key fields of an entry's row. @throws AppError `value_corrupt`. */
  rowKeyOf(entry: StoredRow): Key {
    const { key, value } = entry;
    const length = value.length === VALUE_BYTES ? (value[1] ?? 0) << 8 | (value[2] ?? 0) : 0;
    const start = key.length - NONCE_BYTES - length;
    if (length === 0 || start <= this.space.length) {
      throw new AppError("value_corrupt", `an entry of the index ${this.name} can't be read`);
    }
    return key.slice(start, key.length - NONCE_BYTES) as Key;
  }

  /** Returns the key from which a list goes on behind an entry and its duplicates. */
  behind(entry: Key, reverse: boolean): Key {
    return entry.slice(0, -NONCE_BYTES) + (reverse ? "\x00" : "\xff") as Key;
  }
}

/** Returns the value of an entry. */
export function entryValue(rowKey: Key): Uint8Array {
  return Uint8Array.of(VALUE_TAG.bytes, rowKey.length >> 8, rowKey.length & 0xff);
}

let nonceNext: number | undefined;

/** Returns a number of 53 bits out of bytes drawn by `draw`. */
function drawnNumber(draw: (bytes: Uint8Array) => void): number {
  const words = new Uint32Array(2);
  draw(new Uint8Array(words.buffer));
  const [high = 0, low = 0] = words;
  return (high & 0x1fffff) * 2 ** 32 + low;
}

/**
 * Returns a fresh nonce, packed: 53 random bits per isolate, counted up; only entries of one row must differ. Where
 * `recorded` is given, the next 53 bits that it draws.
 */
export function freshNonce(recorded?: (bytes: Uint8Array) => void): Key {
  if (recorded !== undefined) return packKey([drawnNumber(recorded)]);
  nonceNext ??= drawnNumber((bytes) => void crypto.getRandomValues(bytes as Uint8Array<ArrayBuffer>));
  nonceNext = nonceNext >= Number.MAX_SAFE_INTEGER ? 0 : nonceNext + 1;
  return packKey([nonceNext]);
}
