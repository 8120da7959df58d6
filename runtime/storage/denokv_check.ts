/**
 * Check that the entries of a Deno KV database on a file are those that were put there (store/model/ports.ts S4): rows
 * against the journal, checksums of all, and their number. It runs as a storage is opened, before anything is read.
 *
 * DC1  Rows and journal entries name each other. A row that is damaged, or is not where the journal says, is marked as
 *      damaged under the key that the journal has for it, until it is put or dropped, also after a restart. A journal
 *      entry that is damaged or gone is made again from its row.
 * DC2  Where a row and its journal entry are both gone the number of rows shows it, and that is an error: nothing here
 *      can tell which row it was.
 * DC3  A part of the file that is older than the rest holds rows and entries that fit their checksums. The sum over all
 *      positions and records shows it, and that is an error. A row that is damaged counts at the position that the
 *      journal has for it, so damage alone leaves the sum as it is.
 * DC4  Deno KV never reads a column that is not as it wrote it: some of those end the process. They are put right
 *      before it opens the file; the checksum tells whether the value beside them is the one that was put.
 */
import { DatabaseSync } from "node:sqlite";
import type { Key } from "../../store/model/key.ts";
import { bytesSum, mixed } from "./checksum.ts";
import * as layout from "./denokv_layout.ts";
import type { DenoKvMutation, DenoKvRow, Totals } from "./denokv_layout.ts";
import { joined } from "./denokv_reader.ts";
import { CHECK_AT_OPEN_BYTES, type Checked, Spoiled } from "./disk_report.ts";

type Write = (mutations: readonly DenoKvMutation[]) => Promise<void>;
type Part = Uint8Array | undefined;

const BATCH = { batchSize: 500 };

/** Checks the structure of the file, before Deno KV opens it. @throws Error */
export function checkFile(path: string): void {
  const size = sizeOf(path);
  if (size === 0 || size > CHECK_AT_OPEN_BYTES) return;
  const db = new DatabaseSync(path);
  try {
    if (firstFault(db) !== null) {
      db.exec("REINDEX");
      const left = firstFault(db);
      if (left !== null) throw new Spoiled(left);
    }
    mendColumns(db);
  } finally {
    db.close();
  }
}

/** Number by which Deno KV marks a value as bytes: `VE_BYTES` of KV Connect. Nothing else is ever put here. */
const BYTES_ENCODING = 3;
/** Value of an entry's expiry: nothing ever expires here. */
const NEVER = -1;
/**
 * Condition for columns that are not as they were written. One whose mark says a number of eight bytes, and whose value
 * is none, makes Deno 2.9 panic as it is read.
 */
const SPOILED_COLUMNS = `typeof(v) <> 'blob' OR v_encoding IS NOT ${BYTES_ENCODING}
  OR typeof(version) <> 'integer' OR expiration_ms IS NOT ${NEVER}`;

/** Puts right the columns that are not as Deno KV wrote them (DC4). */
function mendColumns(db: DatabaseSync): void {
  const [kv] = db.prepare("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'kv'").all();
  if (kv === undefined) return; // a crash came before the first commit
  const [keys] = db.prepare("SELECT 1 FROM kv WHERE typeof(k) <> 'blob' LIMIT 1").all();
  if (keys !== undefined) throw new Spoiled("a key is no key");
  const [column] = db.prepare(`SELECT 1 FROM kv WHERE ${SPOILED_COLUMNS} LIMIT 1`).all();
  if (column === undefined) return;
  db.exec(`UPDATE kv SET v = CAST(v AS BLOB), v_encoding = ${BYTES_ENCODING},
    version = CAST(version AS INTEGER), expiration_ms = ${NEVER} WHERE ${SPOILED_COLUMNS}`);
}

function firstFault(db: DatabaseSync): string | null {
  const [row] = db.prepare("PRAGMA integrity_check(1)").all();
  const said = String(row?.["integrity_check"]);
  return said === "ok" ? null : said;
}

function sizeOf(path: string): number {
  try {
    return Deno.statSync(path).size;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return 0;
    throw error;
  }
}

/** Findings of a check, and the counts as they are. */
export interface CheckedKv extends Checked {
  readonly totals: Totals;
  /** Sum over positions and records (DC3). */
  readonly content: number;
}

/** Counts as of the last commit; null: not known. */
export interface Told {
  readonly totals: Totals | null;
  readonly content: number | null;
  /** Sum over the records as they are: their part of the content. */
  readonly records: number;
}

/**
 * Compares everything, and mends what can be mended (DC1). null: the file is too large for a moment. @throws Error
 * (DC2, DC3)
 */
export async function checkDenoKvRows(
  kv: Deno.Kv,
  folder: string,
  told: Told,
  write: Write,
): Promise<CheckedKv | null> {
  if (sizeOf(`${folder}/root.kv`) > CHECK_AT_OPEN_BYTES) return null;
  const mutations: DenoKvMutation[] = [];
  const { rows, misplaced } = await readRows(kv, mutations);
  const journal = await readJournal(kv, mutations);
  let damaged = 0, bytes = 0, content = told.records;
  const keys = new Set<Key>();
  for (const [position, key] of journal) {
    const row = rows.get(position);
    content = (content + mixed(position)) >>> 0;
    keys.add(key);
    bytes += key.length;
    if (row?.key === key && row.isWhole) bytes += row.valueBytes;
    else {
      damaged++;
      mutations.push({ key: layout.rowKey(key), value: layout.damagedRecord(key, position) });
    }
  }
  for (const [position, { key, isWhole, valueBytes }] of rows) {
    if (journal.get(position) === key || keys.has(key)) continue;
    // The row's journal entry is gone.
    keys.add(key);
    content = (content + mixed(position)) >>> 0;
    bytes += key.length + valueBytes;
    if (!isWhole) damaged++;
    mutations.push({ key: layout.journalKey(position), value: layout.journalValue.of(position, key) });
  }
  for (const place of misplaced) if (!keys.has(place.key)) mutations.push({ key: place.at, value: null });
  const before = told.totals;
  if (before !== null && keys.size !== before.rows) {
    throw new Spoiled(`rows are missing: there are ${keys.size}, and there were ${before.rows}`);
  }
  if (told.content !== null && told.content !== content) {
    throw new Spoiled("some rows are older than what was put there last"); // DC3
  }
  const totals = { rows: keys.size, bytes, commits: before?.commits ?? 0 };
  if (before?.bytes !== bytes) mutations.push({ key: ["t"], value: layout.encodeTotals(totals) });
  await write(mutations);
  return { damaged, isReindexed: false, totals, content };
}

