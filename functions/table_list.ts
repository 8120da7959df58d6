/**
 * The lists of a table: pages by key or by index.
 *
 * Life of a page by index: list the index's entries → get their rows in one call → drop entries that their rows have
 * outlived (I1), and remove those (I3) → see that entries and rows are of one state (L3).
 *
 * L1  The store is asked for `limit` rows, plus as many as were stale on the last page of that index.
 * L2  `cursor` is null iff the store had no more; a page with a cursor may be followed by an empty one, and may
 *     have fewer rows than its limit where these are long, or change while they are read.
 * L3  A page is one state of the site: an atomic operation is on it as a whole or not at all. By key it is one answer of
 *     the store. By index entries are read first and rows later; versions tell what came in between. Each put writes its
 *     row and its entry under one version, so that a row of its entry's version stood when the entries were read. For one
 *     of another version both are read again: a row that is as it was at the reading before has not changed when the
 *     entries were read (an absent one, where it has no new entry either). Where rows never hold still the page ends
 *     before the first of them.
 */
import type { Key, KeyPart } from "../store/model/key.ts";
import { keyAfter } from "../store/model/range.ts";
import { AppError, KvTypeError } from "./vocabulary/errors.ts";
import type { TableIndex } from "./index_entries.ts";
import { type Bounds, decodeCursor, encodeCursor, intervalOf, type KeyInterval } from "./key_space.ts";
import { readLevel } from "./kv.ts";
import { LIST_PAGE_DEFAULT, LIST_PAGE_MAX } from "./vocabulary/limits.ts";
import type { PlainEntry, PreparedTable } from "./prepared_table.ts";
import type { ReadLevel, RowPage, StoreClient, StoredRow } from "./vocabulary/store_client.ts";

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

/** Entries and their rows as one try at a page by index has read them. */
interface Reading {
  readonly entries: readonly StoredRow[];
  /** Rows of all entries by packed key; null where a row is absent. */
  readonly rows: ReadonlyMap<Key, PlainEntry | null>;
  readonly more: boolean;
}

/** Rows that a reading has to show. */
interface Picked {
  readonly rows: readonly PlainEntry[];
  /** Number of entries that were looked at, from the first on. */
  readonly used: number;
  readonly outlived: readonly Key[];
}

/** Readings after which the first rows that two of them agree upon are a page (L3), be it one row. Mostly the second agrees. */
const READINGS_MAX = 4;
/** Readings after which a list whose first row never holds still is refused (L3). */
const READINGS_MOST = 32;
/**
 * Entries asked for once a list's first row does not hold still: the fewer, the less comes between a list and its rows.
 */
const ASKED_BUSY = 4;

/** List that is not yet read: await it for a page, iterate it for all rows. */
export class TableLister implements PromiseLike<Page>, AsyncIterable<PlainEntry> {
  readonly #table: PreparedTable;
  readonly #store: StoreClient;
  readonly #index: TableIndex | undefined;
  readonly #space: Key;
  readonly #interval: KeyInterval;
  readonly #level: ReadLevel;
  readonly #reverse: boolean;
  readonly #limit: number | undefined;

  /** Checks the options. @throws KvTypeError `key_invalid`, `limit_list`. */
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

