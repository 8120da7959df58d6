/**
 * The store at a function's site, as the function sees it: the seam between the app API (tables.ts, kv.ts) inside an
 * isolate and the site outside. Keys are relative to the app: the site puts the app's own prefix before them, so that
 * no app can name another's rows. Every call belongs to one request, hence to one session.
 *
 * Relative key spaces: ["kv", ...key] · ["t", table, ...key] · ["i", table, index, ...indexed parts, ...key];
 * for tables declared `at: "root"` the same behind a leading "root" part, which no site below the root replicates.
 */
import type { Key } from "../../store/model/key.ts";
import type { QueuedMessage } from "./queue_sender.ts";

/** Freshness of a read: what this site has, at least what the session has seen, or the newest. */
export type ReadLevel = "eventual" | "session" | "strong";

/** Row as it is stored: the value is in the tagged encoding of store/model/value.ts. */
export interface StoredRow {
  readonly key: Key;
  readonly value: Uint8Array;
  readonly versionstamp: string;
}

export interface ListRequest {
  readonly start: Key;
  readonly end: Key;
  readonly limit: number;
  readonly reverse: boolean;
  readonly level: ReadLevel;
}

/** Page of rows. */
export interface RowPage {
  readonly rows: StoredRow[];
  /** True where there may be more rows behind the last one; the page has at least one row then. */
  readonly more: boolean;
}

export type Mutation =
  | { readonly kind: "set"; readonly key: Key; readonly value: Uint8Array; readonly expireInMs?: number }
  | { readonly kind: "delete"; readonly key: Key }
  /** Contribution to a row: `value` is a KvU64 or a number in the encoding of store/model/value.ts. */
  | { readonly kind: "sum" | "min" | "max"; readonly key: Key; readonly value: Uint8Array };

export interface Check {
  readonly key: Key;
  /** Version that the row must have; null: the row must be absent. */
  readonly versionstamp: string | null;
}

export type CommitResult = { readonly ok: true; readonly versionstamp: string } | { readonly ok: false };

export interface StoreClient {
  /**
   * Returns rows in the order of their keys. The site's own client may answer the first of many keys only, one at
   * least; in an isolate the answer is whole.
   */
  get(keys: readonly Key[], level: ReadLevel): Promise<(StoredRow | null)[]>;
  /** Returns up to `limit` rows. A page of long rows ends before: only `more` tells whether it is the last. */
  list(request: ListRequest): Promise<RowPage>;
  /**
   * Applies the mutations together, at consecutive positions, if all checks hold at this site; a failed check is `ok:
   * false`. Messages are sent to their queues if, and only if, the mutations are applied.
   */
  commit(
    checks: readonly Check[],
    mutations: readonly Mutation[],
    sends?: readonly QueuedMessage[],
  ): Promise<CommitResult>;
  /** Yields after every change in one of the ranges, coalesced; first at once. Ends when the signal aborts. */
  watch(ranges: readonly { start: Key; end: Key }[], signal: AbortSignal): AsyncIterable<void>;
}
