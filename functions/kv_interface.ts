/**
 * The Deno KV interface, as apps see it: structurally a `Deno.Kv`, with one more consistency level and with numbers
 * beside KvU64 in `sum`, `min` and `max`.
 */
import type { KeyPart } from "../store/model/key.ts";
import type { SendOptions } from "./queue.ts";
import type { KvU64 } from "./values/kv_u64.ts";
import type { ReadLevel } from "./vocabulary/store_client.ts";

/** Key of a row: parts from the most to the least significant. */
export type KvKey = readonly KeyPart[];

/** Row that is there. */
export interface KvEntry<T> {
  /** Key of the row. */
  key: KvKey;
  /** Value of the row: a copy, which may be changed. */
  value: T;
  /** Version of the row: 20 hexadecimal digits. */
  versionstamp: string;
}

/** Row, or the answer that there is none. */
export type KvEntryMaybe<T> = KvEntry<T> | { key: KvKey; value: null; versionstamp: null };

/** Range of rows that a list covers. */
export type KvListSelector =
  | { prefix: KvKey }
  | { prefix: KvKey; start: KvKey }
  | { prefix: KvKey; end: KvKey }
  | { start: KvKey; end: KvKey };

/** Options of a list. */
export interface KvListOptions {
  /** Number of rows to read at most; only the interval that they span is read and replicated to this site. */
  limit?: number;
  /** Cursor of another list: this one goes on behind the row at which it was taken. */
  cursor?: string;
  /** True: the list goes from the last key to the first. */
  reverse?: boolean;
  /** Level of the reads; "session" by default. */
  consistency?: ReadLevel;
  /** Rows fetched at a time, at most 1,000; 100 by default, or the limit. */
  batchSize?: number;
}

/** List in progress. */
export interface KvListIterator<T> extends AsyncIterableIterator<KvEntry<T>> {
  /** Place at which the list stands; "" at its end. Throws before the first row. */
  readonly cursor: string;
  /** Returns the next entry. */
  next(): Promise<IteratorResult<KvEntry<T>, undefined>>;
}

/** Result of a write that was applied. */
export interface KvCommitResult {
  /** True: the write was applied. */
  ok: true;
  /** Version that the rows got. */
  versionstamp: string;
}
/** Result of a write that was not applied, as a check did not hold. */
export interface KvCommitError {
  /** False: a check failed, and nothing was written. */
  ok: false;
}

/**
 * Check that holds while the row has this versionstamp at this site; null: while it is absent there. Other sites are
 * not asked.
 */
export interface KvCheck {
  /** Key of the row that is checked. */
  key: KvKey;
  /** Version that the row must have; null: it must be absent. */
  versionstamp: string | null;
}

/** Number that `sum`, `min` and `max` take: a bigint stands for a KvU64; `Deno.KvU64` is one too. */
export type KvNumber = bigint | Pick<KvU64, "value"> | number;

/** Change of an atomic operation. */
export type KvMutation =
  & { key: KvKey }
  & (
    | { type: "set"; value: unknown; expireIn?: number }
    | { type: "delete" }
    | { type: "sum" | "min" | "max"; value: KvNumber }
  );

/** Options of an enqueue, as in Deno KV. */
export interface KvEnqueueOptions {
  /** Milliseconds before the value is delivered: up to 30 days. */
  delay?: number;
  /**
   * Keys at which the value is stored once its last attempt has failed: 12 KiB of them. Without any it is kept for an
   * operator.
   */
  keysIfUndelivered?: KvKey[];
  /** Milliseconds between attempts: up to 5, of an hour each; 100, 1,000, 5,000, 30,000 and 60,000 by default. */
  backoffSchedule?: number[];
}

