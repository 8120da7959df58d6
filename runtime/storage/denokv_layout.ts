/**
 * Layout of rows, journal and records in a Deno KV database.
 *
 *   ["r", key]             → row record      a key of up to KEY_BYTES_WHOLE bytes, packed, as one part
 *   ["r", head, hash]      → row record      a longer key: its first bytes, then a hash of all of it
 *   ["j", position]        → packed key      the journal
 *   ["c", position, i]     → bytes           piece i of the value of the row at that position
 *   ["m", name]            → record          a named record, in pieces ["n", name, i] where it is large
 *   ["t"]                  → totals          rows, bytes of all rows, commits
 *   ["s"]                  → content         the sum over rows' positions and records, as of a commit
 *   ["q", i], ["p"]        → redo            a large step under way: its mutations, and that they count
 *
 * Every value ends with its checksum (four bytes, the highest first), over its key and what is before: a value that
 * does not fit, or lies under another key, is damaged (store/model/ports.ts S4). A value in pieces has one in its row's
 * record, over all of them.
 *
 * L1  Order: ["r", …] sorts as packed keys do, but for long keys that share their head; those are neighbours, and
 *     a scan sorts them.
 * L2  Every encoded key is below Deno KV's 2,048 bytes: a part's zero bytes count twice there.
 */
import { Buffer } from "node:buffer";
import { createHash } from "node:crypto";
import { Reader, Writer } from "../../store/model/codec.ts";
import type { Key } from "../../store/model/key.ts";
import type { Row } from "../../store/model/row.ts";
import { bytesSum } from "./checksum.ts";
import { Spoiled } from "./disk_report.ts";

/**
 * Bytes of the longest key that is one part: with all zeros such a head takes 2,000 bytes; prefix and hash (at most 32)
 * fit beside it (L2).
 */
export const KEY_BYTES_WHOLE = 1_000;
const HASH_BYTES = 16;
/** Bytes of a piece: Deno KV's values end at 65,536 bytes; a row record has up to 2.2 KB beside its value. */
export const PIECE_BYTES = 61_440;
/** Characters of the longest record's name: it is part of a key. */
export const RECORD_NAME_CHARS_MAX = 300;

/** Limits of an atomic operation of Deno KV, with room for what it counts beside keys and values. */
export const DENOKV_ATOMIC_MUTATIONS_MAX = 1_000;
export const ATOMIC_KEY_BYTES_MAX = 80_000;
export const DENOKV_ATOMIC_BYTES_MAX = 780_000;

/** A change of one entry; null deletes it. */
export interface DenoKvMutation {
  readonly key: KvPart[];
  readonly value: Uint8Array | null;
}
export type KvPart = string | number | Uint8Array;

/** Facts of a row that are needed to replace it. */
export interface RowHead {
  readonly position: number;
  readonly valueBytes: number;
  readonly pieces: number;
}

/** A row as its record has it; the value is undefined while it lies in pieces. */
export interface DenoKvRow {
  readonly row: Omit<Row, "value">;
  readonly value: Uint8Array | null | undefined;
  readonly head: RowHead;
  /** Checksum of a value in pieces; 0 for others. */
  readonly valueSum: number;
}

/** A row whose record, or value, does not fit its checksum. */
export interface DamagedRow {
  readonly damaged: Key;
}

const SUM_BYTES = 4;

/** Returns a value with its checksum at the end. */
export function sealed(key: Uint8Array, value: Writer): Uint8Array {
  const bytes = value.done();
  return withSum(bytes, bytesSum(bytes, bytesSum(key)));
}

function withSum(bytes: Uint8Array, sum: number): Uint8Array {
  const out = new Uint8Array(bytes.length + SUM_BYTES);
  out.set(bytes);
  new DataView(out.buffer).setUint32(bytes.length, sum);
  return out;
}

/** Returns a value without its checksum; null where that does not fit. */
export function unsealed(key: Uint8Array, value: Uint8Array): Uint8Array | null {
  const length = value.length - SUM_BYTES;
  if (length < 0) return null;
  const bytes = value.subarray(0, length);
  const sum = new DataView(value.buffer, value.byteOffset).getUint32(length);
  return bytesSum(bytes, bytesSum(key)) === sum ? bytes : null;
}

/** Returns the name of an entry that is no row's, as bytes for its checksum. */
export const nameBytes = (...parts: readonly (string | number)[]): Uint8Array =>
  new TextEncoder().encode(JSON.stringify(parts));

const blobOf = (key: string): Uint8Array<ArrayBuffer> => Buffer.from(key, "latin1");
const keyOf = (bytes: Uint8Array): Key =>
  Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("latin1") as Key;

