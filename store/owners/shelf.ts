/**
 * The tuples on this site's disk: changes gather and go in one step, as many as came while the step before was written
 * (group commit).
 *
 * H1  One step at a time. What is in `changed` of a step is on disk when it resolves.
 * H2  A tuple's ["m", id] goes wherever its ["t", id] goes or is written anew, its ["p", id] where it is gone.
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
/** Rows read at once at the start: a megabyte of payloads, and a few milliseconds in which nothing else runs. */
const LOAD_ROWS = 1_000;
/** A longer payload has a row of its own, which no start reads; for a shorter one a second row costs more than that. */
const INLINE_BYTES_MAX = 1_024;
/** Until when this site said that it is away, as it stopped. */
const AWAY = "away";
/** Which sites had told all before they stopped, and until when they said that they are away. */
const TOLD = "told";

/** What a site's disk has beside its tuples. */
export interface ShelfRecords {
  /** Until when this site said that it is away; null where it did not say so. */
  readonly awayUntilMs: number | null;
  /** By site that had told all before it stopped: until when it said that it is away. */
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
      // Both are in the order of ids; what is amended is there.
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

  /** A tuple with its payload. */
  put(tuple: Tuple, payload: Uint8Array | null): void {
    const isApart = payload !== null && payload.length > INLINE_BYTES_MAX;
    if (isApart) this.#put(keyOf(PAYLOADS, tuple.id), payload);
    this.#state(tuple, encodeState(tuple, isApart ? null : payload));
  }

  /** What is left of one that is gone. */
  end(tuple: Tuple): void {
    this.#dropPayload(tuple);
    const { version, owners, former, f, topic, rememberUntilS, isUnsure } = tuple;
    const nothing = { gone: true, isRepeated: false, dueMs: 0, note: "", bytes: 0 };
    const state = { version, owners, former, f, topic, rememberUntilS, isUnsure, ...nothing };
    this.#state(tuple, encodeState(state, null));
  }

  /** What has changed of a tuple whose payload the disk has, or is about to have. */
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

  /** Until when this site is away as it stops now; null once that means nothing any more. */
  away(untilMs: number | null): void {
    this.#records.set(
      AWAY,
      untilMs === null ? null : new Writer().uint(Math.max(0, Math.ceil(untilMs))).done(),
    );
  }

  /** A site had told all before it stopped, and will be back then; of those that were to be back by now it means nothing. */
  told(site: SiteId, untilMs: number, wallMs: number): void {
    const told = this.#toldUntilMs;
    for (const [other, otherMs] of told) if (otherMs <= wallMs) told.delete(other);
    told.set(site, untilMs);
    const w = new Writer().uint(told.size);
    for (const [other, otherMs] of told) w.text(other).uint(Math.max(0, otherMs));
    this.#records.set(TOLD, w.done());
  }

  /** Whether the disk has all of a tuple that is known here. */
  isWritten(id: TupleId): boolean {
    return !this.#changed.has(id) && !this.#writing.has(id);
  }

  /** Writes what has gathered; the ids whose changes are on disk then. */
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

  /** The payload that the disk has. */
  async read(id: TupleId): Promise<Uint8Array | null> {
    const row = await this.#storage.get(keyOf(TUPLES, id));
    if (row?.value == null) return null;
    const { state, payload } = decodeTupleRow(row.value);
    if (state.gone || payload !== null) return payload;
    return (await this.#storage.get(keyOf(PAYLOADS, id)))?.value ?? null;
  }

  close(): Promise<void> {
    return this.#storage.close();
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

  /** The next row of those that were read. */
  read(): Found | undefined {
    const row = this.#rows[this.#at++];
    if (row === undefined) return undefined;
    return {
      id: String(unpackKey(row.key)[1]),
      value: row.value ?? new Uint8Array(),
      position: row.position,
    };
  }

  /** And of those that were not. */
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
