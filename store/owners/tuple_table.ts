/**
 * All tuples of a site in memory. A tuple in motion is an object; one at rest takes some hundred bytes: its id, a place
 * in columns, and the number of the roster that it shares with others (rosters.ts).
 *
 * Life of a tuple here: `add` → in motion → `settle` finds that nothing is done with it: at rest → `get`: in motion
 * again → … → `delete`, and its slot is used again.
 *
 * TT1 An object is given out only while its tuple is in motion, and put to rest only by `settle`: between two steps
 *     nobody keeps one.
 * TT2 A tuple at rest has no payload in memory, no doubt and no refusal.
 * TT3 No step looks at all tuples: `walk` goes through slots in parts.
 */
import type { SiteId } from "../model/ports.ts";
import type { TupleId } from "./packet.ts";
import { Rosters } from "./rosters.ts";
import { type How, type Roster, Tuple, type TupleSlot, type TupleState } from "./tuple.ts";

/** Number of slots that are made at once: 2 MB, so that no column is ever copied to make it longer. */
const CHUNK_BITS = 16;
const CHUNK_SLOTS = 1 << CHUNK_BITS;

/**
 * Number of tuples that stay objects in any case: most tuples are stored, acted on and removed in a moment, and to rest
 * in between would cost more than it saves.
 */
const MOVING_MIN = 5_000;

const ACTING = 1, UNSURE = 2, AMENDED = 4, REPEATED = 8, HOW_SHIFT = 4;
const HOWS: readonly How[] = ["stored", "adopted", "loaded"];

class Chunk {
  readonly ids: (TupleId | null)[] = new Array(CHUNK_SLOTS).fill(null);
  readonly notes: string[] = new Array(CHUNK_SLOTS).fill("");
  readonly versions = new Float64Array(CHUNK_SLOTS);
  /** Number of each slot's roster, plus one; 0: the tuple is in motion, or the slot is empty. */
  readonly rosters = new Uint32Array(CHUNK_SLOTS);
  readonly bytes = new Uint32Array(CHUNK_SLOTS);
  readonly rememberUntilS = new Uint32Array(CHUNK_SLOTS);
  readonly dueMs = new Float64Array(CHUNK_SLOTS);
  readonly flags = new Uint8Array(CHUNK_SLOTS);
}

/** A tuple's fields, to be read only. */
export type TupleView = TupleState & Roster & { readonly slot: TupleSlot };

/** Tuples that a walk looks for, and what it does with them. */
export interface Walker {
  /** Reports whether the walk visits the tuples of a roster. */
  readonly wants: (roster: Roster) => boolean;
  readonly visit: (id: TupleId, slot: TupleSlot) => void;
}

export class TupleTable {
  readonly #places = new Map<TupleId, Tuple | TupleSlot>();
  readonly #chunks: Chunk[] = [];
  readonly #rosters = new Rosters();
  readonly #moving = new Set<Tuple>();
  readonly #free: TupleSlot[] = [];
  #end = 0;
  /** Bytes of all payloads, on disk or in memory. */
  bytes = 0;

  /** Number of all tuples, gone ones included. */
  get size(): number {
    return this.#places.size;
  }

  /** Number that follows the last slot that was ever used. */
  get end(): TupleSlot {
    return this.#end;
  }

  /** Tuples that are objects. */
  get moving(): ReadonlySet<Tuple> {
    return this.#moving;
  }

  has(id: TupleId): boolean {
    return this.#places.has(id);
  }

  /** Returns a tuple as an object, in motion from now on (TT1). */
  get(id: TupleId): Tuple | undefined {
    const place = this.#places.get(id);
    if (typeof place !== "number") return place;
    const tuple = this.#rising(id, place),
      { rosters } = this.#chunk(place),
      index = place & (CHUNK_SLOTS - 1);
    this.#rosters.release((rosters[index] ?? 0) - 1);
    rosters[index] = 0;
    this.#places.set(id, tuple);
    this.#moving.add(tuple);
    return tuple;
  }

  /** Returns a tuple only where it is in motion. */
  moves(id: TupleId): Tuple | undefined {
    const place = this.#places.get(id);
    return typeof place === "object" ? place : undefined;
  }

  /** Returns a tuple's fields, to be read at once: the tuple stays at rest. */
  peek(id: TupleId): TupleView | undefined {
    const place = this.#places.get(id);
    return typeof place === "number" ? this.#rising(id, place) : place;
  }

  /** Returns the id of the tuple in a slot. */
  idAt(slot: TupleSlot): TupleId | null {
    return slot < this.#end ? this.#chunk(slot).ids[slot & (CHUNK_SLOTS - 1)] ?? null : null;
  }

  add(id: TupleId, state: TupleState): Tuple {
    const tuple = this.#made(id, state);
    this.#places.set(id, tuple);
    this.#moving.add(tuple);
    return tuple;
  }

  /** Adds a tuple that the disk had, and with which nothing has to be done: at rest from the beginning. */
  addAtRest(
    id: TupleId,
    state: TupleState,
    { unacked, isAmended }: { readonly unacked: readonly SiteId[]; readonly isAmended: boolean },
  ): void {
    const tuple = this.#made(id, state);
    tuple.held = true;
    tuple.unacked = unacked;
    tuple.isAmended = isAmended;
    this.#putToRest(tuple);
  }

  #made(id: TupleId, state: TupleState): Tuple {
    const slot = this.#free.pop() ?? this.#end++;
    if (slot >> CHUNK_BITS === this.#chunks.length) this.#chunks.push(new Chunk());
    this.#chunk(slot).ids[slot & (CHUNK_SLOTS - 1)] = id;
    this.bytes += state.bytes;
    return new Tuple(id, slot, state);
  }

