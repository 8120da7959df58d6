/**
 * Tracked bytes: a checkpoint holds the words that were written (memory.ts has the segment).
 */
import { TrackedMemory } from "./memory.ts";
import { KIND, register, TrackedPart } from "./part.ts";
import type { TrackedBytes } from "./structures.ts";

/** Tracked bytes, as their holder and an app see them. */
export class BytesPart extends TrackedPart implements TrackedBytes {
  override get [KIND](): "bytes" {
    return "bytes";
  }
  readonly #memory: TrackedMemory;

  constructor(length: number) {
    super();
    this.#memory = new TrackedMemory(length);
  }

  get length(): number {
    return this.#memory.length;
  }

  at(index: number): number | undefined {
    const whole = Math.trunc(index) || 0;
    const place = whole < 0 ? whole + this.#memory.length : whole;
    return place >= 0 && place < this.#memory.length ? this.#memory.bytes[place] : undefined;
  }

  put(index: number, byte: number): void {
    if (!(Number.isInteger(index) && index >= 0 && index < this.#memory.length)) {
      throw new RangeError(`${this.path} has ${this.#memory.length} bytes: can't put one in place ${index}`);
    }
    this.#memory.markWord(index);
    this.#memory.bytes[index] = byte;
    this.touch();
  }

  set(source: ArrayLike<number>, offset = 0): void {
    const end = offset + source.length;
    if (!(Number.isInteger(offset) && offset >= 0 && end <= this.#memory.length)) {
      throw new RangeError(
        `${this.path} has ${this.#memory.length} bytes: can't set ${source.length} from ${offset} on`,
      );
    }
    this.#memory.mark(offset, end);
    this.#memory.bytes.set(source, offset);
    if (source.length > 0) this.touch();
  }

  fill(byte: number, start = 0, end = this.length): this {
    const [from, to] = this.#span(start, end);
    this.#memory.mark(from, to);
    this.#memory.bytes.fill(byte, from, to);
    if (from < to) this.touch();
    return this;
  }

  copyWithin(target: number, start: number, end = this.length): this {
    const [from, to] = this.#span(start, end);
    const [at] = this.#span(target, this.length);
    const count = Math.min(to - from, this.length - at);
    if (count <= 0) return this;
    this.#memory.mark(at, at + count);
    this.#memory.bytes.copyWithin(at, from, from + count);
    this.touch();
    return this;
  }

  resize(length: number): void {
    if (length === this.#memory.length) return;
    this.#memory.resize(length);
    this.touch();
  }

  slice(start = 0, end = this.length): Uint8Array<ArrayBuffer> {
    const [from, to] = this.#span(start, end);
    return this.#memory.bytes.slice(from, Math.max(from, to));
  }

  edit(start: number, end: number, change: (part: Uint8Array<ArrayBuffer>) => void): void {
    const [from, to] = this.#span(start, end);
    this.#memory.mark(from, to);
    this.touch();
    change(this.#memory.bytes.subarray(from, Math.max(from, to)));
  }

  indexOf(byte: number, from = 0): number {
    return this.#memory.bytes.subarray(0, this.length).indexOf(byte, from);
  }

  /** Yields the bytes, in order. */
  *[Symbol.iterator](): IterableIterator<number> {
    for (let i = 0; i < this.#memory.length; i++) yield this.#memory.bytes[i] ?? 0;
  }

  #span(start: number, end: number): [number, number] {
    return [placeOf(start, this.length), placeOf(end, this.length)];
  }

  protected override write(isWhole: boolean): Uint8Array {
    return this.#memory.write(isWhole);
  }

  protected override read(segment: Uint8Array): void {
    this.#memory.read(segment);
  }
}

function placeOf(index: number, length: number): number {
  const place = Math.trunc(index) || 0;
  return place < 0 ? Math.max(0, length + place) : Math.min(place, length);
}

register("bytes", () => new BytesPart(0));

/**
 * Declares tracked bytes as a field of a Session class.
 *
 * ```ts
 * import { bytes } from "sojourn";
 *
 * const picture = bytes(1024);
 * picture.put(3, 255);
 * ```
 *
 * @param content the number of bytes, which are zero at first, or bytes that are copied.
 * @throws AppError `limit_value` where there are more bytes than a structure may hold (256 MiB).
 */
export function bytes(content: number | ArrayLike<number> = 0): TrackedBytes {
  const made = new BytesPart(typeof content === "number" ? content : content.length);
  if (typeof content !== "number") made.set(content);
  return made;
}
