/**
 * The last lines of one site's log, in memory, for `logs`. Written by the site, read by any number of tails.
 *
 * R1  The ring is bounded by lines and by bytes, over all. Beyond, the one with the most (the site itself or an app)
 *     loses its oldest line: an app that prints without end pushes its own lines out, and no other's.
 * R2  A reader's place here is a number, and nothing more: a slow reader finds that lines have gone, and how many; it
 *     never makes the site wait.
 * R3  Lines are read in the order in which they were added, those of all apps and of the site together.
 */
import type { LogLine } from "./log_line.ts";

/** Lines of a ring: some minutes of a busy app; more belongs into a log collector behind standard error. */
const RING_LINES_MAX = 10_000;
/** Bytes of a ring's text, at two a character: a part of a site's 150 MB that nobody notices. */
const RING_BYTES_MAX = 4 * 1024 * 1024;
/** Bytes that a line costs beside its text. */
const LINE_BYTES = 200;
/**
 * Characters of the longest line: those of apps are cut to it before they come here (app_log_budget.ts); a stack of
 * ours is shorter.
 */
const TEXT_MAX = 16 * 1024;

interface Numbered {
  readonly line: LogLine;
  readonly number: number;
}

/** Lines that were read, and the place to go on from. */
export interface RingPart {
  readonly lines: readonly Numbered[];
  /** Number of lines that had gone before they were read. */
  readonly lost: number;
  /** Number after the last line that was looked at. */
  readonly next: number;
}

/** The lines of the site itself, or of one app. */
class Share {
  #lines: Numbered[] = [];
  /** Number of the first entries of `#lines` that are dropped: shifting a long array costs its length. */
  #gone = 0;
  bytes = 0;

  get size(): number {
    return this.#lines.length - this.#gone;
  }

  at(index: number): Numbered | undefined {
    return this.#lines[this.#gone + index];
  }

  add(numbered: Numbered): void {
    this.#lines.push(numbered);
    this.bytes += bytesOf(numbered.line);
  }

  /** Drops the oldest line. @returns its bytes */
  drop(): number {
    const oldest = this.#lines[this.#gone];
    if (oldest === undefined) return 0;
    this.#gone++;
    const bytes = bytesOf(oldest.line);
    this.bytes -= bytes;
    if (this.#gone > 256 && this.#gone * 2 > this.#lines.length) {
      this.#lines = this.#lines.slice(this.#gone);
      this.#gone = 0;
    } else this.#lines[this.#gone - 1] = GONE;
    return bytes;
  }

  /** Returns the index of the first line from a number on. */
  from(number: number): number {
    let low = 0, high = this.size;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.at(middle)?.number ?? Infinity) < number) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

const GONE: Numbered = { line: { atMs: 0, site: "", level: "debug", text: "" }, number: -1 };

/** A bounded log. */
export class LogRing {
  /** Name of this ring: a site that starts again begins another. */
  readonly boot: string = crypto.getRandomValues(new Uint8Array(8)).toHex();
  readonly #linesMax: number;
  readonly #bytesMax: number;
  /** Shares by app; the site's own by "". */
  readonly #shares = new Map<string, Share>();
  readonly #waiting = new Set<() => void>();
  #next = 0;
  #size = 0;
  #bytes = 0;

  constructor(limits: { readonly linesMax?: number; readonly bytesMax?: number } = {}) {
    this.#linesMax = limits.linesMax ?? RING_LINES_MAX;
    this.#bytesMax = limits.bytesMax ?? RING_BYTES_MAX;
  }

  /** Number that the next line gets. */
  get next(): number {
    return this.#next;
  }

  /** Number of the oldest line that is still here. */
  get first(): number {
    let first = this.#next;
    for (const share of this.#shares.values()) first = Math.min(first, share.at(0)?.number ?? first);
    return first;
  }

  /** Number of tails that wait for a line. */
  get waiting(): number {
    return this.#waiting.size;
  }

  /** Keeps a line (R1). */
  add(line: LogLine): void {
    const kept = line.text.length > TEXT_MAX ? { ...line, text: line.text.slice(0, TEXT_MAX) + "…" } : line;
    // The site's lines about an app have no version: they count as the site's.
    const whose = line.version === undefined ? "" : line.app ?? "";
    let share = this.#shares.get(whose);
    if (share === undefined) this.#shares.set(whose, share = new Share());
    share.add({ line: kept, number: this.#next++ });
    this.#size++;
    this.#bytes += bytesOf(kept);
    while (this.#size > this.#linesMax) this.#drop((share) => share.size);
    while (this.#bytes > this.#bytesMax && this.#size > 1) this.#drop((share) => share.bytes);
    if (this.#waiting.size === 0) return;
    const waiting = [...this.#waiting];
    this.#waiting.clear();
    for (const wake of waiting) wake();
  }

  /** Returns up to `max` lines from a number on that pass a filter (R2, R3). */
  read(from: number, max: number, passes: (line: LogLine) => boolean): RingPart {
    const ways = [...this.#shares.values()].map((share) => ({ share, at: share.from(from) }));
    const lines: Numbered[] = [];
    let next = from, looked = 0;
    while (lines.length < max) {
      let first: { share: Share; at: number } | undefined, number = Infinity;
      for (const way of ways) {
        const own = way.share.at(way.at)?.number ?? Infinity;
        if (own < number) [first, number] = [way, own];
      }
      const numbered = first?.share.at(first.at);
      if (first === undefined || numbered === undefined) {
        next = Math.max(next, this.#next);
        break;
      }
      first.at++;
      looked++;
      next = numbered.number + 1;
      if (passes(numbered.line)) lines.push(numbered);
    }
    return { lines, lost: next - from - looked, next };
  }

  /** Returns the newest `max` lines that pass a filter, oldest first. */
  newest(max: number, passes: (line: LogLine) => boolean): RingPart {
    const ways = [...this.#shares.values()].map((share) => ({ share, at: share.size - 1 }));
    const lines: Numbered[] = [];
    while (lines.length < max) {
      let last: { share: Share; at: number } | undefined, number = -1;
      for (const way of ways) {
        const own = way.at < 0 ? -1 : way.share.at(way.at)?.number ?? -1;
        if (own > number) [last, number] = [way, own];
      }
      const numbered = last?.share.at(last.at);
      if (last === undefined || numbered === undefined) break;
      last.at--;
      if (passes(numbered.line)) lines.push(numbered);
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

  /** Drops the oldest line of the share that has most (R1). */
  #drop(of: (share: Share) => number): void {
    let whose = "", most = -1;
    for (const [name, share] of this.#shares) {
      const has = of(share);
      if (has > most) [whose, most] = [name, has];
    }
    const share = this.#shares.get(whose);
    if (share === undefined) return;
    this.#bytes -= share.drop();
    this.#size--;
    if (share.size === 0) this.#shares.delete(whose);
  }
}

const bytesOf = (line: LogLine): number => LINE_BYTES + 2 * line.text.length;
