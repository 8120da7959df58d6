/**
 * Checksums of data on disk (store/model/ports.ts S4): CRC-32 of every row and record, its key or name included, so
 * that a row under another row's key is as wrong as one whose value has changed.
 *
 * A disk that gives back changed bytes without an error does so in one sector of 10^15 or so, and cables, memory and
 * file systems add to that; CRC-32 misses one such change in four billion.
 */
import { Buffer } from "node:buffer";
import { crc32 } from "node:zlib";
import type { Row } from "../../store/model/row.ts";

/** Bytes of a row's fields: five numbers of 8 bytes, and a flag. */
const FIELDS_BYTES = 41;
const fields = new DataView(new ArrayBuffer(FIELDS_BYTES));
const fieldBytes = new Uint8Array(fields.buffer);
const NO_BYTES = new Uint8Array();

/** Returns the checksum of a row. @param key its key as bytes. */
export function rowSum(key: Uint8Array, row: Omit<Row, "key">): number {
  const { position, clock, replica, known, expiresAtMs, value } = row;
  fields.setFloat64(0, position);
  fields.setFloat64(8, clock);
  fields.setFloat64(16, replica);
  fields.setFloat64(24, known);
  fields.setFloat64(32, expiresAtMs);
  fields.setUint8(40, value === null ? 0 : 1);
  return crc32(value ?? NO_BYTES, crc32(fieldBytes, crc32(key)));
}

/**
 * Reports whether a row read from a disk fits its checksum. A number that is no longer one fits none, whatever it
 * converts to.
 */
export const rowFits = (key: Uint8Array, row: Omit<Row, "key">, sum: unknown): boolean =>
  [row.position, row.clock, row.replica, row.known, row.expiresAtMs].every(Number.isFinite) &&
  rowSum(key, row) === sum;

/** Returns the checksum of a named record. */
export const recordSum = (name: string, value: Uint8Array): number =>
  crc32(value, crc32(Buffer.from(name, "utf8")));

/**
 * Returns 32 mixed bits of a number of up to 53, so that sums of many of them tell one set of numbers from another: a
 * position stands for a row as it was put once, the checksum of a record for its value.
 */
export function mixed(value: number): number {
  let mix = Math.imul((value % 0x1_0000_0000) ^ 0x9e3779b9, 0x85ebca6b) ^ Math.floor(value / 0x1_0000_0000);
  mix = Math.imul(mix ^ (mix >>> 16), 0x7feb352d);
  mix = Math.imul(mix ^ (mix >>> 15), 0x846ca68b);
  return (mix ^ (mix >>> 16)) >>> 0;
}

/** Returns the checksum of bytes that follow others. */
export const bytesSum = (bytes: Uint8Array, before = 0): number => crc32(bytes, before);
