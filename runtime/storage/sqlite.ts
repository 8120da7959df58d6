/**
 * Rows and journal in one SQLite file: the storage of every site whose root engine is not elsewhere.
 *
 * Life: `openSqlite(folder)` claims the folder and opens the file → `commit` and reads → `close`.
 *
 * The table is clustered by an inner row id, with one index by key and one by position: an overwrite then rewrites the
 * row in place and moves only its journal entry. Clustering by key or by position instead made grouped overwrites 2–4
 * times slower (tests/bench/storage.ts).
 *
 * Q1  One commit is one transaction, and its promise resolves when the write-ahead log is synced. SQLite appends
 *     only (synchronous = NORMAL); the log is synced through a second handle: at once where the disk is quick, on
 *     a thread of the runtime where it is slow, so that requests are served meanwhile. That is the same order on
 *     disk: a transaction counts once its frames are in the log.
 * Q3  The log's name is in its folder for good before the first commit: an open writes one synced transaction.
 * Q4  After a failed commit nothing is written any more (S3).
 * Q5  Every row and record has its checksum (S4), compared at each read. An open compares all of them and looks
 *     whether tables and indexes fit (sqlite_check.ts), where that takes no more than a moment.
 * Q6  Commits are counted, in the database and, once synced, in the file `commits` beside it: a database that has
 *     counted fewer than the file has lost commits that it had reported as on disk.
 * Q7  Pages move from the log to the database between two commits, when the log is synced; the database is then synced on a
 *     thread, and the next commit, which may write over the log's beginning, waits for that. SQLite itself would sync
 *     within a commit, and nothing else would run for as long: a tenth of a second after some MiB.
 * Q8  Rows are put in slices: after SLICE_MS of them everything else that is ready is handled, reads of this storage
 *     too, which may see a part of them (S1). The commit itself and the moving of pages are slices, too.
 */
import { Buffer } from "node:buffer";
import { DatabaseSync, type StatementSync } from "node:sqlite";
import { StoreUnavailable } from "../../store/api/api.ts";
import type { Key } from "../../store/model/key.ts";
import { DamagedRows, type DiskCommit, type ScanOptions, type Storage } from "../../store/model/ports.ts";
import type { Range } from "../../store/model/range.ts";
import { type Position, type Row, rowBytes } from "../../store/model/row.ts";
import { mixed, recordSum, rowFits, rowSum } from "./checksum.ts";
import { nextTurn } from "../loop/next_turn.ts";
import { CommitCount } from "./commit_count.ts";
import { CHECK_AT_OPEN_BYTES, type DiskReport, openFailure, Spoiled } from "./disk_report.ts";
import { claimFolder, type FolderClaim } from "./folder.ts";
import { countedBytes } from "./memory.ts";
import {
  addSums,
  checkSqliteRows,
  contentSum,
  keyText,
  soundTotals,
  type SqliteTotals,
  totalsSum,
} from "./sqlite_check.ts";

const FORMAT = "sqlite 2";
/** Format without checksums. */
const FORMER = "sqlite 1";

const SCHEMA = `
CREATE TABLE IF NOT EXISTS rows(
  id INTEGER PRIMARY KEY,
  key BLOB NOT NULL UNIQUE,
  position INTEGER NOT NULL UNIQUE,
  clock INTEGER NOT NULL, replica INTEGER NOT NULL, known INTEGER NOT NULL, expires INTEGER NOT NULL,
  value BLOB, sum INTEGER
);
CREATE TABLE IF NOT EXISTS records(name TEXT PRIMARY KEY, value BLOB NOT NULL, sum INTEGER) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS totals(name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
`;
/** Statement that an open writes as its synced transaction (Q3). */
const OPENED = "INSERT INTO totals VALUES('opened', 1) ON CONFLICT(name) DO UPDATE SET value = value + 1";

/**
 * KiB of page cache a site: 16 MiB, as a dev cluster runs six sites on one machine. Above it the system's cache serves.
 */
const CACHE_KIB = 16_384;
/**
 * Pages of the log before they move to the main file (Q7): 4 MiB; larger would only make the rare long commit longer.
 */
const CHECKPOINT_PAGES = 1_000;
/** Offset of the number of the log's pages in the log's index (SQLite's documentation of its format). */
const LOG_PAGES_AT = 16;

/**
 * Milliseconds of a slice (Q8). Longer than other slices: whatever else is done meanwhile, the writers wait for it, and
 * the commit that they wait for is one of all writers.
 */
