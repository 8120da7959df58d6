/**
 * Rows and journal in a Deno KV database: the root's default engine, on a file of its own or over KV Connect.
 *
 * Life: `openDenoKv` claims the folder, finishes a step that a crash cut → `commit` and reads → `close`.
 *
 * K1  A step that fits one atomic operation is one. A larger one is written to the redo log, published by one
 *     small atomic operation (from then on it counts), applied in parts, and unpublished; an open that finds it
 *     published applies it again: all its mutations are absolute. So every step is whole (S2).
 * K2  Replacing a row must remove its old journal entry and pieces, so the old row's head must be known: from a
 *     cache, else by reading it.
 * K3  Deno KV syncs every atomic operation before it answers.
 * K4  After a failed commit nothing is written any more (S3).
 * K5  Every value has its checksum (S4), compared at each read. An open of a folder compares all of them
 *     (denokv_check.ts), where that takes no more than a moment. A sum over the positions of rows and the checksums of
 *     records, kept from commit to commit, shows a part of the file that is older than the rest (DC3); it is not kept
 *     where it was never counted, as in a large database of a former version.
 * K6  As Q6 of sqlite.ts: a database that has counted fewer commits than the file beside it went back.
 *
 * One process at a time: the folder's lock sees to that for a file; over KV Connect the operator must.
 */
import { StoreUnavailable } from "../../store/api/api.ts";
import { Reader, Writer } from "../../store/model/codec.ts";
import type { Key } from "../../store/model/key.ts";
import { DamagedRows, type DiskCommit, type ScanOptions, type Storage } from "../../store/model/ports.ts";
import type { Range } from "../../store/model/range.ts";
import type { Position, Row } from "../../store/model/row.ts";
import { bytesSum, mixed } from "./checksum.ts";
import { CommitCount } from "./commit_count.ts";
import { batches, decodeRedo, encodeRedo } from "./denokv_batch.ts";
import { checkDenoKvRows, checkFile, countRows, upgradeRows } from "./denokv_check.ts";
import * as layout from "./denokv_layout.ts";
import type { DenoKvMutation, RowHead, Totals } from "./denokv_layout.ts";
import { DenoKvReader, joined } from "./denokv_reader.ts";
import { type DiskReport, openFailure, Spoiled } from "./disk_report.ts";
import { claimFolder, type FolderClaim } from "./folder.ts";
import { HeadCache } from "./head_cache.ts";

const FORMAT = "denokv 2";
/** Format without checksums. */
const FORMER = "denokv 1";
const TOTALS = ["t"];
const CONTENT = ["s"];
const FORMAT_KEY = ["f"];
const PUBLISHED = ["p"];
const PUBLISHED_NAME = layout.nameBytes("p");
const REDO = "q";

/** Place of the database: a folder of its own, with a file outside that counts its commits, or a KV Connect address. */
export type DenoKvPlace = { readonly folder: string; readonly witness?: string } | { readonly url: string };

/**
 * Opens the engine, finishing what a crash left.
 *
 * @throws StoreUnavailable `disk_failed` where the folder is held, not ours, or not usable; FilesSpoiled.
 */
export async function openDenoKv(place: DenoKvPlace, report: DiskReport = {}): Promise<DenoKvStorage> {
  const claim = "folder" in place ? claimFolder(place.folder, FORMAT, FORMER) : null;
  let opened: DenoKvStorage | undefined;
  try {
    const path = "folder" in place ? `${place.folder}/root.kv` : place.url;
    if (claim !== null) checkFile(path);
    const witness = "folder" in place ? place.witness : undefined;
    opened = new DenoKvStorage(await Deno.openKv(path), claim, witness);
    await opened.recover(report);
    return opened;
  } catch (error) {
    await opened?.close();
    claim?.release();
    throw openFailure("folder" in place ? place.folder : place.url, error);
  }
}

/** A storage in a Deno KV database; see the file's header. */
export class DenoKvStorage implements Storage {
  readonly #kv: Deno.Kv;
  readonly #reader: DenoKvReader;
  readonly #claim: FolderClaim | null;
  readonly #heads = new HeadCache();
  /** Number of pieces of each record (0 where it is in its entry), and its checksum. */
  readonly #records = new Map<string, { readonly pieces: number; readonly sum: number }>();
  readonly #count: CommitCount | null;
  #totals: Totals = { rows: 0, bytes: 0, commits: 0 };
  /** Sum over positions and records (K5); null: it is not known. */
  #content: number | null = null;
  #wentBack = false;
  #busy = false;
  #closed = false;
  #failed: StoreUnavailable | null = null;

