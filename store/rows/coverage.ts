/**
 * The coverage of this site, that is what it replicates: the query cache (SessionStore, section V.A), as disjoint
 * ranges. A get covers a point, a list the interval that it read; one range subsumes another by containment.
 *
 * V1  Ranges are disjoint; adding one that overlaps trims the older ones.
 * V2  Every change is also written to the records of the next commit, so that coverage and rows stay in step
 *     across a crash.
 * V3  Every change of a range since its `since` is in this site's journal: a child that was fed at least so far can be
 *     brought up to date from there, and no other can.
 */
import { Reader, Writer } from "../model/codec.ts";
import type { Key } from "../model/key.ts";
import { common, isEmpty, type Range } from "../model/range.ts";
import { RangeMap, type RangeSegment } from "../model/range_map.ts";
import type { Position } from "../model/row.ts";

const RECORD = "cover/";

interface Use {
  /** Head of the journal when the range was covered (V3). */
  readonly since: Position;
  /** Order of last use, from a counter: larger is later. */
  used: number;
}

export class Coverage {
  readonly #ranges = new RangeMap<Use>();
  readonly #record: (name: string, value: Uint8Array | null) => void;
  readonly #head: () => Position;
  #uses = 0;
  /** Number of removals: a reader compares it before and after its scan. */
  removals = 0;

  constructor(record: (name: string, value: Uint8Array | null) => void, head: () => Position) {
    this.#record = record;
    this.#head = head;
  }

  /** Restores a range from the disk's records; false where the record is of another kind. */
  restore(name: string, value: Uint8Array): boolean {
    if (!name.startsWith(RECORD)) return false;
    const start = atob(name.slice(RECORD.length)) as Key;
    const reader = new Reader(value);
    const since = reader.uint(), end = reader.key();
    reader.end();
    this.#ranges.insert({ start, end, value: { since, used: 0 } });
    return true;
  }

  get size(): number {
    return this.#ranges.size;
  }

  /** Reports whether a key is covered, without counting as a use. */
  covers(key: Key): boolean {
    return this.#ranges.at(key) !== undefined;
  }

  /** Reports whether a key is covered, for a reader: this counts as a use. */
  has(key: Key): boolean {
    const segment = this.#ranges.at(key);
    if (segment === undefined) return false;
    segment.value.used = ++this.#uses;
    return true;
  }

  hasRange(range: Range): boolean {
    for (let at = range.start; at < range.end;) {
      const segment = this.#ranges.at(at);
      if (segment === undefined) return false;
      segment.value.used = ++this.#uses;
      at = segment.end;
    }
    return true;
  }

  /** Reports whether a range has been covered without a break since a position of this journal (V3). */
  hasRangeSince(range: Range, position: Position): boolean {
    return this.hasRange(range) &&
      this.#ranges.overlapping(range).every((segment) => segment.value.since <= position);
  }

  /** Returns the part of a range, from its start (or down from its end), that is covered without a gap. */
  coveredPart(range: Range, reverse: boolean): Range {
    return reverse
      ? { start: this.#ranges.heldFrom(range.start, range.end), end: range.end }
      : { start: range.start, end: this.#ranges.heldUntil(range.start, range.end) };
  }

  add(range: Range): void {
    if (isEmpty(range) || this.#ranges.holds(range)) return;
    for (const old of this.#ranges.overlapping(range)) { // V1
      this.#drop(old);
      if (old.start < range.start) this.#put({ start: old.start, end: range.start, value: old.value });
      if (old.end > range.end) this.#put({ start: range.end, end: old.end, value: { ...old.value } });
    }
    this.#put({ start: range.start, end: range.end, value: { since: this.#head(), used: ++this.#uses } });
  }

  /** Removes a range, and trims ranges that reach out of it. */
  remove(range: Range): void {
    for (const old of this.#ranges.overlapping(range)) {
      this.#drop(old);
      if (old.start < range.start) this.#put({ start: old.start, end: range.start, value: old.value });
      if (old.end > range.end) this.#put({ start: range.end, end: old.end, value: { ...old.value } });
    }
    this.removals++;
  }

  /** Returns all ranges in key order. */
  all(): Range[] {
    return [...this.#ranges].map(({ start, end }) => ({ start, end }));
  }

  /** Returns the covered parts of a range, in key order. */
  within(range: Range): Range[] {
    return this.#ranges.overlapping(range).map((covered) => common(covered, range));
  }

  /** Joins the ranges that cover a whole range between them into one. */
  join(range: Range): void {
    const parts = this.#ranges.overlapping(range);
    const [first] = parts, last = parts.at(-1);
    if (parts.length < 2 || first === undefined || last === undefined || !this.#ranges.holds(range)) return;
    for (const part of parts) this.#drop(part);
    const since = Math.max(...parts.map(({ value }) => value.since));
    const used = Math.max(...parts.map(({ value }) => value.used));
    this.#put({ start: first.start, end: last.end, value: { since, used } });
  }

  /** Returns ranges within `range`, least recently used first. */
  leastRecentlyUsed(range: Range): Range[] {
    return this.#ranges.overlapping(range).sort((a, b) => a.value.used - b.value.used);
  }

  #put(segment: RangeSegment<Use>): void {
    this.#ranges.insert(segment);
    this.#record(
      RECORD + btoa(segment.start),
      new Writer(32).uint(segment.value.since).key(segment.end).done(),
    );
  }

  #drop(segment: Range): void {
    this.#ranges.remove(segment);
    this.#record(RECORD + btoa(segment.start), null); // V2
  }
}
