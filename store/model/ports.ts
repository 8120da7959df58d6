/**
 * The ports of the store, through which it uses its host: the same protocol code runs in production (runtime/) and in
 * the deterministic simulator (tests/sim/).
 */
import type { Key } from "./key.ts";
import type { Range } from "./range.ts";
import type { Position, Row } from "./row.ts";

export type SiteId = string & { readonly __brand?: "SiteId" };

export interface Clock {
  /**
   * Returns milliseconds since 1970, as this machine's wall clock says: it may be set, leap, and be wrong (wall.ts).
   */
  nowMs(): number;
  /**
   * Returns milliseconds since some moment of this process: they go on at the pace of time and never back, even where
   * the wall clock is set. Time in which the machine is suspended may be missing.
   */
  steadyMs(): number;
  /** Calls back once after at least `ms`; the returned function cancels. */
  after(ms: number, callback: () => void): () => void;
  /** Resolves after the events that are ready now have been handled, so that writers share one commit. */
  turn(): Promise<void>;
}

export interface Random {
  bytes(length: number): Uint8Array<ArrayBuffer>;
}

/**
 * Links to other sites, as the replica sees them: authenticated, and FIFO from connect to disconnect. The host
 * calls `Replica.connected`, `receive` and `disconnected`; what was sent before a disconnect may be lost.
 */
export interface Network {
  /**
   * Sends a message to a site: to the parent, a child, or over a peer link that is opened on demand. Resolves
   * when the link has room for another (backpressure); a message to an unreachable site is dropped.
   */
  send(to: SiteId, message: Uint8Array): Promise<void>;
}

/** Error of a read that met rows on disk which are not what was put there (S4): they would be wrong. */
export class DamagedRows extends Error {
  override readonly name = "DamagedRows";
  constructor(readonly keys: readonly Key[]) {
    super(`${keys.length} rows on disk are damaged: their bytes do not fit their checksums`);
  }
}

/** Commit of a replica: all of it is on disk when the promise resolves, or none of it ever. */
export interface DiskCommit {
  /** Rows to put; each replaces the row with its key, and with it that row's place in the journal. */
  readonly rows: readonly Row[];
  /** Keys whose rows are removed without trace (evicted, collected). */
  readonly drop: readonly Key[];
  /** Named records of the replica's own state (cursors, coverage, marks); null removes one. */
  readonly records: ReadonlyMap<string, Uint8Array | null>;
}

export interface ScanOptions {
  /** Number of rows that are returned at most. */
  readonly limit?: number;
  /** Bytes of keys and values (`rowBytes`) after which the scan ends, with the row that reaches them. */
  readonly bytesMax?: number;
  /** True: from the end of the range downwards. */
  readonly reverse?: boolean;
}

/**
 * Rows and journal on disk. One replica owns it; it calls `commit` again only after the last one has settled.
 *
 * S1  Reads see exactly the commits that have resolved; a read issued while a commit is under way may see that
 *     commit, whole per row but perhaps not as a batch.
 * S2  After a crash, `load` and the reads show a prefix of the commits that holds every one that resolved, each
 *     whole.
 * S3  A commit that rejects leaves the storage failed: every later commit rejects too, and the site must stop.
 * S4  A read gives rows as they were put: where the disk has changed bytes by itself, the read rejects with
 *     DamagedRows, and where it is not known which rows those are, with another error. An open finds out which rows
 *     are damaged, or are gone, before anything is read (as far as the implementation says).
 */
export interface Storage {
  /** Returns the named records as of the last commit; empty for a blank disk. */
  load(): Promise<Map<string, Uint8Array>>;
  get(key: Key): Promise<Row | undefined>;
  /**
   * Returns the rows of the first keys, up to the row that brings them to `bytesMax` (`rowBytes`); of all keys without
   * it.
   */
  getMany(keys: readonly Key[], bytesMax?: number): Promise<(Row | undefined)[]>;
  /** Returns the rows in a range by key, tombstones included. */
  scan(range: Range, options?: ScanOptions): Promise<Row[]>;
  /**
   * Returns rows with after < position ≤ upTo by position, at most `limit`, and at most as `bytesMax` has it for a
   * scan.
   */
  journal(after: Position, upTo: Position, limit: number, bytesMax?: number): Promise<Row[]>;
  commit(commit: DiskCommit): Promise<void>;
  /** Returns the bytes of all keys and values held. */
  bytes(): Promise<number>;
  close(): Promise<void>;
}
