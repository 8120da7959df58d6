/**
 * Work on many tuples at rest, in parts: what a site's standing, return or answer asks for of all tuples that are
 * shared with it. There is one walk for each reason; asked for again while it is under way, it goes all around once
 * more.
 */
import type { TupleId } from "./packet.ts";
import type { Roster, TupleSlot } from "./tuple.ts";
import type { TupleTable } from "./tuple_table.ts";

/** Number of slots that a step looks at: a fraction of a millisecond where nothing is wanted. */
const SLOTS_AT_ONCE = 50_000;
/** Number of tuples that a step does something with: some milliseconds. */
const TUPLES_AT_ONCE = 1_000;

interface Walk {
  at: TupleSlot;
  /** Number of slots left to look at. */
  left: number;
}

/** Tuples that a walk looks for, and what it does with them. */
export interface Errand {
  readonly wants: (roster: Roster) => boolean;
  readonly visit: (id: TupleId, slot: TupleSlot) => void;
}

export class Walks {
  readonly #table: TupleTable;
  readonly #errand: (reason: string) => Errand;
  readonly #walks = new Map<string, Walk>();

  constructor(table: TupleTable, errand: (reason: string) => Errand) {
    this.#table = table;
    this.#errand = errand;
  }

  get isOver(): boolean {
    return this.#walks.size === 0;
  }

  /** Begins a walk through all tuples for a reason. */
  begin(reason: string): void {
    const { end } = this.#table;
    if (end === 0) return;
    const walk = this.#walks.get(reason);
    if (walk === undefined) this.#walks.set(reason, { at: 0, left: end });
    else walk.left = end;
  }

  /** Ends the walk of a reason: nothing of it is left to do. */
  end(reason: string): void {
    this.#walks.delete(reason);
  }

  /** Takes the next part of one walk; walks take turns. */
  step(): void {
    const [next] = this.#walks;
    if (next === undefined) return;
    const [reason, walk] = next, table = this.#table;
    if (walk.at >= table.end) walk.at = 0;
    const slots = Math.min(walk.left, SLOTS_AT_ONCE);
    const from = walk.at;
    walk.at = table.walk(from, { slots, tuples: TUPLES_AT_ONCE }, this.#errand(reason));
    walk.left -= Math.max(1, walk.at - from);
    this.#walks.delete(reason);
    if (walk.left > 0) this.#walks.set(reason, walk);
  }
}
