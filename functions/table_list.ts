/**
 * Lists of a table: pages by key or by index.
 *
 * Life of a page: list the interval (rows, or index entries) → for an index, get the distinct rows in one call →
 * drop entries that their rows have outlived (I1), and remove those (I3) → go on while rows are missing and the
 * interval has more.
 *
 * L1  The store is asked for `limit` rows, plus as many as were stale on the last page of that index.
 * L2  `cursor` is null iff the store had no more; a page with a cursor may be followed by an empty one, and may
 *     have fewer rows than its limit where these are long.
 */
import type { Key, KeyPart } from "../store/key.ts";
import { keyAfter } from "../store/range.ts";
import { KvTypeError } from "./errors.ts";
import type { TableIndex } from "./index_entries.ts";
import { type Bounds, decodeCursor, encodeCursor, intervalOf, type KeyInterval } from "./key_space.ts";
import { readLevel } from "./kv.ts";
import { LIST_PAGE_BYTES_MAX, LIST_PAGE_DEFAULT, LIST_PAGE_MAX } from "./limits.ts";
import type { PlainEntry, PreparedTable } from "./prepared_table.ts";
import type { ReadLevel, RowPage, StoreClient, StoredRow } from "./store_client.ts";

/** A list's options without the types of its table. */
export interface ListAsked {
  readonly index?: string | undefined;
  readonly prefix?: readonly KeyPart[];
  readonly start?: readonly KeyPart[];
  readonly end?: readonly KeyPart[];
  readonly limit?: number;
  readonly cursor?: string | null;
  readonly reverse?: boolean;
  readonly consistency?: ReadLevel;
}

/** A page of plain rows. */
export interface Page {
  readonly rows: PlainEntry[];
  readonly cursor: string | null;
}

/** What one store list gave: rows to show, how much was read, where to go on. */
interface Step {
  readonly rows: PlainEntry[];
  readonly more: boolean;
  readonly stale: number;
  /** Of the values of the rows. */
  readonly bytes: number;
}

/** A list, not yet read: await it for a page, iterate it for all rows. */
export class TableLister implements PromiseLike<Page>, AsyncIterable<PlainEntry> {
  readonly #table: PreparedTable;
  readonly #store: StoreClient;
  readonly #index: TableIndex | undefined;
  readonly #space: Key;
  readonly #interval: KeyInterval;
  readonly #level: ReadLevel;
  readonly #reverse: boolean;
  readonly #limit: number | undefined;