  constructor(kv: Deno.Kv, claim: FolderClaim | null, witness?: string) {
    this.#kv = kv;
    this.#reader = new DenoKvReader(kv);
    this.#claim = claim;
    const witnesses = witness === undefined ? [] : [witness];
    this.#count = claim === null ? null : new CommitCount(`${claim.path}/commits`, ...witnesses);
  }

  /** True where the disk has lost commits that it had reported as written (K6). */
  get wentBack(): boolean {
    return this.#wentBack;
  }

  /** Finishes or drops a large step that a crash cut (K1), compares what is there (K5), and reads the totals. */
  async recover(report: DiskReport): Promise<void> {
    const write = (mutations: readonly DenoKvMutation[]) => this.#inBatches(mutations);
    const isFormer = await this.#isFormer();
    await this.#finishStep(isFormer);
    if (isFormer) await upgradeRows(this.#kv, write);
    if (isFormer || this.#claim === null) await this.#markFormat();
    const [{ value: counted }, { value: summed }] = await this.#kv.getMany<[Uint8Array, Uint8Array]>([
      TOTALS,
      CONTENT,
    ]);
    const totals = layout.decodeTotals(counted), content = layout.decodeContentSum(summed, totals?.commits);
    let records = 0;
    for (const [key, entry] of await this.#reader.list(["m"])) {
      const name = String(key[1]), { pieces, sum } = layout.decodeRecord(name, entry);
      this.#records.set(name, { pieces, sum });
      records = (records + mixed(sum)) >>> 0;
    }
    const told = { totals, content, records };
    const found = this.#claim === null
      ? null
      : await checkDenoKvRows(this.#kv, this.#claim.path, told, write);
    if (found !== null && found.damaged > 0) report.damaged?.(found);
    this.#totals = found?.totals ?? totals ?? await countRows(this.#kv);
    this.#content = found?.content ?? content;
    this.#wentBack = (this.#count?.last ?? 0) > this.#totals.commits;
  }

  /**
   * Reports whether the database is of the former format: a folder's mark tells, or, where there is no folder, the
   * database itself.
   */
  async #isFormer(): Promise<boolean> {
    if (this.#claim !== null) return this.#claim.engine === FORMER;
    const [format, totals] = await this.#kv.getMany([FORMAT_KEY, TOTALS]);
    return format.value === null && totals.value !== null;
  }

  async #markFormat(): Promise<void> {
    if (this.#claim !== null) return this.#claim.upgraded();
    const name = new TextEncoder().encode(FORMAT);
    await this.#atomic([{ key: FORMAT_KEY, value: name }]);
  }

  async #finishStep(isFormer: boolean): Promise<void> {
    const published = (await this.#kv.get<Uint8Array>(PUBLISHED)).value;
    const redo = await this.#reader.list([REDO]);
    if (published !== null) {
      const whole = isFormer ? published : layout.unsealed(PUBLISHED_NAME, published);
      if (whole === null) throw new Spoiled("K1: the word of a step under way is damaged");
      const reader = new Reader(whole), wanted = reader.uint(), sum = isFormer ? 0 : reader.uint();
      if (redo.length !== wanted) {
        throw new Spoiled(`K1: the redo log has ${redo.length} of ${wanted} pieces`);
      }
      const pieces = redo.map(([, piece]) => piece);
      if (!isFormer && piecesSum(pieces) !== sum) throw new Spoiled("K1: the redo log is damaged");
      await this.#inBatches(decodeRedo(pieces));
    }
    await this.#unpublish(redo.map(([key]) => Number(key[1])));
  }

  async #inBatches(mutations: readonly DenoKvMutation[]): Promise<void> {
    for (const batch of batches(mutations)) await this.#atomic(batch);
  }

  load(): Promise<Map<string, Uint8Array>> {
    return this.#read(async () => {
      const out = new Map<string, Uint8Array>();
      for (const [key, entry] of await this.#reader.list(["m"])) {
        const name = String(key[1]);
        const { pieces, value, sum } = layout.decodeRecord(name, entry);
        const whole = pieces === 0
          ? value
          : joined((await this.#reader.list(["n", name])).map(([, one]) => one));
        if (bytesSum(whole) !== sum) throw new Spoiled(`the record ${JSON.stringify(name)} is damaged`);
        out.set(name, whole);
      }
      return out;
    });
  }

