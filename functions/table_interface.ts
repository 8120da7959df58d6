/** The tables as apps see them: typed by the schema's output and by the declared key and indexes. */
import type { KeyPart } from "../store/model/key.ts";
import type { SendOptions } from "./queue.ts";
import type { InputOf, OutputOf, StandardSchema } from "./schema.ts";
import type { ReadLevel } from "./vocabulary/store_client.ts";

/** Values of some fields, as a tuple. */
export type FieldValues<Row, Fields extends readonly string[]> = {
  readonly [I in keyof Fields]: Fields[I] extends keyof Row ? NonNullable<Row[Fields[I]]> & KeyPart : KeyPart;
};

/** Tuple, or any shorter beginning of it. */
export type Beginning<T extends readonly unknown[]> = T extends readonly [infer First, ...infer Rest]
  ? readonly [] | readonly [First, ...Beginning<Rest>]
  : T extends readonly [] ? readonly []
  : T;

/** Row with its key and its version. */
export interface TableEntry<S extends StandardSchema, K extends readonly string[]> {
  /** Values of the key fields. */
  readonly key: FieldValues<OutputOf<S>, K>;
  /** Content of the row. */
  readonly value: OutputOf<S>;
  /** Version of the row: 20 hexadecimal digits. */
  readonly versionstamp: string;
}

/** Page of a list. */
export interface TablePage<S extends StandardSchema, K extends readonly string[]> {
  /**
   * Rows of the page, in order. They may be fewer than the limit where they are long: only `cursor` tells of the end.
   */
  readonly rows: TableEntry<S, K>[];
  /** Cursor that the next list takes to go on; null when there is no more. */
  readonly cursor: string | null;
}

/** Interval of a list, by the values of its fields. */
export interface TableInterval<Fields extends readonly unknown[]> {
  /** Values that the fields of all rows begin with. */
  readonly prefix?: Beginning<Fields>;
  /** Beginning of the interval, inclusive; it begins with the prefix. */
  readonly start?: Beginning<Fields>;
  /** End of the interval, exclusive; it begins with the prefix. */
  readonly end?: Beginning<Fields>;
}

/** Options of a list. */
export interface TableListBase {
  /**
   * Rows in the page where the list is awaited (default 100, at most 1,000); rows in all where it is iterated (default:
   * no limit).
   */
  readonly limit?: number;
  /** Cursor of a page: the list goes on behind it. For a list with the same interval, index and direction. */
  readonly cursor?: string | null;
  /** True: the list goes from the last row to the first. */
  readonly reverse?: boolean;
  /** Level of the reads; the table's own by default. */
  readonly consistency?: ReadLevel;
}

/** Options of a list by key, or by one of the table's indexes. */
export type TableListOptions<
  S extends StandardSchema,
  K extends readonly string[],
  I extends Readonly<Record<string, readonly string[]>>,
> =
  & TableListBase
  & (
    | { readonly index?: undefined } & TableInterval<FieldValues<OutputOf<S>, K>>
    | {
      [N in keyof I]:
        & { readonly index: N }
        & TableInterval<readonly [...FieldValues<OutputOf<S>, I[N]>, ...FieldValues<OutputOf<S>, K>]>;
    }[keyof I]
  );

/** List that gives a page where it is awaited, and every row where it is iterated. Nothing is read before either. */
export interface TableList<S extends StandardSchema, K extends readonly string[]>
  extends PromiseLike<TablePage<S, K>>, AsyncIterable<TableEntry<S, K>> {}

/**
 * Condition on a write: the state of the row *at this site* when it is written. Two sites may both find it true at the
 * same moment; both writes are applied then, and the newer row stays. A row that may be there only once ("this name is
 * taken") needs one place that decides: a table `at: "root"`, written by routes that are pinned there.
 */
export interface WriteCheck {
  /** Version that the row must have at this site; null: it must be absent at this site. */
  readonly check?: string | null;
}

/** Writes to one table that are applied together. */
export interface TableAtomic<S extends StandardSchema, K extends readonly string[]> {
  /** Commits only if the row has this version at this site; null: only if it is absent at this site ({@link WriteCheck}). */
  check(key: FieldValues<OutputOf<S>, K>, versionstamp: string | null): this;
  /** Writes a row; `commit` checks it against the schema. */
  put(row: InputOf<S>): this;
  /** Deletes a row. */
  delete(key: FieldValues<OutputOf<S>, K>): this;
  /**
   * Sends a message to a queue that the app declares, in one step with the rows: it is stored once they are on disk,
   * and not at all where a check does not hold. `commit` checks it against the queue's schema.
   *
   * @throws AppError `not_available` for a queue that the app does not declare.
   */
  send(queue: string, body: unknown, options?: SendOptions): this;
  /**
   * Applies all writes, or nothing: `ok: false` when a check did not hold.
   *
   * @throws AppError `row_invalid` for a row that does not match the schema; `key_invalid`, limits.
   */
  commit(): Promise<{ readonly ok: true; readonly versionstamp: string } | { readonly ok: false }>;
}

/** Table, bound to the running request's session. */
export interface Table<
  S extends StandardSchema,
  K extends readonly string[],
  I extends Readonly<Record<string, readonly string[]>>,
> {
  /**
   * Returns one row, or null.
   *
   * @throws AppError `row_invalid` where the stored row no longer matches the schema, `value_corrupt`; `key_invalid`.
   */
  get(
    key: FieldValues<OutputOf<S>, K>,
    options?: { readonly consistency?: ReadLevel },
  ): Promise<TableEntry<S, K> | null>;
  /** Returns the rows of several keys, in the keys' order. @throws as `get`. */
  getMany(
    keys: readonly FieldValues<OutputOf<S>, K>[],
    options?: { readonly consistency?: ReadLevel },
  ): Promise<(TableEntry<S, K> | null)[]>;
  /**
   * Writes a row. Resolves when the row is applied here, with what was stored.
   *
   * @throws AppError `row_invalid`, `check_failed`; `key_invalid`, `value_invalid`, limits.
   */
  put(row: InputOf<S>, options?: WriteCheck): Promise<TableEntry<S, K>>;
  /** Deletes a row. Resolves when it is gone here. @throws AppError `check_failed`; `key_invalid`. */
  delete(key: FieldValues<OutputOf<S>, K>, options?: WriteCheck): Promise<void>;
  /**
   * Lists rows in the order of the key or of an index: await the list for a page, iterate it for all.
   *
   * @throws KvTypeError `key_invalid`, `limit_list`.
   */
  list(options?: TableListOptions<S, K, I>): TableList<S, K>;
  /** Begins writes that are applied together; nothing happens before their `commit`. */
  atomic(): TableAtomic<S, K>;
  /** Yields the row, first as it is, then after each change; ends when the signal aborts. @throws as `get`. */
  watch(
    key: FieldValues<OutputOf<S>, K>,
    options?: { readonly signal?: AbortSignal },
  ): AsyncIterable<TableEntry<S, K> | null>;
  /**
   * Yields the page, first as it is, then after each change in its interval; ends when the signal aborts.
   *
   * @throws as `list` and `get`.
   */
  watchList(
    options?: TableListOptions<S, K, I> & { readonly signal?: AbortSignal },
  ): AsyncIterable<TablePage<S, K>>;
}