const SLICE_MS = 4;
/**
 * Milliseconds of a sync above which it goes to a thread: below it, the way there and back costs more than the event
 * loop loses by standing still.
 */
const SYNC_INLINE_MS = 0.5;
/** Weight of a sync in the average: some ten syncs change the opinion of a disk. */
const SYNC_WEIGHT = 0.1;

const COLUMNS = "key, position, clock, replica, known, expires, value, sum";
/**
 * Columns of a row as they are read, with casts: one bit tells text from bytes in a file, and one takes a number out of
 * what JavaScript holds; neither ends a read (SC4).
 */
const READ_COLUMNS =
  "CAST(key AS BLOB), position, CAST(clock AS REAL), CAST(replica AS REAL), CAST(known AS REAL), " +
  "CAST(expires AS REAL), CAST(value AS BLOB), sum";
const RECORD_COLUMNS = "CAST(name AS TEXT), CAST(value AS BLOB), sum";
/**
 * Columns for a page whose bytes are bounded: a long value is left out, and its length stands behind the others. So is
 * the checksum, which lies behind the value: all pages of that would be walked for it.
 */
const PAGE_COLUMNS =
  "CAST(key AS BLOB), position, CAST(clock AS REAL), CAST(replica AS REAL), CAST(known AS REAL), " +
  "CAST(expires AS REAL), iif(length(value) > ?1, NULL, CAST(value AS BLOB)), " +
  "iif(length(value) > ?1, NULL, sum), length(value)";
/** Bytes of the longest value that comes with a page: the longest page that an app asks for (256 rows) is a MiB. */
const INLINE_VALUE_BYTES = 4 * 1024;
type LongColumns = [...Columns, number | null];
type Columns = [Uint8Array, number, number, number, number, number, Uint8Array | null, number];

/**
 * Opens the storage in a folder of its own, creating both.
 *
 * @param witness a file outside of the folder, in which commits are counted, too.
 * @throws StoreUnavailable `disk_failed` where the folder is held, not ours, or not usable; FilesSpoiled.
 */
export function openSqlite(folder: string, report: DiskReport = {}, witness?: string): SqliteStorage {
  const claim = claimFolder(folder, FORMAT, FORMER);
  try {
    return new SqliteStorage(claim, report, witness);
  } catch (error) {
    claim.release();
    throw openFailure(folder, error);
  }
}

/** A storage in an SQLite file; see the file's header. */
export class SqliteStorage implements Storage {
  readonly #claim: FolderClaim;
  readonly #report: DiskReport;
  readonly #db: DatabaseSync;
  readonly #statements: Statements;
  readonly #log: Deno.FsFile;
  /**
   * File of the log's index. Closed after SQLite's own: the system drops a process's locks on a file when any of its
   * handles is closed.
   */
  readonly #logIndex: Deno.FsFile;
  readonly #pages: Deno.FsFile;
  readonly #count: CommitCount;
  /** True where the disk has lost commits that it had reported as written (Q6). */
  readonly wentBack: boolean;
  #totals: SqliteTotals;
  /** Milliseconds that a sync takes here, smoothed: they decide where the next one is done (Q1). */
  #syncMs = 0;
  /** The transaction under way. */
  #applying: Promise<void> | null = null;
  /** The sync under way. */
  #syncing: Promise<void> | null = null;
  #isCommitting = false;
  /** The moving of pages that is under way (Q7). */
  #moving: Promise<void> | null = null;
  #closed = false;
  #failed: StoreUnavailable | null = null;

  constructor(claim: FolderClaim, report: DiskReport, witness?: string) {
    this.#claim = claim;
    this.#report = report;
    this.#db = new DatabaseSync(`${claim.path}/rows.db`);
    try {
      this.#db.exec(
        `PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA cache_size = -${CACHE_KIB};
         PRAGMA wal_autocheckpoint = 0;`,
      );
      if (claim.engine === FORMER) addSums(this.#db);
      this.#db.exec(`BEGIN IMMEDIATE; ${SCHEMA} ${OPENED}; COMMIT`); // one sync, not one for each table
      if (claim.engine === FORMER) claim.upgraded();
      this.#check();
      this.#db.exec("PRAGMA synchronous = NORMAL");
      this.#log = Deno.openSync(`${claim.path}/rows.db-wal`, { read: true, write: true });
      this.#logIndex = Deno.openSync(`${claim.path}/rows.db-shm`, { read: true });
      this.#pages = Deno.openSync(`${claim.path}/rows.db`, { read: true, write: true });
      this.#statements = prepare(this.#db);
      this.#totals = soundTotals(this.#db);
      this.#count = new CommitCount(`${claim.path}/commits`, ...witness === undefined ? [] : [witness]);
      this.wentBack = this.#count.last > this.#totals.commits;
    } catch (error) {
      this.#db.close();
      throw error;
    }
  }

