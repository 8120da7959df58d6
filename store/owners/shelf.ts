/**
 * The tuples on this site's disk: changes gather and go in one step, as many as came while the step before was written
 * (group commit).
 *
 * H1  There is one step at a time. The changes in `changed` of a step are on disk when it resolves.
 * H2  A tuple's ["m", id] goes wherever its ["t", id] goes or is written anew, its ["p", id] where the tuple is gone.
 */
import { StoreUnavailable } from "../api/api.ts";
import { Reader, Writer } from "../model/codec.ts";
import { type Key, packKey, unpackKey } from "../model/key.ts";
import type { SiteId, Storage } from "../model/ports.ts";
import { keyAfter, prefixRange } from "../model/range.ts";
import type { Row } from "../model/row.ts";
import type { TupleId } from "./packet.ts";
import { decodeState, decodeTupleRow, encodeState, type Tuple, type TupleState } from "./tuple.ts";

const TUPLES = "t", META = "m", PAYLOADS = "p";
const keyOf = (space: string, id: TupleId): Key => packKey([space, id]);
/**
 * Number of rows read at once at the start: a megabyte of payloads, and a few milliseconds in which nothing else runs.
 */
const LOAD_ROWS = 1_000;
/**
 * Length up to which a payload stands in its tuple's row. A longer one has a row of its own, which no start reads; for
 * a shorter one a second row costs more than that.
 */
const INLINE_BYTES_MAX = 1_024;
/** Name of the record with the time until which this site said, as it stopped, that it is away. */
const AWAY = "away";
/**
 * Name of the record with the sites that had told all before they stopped, and until when they said that they are away.
 */
const TOLD = "told";

/** Records that a site's disk has beside its tuples. */
export interface ShelfRecords {
  /** Time until which this site said that it is away; null where it did not say so. */
  readonly awayUntilMs: number | null;
  /** Sites that had told all before they stopped, each with the time until which it said that it is away. */
  readonly toldUntilMs: ReadonlyMap<SiteId, number>;
}

export class Shelf {
  readonly #storage: Storage;
  #position = 0;
  #rows = new Map<Key, Row>();
  #drop = new Set<Key>();
  #records = new Map<string, Uint8Array | null>();
  #changed = new Set<TupleId>();
  #writing: ReadonlySet<TupleId> = new Set();
  readonly #toldUntilMs = new Map<SiteId, number>();

  constructor(storage: Storage) {
    this.#storage = storage;
  }

