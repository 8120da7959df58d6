/**
 * One ward: what an owner holds for an incarnation of another site, in memory and as named records.
 *
 *   ward/<number>            its site, under which configuration, up to where
 *   ward/<number>/<base64>   a row, by its key
 *
 * A1  `position` is contiguous: every own row of the source, and of its subtree, that stood in its journal up to there
 *     and was not known to be in the root's is here, or its successor is.
 * A2  A batch is taken in whole, with its positions, in one commit.
 * A3  No more than `WARD_BYTES_MAX` are held, including rows that wait for the rest of their batch.
 */
import { Reader, Writer } from "../model/codec.ts";
import type { Key } from "../model/key.ts";
import type { SiteId } from "../model/ports.ts";
import type { ClockValue, Position, ReplicaNumber, Row } from "../model/row.ts";
import { WARD_BYTES_MAX } from "../model/limits.ts";
import { wireBytes } from "../wire/wire_row.ts";
import { readWardRows, type WardMessage, writeWardRows } from "../wire/ward_message.ts";

/** Prefix of the names of wards' records on disk. */
export const WARD_RECORD = "ward/";

type Record = (name: string, value: Uint8Array | null) => void;

export class Ward {
  readonly replica: ReplicaNumber;
  site: SiteId = "";
  /** The newest configuration heard of. */
  config = 0;
  /** The newest configuration known to be in effect. */
  settled = 0;
  position: Position = 0;
  /** Position up to which the ward is known to be on this site's disk. */
  onDisk: Position = 0;
  clock: ClockValue = 0;
  down: readonly Position[] = [];
  reach: readonly Position[] = [];
  bytes = 0;
  /** Rows of the ward, in the order of their positions. */
  readonly #rows = new Map<Key, Row>();
  readonly #record: Record;
  #staged: Row[] = [];
  #stagedParts = 0;
  /** Bytes by which the staged rows would have the ward grow. */
  #stagedBytes = 0;

  constructor(replica: ReplicaNumber, record: Record) {
    this.replica = replica;
    this.#record = record;
  }

  get size(): number {
    return this.#rows.size;
  }

  rows(): IterableIterator<Row> {
    return this.#rows.values();
  }

  /** Lists the rows not known to be in the journal of the ancestor at a depth. */
  pendingTo(depth: number): Row[] {
    const included = this.reach[depth] ?? 0;
    return [...this.rows()].filter((row) => row.position > included && row.known > depth);
  }

  /** Collects a batch; returns all of it at its last part, null before that or where a part is missing. */
  stage({ part, rows, more }: WardMessage): readonly Row[] | null {
    if (part === 0) this.unstage();
    if (part !== this.#stagedParts) return null; // A1
    this.#stagedParts++;
    this.#stagedBytes += this.#growth(rows);
    this.#staged.push(...rows);
    if (more) return null;
    const all = this.#staged;
    this.unstage();
    return all;
  }

  /**
   * Reports whether there is room for the rows of a message (A3).
   *
   * @param left how much more all wards of this site may grow.
   */
  hasRoom({ part, rows }: WardMessage, left: number): boolean {
    const staged = part === 0 ? 0 : this.#stagedBytes;
    const growth = this.#growth(rows);
    return rows.length === 0 || (this.bytes + staged + growth <= WARD_BYTES_MAX && growth <= left);
  }

  #growth(rows: readonly Row[]): number {
    let bytes = 0;
    for (const row of rows) {
      const old = this.#rows.get(row.key);
      bytes += wireBytes(row) - (old === undefined ? 0 : wireBytes(old));
    }
    return bytes;
  }

  /** Bytes of rows that wait for the rest of their batch. */
  get stagedBytes(): number {
    return this.#stagedBytes;
  }

  get isStaging(): boolean {
    return this.#stagedParts > 0;
  }

  unstage(): void {
    this.#staged = [];
    this.#stagedParts = this.#stagedBytes = 0;
  }

  /** Takes in a whole batch (A2). */
  take(message: WardMessage, rows: readonly Row[]): void {
    for (const row of rows) this.#put(row);
    this.config = Math.max(this.config, message.config);
    if (message.settled) this.settled = Math.max(this.settled, message.config);
    if (message.head >= this.position) { // A1
      this.position = message.head;
      this.clock = Math.max(this.clock, message.clock);
      this.down = message.down;
      this.reach = message.reach;
    }
    this.dropIncluded(this.reach);
    this.save();
  }

  /** Puts the record of the ward into the next commit. */
  save(): void {
    const w = new Writer(64).text(this.site).uint(this.config).uint(this.settled);
    w.uint(this.position).uint(this.clock);
    w.list(this.down, (p) => w.uint(p)).list(this.reach, (p) => w.uint(p));
    this.#record(`${WARD_RECORD}${this.replica}`, w.done());
  }

  restore(value: Uint8Array): void {
    const r = new Reader(value);
    this.site = r.text();
    this.config = r.uint();
    this.settled = r.uint();
    this.position = r.uint();
    this.clock = r.uint();
    this.down = r.list(() => r.uint());
    this.reach = r.list(() => r.uint());
    r.end();
  }

  restoreRow(value: Uint8Array): void {
    for (const row of readWardRows(new Reader(value))) this.#keep(row);
  }

  /** Sorts rows that were restored in any order. */
  sort(): void {
    const rows = [...this.rows()].sort((a, b) => a.position - b.position);
    this.#rows.clear();
    this.bytes = 0;
    for (const row of rows) this.#keep(row);
  }

  /** Forgets the ward's rows. */
  clear(): void {
    for (const key of [...this.#rows.keys()]) this.#drop(key);
  }

  /** Forgets the ward and its rows. */
  forget(): void {
    this.clear();
    this.#record(`${WARD_RECORD}${this.replica}`, null);
  }

  #put(row: Row): void {
    const old = this.#rows.get(row.key);
    if (old !== undefined && old.position >= row.position) return;
    this.#keep(row);
    this.#record(this.#name(row.key), writeWardRows(new Writer(64), [row]).done());
  }

  #keep(row: Row): void {
    const old = this.#rows.get(row.key);
    if (old !== undefined) this.bytes -= wireBytes(old);
    this.#rows.delete(row.key);
    this.#rows.set(row.key, row);
    this.bytes += wireBytes(row);
  }

  /** Forgets rows that the root has. */
  dropIncluded(reach: readonly Position[]): void {
    const included = reach[0] ?? 0;
    for (const row of this.rows()) {
      if (row.position > included) break;
      this.#drop(row.key);
    }
  }

  #drop(key: Key): void {
    const row = this.#rows.get(key);
    if (row !== undefined) this.bytes -= wireBytes(row);
    this.#rows.delete(key);
    this.#record(this.#name(key), null);
  }

  #name(key: Key): string {
    return `${WARD_RECORD}${this.replica}/${btoa(key)}`;
  }
}
