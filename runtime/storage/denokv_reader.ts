/**
 * Reading rows and journal out of a Deno KV database (denokv_layout.ts): a row may lie in pieces, and a reader
 * runs beside the commit that replaces it.
 *
 * R1  A row is given whole, or as a newer one, or, where it was dropped meanwhile, not at all.
 * R2  A value that does not fit its checksum is not given (store/model/ports.ts S4).
 */
import type { Key } from "../../store/model/key.ts";
import { DamagedRows, type ScanOptions } from "../../store/model/ports.ts";
import type { Range } from "../../store/model/range.ts";
import { type Position, type Row, rowBytes } from "../../store/model/row.ts";
import { bytesSum } from "./checksum.ts";
import * as layout from "./denokv_layout.ts";
import type { DamagedRow, DenoKvRow, RowHead } from "./denokv_layout.ts";

type Stored = DenoKvRow | DamagedRow;

/** Remainders of damaged rows outside of their records. */
export interface Leavings {
  /** Mutations that remove them. */
  readonly mutations: layout.DenoKvMutation[];
  /** Positions that the journal has for damaged rows; rows that the journal has lost are missing. */
  readonly positions: readonly (readonly [Key, Position])[];
}

/** Keys that `Deno.Kv.getMany` takes. */
const GET_MANY_MAX = 10;
/** Keys read at once: beyond 16 reads at a time nothing gets faster, and memory would follow the caller. */
const GET_AT_ONCE = 16 * GET_MANY_MAX;
/** Entries that `Deno.Kv.list` takes as a batch. */
const LIST_BATCH_MAX = 500;
/** Values put together at once where their bytes are bounded: so many large ones lie in memory beyond the bound. */
const WHOLE_AT_ONCE = 4;
/** Tries of a row that is overwritten while its pieces are read; a writer this fast does not exist. */
const PIECE_TRIES = 20;

/** Reads rows and journal; see the file's header. */
export class DenoKvReader {
  readonly #kv: Deno.Kv;

  constructor(kv: Deno.Kv) {
    this.#kv = kv;
  }

  /** Returns rows in a range by key. */
  async scan(
    range: Range,
    { limit = Infinity, bytesMax = Infinity, reverse = false }: ScanOptions = {},
  ): Promise<Row[]> {
    if (limit <= 0 || range.start >= range.end) return [];
    const found = await this.#scanStored(range, limit, reverse);
    const rows = await this.#allWhole(found, bytesMax);
    return rows.filter((row) => row !== undefined);
  }