  /**
   * Reads all tuples of the disk, each as it was left.
   *
   * @param turn lets others run between two parts.
   */
  async load(
    take: (id: TupleId, state: TupleState, isAmended: boolean) => void,
    turn: () => Promise<void>,
  ): Promise<ShelfRecords> {
    const amended = new Pages(this.#storage, META, turn);
    let newer = await amended.next();
    for (const tuples = new Pages(this.#storage, TUPLES, turn);;) {
      const row = tuples.read() ?? await tuples.next();
      if (row === undefined) break;
      // Both are in the order of ids; each tuple that was amended has a row in both.
      const isAmended = newer !== undefined && newer.id === row.id;
      const found = isAmended && newer !== undefined ? newer : row;
      this.#position = Math.max(this.#position, row.position, found.position); // a payload's own row has a lower one
      take(row.id, decodeState(found.value), isAmended);
      if (isAmended) newer = amended.read() ?? await amended.next();
    }
    const records = await this.#storage.load(), away = records.get(AWAY), told = records.get(TOLD);
    if (told !== undefined) {
      const r = new Reader(told);
      for (let left = r.uint(); left > 0; left--) this.#toldUntilMs.set(r.text(), r.uint());
      r.end();
    }
    return {
      awayUntilMs: away === undefined ? null : new Reader(away).uint(),
      toldUntilMs: new Map(this.#toldUntilMs),
    };
  }

  /** Writes a tuple with its payload. */
  put(tuple: Tuple, payload: Uint8Array | null): void {
    const isApart = payload !== null && payload.length > INLINE_BYTES_MAX;
    if (isApart) this.#put(keyOf(PAYLOADS, tuple.id), payload);
    this.#state(tuple, encodeState(tuple, isApart ? null : payload));
  }

  /** Writes what is left of a tuple that is gone. */
  end(tuple: Tuple): void {
    this.#dropPayload(tuple);
    const { version, owners, former, f, topic, rememberUntilS, isUnsure } = tuple;
    const nothing = { gone: true, isRepeated: false, dueMs: 0, note: "", bytes: 0 };
    const state = { version, owners, former, f, topic, rememberUntilS, isUnsure, ...nothing };
    this.#state(tuple, encodeState(state, null));
  }

  /** Writes what has changed of a tuple whose payload the disk has, or is about to have. */
  amend(tuple: Tuple): void {
    this.#put(keyOf(META, tuple.id), encodeState(tuple, null));
    tuple.isAmended = true;
    this.#changed.add(tuple.id);
  }

  drop(tuple: Tuple): void {
    this.#remove(keyOf(TUPLES, tuple.id));
    this.#dropPayload(tuple);
    this.#dropAmended(tuple);
    this.#changed.add(tuple.id);
  }

  /** Writes until when this site is away as it stops now; null once that means nothing any more. */
  away(untilMs: number | null): void {
    this.#records.set(
      AWAY,
      untilMs === null ? null : new Writer().uint(Math.max(0, Math.ceil(untilMs))).done(),
    );
  }

  /**
   * Writes that a site had told all before it stopped, and when it will be back; sites that were to be back by now are
   * left out, as it means nothing of them.
   */
  told(site: SiteId, untilMs: number, wallMs: number): void {
    const told = this.#toldUntilMs;
    for (const [other, otherMs] of told) if (otherMs <= wallMs) told.delete(other);
    told.set(site, untilMs);
    const w = new Writer().uint(told.size);
    for (const [other, otherMs] of told) w.text(other).uint(Math.max(0, otherMs));
    this.#records.set(TOLD, w.done());
  }

  /** Reports whether the disk has all of a tuple that is known here. */
  isWritten(id: TupleId): boolean {
    return !this.#changed.has(id) && !this.#writing.has(id);
  }

  /** Writes the changes that have gathered; returns the ids whose changes are on disk then. */
  async commit(): Promise<ReadonlySet<TupleId>> {
    const changed = this.#writing = this.#changed;
    const step = { rows: [...this.#rows.values()], drop: [...this.#drop], records: this.#records };
    this.#rows = new Map();
    this.#drop = new Set();
    this.#records = new Map();
    this.#changed = new Set();
    try {
      if (changed.size + step.records.size > 0) await this.#storage.commit(step); // H1
    } catch (error) {
      throw new StoreUnavailable("disk_failed", `tuples could not be written to the disk: ${error}`);
    }
    this.#writing = new Set();
    return changed;
  }

  /** Reads the payload that the disk has. */
  async read(id: TupleId): Promise<Uint8Array | null> {
    const row = await this.#storage.get(keyOf(TUPLES, id));
    if (row?.value == null) return null;
    const { state, payload } = decodeTupleRow(row.value);
    if (state.gone || payload !== null) return payload;
    return (await this.#storage.get(keyOf(PAYLOADS, id)))?.value ?? null;
  }

  #state(tuple: Tuple, value: Uint8Array): void {
    this.#put(keyOf(TUPLES, tuple.id), value);
    this.#dropAmended(tuple);
    this.#changed.add(tuple.id);
  }

  #dropAmended(tuple: Tuple): void {
    if (tuple.isAmended) this.#remove(keyOf(META, tuple.id)); // H2
    tuple.isAmended = false;
  }

  #dropPayload(tuple: Tuple): void {
    if (tuple.bytes > INLINE_BYTES_MAX) this.#remove(keyOf(PAYLOADS, tuple.id)); // H2
  }

  #put(key: Key, value: Uint8Array): void {
    const position = ++this.#position;
    this.#rows.delete(key); // rows of a step rise by position
    this.#rows.set(key, { key, value, position, clock: 0, replica: 0, known: 0, expiresAtMs: 0 });
    this.#drop.delete(key);
  }

  #remove(key: Key): void {
    this.#rows.delete(key);
    this.#drop.add(key);
  }
}

interface Found {
  readonly id: TupleId;
  readonly value: Uint8Array;
  readonly position: number;
}

/** The rows of one space, in their order. */
class Pages {
  readonly #storage: Storage;
  readonly #turn: () => Promise<void>;
  #start: Key;
  readonly #end: Key;
  #rows: readonly Row[] = [];
  #at = 0;
  #isLast = false;

  constructor(storage: Storage, space: string, turn: () => Promise<void>) {
    this.#storage = storage;
    this.#turn = turn;
    ({ start: this.#start, end: this.#end } = prefixRange(packKey([space])));
  }

  /** Returns the next row of those that were read. */
  read(): Found | undefined {
    const row = this.#rows[this.#at++];
    if (row === undefined) return undefined;
    return {
      id: String(unpackKey(row.key)[1]),
      value: row.value ?? new Uint8Array(),
      position: row.position,
    };
  }

  /** Reads more rows, and returns the first of them. */
  async next(): Promise<Found | undefined> {
    if (this.#isLast) return undefined;
    if (this.#rows.length > 0) await this.#turn();
    this.#rows = await this.#storage.scan({ start: this.#start, end: this.#end }, { limit: LOAD_ROWS });
    this.#at = 0;
    this.#isLast = this.#rows.length < LOAD_ROWS;
    const last = this.#rows.at(-1);
    if (last !== undefined) this.#start = keyAfter(last.key);
    return this.read();
  }
}