/** Counts rows and bytes anew. */
export async function countRows(kv: Deno.Kv): Promise<Totals> {
  let rows = 0, bytes = 0;
  for await (const { key, value } of kv.list<Uint8Array>({ prefix: ["r"] }, BATCH)) {
    const [, place, hash] = key as ["r", Uint8Array, Part];
    const stored = layout.decodeRow(value, place, hash);
    rows++;
    if (!("damaged" in stored)) bytes += stored.row.key.length + stored.head.valueBytes;
  }
  return { rows, bytes, commits: 0 };
}

interface FoundRow {
  readonly key: Key;
  readonly valueBytes: number;
  /** True where the row's value fits its checksum. */
  readonly isWhole: boolean;
}

/** Reads rows by position; and places of damaged rows, whose key may be that of another. */
async function readRows(kv: Deno.Kv, mutations: DenoKvMutation[]) {
  const pieces = await readPieces(kv);
  const rows = new Map<number, FoundRow>();
  const misplaced: { readonly key: Key; readonly at: layout.KvPart[] }[] = [];
  for await (const { key, value } of kv.list<Uint8Array>({ prefix: ["r"] }, BATCH)) {
    const [, bytes, hash] = key as ["r", Uint8Array, Part];
    const stored = layout.decodeRow(value, bytes, hash);
    if ("damaged" in stored) {
      misplaced.push({ key: stored.damaged, at: [...key] as layout.KvPart[] });
      continue;
    }
    const { position, valueBytes } = stored.head;
    const found = pieces.get(position);
    pieces.delete(position);
    const isWhole = stored.value !== undefined ||
      (found !== undefined && found.length === valueBytes && bytesSum(found) === stored.valueSum);
    rows.set(position, { key: stored.row.key, valueBytes, isWhole });
  }
  // The remaining pieces are of damaged rows.
  for (const [position, value] of pieces) {
    for (let i = 0; i < Math.max(1, layout.piecesOf(value.length)); i++) {
      mutations.push({ key: layout.valuePieceKey(position, i), value: null });
    }
  }
  return { rows, misplaced };
}

async function readPieces(kv: Deno.Kv): Promise<Map<number, Uint8Array>> {
  const parts = new Map<number, Uint8Array[]>();
  for await (const { key, value } of kv.list<Uint8Array>({ prefix: ["c"] }, BATCH)) {
    const position = Number(key[1]);
    parts.set(position, [...parts.get(position) ?? [], value]);
  }
  return new Map([...parts].map(([position, values]) => [position, joined(values)]));
}

async function readJournal(kv: Deno.Kv, mutations: DenoKvMutation[]): Promise<Map<number, Key>> {
  const journal = new Map<number, Key>();
  for await (const { key: at, value } of kv.list<Uint8Array>({ prefix: ["j"] }, BATCH)) {
    const position = Number(at[1]), key = layout.journalValue.key(position, value);
    if (key !== null) journal.set(position, key);
    else mutations.push({ key: [...at] as layout.KvPart[], value: null });
  }
  return journal;
}

/** Gives every entry of the former format its checksum; again, where a crash cut this off. */
export async function upgradeRows(kv: Deno.Kv, write: Write): Promise<void> {
  const pieces = await readPieces(kv);
  let rows = 0, bytes = 0;
  for await (const { key, value } of kv.list<Uint8Array>({ prefix: ["r"] }, BATCH)) {
    const [, place, hash] = key as ["r", Uint8Array, Part];
    const upgraded = layout.decodeRow(value, place, hash);
    const stored: DenoKvRow = "damaged" in upgraded ? layout.decodeFormerRow(value, place) : upgraded;
    const { row, head } = stored;
    rows++;
    bytes += row.key.length + head.valueBytes;
    if (!("damaged" in upgraded)) continue;
    const whole = stored.value === undefined ? pieces.get(head.position) : stored.value;
    if (whole === undefined) throw new Spoiled("a value has lost its pieces");
    await write([
      { key: [...key] as layout.KvPart[], value: layout.encodeRow({ ...row, value: whole }) },
      {
        key: layout.journalKey(head.position),
        value: layout.journalValue.of(head.position, row.key),
      },
    ]);
  }
  for await (const { key, value } of kv.list<Uint8Array>({ prefix: ["m"] }, BATCH)) {
    const name = String(key[1]);
    if (layout.unsealed(layout.nameBytes("m", name), value) !== null) continue;
    const former = layout.decodeFormerRecord(value);
    const parts: Uint8Array[] = [];
    for await (const part of kv.list<Uint8Array>({ prefix: ["n", name] }, BATCH)) parts.push(part.value);
    await write(layout.recordMutations(name, former.pieces === 0 ? former.value : joined(parts), 0));
  }
  await write([{ key: ["t"], value: layout.encodeTotals({ rows, bytes, commits: 0 }) }]);
}
