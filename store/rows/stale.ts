/**
 * The stale ranges: those that this site covered under a parent, or an incarnation of it, that it has no more. Their
 * rows stay on disk, so that only rows that changed meanwhile have to come over the link (resync.ts).
 *
 * Life: covered → the parent can't vouch for it any more → stale → compared or fetched: covered again; or evicted.
 *
 * A row is stale where its key is not covered and the root has the row, or had (a row that the root is not known to
 * have is pending, and stays so). These ranges say where most of the stale rows are; some are on their way out.
 *
 * T2  A stale row is on disk only: to readers, neighbours and arriving rows it does not exist (rows.ts).
 * T3  Every change is also written to the records of the next commit, as coverage's are (coverage.ts V2).
 */
import { Reader, Writer } from "../model/codec.ts";
import type { Key } from "../model/key.ts";
import { isEmpty, isPoint, partsOutside, type Range } from "../model/range.ts";
import { RangeMap } from "../model/range_map.ts";

const RECORD = "stale/";

export class StaleRanges {
  readonly #ranges = new RangeMap<null>();
  readonly #record: (name: string, value: Uint8Array | null) => void;

  constructor(record: (name: string, value: Uint8Array | null) => void) {
    this.#record = record;
  }

  /** Restores a range from the disk's records; false where the record is of another kind. */
  restore(name: string, value: Uint8Array): boolean {
    if (!name.startsWith(RECORD)) return false;
    const reader = new Reader(value), end = reader.key();
    reader.end();
    this.#ranges.insert({ start: atob(name.slice(RECORD.length)) as Key, end, value: null });
    return true;
  }

  touches(range: Range): boolean {
    return this.#ranges.size > 0 && this.#ranges.touches(range);
  }

  /** Returns the ranges that overlap another, in key order. */
  within(range: Range): Range[] {
    return this.#ranges.overlapping(range).map(({ start, end }) => ({ start, end }));
  }

  /** Returns the ranges of more than one key. */
  wide(): Range[] {
    return [...this.#ranges].filter((range) => !isPoint(range)).map(({ start, end }) => ({ start, end }));
  }

  add(range: Range): void {
    if (isEmpty(range) || this.#ranges.holds(range)) return;
    this.remove(range);
    this.#put(range);
  }

  /** Removes a range, and trims ranges that reach out of it. */
  remove(range: Range): void {
    if (this.#ranges.size === 0) return;
    for (const old of this.#ranges.overlapping(range)) {
      this.#ranges.remove(old);
      this.#record(RECORD + btoa(old.start), null); // T3
      for (const rest of partsOutside(old, range)) this.#put(rest);
    }
  }

  #put({ start, end }: Range): void {
    this.#ranges.insert({ start, end, value: null });
    this.#record(RECORD + btoa(start), new Writer(32).key(end).done());
  }
}
