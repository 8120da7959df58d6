/**
 * The keys: tuples of parts in FoundationDB's tuple encoding, so that a range here is a range there.
 *
 * A packed key is a *byte string*: a JavaScript string whose code units are the encoded bytes (0–255).
 * Such strings hash, compare and sort in byte order at native speed, which is what maps, range sets and
 * routing in this folder do all day; `keyBytes`/`keyFromBytes` convert at the edges (disk, wire).
 *
 * K1  packKey is injective and order-preserving: parts compare by type (bytes < string < bigint < number <
 *     false < true), then by value.
 * K2  unpackKey accepts only canonical encodings: packKey(unpackKey(k)) === k, anything else throws.
 * K3  Packing a concatenation of tuples is the concatenation of their packings.
 *
 * Format and vectors: docs/protocol/keys.md.
 */

/** Part of a key, as in Deno KV. */
export type KeyPart = Uint8Array | string | number | bigint | boolean;

/** Packed key: one code unit (0–255) a byte. */
export type Key = string & { readonly __brand: "Key" };

/** Error for a part or an encoding that is not a key. */
export class KeyError extends Error {
  override readonly name = "KeyError";
  readonly code = "key_invalid";
}

const BYTES = 0x01;
const STRING = 0x02;
const INT_ZERO = 0x14;
const DOUBLE = 0x21;
const FALSE = 0x26;
const TRUE = 0x27;
/**
 * Bytes of an integer's magnitude. FoundationDB's length-prefixed integer codes (0x0b, 0x1d) are left out: 8 bytes
 * suffice.
 */
const INT_MAX_BYTES = 8;

const utf8 = new TextEncoder();
const utf8Strict = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** Returns bytes as a byte string. */
export function byteString(bytes: Uint8Array): string {
  let out = "";
  for (let i = 0; i < bytes.length; i += 8192) {
    out += Reflect.apply(String.fromCharCode, null, bytes.subarray(i, i + 8192)); // spreading is 7 times slower
  }
  return out;
}

/** Returns a byte string as bytes. */
export function bytesOf(text: string): Uint8Array<ArrayBuffer> {
  const out = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) out[i] = text.charCodeAt(i);
  return out;
}

/** Returns the encoded bytes of a key. */
export const keyBytes = (key: Key): Uint8Array<ArrayBuffer> => bytesOf(key);

/** Returns a key from its encoded bytes, unchecked: for bytes that this program packed. */
export const keyFromBytes = (bytes: Uint8Array): Key => byteString(bytes) as Key;

/**
 * Packs a tuple.
 *
 * @throws KeyError for a part of another type, a bigint beyond 64 bits of magnitude, or a lone surrogate.
 */
export function packKey(parts: readonly KeyPart[]): Key {
  let out = "";
  for (const part of parts) out += packPart(part);
  return out as Key;
}

function packPart(part: KeyPart): string {
  switch (typeof part) {
    case "string":
      return packString(part);
    case "number":
      return packDouble(part);
    case "bigint":
      return packInteger(part);
    case "boolean":
      return part ? "\x27" : "\x26";
    default:
      if (part instanceof Uint8Array) return "\x01" + escapeZero(byteString(part)) + "\x00";
      throw new KeyError(
        `a key part is a string, number, bigint, boolean or Uint8Array, not ${describe(part)}`,
      );
  }
}

const describe = (value: unknown): string => value === null ? "null" : typeof value;
const escapeZero = (text: string): string =>
  text.includes("\x00") ? text.replaceAll("\x00", "\x00\xff") : text;
// deno-lint-ignore no-control-regex -- the class of bytes that need no encoding at all
const PLAIN_ASCII = /^[\x01-\x7f]*$/;

function packString(text: string): string {
  if (PLAIN_ASCII.test(text)) return "\x02" + text + "\x00";
  if (!text.isWellFormed()) throw new KeyError("a key part is a string with a lone surrogate");
  return "\x02" + escapeZero(byteString(utf8.encode(text))) + "\x00";
}

/** Encoding of NaN. The engine chooses which of NaN's many encodings a buffer has, so this one is written out. */
const CANONICAL_NAN = "\x21\xff\xf8\x00\x00\x00\x00\x00\x00";
const doubleView = new DataView(new ArrayBuffer(8));

