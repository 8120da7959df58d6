/**
 * The fill of indexes that a new version of an app declares, from the rows that are there. It runs at the root, which
 * has every row, before the version goes live; and once more when it is live everywhere, for rows that an older version
 * wrote meanwhile.
 *
 * F1  Filling twice writes nothing the second time: a row that has an entry at its place is passed over.
 * F2  An entry is written only while its row is the one that was read, so that a filled entry is never newer than
 *     the put that outlives it (I3 b stays able to remove it).
 *
 * Rows are taken as they are stored, without the schema and `upgrade` of the app, which only isolates have.
 */
import { type Key, packKey } from "../store/model/key.ts";
import { keyAfter, prefixRange } from "../store/model/range.ts";
import { codeOf } from "./vocabulary/errors.ts";
import { entryValue, freshNonce, TableIndex } from "./index_entries.ts";
import { WriteBatch } from "./kv_atomic.ts";
import { ATOMIC_CHECKS_MAX } from "./vocabulary/limits.ts";
import type { Manifest } from "./manifest.ts";
import type { StoreClient, StoredRow } from "./vocabulary/store_client.ts";
import { decodeValue } from "./values/value.ts";

type TableManifest = Pick<Manifest["tables"][string], "key" | "indexes"> & {
  readonly at?: string | undefined;
};
type TableManifests = Readonly<Record<string, TableManifest>>;

/** Indexes of one table to be filled. */
export interface IndexFill {
  readonly table: string;
  readonly at: string | undefined;
  readonly indexes: Readonly<Record<string, readonly string[]>>;
}

/** Result of a fill. */
export interface FillResult {
  readonly rows: number;
  readonly entries: number;
  /**
   * Number of rows that have no place in an index: bytes that can't be read, a field that is no key part, a long key.
   */
  readonly skipped: number;
}

/** Returns the indexes that are new in a version, or have other fields, of tables that there were before. */
export function addedIndexes(before: TableManifests, after: TableManifests): IndexFill[] {
  const fills: IndexFill[] = [];
  for (const [table, { indexes, at }] of Object.entries(after)) {
    const old = Object.hasOwn(before, table) ? before[table] : undefined;
    if (old === undefined) continue;
    const added = Object.entries(indexes).filter(([name, fields]) =>
      !Object.hasOwn(old.indexes, name) || old.indexes[name]?.join("\0") !== fields.join("\0")
    );
    if (added.length > 0) fills.push({ table, at, indexes: Object.fromEntries(added) });
  }
  return fills;
}

/** Rows read, and written for, at a time: each is a check of the atomic operation. */
const ROWS_A_STEP = ATOMIC_CHECKS_MAX;
/** Times that a step whose rows keep changing is read again before the fill gives up. */
const TRIES_MAX = 20;

/**
 * Fills indexes of one table.
 *
 * @throws Error where rows change faster than a step can be written.
 */
export async function fillIndexes(store: StoreClient, fill: IndexFill): Promise<FillResult> {
  const lead = fill.at === "root" ? ["root"] : [];
  const space = packKey([...lead, "t", fill.table]);
  const indexes = Object.entries(fill.indexes).map(([name, fields]) =>
    new TableIndex(name, fields, packKey([...lead, "i", fill.table, name]))
  );
  const total = { rows: 0, entries: 0, skipped: 0 };
  let { start, end } = prefixRange(space);
  for (let tries = 0;;) {
    const { rows } = await store.list({ start, end, limit: ROWS_A_STEP, reverse: false, level: "session" });
    const last = rows.at(-1);
    if (last === undefined) return total;
    const step = await fillRows(store, space, indexes, rows);
    if (step === null) {
      if (++tries < TRIES_MAX) continue;
      throw new Error(`the rows of the table ${fill.table} change too fast to fill its indexes`);
    }
    tries = 0;
    total.rows += rows.length;
    total.entries += step.entries;
    total.skipped += step.skipped;
    start = keyAfter(last.key);
  }
}

/** Writes the entries that some rows lack; null when one of the rows changed meanwhile (F2). */
async function fillRows(
  store: StoreClient,
  space: Key,
  indexes: readonly TableIndex[],
  rows: readonly StoredRow[],
): Promise<{ entries: number; skipped: number } | null> {
  const batch = new WriteBatch();
  let skipped = 0;
  for (const row of rows) {
    const rowKey = row.key.slice(space.length) as Key;
    const places = placesOf(indexes, row, rowKey);
    if (places === null) skipped++;
    const missing: Key[] = [];
    for (const place of places ?? []) if (!(await hasEntry(store, place))) missing.push(place);
    if (missing.length === 0) continue;
    batch.check(row.key, row.versionstamp);
    for (const place of missing) {
      batch.add({ kind: "set", key: place + freshNonce() as Key, value: entryValue(rowKey) });
    }
  }
  if (batch.size > 0 && !(await batch.commit(store)).ok) return null;
  return { entries: batch.size, skipped };
}

/** Returns a row's place in each index; null where the row has none. */
function placesOf(indexes: readonly TableIndex[], row: StoredRow, rowKey: Key): Key[] | null {
  try {
    const value = decodeValue(row.value);
    if (typeof value !== "object" || value === null) return null;
    return indexes.flatMap((index) => index.place(value as Record<string, unknown>, rowKey) ?? []);
  } catch (error) {
    if (codeOf(error) === undefined) throw error;
    return null;
  }
}

async function hasEntry(store: StoreClient, place: Key): Promise<boolean> {
  const { rows } = await store.list({ ...prefixRange(place), limit: 1, reverse: false, level: "session" });
  return rows.length > 0;
}
