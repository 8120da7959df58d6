/**
 * Splitting of mutations into batches that one atomic operation of Deno KV takes, and their encoding for the redo log.
 */
import { Reader, Writer } from "../../store/model/codec.ts";
import {
  ATOMIC_KEY_BYTES_MAX,
  DENOKV_ATOMIC_BYTES_MAX,
  DENOKV_ATOMIC_MUTATIONS_MAX,
  type DenoKvMutation,
  type KvPart,
  PIECE_BYTES,
} from "./denokv_layout.ts";

/** Bytes that an atomic operation counts for each mutation, beside keys and values; the real number is smaller. */
const MUTATION_BYTES = 32;
/** Factor of the keys in an atomic operation's size: Deno KV counts them twice (found by trying). */
const KEY_COUNTS = 2;

/** Splits mutations, in order, into batches within the limits of an atomic operation. */
export function batches(mutations: readonly DenoKvMutation[]): DenoKvMutation[][] {
  const out: DenoKvMutation[][] = [];
  let batch: DenoKvMutation[] = [];
  let [keys, bytes] = [0, 0];
  for (const mutation of mutations) {
    const key = keyBytes(mutation.key);
    const size = MUTATION_BYTES + KEY_COUNTS * key + (mutation.value?.length ?? 0);
    const full = batch.length >= DENOKV_ATOMIC_MUTATIONS_MAX || keys + key > ATOMIC_KEY_BYTES_MAX ||
      bytes + size > DENOKV_ATOMIC_BYTES_MAX;
    if (full) {
      out.push(batch);
      batch = [];
      [keys, bytes] = [0, 0];
    }
    batch.push(mutation);
    keys += key;
    bytes += size;
  }
  if (batch.length > 0) out.push(batch);
  return out;
}

/** Returns the bytes that a key takes at most, encoded. */
function keyBytes(key: readonly KvPart[]): number {
  let sum = 0;
  for (const part of key) {
    if (typeof part === "number") sum += 9;
    else if (typeof part === "string") sum += 2 + 3 * part.length;
    else {
      sum += 2 + part.length;
      for (let at = part.indexOf(0); at >= 0; at = part.indexOf(0, at + 1)) sum++;
    }
  }
  return sum;
}

const PART = { text: 0, number: 1, bytes: 2 } as const;

/** Encodes mutations as pieces of the redo log. */
export function encodeRedo(mutations: readonly DenoKvMutation[]): Uint8Array[] {
  const out = new Writer(PIECE_BYTES);
  out.list(mutations, ({ key, value }) => {
    out.list(key, (part) => {
      if (typeof part === "string") out.byte(PART.text).text(part);
      else if (typeof part === "number") out.byte(PART.number).uint(part);
      else out.byte(PART.bytes).bytes(part);
    });
    out.flag(value !== null);
    if (value !== null) out.bytes(value);
  });
  const all = out.done();
  return Array.from(
    { length: Math.ceil(all.length / PIECE_BYTES) },
    (_, i) => all.subarray(i * PIECE_BYTES, (i + 1) * PIECE_BYTES),
  );
}

/** Decodes the mutations of a redo log. */
export function decodeRedo(pieces: readonly Uint8Array[]): DenoKvMutation[] {
  const all = new Uint8Array(pieces.reduce((sum, one) => sum + one.length, 0));
  let at = 0;
  for (const one of pieces) {
    all.set(one, at);
    at += one.length;
  }
  const reader = new Reader(all);
  const out = reader.list((): DenoKvMutation => {
    const key = reader.list((): KvPart => {
      const kind = reader.byte();
      return kind === PART.text ? reader.text() : kind === PART.number ? reader.uint() : reader.bytes();
    });
    return { key, value: reader.flag() ? reader.bytes() : null };
  });
  reader.end();
  return out;
}
