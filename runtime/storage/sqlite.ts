/**
 * Rows and journal in one SQLite file: the storage of every site whose root engine is not elsewhere.
 *
 * Life: `openSqlite(folder)` claims the folder and opens the file → `commit` and reads → `close`.
 *
 * Q1  One commit is one transaction, and its promise resolves when the write-ahead log is synced. SQLite appends
 *     only (synchronous = NORMAL); the log is synced through a second handle: at once where the disk is quick, on
 *     a thread of the runtime where it is slow, so that requests are served meanwhile. That is the same order on
 *     disk: a transaction counts once its frames are in the log, and SQLite syncs the log before any page moves
 *     from it.
 * Q2  The table is clustered by an inner row id, with one index by key and one by position: an overwrite then
 *     rewrites the row in place and moves only its journal entry. Clustering by key or by position instead
 *     made grouped overwrites 2–4 times slower (tests/bench/storage.ts).
 * Q3  The log's name is in its folder for good before the first commit: an open writes one synced transaction.
 * Q4  After a failed commit nothing is written any more (S3).
 */
import { Buffer } from "node:buffer";
import { DatabaseSync, type StatementSync } from "node:sqlite";
import { StoreUnavailable } from "../../store/api.ts";
import type { Key } from "../../store/key.ts";
import type { Commit, ScanOptions, Storage } from "../../store/ports.ts";
import type { Range } from "../../store/range.ts";
import type { Position, Row } from "../../store/row.ts";
import { claimFolder, type FolderClaim } from "./folder.ts";
import { rowBytes } from "./memory.ts";

const SCHEMA = `
CREATE TABLE IF NOT EXISTS rows(
  id INTEGER PRIMARY KEY,
  key BLOB NOT NULL UNIQUE,
  position INTEGER NOT NULL UNIQUE,
  clock INTEGER NOT NULL, replica INTEGER NOT NULL, known INTEGER NOT NULL, expires INTEGER NOT NULL,
  value BLOB
);
CREATE TABLE IF NOT EXISTS records(name TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS totals(name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
INSERT OR IGNORE INTO totals VALUES('bytes', 0);
`;
/** Q3. */
const OPENED = "INSERT INTO totals VALUES('opened', 1) ON CONFLICT(name) DO UPDATE SET value = value + 1";

/** 16 MiB of page cache a site: a dev cluster runs six on one machine. Above it the system's cache serves. */
const CACHE_KIB = 16_384;
/** 4 MiB of log before pages move to the main file; larger would only make the rare long commit longer. */
const CHECKPOINT_PAGES = 1_000;

/**
 * A sync that takes longer than this goes to a thread: below it, the way there and back costs more than the event
 * loop loses by standing still.
 */
const SYNC_INLINE_MS = 0.5;
/** Some ten syncs change the opinion of a disk. */
const SYNC_WEIGHT = 0.1;

const COLUMNS = "key, position, clock, replica, known, expires, value";
type Columns = [Uint8Array, number, number, number, number, number, Uint8Array | null];

/**
 * Opens the storage in a folder of its own, creating both.
 *
 * @throws StoreUnavailable `disk_failed` where the folder is held, not ours, or not usable.
 */
export function openSqlite(folder: string, synced: (ms: number) => void = () => {}): SqliteStorage {
  const claim = claimFolder(folder, "sqlite 1");
  try {
    return new SqliteStorage(claim, synced);
  } catch (error) {
    claim.release();
    throw failure(`cannot open the store in ${folder}`, error);
  }
}

/** See the file's header. */
export class SqliteStorage implements Storage {
  readonly #claim: FolderClaim;
  readonly #synced: (ms: number) => void;
  readonly #db: DatabaseSync;
  readonly #statements: Statements;
  readonly #log: Deno.FsFile;
  #bytes: number;
  /** How long a sync takes here, smoothed: decides where the next one is done (Q1). */
  #syncMs = 0;
  /** The sync under way. */
  #syncing: Promise<void> | null = null;
  #closed = false;
  #failed: StoreUnavailable | null = null;

