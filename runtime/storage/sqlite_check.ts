/**
 * Check that the rows of an SQLite file are those that were put there: checksums of all of them, tables against
 * indexes, and the sum of their bytes. It runs as a storage is opened, before anything is read (store/model/ports.ts
 * S4).
 *
 * Stages: structure → (where indexes do not fit the table: the entries of each are compared, indexes are built anew) →
 * checksums → the sum.
 *
 * SC1  A row whose bytes do not fit its checksum stays, under the key and at the position that it had, with a checksum
 *      that nothing fits: it is damaged until it is put or dropped, also after a restart.
 * SC2  A fault of a table itself, or a row that is gone, is an error: nothing here can tell which rows those were. A
 *      row that is gone shows in the count of rows; counts that do not fit their own checksum are counted anew.
 * SC3  A part of the file that is older than the rest holds rows that fit their checksums. The sum over all positions and
 *      records shows it: a row has a position of its own each time that it is put.
 * SC4  Bytes that one changed bit of the file marks as text, which SQLite does not take for equal to the same bytes,
 *      are made bytes again: a row could not be found by such a key, and such a value fits its checksum. Names that are
 *      marked as bytes are made text again. Numbers that are none, or more than JavaScript holds, damage their row
 *      alone.
 */
import { Buffer } from "node:buffer";
import type { DatabaseSync, StatementSync } from "node:sqlite";
import { type Checked, Spoiled } from "./disk_report.ts";
import { bytesSum, mixed, recordSum, rowFits, rowSum } from "./checksum.ts";

/** A checksum that no CRC-32 is. */
const NEVER = -1;
/** Names of the indexes, as SQLite gives them out to UNIQUE columns in order. */
const KEY_INDEX = "sqlite_autoindex_rows_1", POSITION_INDEX = "sqlite_autoindex_rows_2";

type RowColumns = [number, Uint8Array, number, number, number, number, number, Uint8Array | null, number];
/** Method that is in the runtime, not yet in its types. */
type Arrays = StatementSync & { setReturnArrays(on: boolean): void };

/** Yields rows of a query as arrays, one by one. */
function* each<Columns>(db: DatabaseSync, sql: string): Generator<Columns> {
  const statement = db.prepare(sql) as Arrays;
  statement.setReturnArrays(true);
  yield* statement.iterate() as unknown as Iterable<Columns>;
}

/**
 * Query of all rows, with casts: a number beyond 2^53 ends a read of it, and the one that it becomes by a cast fits no
 * checksum.
 */
const ROWS = "SELECT id, CAST(key AS BLOB), position, CAST(clock AS REAL), CAST(replica AS REAL), " +
  "CAST(known AS REAL), CAST(expires AS REAL), CAST(value AS BLOB), sum FROM rows NOT INDEXED";

/** Compares everything. @throws Error that says what is wrong (SC2), or is SQLite's own. */
export function checkSqliteRows(db: DatabaseSync): Checked {
  const structure = structureOf(db);
  const isReindexed = structure !== null;
  if (structure !== null) mendIndexes(db, structure);
  mendColumns(db);
  let damaged = 0, bytes = 0, rows = 0, content = 0;
  for (const columns of each<RowColumns>(db, `${ROWS} ORDER BY id`)) {
    if (!fits(columns, columns[1])) damaged++;
    bytes += columns[1].length + (columns[7]?.length ?? 0);
    content = (content + mixed(columns[2])) >>> 0;
    rows++;
  }
  for (
    const [name, value, sum] of each<[string, Uint8Array, number]>(
      db,
      "SELECT name, CAST(value AS BLOB), sum FROM records",
    )
  ) {
    if (recordSum(name, value) !== sum) throw new Spoiled(`the record ${JSON.stringify(name)} is damaged`);
    content = (content + mixed(sum)) >>> 0;
  }
  const totals = readTotals(db);
  if (totals.isSound && totals.rows !== rows) {
    throw new Spoiled(`rows are missing: there are ${rows}, and there were ${totals.rows}`);
  }
  if (totals.isContentSound && totals.content !== content) {
    throw new Spoiled("some rows are older than what was put there last"); // SC3
  }
  if (!totals.isSound || !totals.isContentSound || totals.bytes !== bytes) {
    writeTotals(db, { ...totals, rows, bytes, content });
  }
  return { damaged, isReindexed };
}

/** Counts of a storage: its rows, the bytes of their keys and values, its commits. */
export interface SqliteTotals {
  readonly rows: number;
  readonly bytes: number;
  readonly commits: number;
  /** Sum over all positions and records (SC3). */
  readonly content: number;
}

interface ReadTotals extends SqliteTotals {
  readonly isSound: boolean;
  /**
   * True where the sum over positions and records is of this commit: a version that did not know of the sum has written
   * none since.
   */
  readonly isContentSound: boolean;
}

/** Reads the counts, and whether they fit their checksum. */
export function readTotals(db: DatabaseSync): ReadTotals {
  const found = new Map(each<[string, number]>(db, "SELECT name, value FROM totals"));
  const of = (name: string) => found.get(name) ?? 0;
  const totals = { rows: of("rows"), bytes: of("bytes"), commits: of("commits"), content: of("content") };
  const isSound = of("sum") === totalsSum(totals);
  const isContentSound = isSound && found.has("content") && of("contentSum") === contentSum(totals);
  return { ...totals, isSound, isContentSound };
}

/**
 * Returns the counts; counted anew where they do not fit their checksum: in a new file, or one of the former format.
 */