/** Returns the database's key for a row. */
export function rowKey(key: Key): KvPart[] {
  if (key.length <= KEY_BYTES_WHOLE) return ["r", blobOf(key)];
  const bytes = blobOf(key);
  const hash = new Uint8Array(createHash("sha256").update(bytes).digest().subarray(0, HASH_BYTES));
  return ["r", bytes.subarray(0, KEY_BYTES_WHOLE), hash];
}

/**
 * Returns the start of a scan for a range; the range's rows are among those between, but not all of them are its (L1).
 */
export const scanStart = (start: Key): KvPart[] => ["r", blobOf(start.slice(0, KEY_BYTES_WHOLE))];
/** Returns the exclusive end of a scan: a long bound takes in all keys that share its head. */
export const scanEnd = (end: Key): KvPart[] => [
  "r",
  blobOf(end.length <= KEY_BYTES_WHOLE ? end : end.slice(0, KEY_BYTES_WHOLE) + "\x00"),
];

export const journalKey = (position: number): KvPart[] => ["j", position];
export const valuePieceKey = (position: number, index: number): KvPart[] => ["c", position, index];
export const recordKey = (name: string): KvPart[] => ["m", name];
export const recordPieceKey = (name: string, index: number): KvPart[] => ["n", name, index];

/** Codec of the packed key in a journal entry. */
export const journalValue = {
  of: (position: number, key: Key): Uint8Array =>
    sealed(nameBytes("j", position), new Writer(key.length + 8).raw(blobOf(key))),
  /** Returns the key; null where it is damaged. */
  key: (position: number, value: Uint8Array): Key | null => {
    const bytes = unsealed(nameBytes("j", position), value);
    return bytes === null ? null : keyOf(bytes);
  },
};

/** Returns the number of pieces in which a value lies; 0: it is in the record itself. */
export const piecesOf = (bytes: number): number => bytes <= PIECE_BYTES ? 0 : Math.ceil(bytes / PIECE_BYTES);

/** Returns piece i of a value. */
export const piece = (value: Uint8Array, index: number): Uint8Array =>
  value.subarray(index * PIECE_BYTES, (index + 1) * PIECE_BYTES);

/** Encodes a row's record. Its value is in it, in `head.pieces` pieces beside it, or null. */
export function encodeRow(row: Row): Uint8Array {
  const { value } = row;
  const pieces = piecesOf(value?.length ?? 0);
  const out = new Writer(64 + (pieces === 0 ? value?.length ?? 0 : 0));
  out.uint(row.position).uint(row.clock).uint(row.replica).uint(row.known).uint(row.expiresAtMs);
  out.key(row.key.length > KEY_BYTES_WHOLE ? row.key : "");
  out.flag(value !== null).uint(value?.length ?? 0).uint(pieces);
  if (value !== null && pieces === 0) out.bytes(value);
  if (value !== null && pieces > 0) out.uint(bytesSum(value));
  return sealed(placeOf(row.key), out);
}

/** Returns the bytes that name a row's place: the part of its key that follows "r", with the hash of a long one. */
function placeOf(key: Key): Uint8Array {
  const [, bytes, hash] = rowKey(key);
  return partsOf(bytes as Uint8Array, hash as Uint8Array | undefined);
}

function partsOf(bytes: Uint8Array, hash: Uint8Array | undefined): Uint8Array {
  return hash === undefined ? bytes : Buffer.concat([bytes, hash]);
}

/** Encodes the record of a damaged row: nothing is known of it but its key and position. */
export function damagedRecord(key: Key, position: number): Uint8Array {
  const out = new Writer(32 + key.length).uint(0).uint(position);
  return sealed(placeOf(key), out.key(key.length > KEY_BYTES_WHOLE ? key : ""));
}

/** Decodes the row of a record; `bytes` and `hash` are the parts of its key that follow "r". */
export function decodeRow(
  record: Uint8Array,
  bytes: Uint8Array,
  hash: Uint8Array | undefined,
): DenoKvRow | DamagedRow {
  const whole = unsealed(partsOf(bytes, hash), record);
  // Only the beginning of a long key is known then.
  if (whole === null) return { damaged: keyOf(bytes) };
  const reader = new Reader(whole);
  const position = reader.uint();
  if (position === 0) {
    reader.uint();
    const long = reader.key();
    return { damaged: long === "" ? keyOf(bytes) : long };
  }
  const stored = readRow(reader, position, bytes, true);
  reader.end();
  return stored;
}