  delete(tuple: Tuple): void {
    if (!this.#places.delete(tuple.id)) return;
    this.#moving.delete(tuple);
    this.#chunk(tuple.slot).ids[tuple.slot & (CHUNK_SLOTS - 1)] = null;
    this.#free.push(tuple.slot);
    this.bytes -= tuple.bytes;
  }

  /** Notes that a tuple's payload has another length, or that there is none any more. */
  resize(tuple: Tuple, bytes: number): void {
    this.bytes += bytes - tuple.bytes;
    tuple.bytes = bytes;
  }

  /**
   * Puts to rest the tuples that nothing is done with, of the `most` that have moved longest; a few thousand may stay
   * in motion.
   */
  settle(most: number): void {
    let left = Math.min(most, this.#moving.size - MOVING_MIN);
    for (const tuple of this.#moving) {
      if (left-- <= 0) break;
      this.#moving.delete(tuple);
      this.#putToRest(tuple);
    }
  }

  /** Puts a tuple to rest where TT2 allows it. */
  #putToRest(tuple: Tuple): void {
    if (canRest(tuple)) return this.#rest(tuple);
    this.#places.set(tuple.id, tuple);
    this.#moving.add(tuple);
  }

  /**
   * Goes through slots from one on, up to `most` of either number. The tuples of one roster are visited all or none.
   *
   * @returns the slot to go on from, `end` when there is none.
   */
  walk(
    from: TupleSlot,
    most: { readonly slots: number; readonly tuples: number },
    walker: Walker,
  ): TupleSlot {
    const wanted = new Map<number, boolean>();
    const isWanted = (number: number): boolean => {
      const known = wanted.get(number);
      if (known !== undefined) return known;
      const wants = walker.wants(this.#rosters.at(number));
      wanted.set(number, wants);
      return wants;
    };
    const end = Math.min(this.#end, from + most.slots);
    let found = 0, slot = from;
    for (; slot < end && found < most.tuples; slot++) {
      const chunk = this.#chunk(slot), index = slot & (CHUNK_SLOTS - 1);
      const id = chunk.ids[index];
      if (id === null || id === undefined) continue;
      const number = chunk.rosters[index] ?? 0;
      const moving = number === 0 ? this.#places.get(id) : undefined;
      if (typeof moving === "object" ? !walker.wants(moving) : !isWanted(number - 1)) continue;
      found++;
      walker.visit(id, slot);
    }
    return slot;
  }

  /** Lists each roster with the number of tuples that have it; tuples in motion come one by one. */
  *counted(): Generator<{ readonly roster: Roster; readonly count: number }> {
    yield* this.#rosters.counted();
    for (const roster of this.#moving) yield { roster, count: 1 };
  }

  *views(): Generator<readonly [TupleId, TupleView]> {
    for (const id of this.#places.keys()) {
      const view = this.peek(id);
      if (view !== undefined) yield [id, view];
    }
  }

  #chunk(slot: TupleSlot): Chunk {
    const chunk = this.#chunks[slot >> CHUNK_BITS];
    if (chunk === undefined) throw new Error(`there is no slot ${slot}`);
    return chunk;
  }

  #rest(tuple: Tuple): void {
    const { slot } = tuple, chunk = this.#chunk(slot), index = slot & (CHUNK_SLOTS - 1);
    chunk.notes[index] = tuple.note;
    chunk.versions[index] = tuple.version;
    chunk.rosters[index] = 1 + this.#rosters.use(tuple);
    chunk.bytes[index] = tuple.bytes;
    chunk.rememberUntilS[index] = tuple.rememberUntilS;
    chunk.dueMs[index] = tuple.dueMs;
    chunk.flags[index] = (tuple.acting ? ACTING : 0) | (tuple.isUnsure ? UNSURE : 0) |
      (tuple.isAmended ? AMENDED : 0) | (tuple.isRepeated ? REPEATED : 0) |
      HOWS.indexOf(tuple.how) << HOW_SHIFT;
    this.#places.set(tuple.id, slot);
  }

  #rising(id: TupleId, slot: TupleSlot): Tuple {
    const chunk = this.#chunk(slot), index = slot & (CHUNK_SLOTS - 1);
    const roster = this.#rosters.at((chunk.rosters[index] ?? 0) - 1);
    const flags = chunk.flags[index] ?? 0;
    const tuple = new Tuple(id, slot, {
      ...roster,
      version: chunk.versions[index] ?? 0,
      dueMs: chunk.dueMs[index] ?? 0,
      note: chunk.notes[index] ?? "",
      bytes: chunk.bytes[index] ?? 0,
      rememberUntilS: chunk.rememberUntilS[index] ?? 0,
      isUnsure: (flags & UNSURE) !== 0,
      isRepeated: (flags & REPEATED) !== 0,
    });
    tuple.unacked = roster.unacked;
    tuple.held = true;
    tuple.acting = (flags & ACTING) !== 0;
    tuple.isAmended = (flags & AMENDED) !== 0;
    tuple.how = HOWS[flags >> HOW_SHIFT] ?? "loaded";
    return tuple;
  }
}

/** Reports whether a tuple may rest (TT2); one with a number that no column has room for stays in motion for good. */
function canRest(tuple: Tuple): boolean {
  const isPlain = tuple.payload === null && tuple.doubts === null && tuple.refusedBy.length === 0;
  return isPlain && tuple.held && tuple.rememberUntilS < 2 ** 32;
}
