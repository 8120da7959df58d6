/**
 * The tuples on this site's disk: changes gather and go in one step, as many as came while the step before was written
 * (group commit).
 *
 * H1  One step at a time. What is in `changed` of a step is on disk when it resolves.
 * H2  A tuple's ["m", id] goes wherever its ["t", id] goes or is written anew.
 */
import { StoreUnavailable } from "../api/api.ts";
import { type Key, packKey, unpackKey } from "../model/key.ts";
import type { Storage } from "../model/ports.ts";
import { keyAfter, prefixRange } from "../model/range.ts";
import type { Row } from "../model/row.ts";
import type { TupleId } from "./packet.ts";
import { decodeState, encodeState, Tuple } from "./tuple.ts";

const TUPLES = "t", META = "m";
const keyOf = (space: string, id: TupleId): Key => packKey([space, id]);
/** Rows read at once at the start: a payload may have a megabyte. */
const LOAD_ROWS = 64;

export class Shelf {
  readonly #storage: Storage;
  #position = 0;
  #rows = new Map<Key, Row>();
  #drop = new Set<Key>();
  #changed = new Set<TupleId>();
  #writing: ReadonlySet<TupleId> = new Set();
  /** Tuples with a ["m", id]. */
  readonly #amended = new Set<TupleId>();

  constructor(storage: Storage) {
    this.#storage = storage;
  }

  /** All tuples of the disk. */
  async load(): Promise<Tuple[]> {
    const tuples = new Map<TupleId, Tuple>();
    for (const space of [TUPLES, META]) {
      let { start, end } = prefixRange(packKey([space]));
      for (;;) {
        const rows = await this.#storage.scan({ start, end }, { limit: LOAD_ROWS });
        for (const row of rows) {
          const id = String(unpackKey(row.key)[1]);
          const { state } = decodeState(row.value ?? new Uint8Array());
          tuples.set(id, new Tuple(id, state, true));
          this.#position = Math.max(this.#position, row.position);
          if (space === META) this.#amended.add(id);
        }
        const last = rows.at(-1);
        if (last === undefined || rows.length < LOAD_ROWS) break;
        start = keyAfter(last.key);
      }
    }
    return [...tuples.values()];
  }

  /** A tuple with its payload, or what is left of one that is gone. */
  put(tuple: Tuple, payload: Uint8Array | null): void {
    this.#put(keyOf(TUPLES, tuple.id), encodeState(tuple, payload));
    if (this.#amended.delete(tuple.id)) this.#remove(keyOf(META, tuple.id)); // H2
    this.#changed.add(tuple.id);
  }

  /** What has changed of a tuple whose payload the disk has, or is about to have. */
  amend(tuple: Tuple): void {
    this.#put(keyOf(META, tuple.id), encodeState(tuple, null));
    this.#amended.add(tuple.id);
    this.#changed.add(tuple.id);
  }

  drop(id: TupleId): void {
    this.#remove(keyOf(TUPLES, id));
    if (this.#amended.delete(id)) this.#remove(keyOf(META, id)); // H2
    this.#changed.add(id);
  }

  get isDirty(): boolean {
    return this.#changed.size > 0;
  }

  /** Whether the disk has all of a tuple that is known here. */
  isWritten(id: TupleId): boolean {
    return !this.#changed.has(id) && !this.#writing.has(id);
  }

  /** Writes what has gathered; the ids whose changes are on disk then. */
  async commit(): Promise<ReadonlySet<TupleId>> {
    const changed = this.#writing = this.#changed;
    const step = { rows: [...this.#rows.values()], drop: [...this.#drop], records: new Map() };
    this.#rows = new Map();
    this.#drop = new Set();
    this.#changed = new Set();
    try {
      if (changed.size > 0) await this.#storage.commit(step); // H1
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
    const { state, payload } = decodeState(row.value);
    return state.gone ? null : payload;
  }

  close(): Promise<void> {
    return this.#storage.close();
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