  /** Checks the file, where that takes no more than a moment (Q5). */
  #check(): void {
    const { size } = Deno.statSync(`${this.#claim.path}/rows.db`);
    if (size > CHECK_AT_OPEN_BYTES) return;
    const found = checkSqliteRows(this.#db);
    if (found.damaged > 0 || found.isReindexed) this.#report.damaged?.(found);
  }

  load(): Promise<Map<string, Uint8Array>> {
    return this.#read(() => {
      const all = this.#statements.records.all() as unknown as [string, Uint8Array, number][];
      return new Map(all.map(([name, value, sum]) => {
        if (recordSum(name, value) !== sum) {
          throw new Spoiled(`the record ${JSON.stringify(name)} is damaged`);
        }
        return [name, value];
      }));
    });
  }

  get(key: Key): Promise<Row | undefined> {
    return this.#read(() => whole([this.#get(key)])[0]);
  }

  getMany(keys: readonly Key[], bytesMax = Infinity): Promise<(Row | undefined)[]> {
    return this.#read(() => whole(upTo(keys, (key) => this.#get(key), bytesMax)));
  }

  scan(
    range: Range,
    { limit = Infinity, bytesMax = Infinity, reverse = false }: ScanOptions = {},
  ): Promise<Row[]> {
    const statement = reverse ? this.#statements.scanDown : this.#statements.scanUp;
    return this.#read(() => {
      const found = statement.all(
        inlineOf(bytesMax),
        blobOf(range.start),
        blobOf(range.end),
        sqlLimit(limit),
      );
      return this.#rowsOf(found, bytesMax);
    });
  }

  journal(after: Position, upTo: Position, limit: number, bytesMax = Infinity): Promise<Row[]> {
    return this.#read(() => {
      const found = this.#statements.journal.all(inlineOf(bytesMax), after, upTo, sqlLimit(limit));
      return this.#rowsOf(found, bytesMax);
    });
  }

  /** Returns rows as far as their bytes are wanted: long values are read one by one, where they are. */
  #rowsOf(found: unknown, bytesMax: number): Row[] {
    const rows = upTo(found as LongColumns[], (columns) => {
      const [bytes, , , , , , value, , length] = columns;
      const isLong = value === null && length !== null;
      return isLong ? this.#get(keyText(bytes) as Key) : rowOf(columns as unknown as Columns);
    }, bytesMax);
    return whole(rows.filter((row) => row !== undefined));
  }

  bytes(): Promise<number> {
    return Promise.resolve(this.#totals.bytes);
  }

  async commit(commit: DiskCommit): Promise<void> {
    if (this.#isCommitting) throw new Error("a commit was issued before the last one had settled");
    if (this.#closed) throw new Error("a commit was issued on a closed storage");
    this.#isCommitting = true;
    try {
      if (this.#moving !== null) await this.#moving;
      await this.#commit(commit);
    } finally {
      this.#isCommitting = false;
    }
    this.#moveSoon();
  }

  async #commit(commit: DiskCommit): Promise<void> {
    if (this.#failed !== null) throw this.#failed;
    try {
      this.#applying = this.#apply(commit);
      await this.#applying;
    } catch (error) {
      this.#failed = failure("cannot commit", error);
      this.#rollback();
      throw this.#failed;
    } finally {
      this.#applying = null;
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
      this.#count.set(this.#totals.commits); // Q6
      this.#report.synced?.(tookMs);
    } catch (error) {
      // What the disk kept is unknown, and a second sync could confirm pages that the first one lost.
      this.#failed = failure("cannot sync", error);
      throw this.#failed;
    } finally {
      this.#syncing = null;
    }
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    await this.#moving; // a commit that waits for it goes on first
    await this.#applying?.catch(() => {});
    await this.#syncing?.catch(() => {}); // the commit that waits for it reports it
    this.#log.close();
    this.#count.close();
    this.#db.close();
    this.#logIndex.close();
    this.#pages.close();
    this.#claim.release();
  }

  /** Moves pages from the log to the database where the log has grown (Q7). */
  #moveSoon(): void {
    if (this.#closed || this.#logPages() < CHECKPOINT_PAGES) return;
    this.#moving = this.#move().finally(() => this.#moving = null);
  }

  #logPages(): number {
    const pages = new Uint32Array(1);
    this.#logIndex.seekSync(LOG_PAGES_AT, Deno.SeekMode.Start);
    this.#logIndex.readSync(new Uint8Array(pages.buffer)); // in the order of this machine, as it is written
    return pages[0] ?? 0;
  }

  /** Moves pages. Never rejects: the next commit does. */
  async #move(): Promise<void> {
    await nextTurn();
    try {
      this.#db.exec("PRAGMA synchronous = OFF; PRAGMA wal_checkpoint(PASSIVE); PRAGMA synchronous = NORMAL");
    } catch {
      // A full disk, for instance: the log keeps its pages, and moving is tried again after the next commit.
      this.#db.exec("PRAGMA synchronous = NORMAL");
    }
    try {
      await this.#pages.syncData();
    } catch (error) {
      this.#failed ??= failure("cannot sync", error);
    }
  }

  async #apply(commit: DiskCommit): Promise<void> {
    const { begin, end, setRecord, removeRecord, sumOfRecord } = this.#statements;
    let sinceMs = performance.now();
    /** Reports whether the slice is over (Q8). */
    const isDue = () => performance.now() - sinceMs >= SLICE_MS;
    const next = async () => {
      await nextTurn();
      sinceMs = performance.now();
    };
    begin.run();
    const totals = { ...this.#totals };
    for (const key of commit.drop) {
      this.#drop(key, totals);
      if (isDue()) await next();
    }
    for (const row of commit.rows) {
      this.#put(row, totals);
      if (isDue()) await next();
    }
    for (const [name, value] of commit.records) {
      const old = sumOfRecord.get(name) as unknown as [number] | undefined;
      if (old !== undefined) totals.content = (totals.content - mixed(old[0])) >>> 0;
      if (value === null) removeRecord.run(name);
      else {
        const sum = recordSum(name, value);
        setRecord.run(name, value, sum);
        totals.content = (totals.content + mixed(sum)) >>> 0;
      }
    }
    totals.commits++;
    this.#setTotals(totals);
    end.run();
    this.#totals = totals;
  }

  #setTotals(totals: SqliteTotals): void {
    const { rows, bytes, commits } = totals;
    this.#statements.setTotals.run(
      rows,
      bytes,
      commits,
      totalsSum(totals),
      totals.content,
      contentSum(totals),
    );
  }

  /** Puts a row, and counts the bytes by which the storage grew. */
  #put(row: Row, totals: Counting): void {
    const { size, put } = this.#statements;
    const key = blobOf(row.key);
    const old = size.get(key) as unknown as [number, number] | undefined;
    const { position, clock, replica, known, expiresAtMs, value } = row;
    put.run(key, position, clock, replica, known, expiresAtMs, value, rowSum(key, row));
    totals.bytes += countedBytes(row) - (old === undefined ? 0 : row.key.length + old[0]);
    const oldMix = old === undefined ? 0 : mixed(old[1]);
    totals.content = (totals.content + mixed(position) - oldMix) >>> 0;
    if (old === undefined) totals.rows++;
  }

  #drop(key: Key, totals: Counting): void {
    const old = this.#statements.drop.get(blobOf(key)) as unknown as [number, number] | undefined;
    if (old === undefined) return;
    totals.content = (totals.content - mixed(old[1])) >>> 0;
    totals.bytes -= key.length + old[0];
    totals.rows--;
  }

  #get(key: Key): Row | Damaged | undefined {
    const found = this.#statements.get.get(blobOf(key)) as unknown as Columns | undefined;
    return found === undefined ? undefined : rowOf(found);
  }

  // deno-lint-ignore require-await -- async, so that a failing read rejects instead of throwing
  async #read<T>(look: () => T): Promise<T> {
    try {
      return look();
    } catch (error) {
      throw error instanceof DamagedRows ? error : failure("cannot read", error);
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

type Counting = { -readonly [Name in keyof SqliteTotals]: SqliteTotals[Name] };
type Statements = ReturnType<typeof prepare>;
/** Method that is in the runtime, not yet in its types. */
type ReturnsArrays = { setReturnArrays(on: boolean): void };

function prepare(db: DatabaseSync) {
  const rows = (sql: string): StatementSync => {
    const statement = db.prepare(sql);
    (statement as StatementSync & ReturnsArrays).setReturnArrays(true);
    return statement;
  };
  const scan = `SELECT ${PAGE_COLUMNS} FROM rows WHERE key >= ?2 AND key < ?3`;
  return {
    begin: db.prepare("BEGIN IMMEDIATE"),
    end: db.prepare("COMMIT"),
    rollback: db.prepare("ROLLBACK"),
    get: rows(`SELECT ${READ_COLUMNS} FROM rows WHERE key = ?`),
    scanUp: rows(`${scan} ORDER BY key LIMIT ?4`),
    scanDown: rows(`${scan} ORDER BY key DESC LIMIT ?4`),
    journal: rows(
      `SELECT ${PAGE_COLUMNS} FROM rows WHERE position > ?2 AND position <= ?3 ORDER BY position LIMIT ?4`,
    ),
    size: rows("SELECT ifnull(length(value), 0), position FROM rows WHERE key = ?"),
    put: db.prepare(
      `INSERT INTO rows(${COLUMNS}) VALUES(?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT(key) DO UPDATE SET
       position = excluded.position, clock = excluded.clock, replica = excluded.replica,
       known = excluded.known, expires = excluded.expires, value = excluded.value, sum = excluded.sum`,
    ),
    drop: rows("DELETE FROM rows WHERE key = ? RETURNING ifnull(length(value), 0), position"),
    records: rows(`SELECT ${RECORD_COLUMNS} FROM records`),
    sumOfRecord: rows("SELECT sum FROM records WHERE name = ?"),
    setRecord: db.prepare("INSERT OR REPLACE INTO records(name, value, sum) VALUES(?, ?, ?)"),
    removeRecord: db.prepare("DELETE FROM records WHERE name = ?"),
    setTotals: db.prepare(`UPDATE totals SET value = CASE name
      WHEN 'rows' THEN ? WHEN 'bytes' THEN ? WHEN 'commits' THEN ? WHEN 'sum' THEN ? WHEN 'content' THEN ? WHEN 'contentSum' THEN ? ELSE value END`),
  };
}

const blobOf = (key: Key): Uint8Array => Buffer.from(key, "latin1");
/** Returns the bytes that a value may have to come with its page. */
const inlineOf = (bytesMax: number): number =>
  bytesMax === Infinity ? Number.MAX_SAFE_INTEGER : INLINE_VALUE_BYTES;

/** Returns what `find` gives for each, up to the row that brings their bytes to a bound. */
function upTo<T>(
  all: readonly T[],
  find: (one: T) => Row | Damaged | undefined,
  bytesMax: number,
): (Row | Damaged | undefined)[] {
  const rows: (Row | Damaged | undefined)[] = [];
  for (let bytes = 0; rows.length < all.length && bytes < bytesMax;) {
    const row = find(all[rows.length] as T);
    if (row !== undefined && !(row instanceof Damaged)) bytes += rowBytes(row);
    rows.push(row);
  }
  return rows;
}

const sqlLimit = (limit: number): number => Number.isFinite(limit) ? limit : -1;

/** A row whose bytes do not fit its checksum. */
class Damaged {
  constructor(readonly key: Key) {}
}

function rowOf(
  [bytes, position, clock, replica, known, expiresAtMs, value, sum]: Columns,
): Row | Damaged {
  const key = keyText(bytes) as Key;
  const row = { key, position, clock, replica, known, expiresAtMs, value };
  return rowFits(bytes, row, sum) ? row : new Damaged(key);
}

/** Returns rows as they were put. @throws DamagedRows */
function whole<Found extends Row | undefined>(found: readonly (Found | Damaged)[]): Found[] {
  const rows: Found[] = [], damaged: Key[] = [];
  for (const row of found) {
    if (row instanceof Damaged) damaged.push(row.key);
    else rows.push(row);
  }
  if (damaged.length > 0) throw new DamagedRows(damaged);
  return rows;
}

function failure(what: string, cause: unknown): StoreUnavailable {
  const why = cause instanceof Error ? cause.message : String(cause);
  return new StoreUnavailable("disk_failed", `${what}: ${why}`);
}