  /** @throws KvTypeError `key_invalid`, `limit_list`. */
  constructor(table: PreparedTable, store: StoreClient, asked: ListAsked) {
    this.#table = table;
    this.#store = store;
    this.#index = indexOf(table, asked.index);
    this.#space = this.#index?.space ?? table.space;
    this.#level = readLevel(asked.consistency, table.level);
    this.#reverse = asked.reverse ?? false;
    if (asked.limit !== undefined && !(Number.isInteger(asked.limit) && asked.limit > 0)) {
      throw new KvTypeError("limit_list", `limit is a positive whole number, not ${asked.limit}`);
    }
    this.#limit = asked.limit;
    this.#interval = intervalOf(this.#space, asked satisfies Bounds);
    if (asked.cursor !== undefined && asked.cursor !== null) {
      skipTo(this.#interval, decodeCursor(this.#space, this.#interval, asked.cursor), this.#reverse);
    }
  }

  then<A = Page, B = never>(
    resolved?: ((page: Page) => A | PromiseLike<A>) | null,
    rejected?: ((reason: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    return this.page().then(resolved, rejected);
  }

  /** The ranges whose changes may change this list: an index's rows may go without their entries. */
  watched(): KeyInterval[] {
    if (this.#index === undefined) return [this.#interval];
    return [this.#interval, intervalOf(this.#table.space, {})];
  }

  /** One page. */
  page(): Promise<Page> {
    const limit = this.#limit ?? LIST_PAGE_DEFAULT;
    if (limit > LIST_PAGE_MAX) {
      throw new KvTypeError("limit_list", `a page has at most ${LIST_PAGE_MAX} rows, not ${limit}`);
    }
    return this.#page({ ...this.#interval }, limit);
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<PlainEntry> {
    const rest = { ...this.#interval };
    for (let left = this.#limit ?? Infinity; left > 0;) {
      const page = await this.#page(rest, Math.min(left, LIST_PAGE_DEFAULT));
      yield* page.rows;
      if (page.cursor === null) return;
      left -= page.rows.length;
    }
  }

  /** Reads up to `limit` rows and moves `rest` behind them. */
  async #page(rest: KeyInterval, limit: number): Promise<Page> {
    const rows: PlainEntry[] = [];
    let more = true;
    let stale = 0;
    let bytes = 0;
    while (more && rows.length < limit && bytes < LIST_PAGE_BYTES_MAX && rest.start < rest.end) {
      const step = this.#index === undefined
        ? await this.#byKey(rest, limit - rows.length)
        : await this.#byIndex(this.#index, rest, limit - rows.length, stale);
      rows.push(...step.rows);
      more = step.more;
      stale += step.stale;
      bytes += step.bytes;
    }
    if (this.#index !== undefined) this.#index.slack = Math.min(stale, LIST_PAGE_DEFAULT);
    const at = this.#reverse ? rest.end : rest.start;
    return { rows, cursor: more && rest.start < rest.end ? encodeCursor(this.#space, at) : null };
  }

  #list(rest: KeyInterval, limit: number): Promise<RowPage> {
    return this.#store.list({ ...rest, limit, reverse: this.#reverse, level: this.#level });
  }

  async #byKey(rest: KeyInterval, limit: number): Promise<Step> {
    const { rows: stored, more } = await this.#list(rest, limit);
    const last = stored.at(-1);
    if (last !== undefined) skipTo(rest, this.#reverse ? last.key : keyAfter(last.key), this.#reverse);
    const rows = await Promise.all(stored.map((row) => this.#table.read(row)));
    return { rows, more, stale: 0, bytes: stored.reduce((sum, row) => sum + row.value.length, 0) };
  }

  async #byIndex(index: TableIndex, rest: KeyInterval, missing: number, staleSoFar: number): Promise<Step> {
    const asked = Math.min(missing + Math.max(index.slack, 2 * staleSoFar), LIST_PAGE_MAX);
    const { rows: entries, more } = await this.#list(rest, asked);
    const byKey = await this.#rowsOf(index, entries);
    const rows: PlainEntry[] = [];
    const outlived: Key[] = [];
    const shown = new Set<Key>();
    let used = 0;
    for (const entry of entries) {
      const rowKey = index.rowKeyOf(entry);
      const row = byKey.get(rowKey);
      const stands = row !== undefined && index.stands(entry.key, index.place(row.value, rowKey));
      if (stands && !shown.has(rowKey)) {
        if (rows.length === missing) break;
        shown.add(rowKey);
        rows.push(row);
      } else if (row === undefined || entry.versionstamp < row.versionstamp) outlived.push(entry.key);
      used++;
    }
    const last = entries[used - 1];
    if (last !== undefined) skipTo(rest, index.behind(last.key, this.#reverse), this.#reverse);
    this.#remove(outlived);
    const bytes = entries.reduce((sum, entry) => sum + entry.value.length, 0);
    return { rows, more: used < entries.length || more, stale: used - rows.length, bytes };
  }

  /** The rows of a page of entries, by packed key: one store call. */
  async #rowsOf(index: TableIndex, entries: readonly StoredRow[]): Promise<Map<Key, PlainEntry>> {
    const out = new Map<Key, PlainEntry>();
    const keys = [...new Set(entries.map((entry) => index.rowKeyOf(entry)))];
    if (keys.length === 0) return out;
    const stored = await this.#store.get(keys.map((key) => this.#table.space + key as Key), this.#level);
    for (const [i, key] of keys.entries()) {
      const row = stored[i];
      if (row === undefined || row === null) continue;
      const read = this.#table.read(row);
      out.set(key, read instanceof Promise ? await read : read);
    }
    return out;
  }

  /**
   * Removes entries that their rows have outlived (I3 b). Nobody waits for it and a failure costs nothing: the
   * next reader tries again. An eventual read might be older than its entries, so it removes none.
   */
  #remove(entries: readonly Key[]): void {
    if (entries.length === 0 || this.#level === "eventual") return;
    this.#store.commit([], entries.map((key) => ({ kind: "delete", key }))).catch(() => {});
  }
}

function skipTo(interval: KeyInterval, at: Key, reverse: boolean): void {
  if (reverse) interval.end = at;
  else interval.start = at;
}

function indexOf(table: PreparedTable, name: string | undefined): TableIndex | undefined {
  if (name === undefined) return undefined;
  const index = table.indexes.get(name);
  if (index === undefined) {
    const known = [...table.indexes.keys()].join(", ") || "none";
    throw new KvTypeError("key_invalid", `the table ${table.name} has no index ${name}; it has: ${known}`);
  }
  return index;
}
