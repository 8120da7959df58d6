/**
 * Tracked bytes: a checkpoint holds the words that were written (memory.ts has the segment).
 */
import { TrackedMemory } from "./memory.ts";
import { KIND, register, TrackedPart } from "./part.ts";

/** Bytes whose changes are tracked: a Uint8Array, but that places are read by `at` and written by `set` and `put`. */
export class TrackedBytes extends TrackedPart implements Iterable<number> {
  /** @ignore */
  override get [KIND](): "bytes" {
    return "bytes";
  }
  readonly #memory: TrackedMemory;

  /** All zero. */
  constructor(length: number) {
    super();
    this.#memory = new TrackedMemory(length);
  }

  /** How many there are. */
  get length(): number {
    return this.#memory.length;
  }

  /** The byte in a place, from the end where it is negative; undefined where there is none. */
  at(index: number): number | undefined {
    const whole = Math.trunc(index) || 0;
    const place = whole < 0 ? whole + this.#memory.length : whole;
    return place >= 0 && place < this.#memory.length ? this.#memory.bytes[place] : undefined;
  }

  /** Writes one byte. @throws RangeError for a place that there is not. */
  put(index: number, byte: number): void {
    if (!(Number.isInteger(index) && index >= 0 && index < this.#memory.length)) {
      throw new RangeError(`${this.path} has ${this.#memory.length} bytes: can't put one in place ${index}`);
    }
    this.#memory.markWord(index);
    this.#memory.bytes[index] = byte;
    this.touch();
  }

  /** Writes bytes from a place on. @throws RangeError where they don't fit. */
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

  /** Fills a part with one byte, as a Uint8Array does. */
  fill(byte: number, start = 0, end = this.length): this {
    const [from, to] = this.#span(start, end);
    this.#memory.mark(from, to);
    this.#memory.bytes.fill(byte, from, to);
    if (from < to) this.touch();
    return this;
  }

  /** Copies a part to another place, as a Uint8Array does. */
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

  /** Makes it longer, with zeros, or shorter. @throws AppError `limit_value`. */
  resize(length: number): void {
    if (length === this.#memory.length) return;
    this.#memory.resize(length);
    this.touch();
  }

  /** A copy of a part. */
  slice(start = 0, end = this.length): Uint8Array<ArrayBuffer> {
    const [from, to] = this.#span(start, end);
    return this.#memory.bytes.slice(from, Math.max(from, to));
  }

  /**
   * Hands a part to a function to read and write at full speed, and counts all of it as written. What the function keeps
   * of it is not tracked once it has returned.
   */
  edit(start: number, end: number, change: (part: Uint8Array<ArrayBuffer>) => void): void {
    const [from, to] = this.#span(start, end);
    this.#memory.mark(from, to);
    this.touch();
    change(this.#memory.bytes.subarray(from, Math.max(from, to)));
  }

  /** The first place of a byte, or −1. */
  indexOf(byte: number, from = 0): number {
    return this.#memory.bytes.subarray(0, this.length).indexOf(byte, from);
  }

  /** The bytes, in order. */
  *[Symbol.iterator](): IterableIterator<number> {
    for (let i = 0; i < this.#memory.length; i++) yield this.#memory.bytes[i] ?? 0;
  }

  #span(start: number, end: number): [number, number] {
    return [placeOf(start, this.length), placeOf(end, this.length)];
  }

  /** @ignore */
  protected override write(isWhole: boolean): Uint8Array {
    return this.#memory.write(isWhole);
  }

  /** @ignore */
  protected override read(segment: Uint8Array): void {
    this.#memory.read(segment);
  }
}

function placeOf(index: number, length: number): number {
  const place = Math.trunc(index) || 0;
  return place < 0 ? Math.max(0, length + place) : Math.min(place, length);
}

register("bytes", () => new TrackedBytes(0));

/**
 * Declares tracked bytes as a field of a Session class: so many zeros, or a copy of these.
 *
 * ```ts
 * import { bytes } from "sojourn";
 *
 * const picture = bytes(1024);
 * picture.put(3, 255);
 * ```
 *
 * @throws AppError `limit_value`.
 */
export function bytes(content: number | ArrayLike<number> = 0): TrackedBytes {
  const made = new TrackedBytes(typeof content === "number" ? content : content.length);
  if (typeof content !== "number") made.set(content);
  return made;
}