  constructor(claim: FolderClaim, synced: (ms: number) => void) {
    this.#claim = claim;
    this.#synced = synced;
    this.#db = new DatabaseSync(`${claim.path}/rows.db`);
    try {
      this.#db.exec(
        `PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA cache_size = -${CACHE_KIB};
         PRAGMA wal_autocheckpoint = ${CHECKPOINT_PAGES};`,
      );
      this.#db.exec(SCHEMA);
      this.#db.exec(OPENED);
      this.#db.exec("PRAGMA synchronous = NORMAL");
      this.#log = Deno.openSync(`${claim.path}/rows.db-wal`, { read: true, write: true });
      this.#statements = prepare(this.#db);
      this.#bytes = (this.#statements.total.get() as unknown as [number])[0];
    } catch (error) {
      this.#db.close();
      throw error;
    }
  }

  load(): Promise<Map<string, Uint8Array>> {
    return this.#read(() => {
      const all = this.#statements.records.all() as unknown as [string, Uint8Array][];
      return new Map(all);
    });
  }

  get(key: Key): Promise<Row | undefined> {
    return this.#read(() => this.#get(key));
  }

  getMany(keys: readonly Key[]): Promise<(Row | undefined)[]> {
    return this.#read(() => keys.map((key) => this.#get(key)));
  }

  scan(range: Range, { limit = Infinity, reverse = false }: ScanOptions = {}): Promise<Row[]> {
    const statement = reverse ? this.#statements.scanDown : this.#statements.scanUp;
    return this.#read(() =>
      (statement.all(blobOf(range.start), blobOf(range.end), sqlLimit(limit)) as unknown as Columns[]).map(
        rowOf,
      )
    );
  }

  journal(after: Position, upTo: Position, limit: number): Promise<Row[]> {
    return this.#read(() =>
      (this.#statements.journal.all(after, upTo, sqlLimit(limit)) as unknown as Columns[]).map(rowOf)
    );
  }

  bytes(): Promise<number> {
    return Promise.resolve(this.#bytes);
  }

  async commit(commit: Commit): Promise<void> {
    if (this.#failed !== null) throw this.#failed;
    if (this.#syncing !== null) throw new Error("a commit was issued before the last one had settled");
    if (this.#closed) throw new Error("a commit was issued on a closed storage");
    try {
      this.#apply(commit);
    } catch (error) {
      this.#failed = failure("cannot commit", error);
      this.#rollback();
      throw this.#failed;
    }
    try {
      const begunMs = performance.now();
      if (this.#syncMs <= SYNC_INLINE_MS) this.#log.syncDataSync();
      else {
        this.#syncing = this.#log.syncData();
        await this.#syncing;
      }
      const tookMs = performance.now() - begunMs;
      this.#syncMs += (tookMs - this.#syncMs) * SYNC_WEIGHT;
      this.#synced(tookMs);
    } catch (error) {
      // What the disk kept is unknown, and a second sync could say yes to pages that the first one lost.
      this.#failed = failure("cannot sync", error);
      throw this.#failed;
    } finally {
      this.#syncing = null;
    }
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    await this.#syncing?.catch(() => {}); // the commit that waits for it tells
    this.#log.close();
    this.#db.close();
    this.#claim.release();
  }

  #apply(commit: Commit): void {
    const { begin, end, setTotal, setRecord, removeRecord } = this.#statements;
    begin.run();
    let bytes = this.#bytes;
    for (const key of commit.drop) bytes += this.#drop(key);
    for (const row of commit.rows) bytes += this.#put(row);
    for (const [name, value] of commit.records) {
      if (value === null) removeRecord.run(name);
      else setRecord.run(name, value);
    }
    if (bytes !== this.#bytes) setTotal.run(bytes);
    end.run();
    this.#bytes = bytes;
  }

  /** Puts a row; returns by how many bytes the storage grew. */
  #put(row: Row): number {
    const { size, put } = this.#statements;
    const key = blobOf(row.key);
    const old = size.get(key) as unknown as [number] | undefined;
    put.run(key, row.position, row.clock, row.replica, row.known, row.expiresAtMs, row.value);
    return rowBytes(row) - (old === undefined ? 0 : row.key.length + old[0]);
  }

  #drop(key: Key): number {
    const old = this.#statements.drop.get(blobOf(key)) as unknown as [number] | undefined;
    return old === undefined ? 0 : -(key.length + old[0]);
  }

  #get(key: Key): Row | undefined {
    const found = this.#statements.get.get(blobOf(key)) as unknown as Columns | undefined;
    return found === undefined ? undefined : rowOf(found);
  }

  // deno-lint-ignore require-await -- async, so that a failing read rejects instead of throwing
  async #read<T>(look: () => T): Promise<T> {
    try {
      return look();
    } catch (error) {
      throw failure("cannot read", error);
    }
  }

  #rollback(): void {
    try {
      this.#statements.rollback.run();
    } catch {
      // SQLite has rolled back by itself; either way nothing of the transaction is kept
    }
  }
}

