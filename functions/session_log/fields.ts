/** Fields of entries and checkpoints: texts and bytes within limits, words of 32 bits. */
import { CodecError, type Reader, type Writer } from "../../store/codec.ts";
import { PAYLOAD_BYTES_MAX } from "./limits.ts";

const utf8 = new TextEncoder();

/** @throws CodecError for a text that UTF-8 does not keep, and beyond the limit. */
export function text(w: Writer, value: string, bytesMax: number): Writer {
  if (!value.isWellFormed()) throw new CodecError(`${JSON.stringify(value)} is no well-formed text`);
  return bytes(w, utf8.encode(value), bytesMax);
}

export function bytes(w: Writer, value: Uint8Array, bytesMax: number = PAYLOAD_BYTES_MAX): Writer {
  if (value.length > bytesMax) throw beyond(value.length, bytesMax);
  return w.bytes(value);
}

const strict = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

export function textFrom(r: Reader, bytesMax: number): string {
  const value = bytesFrom(r, bytesMax);
  try {
    return strict.decode(value);
  } catch {
    throw new CodecError("a text is not UTF-8");
  }
}

export function bytesFrom(r: Reader, bytesMax: number = PAYLOAD_BYTES_MAX): Uint8Array<ArrayBuffer> {
  const value = r.bytes();
  if (value.length > bytesMax) throw beyond(value.length, bytesMax);
  return value;
}

const beyond = (length: number, bytesMax: number): CodecError =>
  new CodecError(`a field has ${length} bytes, more than ${bytesMax}`);

/** 32 bits, little endian. @throws CodecError. */
export function word(w: Writer, value: number): Writer {
  if (!Number.isInteger(value) || value < 0 || value > 0xffff_ffff) {
    throw new CodecError(`${value} is no number of 32 bits`);
  }
  return w.byte(value & 0xff).byte((value >>> 8) & 0xff).byte((value >>> 16) & 0xff).byte(value >>> 24);
}

export function wordFrom(r: Reader): number {
  return (r.byte() | (r.byte() << 8) | (r.byte() << 16) | (r.byte() << 24)) >>> 0;
}

/** So many bytes, without a length. */
export function rawFrom(r: Reader, length: number): Uint8Array<ArrayBuffer> {
  return Uint8Array.from({ length }, () => r.byte());
}