  /** Returns the ranges whose changes may change this list: an index's rows may be removed without their entries. */
  watched(): KeyInterval[] {
    if (this.#index === undefined) return [this.#interval];
    return [this.#interval, intervalOf(this.#table.space, {})];
  }

  /** Returns one page. */
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
    const { rows, more } = this.#index === undefined
      ? await this.#byKey(rest, limit)
      : await this.#byIndex(this.#index, rest, limit);
    const at = this.#reverse ? rest.end : rest.start;
    return { rows, cursor: more && rest.start < rest.end ? encodeCursor(this.#space, at) : null };
  }

  #list(rest: KeyInterval, limit: number): Promise<RowPage> {
    return this.#store.list({ ...rest, limit, reverse: this.#reverse, level: this.#level });
  }

  async #byKey(rest: KeyInterval, limit: number): Promise<{ rows: PlainEntry[]; more: boolean }> {
    if (rest.start >= rest.end) return { rows: [], more: false };
    const { rows: stored, more } = await this.#list(rest, limit);
    const last = stored.at(-1);
    if (last !== undefined) skipTo(rest, this.#reverse ? last.key : keyAfter(last.key), this.#reverse);
    return { rows: await Promise.all(stored.map((row) => this.#table.read(row))), more };
  }

  /** Reads entries and their rows, until these are of one state (L3). */
  async #byIndex(
    index: TableIndex,
    rest: KeyInterval,
    limit: number,
  ): Promise<{ rows: PlainEntry[]; more: boolean }> {
    let asked = Math.min(limit + index.slack, LIST_PAGE_MAX);
    let before: Reading | null = null;
    for (let readings = 1; rest.start < rest.end; readings++) {
      const reading = await this.#read(index, rest, asked);
      const sure = sureOf(index, reading, before), isLast = readings >= READINGS_MAX;
      const seen = isLast ? sure : reading.entries.length;
      const { rows, used, outlived } = this.#pick(index, reading, limit, seen);
      this.#remove(outlived);
      const more = used < reading.entries.length || reading.more, stale = used - rows.length;
      before = reading;
      if (isLast && used === 0 && more) {
        if (readings === READINGS_MOST) throw tooBusy(this.#table.name);
        asked = Math.min(limit, ASKED_BUSY);
        continue;
      }
      // Rows of two states are no page: the missing rows are read together with those that are there, or are on the
      // next one.
      const isShort = more && stale > 0 && rows.length < limit && asked < LIST_PAGE_MAX;
      if (isShort) asked = Math.min(asked + 2 * stale, LIST_PAGE_MAX);
      if (!isLast && (used > sure || isShort)) continue;
      const last = reading.entries[used - 1];
      if (last !== undefined) skipTo(rest, index.behind(last.key, this.#reverse), this.#reverse);
      index.slack = Math.min(stale, LIST_PAGE_DEFAULT);
      return { rows: [...rows], more };
    }
    return { rows: [], more: false };
  }

  async #read(index: TableIndex, rest: KeyInterval, asked: number): Promise<Reading> {
    const { rows: entries, more } = await this.#list(rest, asked);
    return { entries, rows: await this.#rowsOf(index, entries), more };
  }

  /** Returns the rows of the first `seen` entries, up to `limit`. */
  #pick(index: TableIndex, { entries, rows: byKey }: Reading, limit: number, seen: number): Picked {
    const rows: PlainEntry[] = [], outlived: Key[] = [], shown = new Map<Key, StoredRow>();
    let used = 0;
    for (const entry of entries.slice(0, seen)) {
      const rowKey = index.rowKeyOf(entry), row = byKey.get(rowKey) ?? null, other = shown.get(rowKey);
      const stands = row !== null && index.stands(entry.key, index.place(row.value, rowKey));
      if (stands && other === undefined) {
        if (rows.length === limit) break;
        shown.set(rowKey, entry);
        rows.push(row);
      } else if (row === null || entry.versionstamp < row.versionstamp) outlived.push(entry.key);
      // A put of the same fields: the entry of the put before, by which the row was shown, is outlived too.
      else if (
        other !== undefined && entry.versionstamp === row.versionstamp &&
        other.versionstamp < row.versionstamp
      ) {
        outlived.push(other.key);
      }
      used++;
    }
    return { rows, used, outlived };
  }

  /** Returns the rows of a page of entries, by packed key: one store call. */
  async #rowsOf(index: TableIndex, entries: readonly StoredRow[]): Promise<Map<Key, PlainEntry | null>> {
    const out = new Map<Key, PlainEntry | null>();
    const keys = [...new Set(entries.map((entry) => index.rowKeyOf(entry)))];
    if (keys.length === 0) return out;
    const stored = await this.#store.get(keys.map((key) => this.#table.space + key as Key), this.#level);
    for (const [i, key] of keys.entries()) {
      const row = stored[i] ?? null, read = row === null ? null : this.#table.read(row);
      out.set(key, read instanceof Promise ? await read : read);
    }
    return out;
  }

  /**
   * Removes entries that their rows have outlived (I3 b). No call waits for it and a failure costs nothing: the next
   * reader tries again. An eventual read might be older than its entries, so it removes none.
   */
  #remove(entries: readonly Key[]): void {
    if (entries.length === 0 || this.#level === "eventual") return;
    this.#store.commit([], entries.map((key) => ({ kind: "delete", key }))).catch(() => {});
  }
}

const tooBusy = (table: string) =>
  new AppError(
    "check_failed",
    `rows of the table ${table} change faster than a page of them can be read; ask again`,
  );

/** Returns how many of the first entries are of one state with their rows (L3). */
function sureOf(index: TableIndex, { entries, rows }: Reading, before: Reading | null): number {
  const seen = new Set(before?.entries.map(({ key }) => key));
  /** Rows of an entry's version, and rows that were put since the reading before. */
  const written = new Set<Key>(), put = new Set<Key>();
  for (const entry of entries) {
    const key = index.rowKeyOf(entry);
    if (rows.get(key)?.versionstamp === entry.versionstamp) written.add(key);
    if (!seen.has(entry.key)) put.add(key);
  }
  const at = entries.findIndex((entry) => {
    const key = index.rowKeyOf(entry);
    if (written.has(key)) return false;
    const then = before?.rows.get(key), now = rows.get(key);
    if (then === undefined || then?.versionstamp !== now?.versionstamp) return true;
    // An absent row has no version: one may have been put and deleted in between. It would have left an entry.
    return then === null && put.has(key);
  });
  return at < 0 ? entries.length : at;
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
