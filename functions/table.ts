/**
 * The table as a request uses it, bound to the request's session.
 *
 * T3  A put that throws wrote nothing; one that resolved has its version.
 * T4  Reads of a list: one store call per page by key, two by an index (entries, then their rows in one get), as
 *     long as the entries met are not stale.
 */
import type { Key, KeyPart } from "../store/model/key.ts";
import { pointRange } from "../store/model/range.ts";
import type { TableDefinition } from "./define.ts";
import { AppError } from "./vocabulary/errors.ts";
import { readLevel } from "./kv.ts";
import { AtomicSends, noQueue, type SendingQueue, WriteBatch } from "./kv_atomic.ts";
import type { SendOptions } from "./queue.ts";
import type { PlainEntry, PreparedPut, PreparedTable } from "./prepared_table.ts";
import type { ReadBatch } from "./read_batch.ts";
import type { ReadLevel, StoreClient } from "./vocabulary/store_client.ts";
import type { Table, TableAtomic, WriteCheck } from "./table_interface.ts";
import { type ListAsked, type Page, TableLister } from "./table_list.ts";

type Schema = TableDefinition["schema"];
/** Type that RequestTable implements; an app sees the narrower one that follows from its declaration. */
type PlainTable = Table<Schema, readonly string[], Readonly<Record<string, readonly string[]>>>;

interface ReadOptions {
  readonly consistency?: ReadLevel;
}

/** Table of one request. */
export class RequestTable implements PlainTable {
  readonly #table: PreparedTable;
  readonly #store: StoreClient;
  readonly #reads: ReadBatch;

  readonly #queueOf: SendingQueue;

  constructor(table: PreparedTable, store: StoreClient, reads: ReadBatch, queueOf: SendingQueue = noQueue) {
    this.#table = table;
    this.#store = store;
    this.#reads = reads;
    this.#queueOf = queueOf;
  }

  async get(key: readonly KeyPart[], options?: ReadOptions): Promise<PlainEntry | null> {
    const packed = this.#table.packKey(key);
    const stored = await this.#reads.get(packed, readLevel(options?.consistency, this.#table.level));
    return stored === null ? null : this.#table.read(stored);
  }

