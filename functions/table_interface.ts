/**
 * Tables as apps see them: typed by the schema's output and by the declared key and indexes.
 */
import type { KeyPart } from "../store/model/key.ts";
import type { InputOf, OutputOf, StandardSchema } from "./schema.ts";
import type { ReadLevel } from "./vocabulary/store_client.ts";

/** The values of some fields, as a tuple. */
export type FieldValues<Row, Fields extends readonly string[]> = {
  readonly [I in keyof Fields]: Fields[I] extends keyof Row ? NonNullable<Row[Fields[I]]> & KeyPart : KeyPart;
};

/** A tuple or any shorter beginning of it. */
export type Beginning<T extends readonly unknown[]> = T extends readonly [infer First, ...infer Rest]
  ? readonly [] | readonly [First, ...Beginning<Rest>]
  : T extends readonly [] ? readonly []
  : T;

/** A row, where it is kept, and its version. */
export interface TableEntry<S extends StandardSchema, K extends readonly string[]> {
  /** The key fields' values. */
  readonly key: FieldValues<OutputOf<S>, K>;
  /** The row. */
  readonly value: OutputOf<S>;
  /** Its version: 20 hexadecimal digits. */
  readonly versionstamp: string;
}

/** One page of a list. */
export interface TablePage<S extends StandardSchema, K extends readonly string[]> {
  /** The page's rows, in order. Fewer than the limit where they are long: only `cursor` tells of the end. */
  readonly rows: TableEntry<S, K>[];
  /** Pass it to the next list to go on; null when there is no more. */
  readonly cursor: string | null;
}

/** Where a list begins and ends, by the values of its fields. */
export interface TableInterval<Fields extends readonly unknown[]> {
  /** Only rows whose fields begin with these values. */
  readonly prefix?: Beginning<Fields>;
  /** From here on, inclusive; begins with the prefix. */
  readonly start?: Beginning<Fields>;
  /** Up to here, exclusive; begins with the prefix. */
  readonly end?: Beginning<Fields>;
}

/** How a list goes. */
export interface TableListBase {
  /** Awaited: rows in the page (default 100, at most 1,000). Iterated: rows in all (default: no limit). */
  readonly limit?: number;
  /** A page's cursor: goes on behind it. For a list with the same interval, index and direction. */
  readonly cursor?: string | null;
  /** From the last row to the first. */
  readonly reverse?: boolean;
  /** Default: the table's own. */
  readonly consistency?: ReadLevel;
}

/** What a list takes: by key, or by one of the table's indexes. */
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

/** Awaited, a page; iterated, every row. Nothing is read before either. */
export interface TableList<S extends StandardSchema, K extends readonly string[]>
  extends PromiseLike<TablePage<S, K>>, AsyncIterable<TableEntry<S, K>> {}

/**
 * A condition on a write: what the row is *at this site* when it is written. Two sites may both find it true at the same
 * moment; both writes are applied then, and the newer row stays. What may be there only once ("this name is taken")
 * needs one place that decides: a table `at: "root"`, written by routes that are pinned there.
 */
export interface WriteCheck {
  /** The version that the row must have at this site; null: it must be absent at this site. */
  readonly check?: string | null;
}

/** Writes to one table that are applied together. */
export interface TableAtomic<S extends StandardSchema, K extends readonly string[]> {
  /** Commits only if the row has this version at this site; null: only if it is absent at this site ({@link WriteCheck}). */
  check(key: FieldValues<OutputOf<S>, K>, versionstamp: string | null): this;
  /** Writes a row. */
  put(row: InputOf<S>): this;
  /** Deletes a row. */
  delete(key: FieldValues<OutputOf<S>, K>): this;
  /** `ok: false` when a check did not hold; a bad row rejects with `row_invalid`. Either way nothing is applied. */
  commit(): Promise<{ readonly ok: true; readonly versionstamp: string } | { readonly ok: false }>;
}

/** A table, bound to the running request's session. */
export interface Table<
  S extends StandardSchema,
  K extends readonly string[],
  I extends Readonly<Record<string, readonly string[]>>,
> {
  /** One row, or null. Throws `row_invalid` where the stored row no longer matches the schema. */
  get(
    key: FieldValues<OutputOf<S>, K>,
    options?: { readonly consistency?: ReadLevel },
  ): Promise<TableEntry<S, K> | null>;
  /** Rows of several keys, in their order. */
  getMany(
    keys: readonly FieldValues<OutputOf<S>, K>[],
    options?: { readonly consistency?: ReadLevel },
  ): Promise<(TableEntry<S, K> | null)[]>;
  /** Resolves when the row is applied here, with what was stored. Throws `row_invalid`, `check_failed`. */
  put(row: InputOf<S>, options?: WriteCheck): Promise<TableEntry<S, K>>;
  /** Throws `check_failed`. */
  delete(key: FieldValues<OutputOf<S>, K>, options?: WriteCheck): Promise<void>;
  /** Rows in the order of the key or of an index: await it for a page, iterate it for all. */
  list(options?: TableListOptions<S, K, I>): TableList<S, K>;
  /** Begins writes that are applied together; nothing happens before their `commit`. */
  atomic(): TableAtomic<S, K>;
  /** The row, first as it is, then after each change; ends when the signal aborts. */
  watch(
    key: FieldValues<OutputOf<S>, K>,
    options?: { readonly signal?: AbortSignal },
  ): AsyncIterable<TableEntry<S, K> | null>;
  /** The page, first as it is, then after each change in its interval; ends when the signal aborts. */
  watchList(
    options?: TableListOptions<S, K, I> & { readonly signal?: AbortSignal },
  ): AsyncIterable<TablePage<S, K>>;
}
