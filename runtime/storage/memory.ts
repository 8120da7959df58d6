/**
 * Rows and journal in memory: the storage of tests, of `--ephemeral` clusters, and under the simulator's disk.
 *
 * M1  `rows`, `order` and `journal` hold the same rows, each at its newest position.
 * M2  A step applies drops, then rows in their order, then records; a key in both ends as its row.
 */
import sortedBtree from "sorted-btree";
import type { Key } from "../../store/model/key.ts";
import type { DiskCommit, ScanOptions, Storage } from "../../store/model/ports.ts";
import type { Range } from "../../store/model/range.ts";
import { type Position, type Row, rowBytes } from "../../store/model/row.ts";

/** The package is CommonJS, hence the second `default`. */
const BTree = sortedBtree.default;
const ascending = <T extends string | number>(a: T, b: T): number => a < b ? -1 : a > b ? 1 : 0;

/** Result that ends a walk of the tree. */
const STOP = { break: true };

/** The synchronous core: rows by key and by position. */
export class MemoryRows {
  /** Rows by key, beside the tree: point reads are far more than scans, and a hash map answers them. */
  readonly #rows = new Map<Key, Row>();
  readonly #order = new BTree<Key, Row>(undefined, ascending);
  readonly #journal = new BTree<Position, Row>(undefined, ascending);
  readonly #records = new Map<string, Uint8Array>();
  #bytes = 0;

  /** Bytes of all keys and values. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Number of rows. */
  get size(): number {
    return this.#rows.size;
  }

  /** Returns a copy, which stays as the rows are now. */
  copy(): MemoryRows {
    const copy = new MemoryRows();
    for (const row of this.#journal.values()) copy.put(row);
    for (const [name, value] of this.#records) copy.#records.set(name, value);
    return copy;
  }

  /** Returns a copy of the named records. */
  records(): Map<string, Uint8Array> {
    return new Map(this.#records);
  }

  get(key: Key): Row | undefined {
    return this.#rows.get(key);
  }

  /** Returns rows in a range by key. */
  scan(
    range: Range,
    { limit = Infinity, bytesMax = Infinity, reverse = false }: ScanOptions = {},
  ): Row[] {
    const { start, end } = range;
    const out: Row[] = [];
    let bytes = 0;
    if (limit <= 0 || start >= end) return out;
    if (!reverse) {
      this.#order.forRange(start, end, false, (_, row) => {
        out.push(row);
        bytes += rowBytes(row);
        return out.length < limit && bytes < bytesMax ? undefined : STOP;
      });
      return out;
    }
    for (const [key, row] of this.#order.entriesReversed(end, undefined, true)) {
      if (key < start || out.length >= limit || bytes >= bytesMax) break;
      out.push(row);
      bytes += rowBytes(row);
    }
    return out;
  }

  /** Returns rows of the first keys, as far as their bytes are wanted. */
  getMany(keys: readonly Key[], bytesMax = Infinity): (Row | undefined)[] {
    const out: (Row | undefined)[] = [];
    for (let bytes = 0; out.length < keys.length && bytes < bytesMax;) {
      const row = this.#rows.get(keys[out.length] as Key);
      if (row !== undefined) bytes += rowBytes(row);
      out.push(row);
    }
    return out;
  }

  /** Returns rows with after < position ≤ upTo. */
  journal(after: Position, upTo: Position, limit: number, bytesMax = Infinity): Row[] {
    const out: Row[] = [];
    let bytes = 0;
    if (limit <= 0 || after >= upTo) return out;
    this.#journal.forRange(after + 1, upTo, true, (_, row) => {
      out.push(row);
      bytes += rowBytes(row);
      return out.length < limit && bytes < bytesMax ? undefined : STOP;
    });
    return out;
  }

  /** Puts a row in place of the one with its key. */
  put(row: Row): void {
    const there = this.#journal.get(row.position);
    if (there !== undefined && there.key !== row.key) {
      throw new Error(`M1: position ${row.position} already holds another row`);
    }
    this.drop(row.key);
    this.#rows.set(row.key, row);
    this.#order.set(row.key, row);
    this.#journal.set(row.position, row);
    this.#bytes += countedBytes(row);
  }

  /** Removes a row without trace. */
  drop(key: Key): void {
    const row = this.#rows.get(key);
    if (row === undefined) return;
    this.#rows.delete(key);
    this.#order.delete(key);
    this.#journal.delete(row.position);
    this.#bytes -= countedBytes(row);
  }

  /** Sets a named record; null removes it. */
  setRecord(name: string, value: Uint8Array | null): void {
    if (value === null) this.#records.delete(name);
    else this.#records.set(name, value);
  }

  /** Applies a whole step (M2). */
  apply(commit: DiskCommit): void {
    for (const key of commit.drop) this.drop(key);
    for (const row of commit.rows) this.put(row);
    for (const [name, value] of commit.records) this.setRecord(name, value);
  }
}

/** Returns the bytes that a row counts for in `Storage.bytes`. */
export const countedBytes = (row: Row): number => row.key.length + (row.value?.length ?? 0);

/** A storage that lives as long as its process. */
export class MemoryStorage implements Storage {
  readonly #rows: MemoryRows;

  /** @param rows rows that survived somewhere else, or none. */
  constructor(rows: MemoryRows = new MemoryRows()) {
    this.#rows = rows;
  }

  load(): Promise<Map<string, Uint8Array>> {
    return Promise.resolve(this.#rows.records());
  }

  get(key: Key): Promise<Row | undefined> {
    return Promise.resolve(this.#rows.get(key));
  }

  getMany(keys: readonly Key[], bytesMax?: number): Promise<(Row | undefined)[]> {
    return Promise.resolve(this.#rows.getMany(keys, bytesMax));
  }

  scan(range: Range, options?: ScanOptions): Promise<Row[]> {
    return Promise.resolve(this.#rows.scan(range, options));
  }

  journal(after: Position, upTo: Position, limit: number, bytesMax?: number): Promise<Row[]> {
    return Promise.resolve(this.#rows.journal(after, upTo, limit, bytesMax));
  }

  // deno-lint-ignore require-await -- async, so that a broken invariant rejects instead of throwing
  async commit(commit: DiskCommit): Promise<void> {
    this.#rows.apply(commit);
  }

  bytes(): Promise<number> {
    return Promise.resolve(this.#rows.bytes);
  }

  close(): Promise<void> {
    return Promise.resolve();
  }
}