  /** Returns the rows with their values. @throws DamagedRows */
  async #allWhole(found: readonly (Stored | undefined)[], bytesMax: number): Promise<(Row | undefined)[]> {
    if (bytesMax === Infinity) return await this.#wholeOf(found);
    const rows: (Row | undefined)[] = [];
    for (let bytes = 0; rows.length < found.length && bytes < bytesMax;) {
      const next = await this.#wholeOf(found.slice(rows.length, rows.length + WHOLE_AT_ONCE));
      while (next.length > 0 && bytes < bytesMax) {
        const row = next.shift();
        if (row !== undefined) bytes += rowBytes(row);
        rows.push(row);
      }
    }
    return rows;
  }

  async #wholeOf(found: readonly (Stored | undefined)[]): Promise<(Row | undefined)[]> {
    const rows = await Promise.all(found.map((one) => one === undefined ? undefined : this.#whole(one)));
    const damaged = rows.flatMap((row) => row !== undefined && "damaged" in row ? [row.damaged] : []);
    if (damaged.length > 0) throw new DamagedRows(damaged);
    return rows as (Row | undefined)[];
  }

  /** Returns rows with after < position ≤ upTo. */
  async journal(after: Position, upTo: Position, limit: number, bytesMax = Infinity): Promise<Row[]> {
    const out: Row[] = [];
    let bytes = 0;
    // A row that moves on while this reads leaves a gap: reading goes on until the limit or the end is reached.
    for (let from = after; from < upTo && out.length < limit && bytes < bytesMax;) {
      const wanted = Math.min(limit - out.length, LIST_BATCH_MAX);
      const entries = await this.#entries(from, upTo, wanted);
      const rows = await this.rows(entries.map((entry) => entry.key), bytesMax - bytes);
      for (const [i, row] of rows.entries()) {
        if (row === undefined || row.position !== entries[i]?.position) continue;
        out.push(row);
        bytes += rowBytes(row);
      }
      const last = entries[rows.length - 1];
      if (last === undefined || (rows.length === entries.length && entries.length < wanted)) break;
      from = last.position;
    }
    return out;
  }

  /** Returns rows as their records have them, in the order asked. */
  async stored(keys: readonly Key[]): Promise<(Stored | undefined)[]> {
    const out: (Stored | undefined)[] = [];
    for (let from = 0; from < keys.length; from += GET_AT_ONCE) {
      const until = Math.min(keys.length, from + GET_AT_ONCE);
      const slices: Promise<(Stored | undefined)[]>[] = [];
      for (let at = from; at < until; at += GET_MANY_MAX) {
        slices.push(this.#getSlice(keys.slice(at, Math.min(until, at + GET_MANY_MAX))));
      }
      for (const slice of await Promise.all(slices)) out.push(...slice);
    }
    return out;
  }

  async #getSlice(keys: readonly Key[]): Promise<(Stored | undefined)[]> {
    const entries = await this.#kv.getMany<Uint8Array[]>(keys.map(layout.rowKey));
    return entries.map(({ key, value }, i) => {
      if (value === null) return undefined;
      const stored = storedOf(key, value);
      return "damaged" in stored ? { damaged: keys[i] ?? stored.damaged } : stored;
    });
  }

  /** Returns rows with their values, in the order asked. */
  async rows(keys: readonly Key[], bytesMax = Infinity): Promise<(Row | undefined)[]> {
    return await this.#allWhole(await this.stored(keys), bytesMax);
  }

  /** Returns the row with its value; undefined where it was dropped while its pieces were read. */
  async #whole(stored: Stored): Promise<Row | DamagedRow | undefined> {
    let now: Stored | undefined = stored;
    for (let tries = 0; tries < PIECE_TRIES; tries++) {
      if (now === undefined || "damaged" in now) return now;
      if (now.value !== undefined) return { ...now.row, value: now.value };
      const { position, valueBytes }: RowHead = now.head;
      const key: Key = now.row.key;
      const value = joined((await this.list(["c", position])).map(([, one]) => one));
      if (value.length === valueBytes && bytesSum(value) === now.valueSum) return { ...now.row, value };
      now = (await this.stored([key]))[0];
      if (now !== undefined && "head" in now && now.head.position === position) return { damaged: key };
    }
    throw new Error("a row was overwritten again and again while it was read");
  }

  async #scanStored(range: Range, limit: number, reverse: boolean): Promise<Stored[]> {
    const bounds = { start: layout.scanStart(range.start), end: layout.scanEnd(range.end) };
    const batchSize = Math.min(LIST_BATCH_MAX, Math.max(1, limit));
    const out: Stored[] = [];
    let group: Stored[] = []; // long keys with one head, which lie in the order of their hashes (L1)
    const flush = () => {
      group.sort((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1) * (reverse ? -1 : 1));
      out.push(...group);
      group = [];
    };
    for await (const entry of this.#kv.list<Uint8Array>(bounds, { batchSize, reverse })) {
      const stored = storedOf(entry.key, entry.value);
      const key = keyOf(stored);
      if (group.length > 0 && !sharesHead(group, key)) flush();
      if (out.length >= limit) break;
      if (key < range.start || key >= range.end) continue;
      if (key.length > layout.KEY_BYTES_WHOLE) group.push(stored);
      else out.push(stored);
    }
    flush();
    return out.length > limit ? out.slice(0, limit) : out;
  }

  /**
   * Returns the remainders of damaged rows beside their records: no entry there says where they are, so the journal is
   * walked.
   */
  async leavings(keys: ReadonlySet<Key>): Promise<Leavings> {
    const out: layout.DenoKvMutation[] = [], positions: [Key, Position][] = [];
    for (const [at, value] of await this.list(["j"])) {
      const position = Number(at[1]), key = layout.journalValue.key(position, value);
      if (key === null || !keys.has(key)) continue;
      positions.push([key, position]);
      out.push({ key: layout.journalKey(position), value: null });
      for (const [piece] of await this.list(["c", position])) {
        out.push({ key: layout.valuePieceKey(position, Number(piece[2])), value: null });
      }
    }
    return { mutations: out, positions };
  }

  async #entries(
    after: Position,
    upTo: Position,
    limit: number,
  ): Promise<{ position: Position; key: Key }[]> {
    const bounds = { start: layout.journalKey(after + 1), end: layout.journalKey(upTo + 1) };
    const out: { position: Position; key: Key }[] = [];
    for await (
      const entry of this.#kv.list<Uint8Array>(bounds, { limit, batchSize: Math.min(limit, LIST_BATCH_MAX) })
    ) {
      const position = Number(entry.key[1]), key = layout.journalValue.key(position, entry.value);
      if (key === null) throw new Error(`the entry of the journal at ${position} is damaged`);
      out.push({ position, key });
    }
    return out;
  }

  /** Returns all entries with a prefix. */
  async list(prefix: Deno.KvKey): Promise<[Deno.KvKey, Uint8Array][]> {
    const out: [Deno.KvKey, Uint8Array][] = [];
    for await (const entry of this.#kv.list<Uint8Array>({ prefix }, { batchSize: LIST_BATCH_MAX })) {
      out.push([entry.key, entry.value]);
    }
    return out;
  }
}

function storedOf(key: Deno.KvKey, record: Uint8Array): Stored {
  const [, part, hash] = key;
  if (!(part instanceof Uint8Array)) throw new Error("a row lies under a key that is not ours");
  return layout.decodeRow(record, part, hash instanceof Uint8Array ? hash : undefined);
}

const keyOf = (stored: Stored): Key => "damaged" in stored ? stored.damaged : stored.row.key;

const sharesHead = (group: readonly Stored[], key: Key): boolean => {
  const [first] = group;
  return first !== undefined && key.length > layout.KEY_BYTES_WHOLE &&
    key.slice(0, layout.KEY_BYTES_WHOLE) === keyOf(first).slice(0, layout.KEY_BYTES_WHOLE);
};

/** Joins pieces. */
export function joined(pieces: readonly Uint8Array[]): Uint8Array {
  const out = new Uint8Array(pieces.reduce((sum, one) => sum + one.length, 0));
  let at = 0;
  for (const one of pieces) {
    out.set(one, at);
    at += one.length;
  }
  return out;
}