type Statements = ReturnType<typeof prepare>;
/** In the runtime, not yet in its types. */
type ReturnsArrays = { setReturnArrays(on: boolean): void };

function prepare(db: DatabaseSync) {
  const rows = (sql: string): StatementSync => {
    const statement = db.prepare(sql);
    (statement as StatementSync & ReturnsArrays).setReturnArrays(true);
    return statement;
  };
  const scan = `SELECT ${COLUMNS} FROM rows WHERE key >= ? AND key < ?`;
  return {
    begin: db.prepare("BEGIN IMMEDIATE"),
    end: db.prepare("COMMIT"),
    rollback: db.prepare("ROLLBACK"),
    get: rows(`SELECT ${COLUMNS} FROM rows WHERE key = ?`),
    scanUp: rows(`${scan} ORDER BY key LIMIT ?`),
    scanDown: rows(`${scan} ORDER BY key DESC LIMIT ?`),
    journal: rows(
      `SELECT ${COLUMNS} FROM rows WHERE position > ? AND position <= ? ORDER BY position LIMIT ?`,
    ),
    size: rows("SELECT ifnull(length(value), 0) FROM rows WHERE key = ?"),
    put: db.prepare(
      `INSERT INTO rows(${COLUMNS}) VALUES(?, ?, ?, ?, ?, ?, ?) ON CONFLICT(key) DO UPDATE SET
       position = excluded.position, clock = excluded.clock, replica = excluded.replica,
       known = excluded.known, expires = excluded.expires, value = excluded.value`,
    ),
    drop: rows("DELETE FROM rows WHERE key = ? RETURNING ifnull(length(value), 0)"),
    records: rows("SELECT name, value FROM records"),
    setRecord: db.prepare("INSERT OR REPLACE INTO records VALUES(?, ?)"),
    removeRecord: db.prepare("DELETE FROM records WHERE name = ?"),
    total: rows("SELECT value FROM totals WHERE name = 'bytes'"),
    setTotal: db.prepare("UPDATE totals SET value = ? WHERE name = 'bytes'"),
  };
}

const blobOf = (key: Key): Uint8Array => Buffer.from(key, "latin1");
const sqlLimit = (limit: number): number => Number.isFinite(limit) ? limit : -1;

const rowOf = ([key, position, clock, replica, known, expiresAtMs, value]: Columns): Row => ({
  key: Buffer.from(key.buffer, key.byteOffset, key.byteLength).toString("latin1") as Key,
  position,
  clock,
  replica,
  known,
  expiresAtMs,
  value,
});

function failure(what: string, cause: unknown): StoreUnavailable {
  const why = cause instanceof Error ? cause.message : String(cause);
  return new StoreUnavailable("disk_failed", `${what}: ${why}`);
}