  async getMany(
    keys: readonly (readonly KeyPart[])[],
    options?: ReadOptions,
  ): Promise<(PlainEntry | null)[]> {
    const level = readLevel(options?.consistency, this.#table.level);
    const packed = keys.map((key) => this.#table.packKey(key));
    const stored = await Promise.all(packed.map((key) => this.#reads.get(key, level)));
    return Promise.all(stored.map((row) => row === null ? null : this.#table.read(row)));
  }

  async put(row: unknown, options?: WriteCheck): Promise<PlainEntry> {
    const put = await this.#table.put(row);
    const batch = new WriteBatch();
    if (options?.check !== undefined) batch.check(put.key, options.check);
    for (const mutation of put.mutations) batch.add(mutation);
    const result = await batch.commit(this.#store);
    if (!result.ok) throw this.#checkFailed(put.entry.key);
    this.#table.remember(put.key, put.entries);
    return { ...put.entry, versionstamp: result.versionstamp };
  }

  async delete(key: readonly KeyPart[], options?: WriteCheck): Promise<void> {
    const packed = this.#table.packKey(key);
    const batch = new WriteBatch();
    if (options?.check !== undefined) batch.check(packed, options.check);
    addDelete(batch, this.#table, packed);
    if (!(await batch.commit(this.#store)).ok) throw this.#checkFailed(key);
    this.#table.remember(packed, []);
  }

  list(options: ListAsked = {}): TableLister {
    return new TableLister(this.#table, this.#store, options);
  }

  atomic(): RequestTableAtomic {
    return new RequestTableAtomic(this.#table, this.#store, this.#queueOf);
  }

  async *watch(
    key: readonly KeyPart[],
    options: { readonly signal?: AbortSignal } = {},
  ): AsyncGenerator<PlainEntry | null> {
    const packed = this.#table.packKey(key);
    let last: string | null | undefined;
    for await (const _ of changes(this.#store, [pointRange(packed)], options.signal)) {
      const [stored = null] = await this.#store.get([packed], this.#table.level);
      const now = stored?.versionstamp ?? null;
      if (now === last) continue;
      last = now;
      yield stored === null ? null : await this.#table.read(stored);
    }
  }

  async *watchList(options: ListAsked & { readonly signal?: AbortSignal } = {}): AsyncGenerator<Page> {
    const lister = new TableLister(this.#table, this.#store, options);
    let last: string | undefined;
    for await (const _ of changes(this.#store, lister.watched(), options.signal)) {
      const page = await lister.page();
      const now = page.rows.map((row) => row.versionstamp).join();
      if (now === last) continue;
      last = now;
      yield page;
    }
  }

  #checkFailed(key: readonly KeyPart[]): AppError {
    return new AppError(
      "check_failed",
      `a row of the table ${this.#table.name} is not at the expected version`,
      {
        table: this.#table.name,
        key,
      },
    );
  }
}

function addDelete(batch: WriteBatch, table: PreparedTable, key: Key): void {
  batch.add({ kind: "delete", key });
  for (const removal of table.removals(key)) batch.add(removal);
}

/** Yields the store's wake-ups until the caller's signal aborts or the caller stops iterating. */
async function* changes(
  store: StoreClient,
  ranges: readonly { start: Key; end: Key }[],
  signal: AbortSignal | undefined,
): AsyncGenerator<void> {
  const stop = new AbortController();
  try {
    yield* store.watch(ranges, signal === undefined ? stop.signal : AbortSignal.any([signal, stop.signal]));
  } finally {
    stop.abort();
  }
}

/** Writes to one table that are applied together. */
export class RequestTableAtomic implements TableAtomic<Schema, readonly string[]> {
  readonly #table: PreparedTable;
  readonly #store: StoreClient;
  readonly #checks: { readonly key: Key; readonly versionstamp: string | null }[] = [];
  /** Rows to put are checked against the schema by `commit`, since a schema may be asynchronous. */
  readonly #writes: ({ readonly row: unknown } | { readonly deleted: Key })[] = [];

  readonly #queueOf: SendingQueue;
  /** Null: nothing is sent, as in most. */
  #sends: AtomicSends | null = null;

  constructor(table: PreparedTable, store: StoreClient, queueOf: SendingQueue) {
    this.#table = table;
    this.#store = store;
    this.#queueOf = queueOf;
  }

  check(key: readonly KeyPart[], versionstamp: string | null): this {
    this.#checks.push({ key: this.#table.packKey(key), versionstamp });
    return this;
  }

  put(row: unknown): this {
    this.#writes.push({ row });
    return this;
  }

  delete(key: readonly KeyPart[]): this {
    this.#writes.push({ deleted: this.#table.packKey(key) });
    return this;
  }

  send(queue: string, body: unknown, options?: SendOptions): this {
    (this.#sends ??= new AtomicSends(this.#queueOf)).add(queue, body, options);
    return this;
  }

  async commit(): Promise<{ readonly ok: true; readonly versionstamp: string } | { readonly ok: false }> {
    const batch = new WriteBatch();
    for (const { key, versionstamp } of this.#checks) batch.check(key, versionstamp);
    const puts: PreparedPut[] = [];
    for (const write of this.#writes) {
      if ("deleted" in write) {
        addDelete(batch, this.#table, write.deleted);
      } else {
        const put = await this.#table.put(write.row);
        for (const mutation of put.mutations) batch.add(mutation);
        puts.push(put);
      }
    }
    if (this.#sends !== null) await this.#sends.into(batch);
    const result = await batch.commit(this.#store);
    if (result.ok) { for (const put of puts) this.#table.remember(put.key, put.entries); }
    return result;
  }
}
