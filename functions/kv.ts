/**
 * The Deno KV interface over a request's session.
 *
 * A RequestKv lives as long as its request. Keys are packed behind the space "kv"; the store sees bytes only.
 *
 * Q1  Arguments are checked, and values encoded, before anything is sent: a call that throws changed nothing.
 * Q2  A list asks the store for no more rows than its limit leaves, so that only that interval is covered.
 */
import { type Key, unpackKey } from "../store/model/key.ts";
import { keyAfter, pointRange } from "../store/model/range.ts";
import { AppError, KvTypeError, notAvailable } from "./vocabulary/errors.ts";
import {
  decodeCursor,
  encodeCursor,
  intervalOf,
  type KeyInterval,
  KV_SPACE,
  outsideError,
  packBounded,
  packUserKey,
} from "./key_space.ts";
import { KvAtomicOperation, noQueue, type SendingQueue } from "./kv_atomic.ts";
import type {
  Kv,
  KvCommitResult,
  KvEnqueueOptions,
  KvEntry,
  KvEntryMaybe,
  KvKey,
  KvListIterator,
  KvListOptions,
  KvListSelector,
} from "./kv_interface.ts";
import { GET_MANY_MAX, LIST_PAGE_DEFAULT, LIST_PAGE_MAX, WATCH_KEYS_MAX } from "./vocabulary/limits.ts";
import { ReadBatch } from "./read_batch.ts";
import type { ReadLevel, StoreClient, StoredRow } from "./vocabulary/store_client.ts";
import { decodeValue } from "./values/value.ts";

const LEVELS: ReadonlySet<unknown> = new Set<ReadLevel>(["eventual", "session", "strong"]);

/** Returns the read level that a caller asked for. @throws KvTypeError `key_invalid` for anything else. */
export function readLevel(asked: unknown, otherwise: ReadLevel = "session"): ReadLevel {
  if (asked === undefined || asked === null) return otherwise;
  if (!LEVELS.has(asked)) {
    const got = JSON.stringify(asked);
    throw new KvTypeError("key_invalid", `consistency is "eventual", "session" or "strong", not ${got}`);
  }
  return asked as ReadLevel;
}

/** Key space of the app, bound to one request's session. */
export class RequestKv implements Kv {
  readonly #store: StoreClient;
  readonly #reads: ReadBatch;

  readonly #queueOf: SendingQueue;

  constructor(store: StoreClient, reads: ReadBatch = new ReadBatch(store), queueOf: SendingQueue = noQueue) {
    this.#store = store;
    this.#reads = reads;
    this.#queueOf = queueOf;
  }

