/** The marked lines of a memory, as they are written to and read from a segment (memory.ts has the layout). */
import { corrupt } from "./part.ts";

/** Bytes of a line: what 32 marks cover. */
export const LINE = 256;
/**
 * Bytes that one mark covers. Of scattered single bytes a segment holds eight times as many, of numbers hardly more.
 */
export const WORD = 8;
/** Marks of a line whose words are all written. */
export const ALL = 0xffff_ffff;

export interface MarkedLines {
  /** Bytes of the memory, which are whole lines. */
  readonly bytes: Uint8Array;
  /** Marks of each line: a bit for each word. */
  readonly marks: Uint32Array;
  /** Number of lines to write, from the first on. */
  readonly count: number;
}

/** Returns the number of bytes that {@link writeLines} will write. */
export function linesSize({ marks, count }: MarkedLines): number {
  let size = 0;
  for (let line = 0, last = 0; line < count;) {
    const mark = marks[line] ?? 0;
    if (mark === 0) {
      line++;
      continue;
    }
    const run = mark === ALL ? runOf(marks, line, count) : 0;
    size += uintSize((line - last) * 2);
    size += run > 0 ? uintSize(run) + run * LINE : 4 + WORD * bitsIn(mark);
    last = line += Math.max(1, run);
  }
  return size;
}

/** Writes marked lines into a buffer that has room for them. */
export function writeLines(out: Uint8Array, at: number, { bytes, marks, count }: MarkedLines): void {
  for (let line = 0, last = 0; line < count;) {
    const mark = marks[line] ?? 0;
    if (mark === 0) {
      line++;
      continue;
    }
    const run = mark === ALL ? runOf(marks, line, count) : 0;
    at = putUint(out, at, (line - last) * 2 + (run > 0 ? 1 : 0));
    const begin = line * LINE;
    if (run > 0) {
      at = putUint(out, at, run);
      out.set(bytes.subarray(begin, begin + run * LINE), at);
      at += run * LINE;
    } else at = putWords(out, at, bytes, begin, mark);
    last = line += Math.max(1, run);
  }
}

/** Writes the marked words of a line. As the hot loop of scattered changes it makes no call and no array for a word. */
function putWords(out: Uint8Array, at: number, bytes: Uint8Array, begin: number, mark: number): number {
  out[at++] = mark;
  out[at++] = mark >>> 8;
  out[at++] = mark >>> 16;
  out[at++] = mark >>> 24;
  for (let rest = mark; rest !== 0; rest &= rest - 1) {
    const from = begin + (31 - Math.clz32(rest & -rest)) * WORD;
    for (let i = from; i < from + WORD; i++) out[at++] = bytes[i] ?? 0;
  }
  return at;
}

function runOf(marks: Uint32Array, line: number, count: number): number {
  let run = 1;
  while (line + run < count && marks[line + run] === ALL) run++;
  return run;
}

function bitsIn(mark: number): number {
  let v = mark - ((mark >>> 1) & 0x5555_5555);
  v = (v & 0x3333_3333) + ((v >>> 2) & 0x3333_3333);
  return Math.imul((v + (v >>> 4)) & 0x0f0f_0f0f, 0x0101_0101) >>> 24;
}

function uintSize(value: number): number {
  let size = 1;
  for (let rest = value; rest >= 0x80; rest = Math.floor(rest / 0x80)) size++;
  return size;
}

function putUint(out: Uint8Array, at: number, value: number): number {
  let rest = value;
  for (; rest >= 0x80; rest = Math.floor(rest / 0x80)) out[at++] = (rest % 0x80) | 0x80;
  out[at++] = rest;
  return at;
}

/**
 * Reader of a segment in place: store/model/codec.ts copies what it reads, and a segment is hardly more than its lines.
 */
export class LineReader {
  readonly #from: Uint8Array;
  #at = 0;

  constructor(from: Uint8Array) {
    this.#from = from;
  }

  #byte(): number {
    const value = this.#from[this.#at++];
    if (value === undefined) throw corrupt("bytes end too early");
    return value;
  }

  flag(): boolean {
    const value = this.#byte();
    if (value > 1) throw corrupt(`a flag is 0 or 1, not ${value}`);
    return value === 1;
  }

  uint(): number {
    let value = 0;
    for (let scale = 1;; scale *= 0x80) {
      const group = this.#byte();
      value += (group & 0x7f) * scale;
      if (scale > 2 ** 35) throw corrupt("a number is beyond 42 bits");
      if (group >= 0x80) continue;
      if (group === 0 && scale > 1) throw corrupt("a number is not in its shortest form");
      return value;
    }
  }

  /** Reads all lines up to the end into a memory of whole lines. */
  lines(into: Uint8Array): void {
    for (let at = 0; this.#at < this.#from.length;) {
      const head = this.uint();
      at += Math.floor(head / 2) * LINE;
      const run = head % 2 === 1 ? this.uint() : 0;
      const count = head % 2 === 1 ? run * LINE : LINE;
      if (count === 0 || at + count > into.length) throw corrupt("lines are beyond the length");
      if (head % 2 === 1) {
        const end = this.#at + count;
        if (end > this.#from.length) throw corrupt("bytes end too early");
        into.set(this.#from.subarray(this.#at, end), at);
        this.#at = end;
      } else this.#words(into, at);
      at += count;
    }
  }

  #words(into: Uint8Array, begin: number): void {
    const mark = this.#byte() | (this.#byte() << 8) | (this.#byte() << 16) | (this.#byte() << 24);
    if (this.#at + WORD * bitsIn(mark) > this.#from.length) throw corrupt("bytes end too early");
    let at = this.#at;
    for (let rest = mark; rest !== 0; rest &= rest - 1) {
      const to = begin + (31 - Math.clz32(rest & -rest)) * WORD;
      for (let i = to; i < to + WORD; i++) into[i] = this.#from[at++] ?? 0;
    }
    this.#at = at;
  }
}