function packDouble(value: number): string {
  if (Number.isNaN(value)) return CANONICAL_NAN;
  doubleView.setFloat64(0, value);
  const high = doubleView.getUint32(0);
  const negative = (high & 0x80000000) !== 0;
  doubleView.setUint32(0, negative ? ~high : high ^ 0x80000000);
  if (negative) doubleView.setUint32(4, ~doubleView.getUint32(4));
  let out = "\x21";
  for (let i = 0; i < 8; i++) out += String.fromCharCode(doubleView.getUint8(i));
  return out;
}

function packInteger(value: bigint): string {
  if (value === 0n) return "\x14";
  const negative = value < 0n;
  let magnitude = negative ? -value : value;
  const bytes: number[] = [];
  for (; magnitude > 0n; magnitude >>= 8n) bytes.unshift(Number(magnitude & 0xffn));
  if (bytes.length > INT_MAX_BYTES) throw new KeyError(`a bigint key part has at most 64 bits, not ${value}`);
  const code = negative ? INT_ZERO - bytes.length : INT_ZERO + bytes.length;
  return String.fromCharCode(code, ...(negative ? bytes.map((b) => b ^ 0xff) : bytes));
}

/**
 * Returns the parts of a packed key.
 *
 * @throws KeyError where the encoding is not canonical.
 */
export function unpackKey(key: string): KeyPart[] {
  const parts: KeyPart[] = [];
  let at = 0;
  while (at < key.length) {
    const end = partEnd(key, at);
    parts.push(unpackPart(key, at, end));
    at = end;
  }
  if (packKey(parts) !== key) throw new KeyError("a packed key is not in its canonical encoding");
  return parts;
}

/** Returns where the part that begins at `at` ends. */
function partEnd(key: string, at: number): number {
  const code = key.charCodeAt(at);
  let end: number;
  if (code === BYTES || code === STRING) {
    end = at + 1;
    for (;;) {
      end = key.indexOf("\x00", end);
      if (end < 0) throw new KeyError("a packed key ends inside a part");
      if (key.charCodeAt(end + 1) !== 0xff) return end + 1;
      end += 2;
    }
  } else if (code === DOUBLE) end = at + 9;
  else if (code === FALSE || code === TRUE) end = at + 1;
  else if (Math.abs(code - INT_ZERO) <= INT_MAX_BYTES) end = at + 1 + Math.abs(code - INT_ZERO);
  else throw new KeyError(`a packed key has no part of type 0x${code.toString(16)}`);
  if (end > key.length) throw new KeyError("a packed key ends inside a part");
  return end;
}

function unpackPart(key: string, at: number, end: number): KeyPart {
  const code = key.charCodeAt(at);
  if (code === FALSE || code === TRUE) return code === TRUE;
  if (code === BYTES || code === STRING) {
    const packed = key.slice(at + 1, end - 1);
    if (code === STRING && PLAIN_ASCII.test(packed)) return packed;
    const raw = bytesOf(packed.replaceAll("\x00\xff", "\x00"));
    return code === BYTES ? raw : unpackString(raw);
  }
  const body = bytesOf(key.slice(at + 1, end));
  if (code !== DOUBLE) return unpackInteger(body, code < INT_ZERO);
  const view = new DataView(body.buffer);
  const positive = (view.getUint8(0) & 0x80) !== 0;
  view.setUint32(0, positive ? view.getUint32(0) ^ 0x80000000 : ~view.getUint32(0));
  if (!positive) view.setUint32(4, ~view.getUint32(4));
  return view.getFloat64(0);
}

function unpackString(raw: Uint8Array): string {
  try {
    return utf8Strict.decode(raw);
  } catch {
    throw new KeyError("a packed key has a string that is not UTF-8");
  }
}

function unpackInteger(body: Uint8Array, negative: boolean): bigint {
  let magnitude = 0n;
  for (const byte of body) magnitude = magnitude << 8n | BigInt(negative ? byte ^ 0xff : byte);
  return negative ? -magnitude : magnitude;
}