  async get<T = unknown>(key: KvKey, options?: { consistency?: ReadLevel }): Promise<KvEntryMaybe<T>> {
    const packed = packUserKey(key);
    return entryMaybe<T>(key, await this.#reads.get(packed, readLevel(options?.consistency)));
  }

  async getMany<T extends readonly unknown[]>(
    keys: readonly [...{ [K in keyof T]: KvKey }],
    options?: { consistency?: ReadLevel },
  ): Promise<{ [K in keyof T]: KvEntryMaybe<T[K]> }> {
    const asked: readonly KvKey[] = keys;
    if (asked.length > GET_MANY_MAX) throw tooMany("keys", GET_MANY_MAX, asked.length);
    const packed = asked.map(packUserKey);
    const level = readLevel(options?.consistency);
    const rows = packed.length === 0 ? [] : await this.#store.get(packed, level);
    return asked.map((key, i) => entryMaybe(key, rows[i] ?? null)) as { [K in keyof T]: KvEntryMaybe<T[K]> };
  }

  async set(key: KvKey, value: unknown, options?: { expireIn?: number }): Promise<KvCommitResult> {
    return committed(await new KvAtomicOperation(this.#store).set(key, value, options).commit());
  }

  async delete(key: KvKey): Promise<void> {
    committed(await new KvAtomicOperation(this.#store).delete(key).commit());
  }

  list<T = unknown>(selector: KvListSelector, options: KvListOptions = {}): KvListIterator<T> {
    return new KvList<T>(this.#store, listInterval(selector), options);
  }

  atomic(): KvAtomicOperation {
    return new KvAtomicOperation(this.#store, this.#queueOf);
  }

  watch<T extends readonly unknown[]>(
    keys: readonly [...{ [K in keyof T]: KvKey }],
    options?: { raw?: boolean },
  ): ReadableStream<{ [K in keyof T]: KvEntryMaybe<T[K]> }> {
    const asked: readonly KvKey[] = keys;
    if (asked.length > WATCH_KEYS_MAX) throw tooMany("keys", WATCH_KEYS_MAX, asked.length);
    return watchRows(this.#store, asked, options?.raw ?? false) as ReadableStream<
      { [K in keyof T]: KvEntryMaybe<T[K]> }
    >;
  }

  async enqueue(value: unknown, options?: KvEnqueueOptions): Promise<KvCommitResult> {
    return committed(await new KvAtomicOperation(this.#store).enqueue(value, options).commit());
  }

  listenQueue(): Promise<void> {
    return Promise.reject(
      new AppError(
        "not_available",
        "env.kv.listenQueue is not available: the KV that openKv gives listens, while the module loads",
      ),
    );
  }

  commitVersionstamp(): symbol {
    throw notAvailable("kv.commitVersionstamp");
  }

  close(): void {}

  [Symbol.dispose](): void {}
}

function entryMaybe<T>(key: KvKey, row: StoredRow | null): KvEntryMaybe<T> {
  if (row === null) return { key, value: null, versionstamp: null };
  return { key, value: decodeValue(row.value) as T, versionstamp: row.versionstamp };
}

function committed(result: KvCommitResult | { ok: false }): KvCommitResult {
  // Without checks there is nothing that could fail.
  if (!result.ok) throw new Error("a write without checks was refused");
  return result;
}

const tooMany = (what: string, max: number, got: number): KvTypeError =>
  new KvTypeError("limit_list", `Too many ${what} (max ${max}): received ${got}`);

function listInterval(selector: KvListSelector): KeyInterval {
  const { prefix, start, end } = selector as { prefix?: KvKey; start?: KvKey; end?: KvKey };
  if (prefix === undefined && (start === undefined || end === undefined)) {
    throw new KvTypeError(
      "key_invalid",
      "Selector must specify either 'prefix' or both 'start' and 'end' key",
    );
  }
  if (prefix !== undefined && start !== undefined && end !== undefined) {
    throw new KvTypeError(
      "key_invalid",
      "Selector can not specify both 'start' and 'end' key when specifying 'prefix'",
    );
  }
  if (prefix !== undefined) {
    // As in Deno, a prefix covers the keys below it, and not itself.
    if (isSameKey(start, prefix)) throw outsideError("Start");
    if (isSameKey(end, prefix)) throw outsideError("End");
  }
  return intervalOf(KV_SPACE, { prefix, start, end });
}

const isSameKey = (a: KvKey | undefined, b: KvKey): boolean =>
  a !== undefined && packBounded(a) === packBounded(b);

/** Returns a positive integer. @throws Error with the code `limit_list`: no TypeError, as in Deno. */
function positive(what: string, number: unknown): number {
  if (Number.isInteger(number) && (number as number) > 0) return number as number;
  const error = new Error(`${what} must be a positive integer: received ${String(number)}`);
  throw Object.assign(error, { code: "limit_list" });
}

/** List in progress: pages are fetched as they are needed. */
class KvList<T> implements KvListIterator<T> {
  readonly #store: StoreClient;
  readonly #level: ReadLevel;
  readonly #reverse: boolean;
  readonly #batchSize: number;
  /** Range that is left to read. */
  readonly #rest: KeyInterval;
  /** Number of rows that the limit still allows. */
  #allowed: number;
  #page: readonly StoredRow[] = [];
  #next = 0;
  #lastPage = false;
  /** Key of the row given last; "" at the end; undefined before the first. */
  #at: string | undefined;

  constructor(store: StoreClient, interval: KeyInterval, options: KvListOptions) {
    const { cursor = "", consistency } = options;
    const limit = options.limit === undefined ? Infinity : positive("Limit", options.limit);
    const batchSize = options.batchSize === undefined || options.batchSize === null
      ? Math.min(limit === Infinity ? LIST_PAGE_DEFAULT : limit, LIST_PAGE_MAX)
      : positive("batchSize", options.batchSize);
    if (batchSize > LIST_PAGE_MAX) throw tooMany("entries", LIST_PAGE_MAX, batchSize);
    this.#store = store;
    this.#level = readLevel(consistency);
    // Nothing but `true` reverses a list, as in Deno.
    this.#reverse = options.reverse === true;
    this.#allowed = limit;
    this.#batchSize = batchSize;
    this.#rest = interval;
    if (cursor !== "") this.#skipTo(decodeCursor(KV_SPACE, interval, cursor));
  }

  get cursor(): string {
    if (this.#at === undefined) throw new Error("Cannot get cursor before first iteration");
    return this.#at === "" ? "" : encodeCursor(KV_SPACE, this.#at);
  }

  async next(): Promise<IteratorResult<KvEntry<T>, undefined>> {
    if (this.#allowed <= 0) return { done: true, value: undefined };
    if (this.#next >= this.#page.length && !this.#lastPage) await this.#fetch();
    const row = this.#page[this.#next];
    if (row === undefined) {
      this.#at = "";
      return { done: true, value: undefined };
    }
    this.#next++;
    this.#allowed--;
    this.#at = row.key;
    const key = unpackKey(row.key.slice(KV_SPACE.length));
    const value = { key, value: decodeValue(row.value) as T, versionstamp: row.versionstamp };
    return { done: false, value };
  }

  [Symbol.asyncIterator](): AsyncIterableIterator<KvEntry<T>> {
    return this;
  }

  async #fetch(): Promise<void> {
    const limit = Math.min(this.#batchSize, this.#allowed);
    const { start, end } = this.#rest;
    const { rows, more } = start >= end
      ? { rows: [], more: false }
      : await this.#store.list({ start, end, limit, reverse: this.#reverse, level: this.#level });
    this.#lastPage = !more;
    const last = rows.at(-1);
    if (last !== undefined) this.#skipTo(last.key);
    this.#page = rows;
    this.#next = 0;
  }

  /** Has the list go on behind a key. */
  #skipTo(key: Key): void {
    if (this.#reverse) this.#rest.end = key;
    else this.#rest.start = keyAfter(key);
  }
}

function watchRows(
  store: StoreClient,
  keys: readonly KvKey[],
  raw: boolean,
): ReadableStream<KvEntryMaybe<unknown>[]> {
  const packed = keys.map(packUserKey);
  const stop = new AbortController();
  const changes = store.watch(packed.map(pointRange), stop.signal)[Symbol.asyncIterator]();
  let last: string | undefined;
  return new ReadableStream<KvEntryMaybe<unknown>[]>({
    async pull(controller) {
      for (;;) {
        if ((await changes.next()).done === true) return controller.close();
        const rows = await store.get(packed, "session");
        const now = rows.map((row) => row?.versionstamp ?? "").join();
        if (!raw && now === last) continue;
        last = now;
        return controller.enqueue(keys.map((key, i) => entryMaybe(key, rows[i] ?? null)));
      }
    },
    async cancel() {
      stop.abort();
      // The abort ends a wait; this ends an iterator that no call waits for.
      await changes.return?.();
    },
  }, { highWaterMark: 0 });
}