export function soundTotals(db: DatabaseSync): SqliteTotals {
  const totals = readTotals(db);
  if (totals.isSound && totals.isContentSound) return totals;
  const sql = "SELECT count(*), ifnull(sum(length(key) + ifnull(length(value), 0)), 0) FROM rows NOT INDEXED";
  const [[rows, bytes] = [0, 0]] = [...each<[number, number]>(db, sql)];
  let content = 0;
  for (const [position] of each<[number]>(db, "SELECT position FROM rows")) {
    content = (content + mixed(position)) >>> 0;
  }
  for (const [sum] of each<[number]>(db, "SELECT sum FROM records")) content = (content + mixed(sum)) >>> 0;
  const counted = { rows, bytes, commits: totals.commits, content };
  writeTotals(db, counted);
  return counted;
}

/** Writes the counts, with their checksum, in one transaction. */
function writeTotals(db: DatabaseSync, totals: SqliteTotals): void {
  const set = db.prepare("INSERT OR REPLACE INTO totals VALUES(?, ?)");
  db.exec("BEGIN IMMEDIATE");
  for (const name of ["rows", "bytes", "commits", "content"] as const) set.run(name, totals[name]);
  set.run("sum", totalsSum(totals));
  set.run("contentSum", contentSum(totals));
  db.exec("COMMIT");
}

/** Returns the checksum of counts. */
export const totalsSum = ({ rows, bytes, commits }: SqliteTotals): number =>
  bytesSum(new TextEncoder().encode(`${rows} ${bytes} ${commits}`));

/** Returns the checksum of the sum over positions and records, as of a commit. */
export const contentSum = ({ content, commits }: SqliteTotals): number =>
  bytesSum(new TextEncoder().encode(`${content} ${commits}`));

/** Returns the first fault that SQLite finds; null: none. */
function structureOf(db: DatabaseSync): string | null {
  const [[first] = ["no answer"]] = [...each<[string]>(db, "PRAGMA integrity_check(1)")];
  return first === "ok" ? null : first;
}

/**
 * Builds the indexes anew from the table. A damaged row of the table gets the key and the position that the indexes
 * have for it: it would never be found by what is left in the table.
 */
function mendIndexes(db: DatabaseSync, why: string): void {
  const keys = new Map(
    each<[number, Uint8Array]>(db, `SELECT id, CAST(key AS BLOB) FROM rows INDEXED BY ${KEY_INDEX}`),
  );
  const positions = new Map(
    each<[number, number]>(db, `SELECT id, position FROM rows INDEXED BY ${POSITION_INDEX}`),
  );
  const wrong: [number, Uint8Array, number][] = [];
  for (const columns of each<RowColumns>(db, ROWS)) {
    const [id] = columns;
    if (fits(columns, columns[1])) continue;
    const key = keys.get(id), position = positions.get(id);
    if (key === undefined || position === undefined) {
      throw new Spoiled(`a row is damaged, and which one it was is not known any more: ${why}`);
    }
    wrong.push([id, key, position]);
  }
  db.exec("BEGIN IMMEDIATE; REINDEX rows");
  const place = db.prepare("UPDATE rows SET key = ?, position = ?, sum = ? WHERE id = ?");
  for (const [id, key, position] of wrong) place.run(key, position, NEVER, id); // SC1
  db.exec("COMMIT");
  const left = structureOf(db);
  if (left !== null) throw new Spoiled(left);
}

/** Makes bytes that are marked as text bytes again, and names text (SC4). */
function mendColumns(db: DatabaseSync): void {
  db.exec(`BEGIN IMMEDIATE;
    UPDATE rows SET key = CAST(key AS BLOB) WHERE typeof(key) <> 'blob';
    UPDATE rows SET value = CAST(value AS BLOB) WHERE typeof(value) NOT IN ('blob', 'null');
    UPDATE records SET name = CAST(name AS TEXT) WHERE typeof(name) <> 'text';
    UPDATE records SET value = CAST(value AS BLOB) WHERE typeof(value) <> 'blob';
    COMMIT`);
}

/** Reports whether a row's columns fit its checksum, under a key. */
const fits = (columns: RowColumns, key: Uint8Array): boolean => {
  const [, , position, clock, replica, known, expiresAtMs, value, sum] = columns;
  return rowFits(key, { position, clock, replica, known, expiresAtMs, value }, sum);
};

/** Gives every row and record of the former format its checksum. */
export function addSums(db: DatabaseSync): void {
  db.exec("BEGIN IMMEDIATE");
  for (const table of ["rows", "records"]) {
    const columns = [...each<[number, string]>(db, `PRAGMA table_info(${table})`)].map(([, name]) => name);
    if (!columns.includes("sum")) db.exec(`ALTER TABLE ${table} ADD COLUMN sum INTEGER`);
  }
  const setRow = db.prepare("UPDATE rows SET sum = ? WHERE id = ?");
  const page = db.prepare(`SELECT id, key, position, clock, replica, known, expires, value, sum FROM rows
    WHERE id > ? ORDER BY id LIMIT 1000`) as Arrays;
  page.setReturnArrays(true);
  for (let after = -1;;) {
    const rows = page.all(after) as unknown as RowColumns[];
    for (const [id, key, position, clock, replica, known, expiresAtMs, value] of rows) {
      setRow.run(rowSum(key, { position, clock, replica, known, expiresAtMs, value }), id);
      after = id;
    }
    if (rows.length === 0) break;
  }
  const setRecord = db.prepare("UPDATE records SET sum = ? WHERE name = ?");
  for (const [name, value] of [...each<[string, Uint8Array]>(db, "SELECT name, value FROM records")]) {
    setRecord.run(recordSum(name, value), name);
  }
  db.exec("COMMIT");
}

/** Returns bytes of a key that SQLite gave, as a text of one character a byte. */
export const keyText = (key: Uint8Array): string =>
  Buffer.from(key.buffer, key.byteOffset, key.byteLength).toString("latin1");
