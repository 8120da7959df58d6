/**
 * The Deno KV interface, as apps see it. Structurally a `Deno.Kv`, with one more consistency level and with
 * numbers beside KvU64 in `sum`, `min` and `max`.
 */
import type { KeyPart } from "../store/model/key.ts";
import type { KvU64 } from "./values/kv_u64.ts";
import type { ReadLevel } from "./vocabulary/store_client.ts";

/** A key: parts from the most to the least significant. */
export type KvKey = readonly KeyPart[];

/** A row that is there. */
export interface KvEntry<T> {
  /** Its key. */
  key: KvKey;
  /** Its value: a copy, which may be changed. */
  value: T;
  /** Its version: 20 hexadecimal digits. */
  versionstamp: string;
}

/** A row, or that there is none. */
export type KvEntryMaybe<T> = KvEntry<T> | { key: KvKey; value: null; versionstamp: null };

/** Which rows a list covers. */
export type KvListSelector =
  | { prefix: KvKey }
  | { prefix: KvKey; start: KvKey }
  | { prefix: KvKey; end: KvKey }
  | { start: KvKey; end: KvKey };

/** How a list goes. */
export interface KvListOptions {
  /** At most so many rows; only the interval that they span is read and replicated to this site. */
  limit?: number;
  /** Goes on behind the row at which another list's `cursor` was taken. */
  cursor?: string;
  /** From the last key to the first. */
  reverse?: boolean;
  /** Default "session". */
  consistency?: ReadLevel;
  /** Rows fetched at a time. */
  batchSize?: number;
}

/** A list in progress. */
export interface KvListIterator<T> extends AsyncIterableIterator<KvEntry<T>> {
  /** Where the list stands; "" at its end. Throws before the first row. */
  readonly cursor: string;
  /** The next entry. */
  next(): Promise<IteratorResult<KvEntry<T>, undefined>>;
}

/** A write was applied. */
export interface KvCommitResult {
  /** The write was applied. */
  ok: true;
  /** The version that the rows got. */
  versionstamp: string;
}
/** A check did not hold; nothing was applied. */
export interface KvCommitError {
  /** A check failed; nothing was written. */
  ok: false;
}

/** Holds while the row has this versionstamp at this site; null: while it is absent there. Other sites are not asked. */
export interface KvCheck {
  /** The row that is checked. */
  key: KvKey;
  /** The version it must have; null: it must be absent. */
  versionstamp: string | null;
}

/** What `sum`, `min` and `max` take: a bigint stands for a KvU64; `Deno.KvU64` is one too. */
export type KvNumber = bigint | Pick<KvU64, "value"> | number;

/** One change of an atomic operation. */
export type KvMutation =
  & { key: KvKey }
  & (
    | { type: "set"; value: unknown; expireIn?: number }
    | { type: "delete" }
    | { type: "sum" | "min" | "max"; value: KvNumber }
  );

/** Options of an enqueue, as in Deno KV. */
export interface KvEnqueueOptions {
  /** Milliseconds before it is delivered. */
  delay?: number;
  /** Where its value is put when it was never delivered. */
  keysIfUndelivered?: KvKey[];
  /** Milliseconds between attempts. */
  backoffSchedule?: number[];
}

/** Changes that are applied together if every check holds at this site. */
export interface KvAtomic {
  /** Conditions on this site's replica. An entry that `get` gave is one. */
  check(...checks: KvCheck[]): this;
  /** Adds mutations. */
  mutate(...mutations: KvMutation[]): this;
  /**
   * Adds to a number. The operation itself travels and merges: concurrent sums at several sites all count. A
   * KvU64 wraps at 2⁶⁴, as in Deno KV.
   */
  sum(key: KvKey, n: KvNumber): this;
  /** Writes the smaller of the row and `n`. */
  min(key: KvKey, n: KvNumber): this;
  /** Writes the larger of the row and `n`. */
  max(key: KvKey, n: KvNumber): this;
  /** Writes a row. */
  set(key: KvKey, value: unknown, options?: { expireIn?: number }): this;
  /** Deletes a row. */
  delete(key: KvKey): this;
  /** Throws `not_available`. */
  enqueue(value: unknown, options?: KvEnqueueOptions): this;
  /** Applies all of it, or nothing: `ok: false` when a check did not hold. */
  commit(): Promise<KvCommitResult | KvCommitError>;
}

/** An app's own key space, bound to the running request's session. */
export interface Kv extends Disposable {
  /** One row. Gets that are asked for in one turn travel together. */
  get<T = unknown>(key: KvKey, options?: { consistency?: ReadLevel }): Promise<KvEntryMaybe<T>>;
  /** Rows of up to 1,000 keys, in their order. */
  getMany<T extends readonly unknown[]>(
    keys: readonly [...{ [K in keyof T]: KvKey }],
    options?: { consistency?: ReadLevel },
  ): Promise<{ [K in keyof T]: KvEntryMaybe<T[K]> }>;
  /** Resolves when the row is applied here; `expireIn` in milliseconds. */
  set(key: KvKey, value: unknown, options?: { expireIn?: number }): Promise<KvCommitResult>;
  /** Resolves when the row is gone here; a row that was not there is no error. */
  delete(key: KvKey): Promise<void>;
  /** Rows in key order, fetched as they are iterated. */
  list<T = unknown>(selector: KvListSelector, options?: KvListOptions): KvListIterator<T>;
  /** Begins an atomic operation; nothing happens before its `commit`. */
  atomic(): KvAtomic;
  /** The rows, first as they are, then whenever one has changed (`raw`: whenever one may have). */
  watch<T extends readonly unknown[]>(
    keys: readonly [...{ [K in keyof T]: KvKey }],
    options?: { raw?: boolean },
  ): ReadableStream<{ [K in keyof T]: KvEntryMaybe<T[K]> }>;
  /** Rejects with `not_available`. */
  enqueue(value: unknown, options?: KvEnqueueOptions): Promise<KvCommitResult>;
  /** Rejects with `not_available`. */
  // deno-lint-ignore no-explicit-any -- Deno.Kv's own signature, which handlers are written against
  listenQueue(handler: (value: any) => Promise<void> | void): Promise<void>;
  /** Throws `not_available`. */
  commitVersionstamp(): symbol;
  /** Does nothing: the key space belongs to the request. */
  close(): void;
}