/** Changes that are applied together if every check holds at this site. */
export interface KvAtomic {
  /**
   * Adds conditions on this site's replica. An entry that `get` gave is one.
   *
   * @throws KvTypeError `limit_atomic` above 100 checks; `key_invalid`.
   */
  check(...checks: KvCheck[]): this;
  /** Adds mutations. @throws KvTypeError as the method for each kind does; `value_invalid` for an unknown kind. */
  mutate(...mutations: KvMutation[]): this;
  /**
   * Adds to a number. The operation itself travels and merges: concurrent sums at several sites all count. A KvU64
   * wraps at 2⁶⁴, as in Deno KV.
   *
   * @throws KvTypeError `key_invalid`, `limit_key`; `value_invalid` for what is no finite number; `limit_atomic` above
   *     1,000 mutations or 4 MiB.
   */
  sum(key: KvKey, n: KvNumber): this;
  /** Writes the smaller of the row and `n`. @throws KvTypeError as `sum`. */
  min(key: KvKey, n: KvNumber): this;
  /** Writes the larger of the row and `n`. @throws KvTypeError as `sum`. */
  max(key: KvKey, n: KvNumber): this;
  /** Writes a row; `expireIn` in milliseconds. @throws KvTypeError as `sum`; `limit_value` above 1 MiB. */
  set(key: KvKey, value: unknown, options?: { expireIn?: number }): this;
  /** Deletes a row. @throws KvTypeError as `sum`, but for the value. */
  delete(key: KvKey): this;
  /**
   * Sends a message to a queue that the app declares, in one step with the rows: it is stored once they are on disk,
   * and not at all where a check does not hold. `commit` checks it against the queue's schema.
   *
   * @throws AppError `not_available` for a queue that the app does not declare.
   */
  send(queue: string, body: unknown, options?: SendOptions): this;
  /**
   * Sends a value to the listeners of the app's KV, in one step with the rows: it is stored once they are on disk, and
   * not at all where a check does not hold. It counts as a mutation.
   *
   * @throws KvTypeError `message_invalid` for an option, `limit_message` above 1,015,808 bytes; `value_invalid`,
   *     `key_invalid`, `limit_key`, `limit_atomic`.
   */
  enqueue(value: unknown, options?: KvEnqueueOptions): this;
  /** Applies all of it, or nothing: `ok: false` when a check did not hold. */
  commit(): Promise<KvCommitResult | KvCommitError>;
}

/** Key space of an app, bound to the running request's session. */
export interface Kv extends Disposable {
  /**
   * Returns one row. Gets that are asked for in one turn travel together.
   *
   * @throws KvTypeError `key_invalid`, `limit_key`; AppError `value_corrupt`.
   */
  get<T = unknown>(key: KvKey, options?: { consistency?: ReadLevel }): Promise<KvEntryMaybe<T>>;
  /**
   * Returns the rows of up to 1,000 keys, in the keys' order.
   *
   * @throws KvTypeError `limit_list` for more keys; else as `get`.
   */
  getMany<T extends readonly unknown[]>(
    keys: readonly [...{ [K in keyof T]: KvKey }],
    options?: { consistency?: ReadLevel },
  ): Promise<{ [K in keyof T]: KvEntryMaybe<T[K]> }>;
  /**
   * Writes a row; `expireIn` in milliseconds. Resolves when the row is applied here.
   *
   * @throws KvTypeError `key_invalid`, `limit_key`, `value_invalid`; `limit_value` above 1 MiB.
   */
  set(key: KvKey, value: unknown, options?: { expireIn?: number }): Promise<KvCommitResult>;
  /**
   * Deletes a row. Resolves when it is gone here; a row that was not there is no error.
   *
   * @throws KvTypeError `key_invalid`, `limit_key`.
   */
  delete(key: KvKey): Promise<void>;
  /**
   * Lists rows in key order, fetched as they are iterated.
   *
   * @throws KvTypeError `key_invalid` for a selector or cursor, `limit_key`; an error with the code `limit_list` for a
   *     limit or batch size.
   */
  list<T = unknown>(selector: KvListSelector, options?: KvListOptions): KvListIterator<T>;
  /** Begins an atomic operation; nothing happens before its `commit`. */
  atomic(): KvAtomic;
  /**
   * Streams the rows of up to 100 keys, first as they are, then whenever one has changed (`raw`: whenever one may
   * have).
   *
   * @throws KvTypeError `limit_list` for more keys; `key_invalid`, `limit_key`.
   */
  watch<T extends readonly unknown[]>(
    keys: readonly [...{ [K in keyof T]: KvKey }],
    options?: { raw?: boolean },
  ): ReadableStream<{ [K in keyof T]: KvEntryMaybe<T[K]> }>;
  /**
   * Sends a value to the listeners of the app's KV. Resolves when it is written here; it is delivered at least once,
   * at any site.
   *
   * @throws KvTypeError as `enqueue` of an atomic operation.
   */
  enqueue(value: unknown, options?: KvEnqueueOptions): Promise<KvCommitResult>;
  /**
   * Adds a handler for the values that `enqueue` sends, while the module loads; of several, each value is given to one.
   * A value whose handler fails comes again. The promise resolves when this handle is closed.
   *
   * @throws AppError `not_available` while a request runs, and of `env.kv`.
   */
  // deno-lint-ignore no-explicit-any -- Deno.Kv's own signature, which handlers are written against
  listenQueue(handler: (value: any) => Promise<void> | void): Promise<void>;
  /** Throws an AppError `not_available`. */
  commitVersionstamp(): symbol;
  /** Ends what this handle listens to. It does nothing else: the key space belongs to the request. */
  close(): void;
}
