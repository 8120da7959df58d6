/**
 * The codec of compact binary forms: of messages, records and merge values.
 *
 * B1  Each value has one form: a varint has no leading zero groups, a flag is 0 or 1; a reader throws on any other, on
 *     a length beyond the input, and (with `end`) on bytes left over.
 */
import { byteString, type Key } from "./key.ts";

/** Error for bytes that are not in the expected form. */
export class CodecError extends Error {
  override readonly name = "CodecError";
  readonly code = "message_malformed";
}

const utf8 = new TextEncoder();
const utf8Strict = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** Length of a text up to which ASCII is cheaper unit by unit than by a call out of JavaScript: names and ids. */
const SHORT_TEXT_MAX = 48;
const SHORT_PART_MAX = 64;

export class Writer {
  #bytes: Uint8Array<ArrayBuffer>;
  #length = 0;

  constructor(capacityBytes = 256) {
    this.#bytes = new Uint8Array(capacityBytes);
  }

  get length(): number {
    return this.#length;
  }

  #room(bytes: number): void {
    if (this.#length + bytes <= this.#bytes.length) return;
    const larger = new Uint8Array(Math.max(this.#bytes.length * 2, this.#length + bytes));
    larger.set(this.#bytes.subarray(0, this.#length));
    this.#bytes = larger;
  }

  byte(value: number): this {
    this.#room(1);
    this.#bytes[this.#length++] = value;
    return this;
  }

  /**
   * Writes a safe integer ≥ 0: seven bits a byte, low group first.
   *
   * @throws CodecError for any other number: no reader takes it, and Infinity has no last group.
   */
  uint(value: number): this {
    if (!(value >= 0 && Number.isSafeInteger(value))) throw new CodecError(`${value} is no unsigned integer`);
    this.#room(8);
    while (value >= 0x80) {
      this.#bytes[this.#length++] = (value % 0x80) | 0x80;
      value = Math.floor(value / 0x80);
    }
    this.#bytes[this.#length++] = value;
    return this;
  }

  flag(value: boolean): this {
    return this.byte(value ? 1 : 0);
  }

  bytes(value: Uint8Array): this {
    return this.uint(value.length).raw(value);
  }

  /** Writes bytes that are encoded already. */
  raw(value: Uint8Array): this {
    this.#room(value.length);
    this.#bytes.set(value, this.#length);
    this.#length += value.length;
    return this;
  }

  /** Writes a part of bytes that are encoded already: a view of a short part would cost more than its bytes. */
  part(value: Uint8Array, from: number, to: number): this {
    if (to - from > SHORT_PART_MAX) return this.raw(value.subarray(from, to));
    this.#room(to - from);
    for (let at = from; at < to; at++) this.#bytes[this.#length++] = value[at] ?? 0;
    return this;
  }

  /** Writes a byte string (key.ts). */
  key(value: string): this {
    this.uint(value.length);
    this.#room(value.length);
    for (let i = 0; i < value.length; i++) this.#bytes[this.#length + i] = value.charCodeAt(i);
    this.#length += value.length;
    return this;
  }

  text(value: string): this {
    return value.length <= SHORT_TEXT_MAX && this.#ascii(value) ? this : this.bytes(utf8.encode(value));
  }

  /** Writes a short text with its length, if it is ASCII, and reports whether it did. */
  #ascii(value: string): boolean {
    this.#room(value.length + 1);
    const at = this.#length + 1;
    for (let i = 0; i < value.length; i++) {
      const unit = value.charCodeAt(i);
      if (unit >= 0x80) return false;
      this.#bytes[at + i] = unit;
    }
    this.#bytes[at - 1] = value.length;
    this.#length = at + value.length;
    return true;
  }

  list<T>(values: readonly T[], write: (value: T) => void): this {
    this.uint(values.length);
    for (const value of values) write(value);
    return this;
  }

  /** Begins anew, in the same memory. */
  clear(): this {
    this.#length = 0;
    return this;
  }

  /** Drops all but the first `length` bytes, and goes on behind them. */
  cut(length: number): this {
    if (length > this.#length) throw new RangeError(`${length} of ${this.#length} bytes`);
    this.#length = length;
    return this;
  }

  /** Returns the written bytes, as they stand: valid until something else is written there. */
  view(from = 0, to = this.#length): Uint8Array {
    return this.#bytes.subarray(from, to);
  }

  /** Returns a copy of the written bytes. */
  done(): Uint8Array<ArrayBuffer> {
    return this.#bytes.slice(0, this.#length);
  }
}

export class Reader {
  readonly #bytes: Uint8Array;
  #at = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  byte(): number {
    const value = this.#bytes[this.#at++];
    if (value === undefined) throw new CodecError("a message ends too early");
    return value;
  }

  uint(): number {
    let value = 0, scale = 1;
    for (;;) {
      const group = this.byte();
      value += (group & 0x7f) * scale;
      if (!Number.isSafeInteger(value)) throw new CodecError("a number is beyond 53 bits");
      if (group < 0x80) {
        if (group === 0 && scale > 1) throw new CodecError("a number is not in its shortest form");
        return value;
      }
      scale *= 0x80;
      if (scale > 2 ** 56) throw new CodecError("a number is beyond 53 bits");
    }
  }

  flag(): boolean {
    const value = this.byte();
    if (value > 1) throw new CodecError(`a flag is 0 or 1, not ${value}`);
    return value === 1;
  }

  /** Reads sized bytes into a copy, so that a small value does not keep a large message in memory. */
  bytes(): Uint8Array<ArrayBuffer> {
    const length = this.uint();
    if (length > this.#bytes.length - this.#at) throw new CodecError("a length is beyond the message");
    this.#at += length;
    return this.#bytes.slice(this.#at - length, this.#at) as Uint8Array<ArrayBuffer>;
  }

  /** Reads sized bytes as a view of the input, for large ones that are read at once, or kept as they are. */
  view(): Uint8Array {
    const length = this.uint();
    if (length > this.#bytes.length - this.#at) throw new CodecError("a length is beyond the message");
    this.#at += length;
    return this.#bytes.subarray(this.#at - length, this.#at);
  }

  /** Reads `length` bytes into a copy. */
  fixed(length: number): Uint8Array<ArrayBuffer> {
    if (length > this.#bytes.length - this.#at) throw new CodecError("a message ends too early");
    this.#at += length;
    return this.#bytes.slice(this.#at - length, this.#at) as Uint8Array<ArrayBuffer>;
  }

  /** Reads `length` bytes as a view of the input. */
  raw(length: number): Uint8Array {
    if (length > this.#bytes.length - this.#at) throw new CodecError("a message ends too early");
    this.#at += length;
    return this.#bytes.subarray(this.#at - length, this.#at);
  }

  key(): Key {
    const length = this.uint();
    if (length > this.#bytes.length - this.#at) throw new CodecError("a length is beyond the message");
    this.#at += length;
    return byteString(this.#bytes.subarray(this.#at - length, this.#at)) as Key;
  }

  text(): string {
    const length = this.uint();
    if (length > this.#bytes.length - this.#at) throw new CodecError("a length is beyond the message");
    const from = this.#at;
    this.#at += length;
    const short = shortAscii(this.#bytes, from, this.#at);
    if (short !== null) return short;
    try {
      return utf8Strict.decode(this.#bytes.subarray(from, this.#at));
    } catch {
      throw new CodecError("a text is not UTF-8");
    }
  }

  /** Reads a list. @param max the most elements that it may have. */
  list<T>(read: () => T, max = Infinity): T[] {
    const length = this.uint();
    if (length > max) throw new CodecError(`a list of ${length}, where ${max} may be`);
    // Each element takes at least a byte: a forged length can't make this allocate.
    if (length > this.#bytes.length - this.#at) throw new CodecError("a list is longer than the message");
    return Array.from({ length }, read);
  }

  /** Number of bytes that have been read. */
  get position(): number {
    return this.#at;
  }

  /** True where nothing is left to read. */
  get isAtEnd(): boolean {
    return this.#at === this.#bytes.length;
  }

  end(): void {
    if (this.#at !== this.#bytes.length) throw new CodecError("a message has bytes left over");
  }
}

/** Returns the text in a part of bytes, where it is short, and ASCII; else null. */
export function shortAscii(bytes: Uint8Array, from: number, to: number): string | null {
  if (to - from > SHORT_TEXT_MAX) return null;
  let text = "";
  for (let i = from; i < to; i++) {
    const unit = bytes[i] ?? 0;
    if (unit >= 0x80) return null;
    text += String.fromCharCode(unit);
  }
  return text;
}
