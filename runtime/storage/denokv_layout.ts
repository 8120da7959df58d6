/**
 * How rows, journal and records lie in a Deno KV database.
 *
 *   ["r", key]             → row record      a key of up to KEY_BYTES_WHOLE bytes, packed, as one part
 *   ["r", head, hash]      → row record      a longer key: its first bytes, then a hash of all of it
 *   ["j", position]        → packed key      the journal
 *   ["c", position, i]     → bytes           piece i of the value of the row at that position
 *   ["m", name]            → record          a named record, in pieces ["n", name, i] where it is large
 *   ["t"]                  → totals          bytes of all rows
 *   ["q", i], ["p"]        → redo            a large step under way: its mutations, and that they count
 *
 * L1  Order: ["r", …] sorts as packed keys do, but for long keys that share their head; those are neighbours, and
 *     a scan sorts them.
 * L2  Every encoded key is below Deno KV's 2,048 bytes: a part's zero bytes count twice there.
 */
import { Buffer } from "node:buffer";
import { createHash } from "node:crypto";
import { Reader, Writer } from "../../store/codec.ts";
import type { Key } from "../../store/key.ts";
import type { Row } from "../../store/row.ts";

/** All zeros, such a head takes 2,000 bytes; prefix and hash (at most 32) fit beside it (L2). */
export const KEY_BYTES_WHOLE = 1_000;
const HASH_BYTES = 16;
/** Deno KV's values end at 65,536 bytes; a row record has up to 2.2 KB beside its value. */
export const PIECE_BYTES = 61_440;
/** A record's name is part of a key. */
export const RECORD_NAME_CHARS_MAX = 300;

/** What one atomic operation of Deno KV may hold, with room for what it counts beside keys and values. */
export const ATOMIC_MUTATIONS_MAX = 1_000;
export const ATOMIC_KEY_BYTES_MAX = 80_000;
export const ATOMIC_BYTES_MAX = 780_000;

/** One change of the database; null deletes. */
export interface KvMutation {
  readonly key: KvPart[];
  readonly value: Uint8Array | null;
}
export type KvPart = string | number | Uint8Array;

/** What must be known of a row to replace it. */
export interface RowHead {
  readonly position: number;
  readonly valueBytes: number;
  readonly pieces: number;
}

/** A row as its record tells it; the value is undefined while it lies in pieces. */
export interface StoredRow {
  readonly row: Omit<Row, "value">;
  readonly value: Uint8Array | null | undefined;
  readonly head: RowHead;
}

const blobOf = (key: string): Uint8Array<ArrayBuffer> => Buffer.from(key, "latin1");
const keyOf = (bytes: Uint8Array): Key =>
  Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("latin1") as Key;

/** Where a row lies. */
export function rowKey(key: Key): KvPart[] {
  if (key.length <= KEY_BYTES_WHOLE) return ["r", blobOf(key)];
  const bytes = blobOf(key);
  const hash = new Uint8Array(createHash("sha256").update(bytes).digest().subarray(0, HASH_BYTES));
  return ["r", bytes.subarray(0, KEY_BYTES_WHOLE), hash];
}

/** From where on a range lies; its rows are among those between, not all of those (L1). */
export const scanStart = (start: Key): KvPart[] => ["r", blobOf(start.slice(0, KEY_BYTES_WHOLE))];
/** Up to where, exclusive: a long bound takes in all keys that share its head. */
export const scanEnd = (end: Key): KvPart[] => [
  "r",
  blobOf(end.length <= KEY_BYTES_WHOLE ? end : end.slice(0, KEY_BYTES_WHOLE) + "\x00"),
];

export const journalKey = (position: number): KvPart[] => ["j", position];
export const pieceKey = (position: number, index: number): KvPart[] => ["c", position, index];
export const recordKey = (name: string): KvPart[] => ["m", name];
export const recordPieceKey = (name: string, index: number): KvPart[] => ["n", name, index];

/** The packed key in a journal entry. */
export const journalValue = { of: blobOf, key: keyOf };

/** In how many pieces a value lies; 0: in the record itself. */
export const piecesOf = (bytes: number): number => bytes <= PIECE_BYTES ? 0 : Math.ceil(bytes / PIECE_BYTES);

/** Piece i of a value. */
export const piece = (value: Uint8Array, index: number): Uint8Array =>
  value.subarray(index * PIECE_BYTES, (index + 1) * PIECE_BYTES);

/** A row's record. Its value is in it, in `head.pieces` pieces beside it, or null. */
export function encodeRow(row: Row): Uint8Array {
  const { value } = row;
  const pieces = piecesOf(value?.length ?? 0);
  const out = new Writer(48 + (pieces === 0 ? value?.length ?? 0 : 0));
  out.uint(row.position).uint(row.clock).uint(row.replica).uint(row.known).uint(row.expiresAtMs);
  out.key(row.key.length > KEY_BYTES_WHOLE ? row.key : "");
  out.flag(value !== null).uint(value?.length ?? 0).uint(pieces);
  if (value !== null && pieces === 0) out.bytes(value);
  return out.done();
}

/** The row of a record; `bytes` is the part of its key that follows "r". */
export function decodeRow(record: Uint8Array, bytes: Uint8Array): StoredRow {
  const reader = new Reader(record);
  const position = reader.uint();
  const clock = reader.uint();
  const replica = reader.uint();
  const known = reader.uint();
  const expiresAtMs = reader.uint();
  const long = reader.key();
  const present = reader.flag();
  const valueBytes = reader.uint();
  const pieces = reader.uint();
  const value = !present ? null : pieces === 0 ? reader.bytes() : undefined;
  reader.end();
  const key = long === "" ? keyOf(bytes) : long;
  return {
    row: { key, position, clock, replica, known, expiresAtMs },
    value,
    head: { position, valueBytes, pieces },
  };
}

/** The mutations that put a named record, and remove pieces of the one before. */
export function recordMutations(name: string, value: Uint8Array | null, piecesBefore: number): KvMutation[] {
  if (name.length > RECORD_NAME_CHARS_MAX) {
    throw new RangeError(
      `a record's name has at most ${RECORD_NAME_CHARS_MAX} characters, not ${name.length}`,
    );
  }
  const pieces = value === null ? 0 : piecesOf(value.length);
  const out: KvMutation[] = [];
  if (value === null) out.push({ key: recordKey(name), value: null });
  else {
    const entry = new Writer().uint(pieces).bytes(pieces === 0 ? value : new Uint8Array());
    out.push({ key: recordKey(name), value: entry.done() });
    for (let i = 0; i < pieces; i++) out.push({ key: recordPieceKey(name, i), value: piece(value, i) });
  }
  for (let i = pieces; i < piecesBefore; i++) out.push({ key: recordPieceKey(name, i), value: null });
  return out;
}

/** A named record's value, or in how many pieces it lies. */
export function decodeRecord(entry: Uint8Array): { pieces: number; value: Uint8Array } {
  const reader = new Reader(entry);
  const pieces = reader.uint();
  const value = reader.bytes();
  reader.end();
  return { pieces, value };
}