  get(key: Key): Promise<Row | undefined> {
    return this.#read(async () => (await this.#reader.rows([key]))[0]);
  }

  getMany(keys: readonly Key[], bytesMax?: number): Promise<(Row | undefined)[]> {
    return this.#read(() => this.#reader.rows(keys, bytesMax));
  }

  scan(range: Range, options?: ScanOptions): Promise<Row[]> {
    return this.#read(() => this.#reader.scan(range, options));
  }

  journal(after: Position, upTo: Position, limit: number, bytesMax?: number): Promise<Row[]> {
    return this.#read(() => this.#reader.journal(after, upTo, limit, bytesMax));
  }

  bytes(): Promise<number> {
    return Promise.resolve(this.#totals.bytes);
  }

  async commit(commit: DiskCommit): Promise<void> {
    if (this.#failed !== null) throw this.#failed;
    if (this.#busy) throw new Error("a commit was issued before the last one had settled");
    if (this.#closed) throw new Error("a commit was issued on a closed storage");
    this.#busy = true;
    try {
      await this.#apply(commit);
    } catch (error) {
      this.#failed = failure("cannot commit", error);
      throw this.#failed;
    } finally {
      this.#busy = false;
    }
  }

  close(): Promise<void> {
    if (this.#closed) return Promise.resolve();
    this.#closed = true;
    this.#kv.close();
    this.#count?.close();
    this.#claim?.release();
    return Promise.resolve();
  }

  async #apply(commit: DiskCommit): Promise<void> {
    const rows = new Map<Key, Row | null>();
    for (const key of commit.drop) rows.set(key, null);
    for (const row of commit.rows) rows.set(row.key, row);
    const mutations: DenoKvMutation[] = [];
    const olds = await this.#oldHeads([...rows.keys()]);
    const totals = { ...this.#totals, commits: this.#totals.commits + 1 };
    const damaged = new Set([...olds].flatMap(([key, old]) => old === DAMAGED_HEAD ? [key] : []));
    const leavings = damaged.size === 0 ? null : await this.#reader.leavings(damaged);
    if (leavings !== null) mutations.push(...leavings.mutations);
    const content = this.#contentAfter({ rows, olds, records: commit.records }, leavings?.positions ?? []);
    for (const [key, row] of rows) {
      const old = olds.get(key) ?? null;
      totals.bytes += rowMutations(key, row, old, mutations);
      totals.rows += Number(row !== null) - Number(old !== null);
    }
    for (const [name, value] of commit.records) {
      mutations.push(...layout.recordMutations(name, value, this.#records.get(name)?.pieces ?? 0));
    }
    mutations.push({ key: TOTALS, value: layout.encodeTotals(totals) });
    if (content !== null) {
      mutations.push({ key: CONTENT, value: layout.encodeContentSum(content, totals.commits) });
    }
    await this.#write(mutations);
    this.#totals = totals;
    this.#content = content;
    this.#count?.set(totals.commits); // K6
    for (const [key, row] of rows) this.#heads.set(key, row === null ? null : headOf(row));
    for (const [name, value] of commit.records) {
      if (value === null) this.#records.delete(name);
      else this.#records.set(name, { pieces: layout.piecesOf(value.length), sum: bytesSum(value) });
    }
  }

  /**
   * Returns the sum over positions and records after a step; null where it is not known, as it then is not before an
   * open counts it anew.
   *
   * @param damaged positions of damaged rows that are replaced.
   */
  #contentAfter(
    { rows, olds, records }: {
      readonly rows: ReadonlyMap<Key, Row | null>;
      readonly olds: ReadonlyMap<Key, RowHead | null>;
      readonly records: DiskCommit["records"];
    },
    damaged: readonly (readonly [Key, Position])[],
  ): number | null {
    if (this.#content === null) return null;
    let content = this.#content;
    const places = new Map(damaged);
    for (const [key, row] of rows) {
      const old = olds.get(key) ?? null, place = old === DAMAGED_HEAD ? places.get(key) : old?.position;
      // The journal has lost a damaged row, too: its position is not known.
      if (old !== null && place === undefined) return null;
      content = content + (row === null ? 0 : mixed(row.position)) - (place === undefined ? 0 : mixed(place));
    }
    for (const [name, value] of records) {
      const old = this.#records.get(name);
      content = content + (value === null ? 0 : mixed(bytesSum(value))) -
        (old === undefined ? 0 : mixed(old.sum));
    }
    return content >>> 0;
  }

  /** Writes mutations as one step (K1). */
  async #write(mutations: readonly DenoKvMutation[]): Promise<void> {
    const parts = batches(mutations);
    const [only] = parts;
    if (only === undefined) return;
    if (parts.length === 1) return await this.#atomic(only);
    const redo = encodeRedo(mutations);
    for (const batch of batches(redo.map((value, i) => ({ key: [REDO, i], value })))) {
      await this.#atomic(batch);
    }
    const word = new Writer().uint(redo.length).uint(piecesSum(redo));
    await this.#atomic([{ key: PUBLISHED, value: layout.sealed(PUBLISHED_NAME, word) }]);
    for (const batch of parts) await this.#atomic(batch);
    await this.#unpublish([...redo.keys()]);
  }

  /** Ends a large step. The publication goes first: redo pieces without it are only rubbish. */
  async #unpublish(pieces: readonly number[]): Promise<void> {
    if (pieces.length === 0) return;
    const removals = pieces.map((index): DenoKvMutation => ({ key: [REDO, index], value: null }));
    for (const batch of batches([{ key: PUBLISHED, value: null }, ...removals])) await this.#atomic(batch);
  }

  async #atomic(mutations: readonly DenoKvMutation[]): Promise<void> {
    const atomic = this.#kv.atomic();
    for (const { key, value } of mutations) {
      if (value === null) atomic.delete(key);
      else atomic.set(key, value);
    }
    await atomic.commit();
  }

  /** Returns the heads of the rows that are to be replaced (K2). */
  async #oldHeads(keys: readonly Key[]): Promise<Map<Key, RowHead | null>> {
    const out = new Map<Key, RowHead | null>();
    const unknown: Key[] = [];
    for (const key of keys) {
      const head = this.#heads.get(key);
      if (head === undefined) unknown.push(key);
      else out.set(key, head);
    }
    const found = await this.#reader.stored(unknown);
    unknown.forEach((key, i) => {
      const stored = found[i];
      out.set(key, stored === undefined ? null : "head" in stored ? stored.head : DAMAGED_HEAD);
    });
    return out;
  }

  async #read<T>(look: () => Promise<T>): Promise<T> {
    try {
      return await look();
    } catch (error) {
      throw error instanceof DamagedRows ? error : failure("cannot read", error);
    }
  }
}

/** Head of a damaged row: its size is found out by an open (K5), and its position is in the journal. */
const DAMAGED_HEAD: RowHead = { position: 0, valueBytes: 0, pieces: 0 };

const piecesSum = (pieces: readonly Uint8Array[]): number =>
  pieces.reduce((sum, piece) => bytesSum(piece, sum), 0);

const headOf = (row: Row): RowHead => {
  const valueBytes = row.value?.length ?? 0;
  return { position: row.position, valueBytes, pieces: layout.piecesOf(valueBytes) };
};

/**
 * Appends the mutations that put a row (null: drop it) in place of the old one; returns the bytes by which the rows
 * grow.
 */
function rowMutations(key: Key, row: Row | null, old: RowHead | null, out: DenoKvMutation[]): number {
  if (old !== null && old.position !== 0 && old.position !== row?.position) {
    out.push({ key: layout.journalKey(old.position), value: null });
    for (let i = 0; i < old.pieces; i++) {
      out.push({ key: layout.valuePieceKey(old.position, i), value: null });
    }
  }
  const oldBytes = old === null ? 0 : key.length + old.valueBytes;
  if (row === null) {
    if (old !== null) out.push({ key: layout.rowKey(key), value: null });
    return -oldBytes;
  }
  const { value } = row;
  const pieces = layout.piecesOf(value?.length ?? 0);
  for (let i = pieces; old?.position === row.position && i < old.pieces; i++) {
    out.push({ key: layout.valuePieceKey(row.position, i), value: null });
  }
  for (let i = 0; value !== null && i < pieces; i++) {
    out.push({ key: layout.valuePieceKey(row.position, i), value: layout.piece(value, i) });
  }
  out.push({ key: layout.rowKey(key), value: layout.encodeRow(row) });
  if (old?.position !== row.position) {
    out.push({ key: layout.journalKey(row.position), value: layout.journalValue.of(row.position, key) });
  }
  return key.length + (value?.length ?? 0) - oldBytes;
}

function failure(what: string, cause: unknown): StoreUnavailable {
  const why = cause instanceof Error ? cause.message : String(cause);
  return new StoreUnavailable("disk_failed", `${what}: ${why}`);
}