/** Decodes the row of a record of the former format, which had no checksums. */
export function decodeFormerRow(record: Uint8Array, bytes: Uint8Array): DenoKvRow {
  const reader = new Reader(record);
  const stored = readRow(reader, reader.uint(), bytes, false);
  reader.end();
  return stored;
}

function readRow(reader: Reader, position: number, bytes: Uint8Array, isSummed: boolean): DenoKvRow {
  const clock = reader.uint();
  const replica = reader.uint();
  const known = reader.uint();
  const expiresAtMs = reader.uint();
  const long = reader.key();
  const present = reader.flag();
  const valueBytes = reader.uint();
  const pieces = reader.uint();
  const value = !present ? null : pieces === 0 ? reader.bytes() : undefined;
  const valueSum = isSummed && value === undefined ? reader.uint() : 0;
  return {
    row: { key: long === "" ? keyOf(bytes) : long, position, clock, replica, known, expiresAtMs },
    value,
    head: { position, valueBytes, pieces },
    valueSum,
  };
}

/** Returns the mutations that put a named record, and remove pieces of the one before. */
export function recordMutations(
  name: string,
  value: Uint8Array | null,
  piecesBefore: number,
): DenoKvMutation[] {
  if (name.length > RECORD_NAME_CHARS_MAX) {
    throw new RangeError(
      `a record's name has at most ${RECORD_NAME_CHARS_MAX} characters, not ${name.length}`,
    );
  }
  const pieces = value === null ? 0 : piecesOf(value.length);
  const out: DenoKvMutation[] = [];
  if (value === null) out.push({ key: recordKey(name), value: null });
  else {
    const entry = new Writer().uint(pieces).bytes(pieces === 0 ? value : new Uint8Array());
    entry.uint(bytesSum(value));
    out.push({ key: recordKey(name), value: sealed(nameBytes("m", name), entry) });
    for (let i = 0; i < pieces; i++) out.push({ key: recordPieceKey(name, i), value: piece(value, i) });
  }
  for (let i = pieces; i < piecesBefore; i++) out.push({ key: recordPieceKey(name, i), value: null });
  return out;
}

/** Decodes a named record: its value, or the number of its pieces. @throws Error where it is damaged. */
export function decodeRecord(
  name: string,
  entry: Uint8Array,
): { readonly pieces: number; readonly value: Uint8Array; readonly sum: number } {
  const whole = unsealed(nameBytes("m", name), entry);
  if (whole === null) throw new Spoiled(`the record ${JSON.stringify(name)} is damaged`);
  const reader = new Reader(whole);
  const read = { pieces: reader.uint(), value: reader.bytes(), sum: reader.uint() };
  reader.end();
  return read;
}

/** Decodes a named record of the former format, which had no checksums. */
export function decodeFormerRecord(
  entry: Uint8Array,
): { readonly pieces: number; readonly value: Uint8Array } {
  const reader = new Reader(entry);
  const read = { pieces: reader.uint(), value: reader.bytes() };
  reader.end();
  return read;
}

/** Counts of a storage. */
export interface Totals {
  readonly rows: number;
  readonly bytes: number;
  readonly commits: number;
}

const TOTALS_NAME = nameBytes("t");

export const encodeTotals = ({ rows, bytes, commits }: Totals): Uint8Array =>
  sealed(TOTALS_NAME, new Writer().uint(rows).uint(bytes).uint(commits));

/** Decodes the totals; null where they are damaged, or not there. */
export function decodeTotals(value: Uint8Array | null): Totals | null {
  const whole = value === null ? null : unsealed(TOTALS_NAME, value);
  if (whole === null) return null;
  const reader = new Reader(whole);
  const totals = { rows: reader.uint(), bytes: reader.uint(), commits: reader.uint() };
  reader.end();
  return totals;
}

const CONTENT_NAME = nameBytes("s");

/**
 * Encodes the sum over the positions of all rows and the checksums of all records, as of a commit. It is beside the
 * totals, which a version that does not know of it goes on counting.
 */
export const encodeContentSum = (content: number, commits: number): Uint8Array =>
  sealed(CONTENT_NAME, new Writer().uint(content).uint(commits));

/** Decodes that sum; null where it is damaged, not there, or of another commit. */
export function decodeContentSum(value: Uint8Array | null, commits: number | undefined): number | null {
  const whole = value === null ? null : unsealed(CONTENT_NAME, value);
  if (whole === null) return null;
  const reader = new Reader(whole);
  const content = reader.uint(), asOf = reader.uint();
  reader.end();
  return asOf === commits ? content : null;
}
