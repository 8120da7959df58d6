/**
 * The last lines of one site's log, in memory: what `logs` reads. Written by the site, read by any number of tails.
 *
 * R1  Bounded by lines and by bytes: the oldest go first.
 * R2  A reader holds nothing here but a number: one that is slow finds that lines have gone, and how many; it never
 *     makes the site wait.
 */
import type { LogLine } from "./log_line.ts";

/** Some minutes of a busy app; more belongs into a log collector behind standard error. */
const RING_LINES_MAX = 10_000;
/** Of text, at two bytes a character: a site's share of 150 MB that is noticed by nobody. */
const RING_BYTES_MAX = 4 * 1024 * 1024;
/** What a line costs beside its text. */
const LINE_BYTES = 200;
/** As isolates cut theirs; a stack of ours is shorter. */
const TEXT_MAX = 16 * 1024;

/** Lines read, and where to go on. */
export interface RingPart {
  readonly lines: readonly { readonly line: LogLine; readonly number: number }[];
  /** Lines that had gone before they were read. */
  readonly lost: number;
  /** The number after the last that was looked at. */
  readonly next: number;
}

/** A bounded log. */
export class LogRing {
  /** Names this ring: a site that starts again begins another. */
  readonly boot: string = crypto.getRandomValues(new Uint8Array(8)).toHex();
  readonly #linesMax: number;
  readonly #bytesMax: number;
  readonly #slots: (LogLine | undefined)[];
  readonly #waiting = new Set<() => void>();
  #first = 0;
  #next = 0;
  #bytes = 0;

  constructor(limits: { readonly linesMax?: number; readonly bytesMax?: number } = {}) {
    this.#linesMax = limits.linesMax ?? RING_LINES_MAX;
    this.#bytesMax = limits.bytesMax ?? RING_BYTES_MAX;
    this.#slots = new Array(this.#linesMax);
  }

  /** The number that the next line gets. */
  get next(): number {
    return this.#next;
  }

  /** The number of the oldest line that is still here. */
  get first(): number {
    return this.#first;
  }

  /** How many tails wait for a line. */
  get waiting(): number {
    return this.#waiting.size;
  }

  /** Keeps a line (R1). */
  add(line: LogLine): void {
    const kept = line.text.length > TEXT_MAX ? { ...line, text: line.text.slice(0, TEXT_MAX) + "…" } : line;
    if (this.#next - this.#first === this.#linesMax) this.#drop();
    this.#slots[this.#next++ % this.#linesMax] = kept;
    this.#bytes += bytesOf(kept);
    while (this.#bytes > this.#bytesMax && this.#next - this.#first > 1) this.#drop();
    if (this.#waiting.size === 0) return;
    const waiting = [...this.#waiting];
    this.#waiting.clear();
    for (const wake of waiting) wake();
  }

  /** Up to `max` lines from a number on that pass a filter (R2). */
  read(from: number, max: number, passes: (line: LogLine) => boolean): RingPart {
    const begin = Math.max(from, this.#first);
    const lines: { line: LogLine; number: number }[] = [];
    let at = begin;
    for (; at < this.#next && lines.length < max; at++) {
      const line = this.#slots[at % this.#linesMax];
      if (line !== undefined && passes(line)) lines.push({ line, number: at });
    }
    return { lines, lost: begin - from, next: at };
  }

  /** The newest `max` lines that pass a filter, oldest first. */
  newest(max: number, passes: (line: LogLine) => boolean): RingPart {
    const lines: { line: LogLine; number: number }[] = [];
    for (let at = this.#next - 1; at >= this.#first && lines.length < max; at--) {
      const line = this.#slots[at % this.#linesMax];
      if (line !== undefined && passes(line)) lines.push({ line, number: at });
    }
    return { lines: lines.reverse(), lost: 0, next: this.#next };
  }

  /** Resolves when there is a line from a number on, when the signal aborts, or after a time. */
  async reaches(number: number, signal: AbortSignal, limitMs: number): Promise<void> {
    if (this.#next > number || signal.aborted) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    const wake = () => resolve();
    this.#waiting.add(wake);
    signal.addEventListener("abort", wake);
    const timer = setTimeout(wake, limitMs);
    await promise;
    clearTimeout(timer);
    signal.removeEventListener("abort", wake);
    this.#waiting.delete(wake);
  }

  #drop(): void {
    const slot = this.#first++ % this.#linesMax;
    const line = this.#slots[slot];
    this.#slots[slot] = undefined;
    if (line !== undefined) this.#bytes -= bytesOf(line);
  }
}

const bytesOf = (line: LogLine): number => LINE_BYTES + 2 * line.text.length;
