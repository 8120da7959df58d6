/**
 * The digests of the rows of a range: they show whether two sites have the same rows there, and if not, in which parts
 * of it.
 *
 * A digest is the sum, in each of four lanes of 32 bits, of a hash of each row's key and version (MurmurHash3, x86,
 * 128 bits; docs/protocol/digests.md). Sums know no order, and those of neighbouring ranges add up. Rows of one key
 * and version are equal (row.ts R1), but for merge rows, whose values are hashed, too. A digest tells accidents apart, not
 * lies: members of a cluster trust each other's rows anyway.
 *
 * G1  Tombstones count like any row: a deletion that only one side has is a difference.
 * G3  A range of any size is digested in bounded memory: its parts are joined as they become too many.
 */
import type { Key } from "./key.ts";
import { COMPARE_PARTS_MAX } from "./limits.ts";
import { isMerge } from "./merge.ts";
import type { Range } from "./range.ts";
import { type Row, rowBytes } from "./row.ts";

/** Digest of rows: {@link DIGEST_BYTES} bytes. */
export type Digest = Uint8Array<ArrayBuffer>;
export const DIGEST_BYTES = 16;

/** Part of a range: from the end of the part before it up to `end`. */
export interface DigestPart {
  readonly end: Key;
  readonly digest: Digest;
}

/** Digest of a range, with its parts. */
export interface RangeDigest {
  readonly digest: Digest;
  /** Parts that make up the whole range, in key order; none where it has no rows. */
  readonly parts: readonly DigestPart[];
  readonly rows: number;
  /** Bytes of all keys and values. */
  readonly bytes: number;
}

type Digested = Pick<Row, "key" | "clock" | "replica" | "value">;

const C1 = 0x239b961b, C2 = 0xab0e9789, C3 = 0x38b34ae5, C4 = 0xa1e38b93;
const LOW = 2 ** 32;

const rotate = (x: number, by: number): number => x << by | x >>> 32 - by;

function finish(h: number): number {
  h = Math.imul(h ^ h >>> 16, 0x85ebca6b);
  h = Math.imul(h ^ h >>> 13, 0xc2b2ae35);
  return h ^ h >>> 16;
}

/** Hash of one row after the other; its state is reused, since there are millions of them. */
class RowHash {
  #h1 = 0;
  #h2 = 0;
  #h3 = 0;
  #h4 = 0;
  #length = 0;

  #block(k1: number, k2: number, k3: number, k4: number): void {
    this.#length += 16;
    this.#h1 ^= Math.imul(rotate(Math.imul(k1, C1), 15), C2);
    this.#h1 = Math.imul(rotate(this.#h1, 19) + this.#h2 | 0, 5) + 0x561ccd1b | 0;
    this.#h2 ^= Math.imul(rotate(Math.imul(k2, C2), 16), C3);
    this.#h2 = Math.imul(rotate(this.#h2, 17) + this.#h3 | 0, 5) + 0x0bcaa747 | 0;
    this.#h3 ^= Math.imul(rotate(Math.imul(k3, C3), 17), C4);
    this.#h3 = Math.imul(rotate(this.#h3, 15) + this.#h4 | 0, 5) + 0x96cd1c35 | 0;
    this.#h4 ^= Math.imul(rotate(Math.imul(k4, C4), 18), C1);
    this.#h4 = Math.imul(rotate(this.#h4, 13) + this.#h1 | 0, 5) + 0x32ac3b17 | 0;
  }

  #blocks(length: number, byteAt: (i: number) => number): void {
    const word = (i: number): number =>
      (i < length ? byteAt(i) : 0) | (i + 1 < length ? byteAt(i + 1) : 0) << 8 |
      (i + 2 < length ? byteAt(i + 2) : 0) << 16 | (i + 3 < length ? byteAt(i + 3) : 0) << 24;
    for (let i = 0; i < length; i += 16) this.#block(word(i), word(i + 4), word(i + 8), word(i + 12));
  }

  /** Adds the hash of a row to a sum. */
  addTo(lanes: Uint32Array, { key, clock, replica, value }: Digested): void {
    this.#h1 =
      this.#h2 =
      this.#h3 =
      this.#h4 =
      this.#length =
        0;
    this.#block(clock % LOW | 0, Math.floor(clock / LOW), replica, key.length);
    this.#blocks(key.length, (i) => key.charCodeAt(i));
    if (isMerge(value)) {
      this.#block(value.length, 0, 0, 0);
      this.#blocks(value.length, (i) => value[i] ?? 0);
    }
    let h1 = this.#h1 ^ this.#length, h2 = this.#h2 ^ this.#length;
    let h3 = this.#h3 ^ this.#length, h4 = this.#h4 ^ this.#length;
    h1 = h1 + h2 + h3 + h4 | 0;
    h2 = finish(h2 + h1 | 0);
    h3 = finish(h3 + h1 | 0);
    h4 = finish(h4 + h1 | 0);
    h1 = finish(h1);
    h1 = h1 + h2 + h3 + h4 | 0;
    lanes[0] = (lanes[0] ?? 0) + h1;
    lanes[1] = (lanes[1] ?? 0) + h2 + h1;
    lanes[2] = (lanes[2] ?? 0) + h3 + h1;
    lanes[3] = (lanes[3] ?? 0) + h4 + h1;
  }
}

