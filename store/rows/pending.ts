/**
 * The pending entries: the part of this site's journal that is not known to be in the root's, as keys by position,
 * newest place only. Pushes, carries and the root's reflection all read from it, so it stays in memory.
 *
 * N1  A key has one live entry, at its newest position; entries rise by position.
 * N3  The entries kept are proportional to the live ones: a key that is written again and again leaves no trail.
 * N2  `least` is at most the smallest version clock of a live entry.
 */
import type { Key } from "../model/key.ts";
import { PENDING_ENTRY_BYTES } from "../model/limits.ts";
import { type ClockValue, type Position, type Row, rowBytes } from "../model/row.ts";

/** Number of entries, no longer live, that are kept beyond the live ones before they are compacted. */
const ENTRIES_STALE_MAX = 1024;

interface Entry {
  readonly key: Key;
  readonly position: Position;
  /** Depth of the highest site known to have the row. */
  readonly known: number;
  /** Bytes of the row's key and value. */
  readonly bytes: number;
  /** Clock of the row's version. */
  readonly clock: ClockValue;
}

export class Pending {
  #entries: Entry[] = [];
  #first = 0;
  #least: ClockValue = Infinity;
  #bytes = 0;
  readonly #newest = new Map<Key, Entry>();

  get size(): number {
    return this.#newest.size;
  }

  /** Number of entries in memory, live or not (N3). */
  get remembered(): number {
    return this.#entries.length - this.#first;
  }

  /** Bytes of the live rows, and of what is remembered of each. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Lower bound of the live entries' version clocks; Infinity where there is none. */
  get least(): ClockValue {
    return this.#newest.size === 0 ? this.#least = Infinity : this.#least;
  }

  /** Looks at all entries again, so that `least` no longer includes entries that are gone. */
  findLeast(): void {
    this.#least = Infinity;
    for (const { clock } of this.#newest.values()) this.#least = Math.min(this.#least, clock);
  }

  add(
    { key, position, known, clock, value }: Pick<Row, "key" | "position" | "known" | "clock" | "value">,
  ): void {
    const entry = { key, position, known, clock, bytes: rowBytes({ key, value }) };
    this.#least = Math.min(this.least, clock); // N2
    this.remove(key);
    this.#newest.set(key, entry);
    this.#bytes += entry.bytes + PENDING_ENTRY_BYTES;
    this.#entries.push(entry);
    if (this.#entries.length > 2 * this.#newest.size + this.#first + ENTRIES_STALE_MAX) this.#compact();
  }

  remove(key: Key): void {
    const entry = this.#newest.get(key);
    if (entry === undefined) return;
    this.#newest.delete(key);
    this.#bytes -= entry.bytes + PENDING_ENTRY_BYTES;
  }

  /** Drops the entries that are not live (N3). */
  #compact(): void {
    this.#entries = this.#entries.filter((entry) => this.#newest.get(entry.key) === entry);
    this.#first = 0;
  }

  get(key: Key): Entry | undefined {
    return this.#newest.get(key);
  }

  /** Yields live entries past a position and known no higher than `known`, in journal order. */
  *after(position: Position, known: number): Generator<Entry> {
    for (let i = this.#search(position); i < this.#entries.length; i++) {
      const entry = this.#entries[i];
      // N1
      if (entry !== undefined && entry.known >= known && this.#newest.get(entry.key) === entry) yield entry;
    }
  }

  /** Returns how many live entries lie past a position, known no higher than `known`, and their bytes. */
  measure(position: Position, known: number): { rows: number; bytes: number } {
    let rows = 0, bytes = 0;
    for (const entry of this.after(position, known)) {
      rows++;
      bytes += entry.bytes;
    }
    return { rows, bytes };
  }

  /** Forgets entries up to a position. */
  settle(position: Position): void {
    for (; this.#first < this.#entries.length; this.#first++) {
      const entry = this.#entries[this.#first];
      if (entry === undefined || entry.position > position) break;
      if (this.#newest.get(entry.key) === entry) this.remove(entry.key);
    }
    if (this.#first > 1024 && this.#first * 2 > this.#entries.length) {
      this.#entries = this.#entries.slice(this.#first);
      this.#first = 0;
    }
  }

  /** Returns the index of the first entry past a position. */
  #search(position: Position): number {
    let low = this.#first, high = this.#entries.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#entries[middle]?.position ?? Infinity) > position) high = middle;
      else low = middle + 1;
    }
    return low;
  }
}
