/**
 * The memory of a structure: bytes, and marks for those that were written since the last segment, one bit for each 8
 * bytes, 32 bits for a line of 256.
 *
 * Y1  A byte that differs from what the segments so far make of it has its bit set. (A bit may be set where a byte was
 *     written again as it was.)
 * Y2  Bytes beyond the length are zero, up to the end of the last line.
 *
 * A segment: flag, whether it begins with zeros; varint: length; then lines, in order: varint: number of lines left out
 * × 2, + 1 before a run of whole lines, of which varint: their number, and their bytes; else 4 bytes: which words of 8
 * bytes follow, lowest bit first, and these words. Lines beyond the length are no part of it; the last one is filled up
 * with zeros.
 */
import { Writer } from "../../store/model/codec.ts";
import { AppError } from "../vocabulary/errors.ts";
import { ALL, LINE, LineReader, linesSize, type MarkedLines, WORD, writeLines } from "./lines.ts";

/**
 * Bytes that one structure may hold: an isolate's memory is bounded anyway, and a forged length must not fill a site's.
 */
const MEMORY_BYTES_MAX = 256 * 1024 * 1024;

export class TrackedMemory {
  #bytes: Uint8Array<ArrayBuffer>;
  #length: number;
  /** Marks of the lines, made with the first write after a segment. */
  #marks: Uint32Array | undefined;

  constructor(length: number) {
    this.#length = checked(length);
    this.#bytes = new Uint8Array(roundUp(length));
  }

  get length(): number {
    return this.#length;
  }

  /**
   * Bytes of the memory, with those that fill up the last line. Code that writes to them has to mark first. A resize
   * makes this array void.
   */
  get bytes(): Uint8Array<ArrayBuffer> {
    return this.#bytes;
  }

  /** Marks bytes within one word as written. */
  markWord(at: number): void {
    const marks = this.#marks ??= new Uint32Array(this.#bytes.length / LINE);
    marks[at >>> 8] = (marks[at >>> 8] ?? 0) | (1 << ((at >>> 3) & 31));
  }

  /** Marks bytes from one place up to another as written. */
  mark(from: number, to: number): void {
    if (from >= to) return;
    const marks = this.#marks ??= new Uint32Array(this.#bytes.length / LINE);
    const [first, last] = [Math.floor(from / LINE), Math.floor((to - 1) / LINE)];
    const head = (ALL << ((from >>> 3) & 31)) >>> 0;
    const tail = ALL >>> (31 - (((to - 1) >>> 3) & 31));
    if (first === last) {
      marks[first] = (marks[first] ?? 0) | (head & tail);
      return;
    }
    marks[first] = (marks[first] ?? 0) | head;
    marks.fill(ALL, first + 1, last);
    marks[last] = (marks[last] ?? 0) | tail;
  }

  /** Makes the memory longer, with zeros, or shorter. @throws AppError `limit_value`. */
  resize(length: number): void {
    checked(length);
    const before = this.#length;
    if (length < before) {
      // Marked, for the memory may grow again before it is written (Y1).
      this.mark(length, before);
      this.#bytes.fill(0, length, before);
    }
    this.#reserve(length);
    this.#length = length;
  }

  #reserve(length: number): void {
    if (length <= this.#bytes.length) return;
    const capacity = roundUp(Math.min(MEMORY_BYTES_MAX, Math.max(length, this.#bytes.length * 2)));
    const bytes = new Uint8Array(capacity);
    bytes.set(this.#bytes.subarray(0, this.#length));
    this.#bytes = bytes;
    if (this.#marks === undefined) return;
    const marks = new Uint32Array(capacity / LINE);
    marks.set(this.#marks);
    this.#marks = marks;
  }

  write(isWhole: boolean): Uint8Array {
    const lines = roundUp(this.#length) / LINE;
    const marks = isWhole ? this.#nonZero(lines) : this.#marks ?? NO_MARKS;
    const marked: MarkedLines = { bytes: this.#bytes, marks, count: Math.min(lines, marks.length) };
    const head = new Writer(16).flag(isWhole).uint(this.#length).done();
    const out = new Uint8Array(head.length + linesSize(marked));
    out.set(head);
    writeLines(out, head.length, marked);
    this.#marks = undefined;
    return out;
  }

  /** Marks the lines for a whole segment, which leaves out lines of zeros. */
  #nonZero(lines: number): Uint32Array {
    const marks = new Uint32Array(lines);
    const words = new Float64Array(this.#bytes.buffer, 0, (lines * LINE) / WORD);
    const perLine = LINE / WORD;
    for (let line = 0; line < lines; line++) {
      const end = (line + 1) * perLine;
      for (let i = line * perLine; i < end; i++) {
        // −0 equals 0, and is not eight bytes of zero.
        if (words[i] !== 0 || Object.is(words[i], -0)) {
          marks[line] = ALL;
          break;
        }
      }
    }
    return marks;
  }

  /** Applies a segment. @throws AppError `value_corrupt`, `limit_value`. */
  read(segment: Uint8Array): void {
    const r = new LineReader(segment);
    const isWhole = r.flag();
    const length = checked(r.uint());
    if (isWhole) {
      this.#bytes = new Uint8Array(roundUp(length));
      this.#length = length;
    } else this.resize(length);
    r.lines(this.#bytes.subarray(0, roundUp(length)));
    this.#bytes.fill(0, length, roundUp(length)); // Y2, whatever the segment says
    this.#marks = undefined;
  }
}

const NO_MARKS = new Uint32Array(0);

const roundUp = (length: number): number => Math.ceil(length / LINE) * LINE;

function checked(length: number): number {
  if (Number.isInteger(length) && length >= 0 && length <= MEMORY_BYTES_MAX) return length;
  throw new AppError(
    "limit_value",
    `tracked bytes can't have a length of ${length}: expected a whole number up to ${MEMORY_BYTES_MAX}`,
  );
}