const hash = new RowHash();

/** Sum of hashes. */
export class DigestSum {
  readonly #lanes = new Uint32Array(4);

  add(row: Digested): void {
    hash.addTo(this.#lanes, row);
  }

  /** Adds the sum of another. */
  join(other: DigestSum): void {
    for (let i = 0; i < 4; i++) this.#lanes[i] = (this.#lanes[i] ?? 0) + (other.#lanes[i] ?? 0);
  }

  /** Digest of the rows added so far: four words, low byte first. */
  get digest(): Digest {
    const bytes = new Uint8Array(DIGEST_BYTES), view = new DataView(bytes.buffer);
    this.#lanes.forEach((lane, i) => view.setUint32(4 * i, lane, true));
    return bytes;
  }
}

export const sameDigest = (a: Digest, b: Digest): boolean => a.every((byte, i) => byte === b[i]);

/** Returns the digest of some rows. */
export function digestOf(rows: Iterable<Digested>): Digest {
  const sum = new DigestSum();
  for (const row of rows) sum.add(row);
  return sum.digest;
}

/** Returns the shortest beginning of `b` that is above `a`, for a < b: a part may end there. */
function between(a: Key, b: Key): Key {
  let shared = 0;
  while (shared < a.length && a[shared] === b[shared]) shared++;
  return b.slice(0, shared + 1) as Key;
}

/** Digester of the rows of one range, given in key order (G3). */
export class RangeDigester {
  readonly #parts: { end: Key; rows: number; readonly sum: DigestSum }[] = [];
  /** Number of rows in each part but the last. */
  #size = 1;
  #last: Key | null = null;
  #rows = 0;
  #bytes = 0;

  add(row: Digested): void {
    let part = this.#parts.at(-1);
    if (part === undefined || part.rows === this.#size) {
      if (part !== undefined && this.#last !== null) part.end = between(this.#last, row.key);
      if (this.#parts.length === COMPARE_PARTS_MAX) this.#joinPairs();
      part = { end: row.key, rows: 0, sum: new DigestSum() };
      this.#parts.push(part);
    }
    part.sum.add(row);
    part.rows++;
    this.#last = row.key;
    this.#rows++;
    this.#bytes += rowBytes(row);
  }

  /** Makes half as many parts, of twice the size. */
  #joinPairs(): void {
    const parts = this.#parts.splice(0);
    for (const [i, part] of parts.entries()) {
      const left = i % 2 === 1 ? this.#parts.at(-1) : undefined;
      if (left === undefined) {
        this.#parts.push(part);
        continue;
      }
      left.sum.join(part.sum);
      left.rows += part.rows;
      left.end = part.end;
    }
    this.#size *= 2;
  }

  done({ end }: Range): RangeDigest {
    const all = new DigestSum();
    for (const part of this.#parts) all.join(part.sum);
    const parts = this.#parts.map((part, i) => ({
      end: i === this.#parts.length - 1 ? end : part.end,
      digest: part.sum.digest,
    }));
    return { digest: all.digest, parts, rows: this.#rows, bytes: this.#bytes };
  }
}
