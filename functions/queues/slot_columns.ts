/**
 * Columns of numbers for slots of tuples (store/owners/tuple.ts): what a queue knows of each of a million messages is a
 * few numbers, and an object for each would be twenty times as much.
 */
import type { TupleSlot } from "../../store/owners/tuple.ts";

const FIRST_SLOTS = 1_024;

/** Column with a 32-bit number for each slot, 0 where none was set. */
export class SlotColumn {
  #numbers = new Uint32Array(FIRST_SLOTS);

  get(slot: TupleSlot): number {
    return this.#numbers[slot] ?? 0;
  }

  set(slot: TupleSlot, number: number): void {
    if (slot >= this.#numbers.length) this.#grow(slot + 1);
    this.#numbers[slot] = number;
  }

  #grow(length: number): void {
    const longer = new Uint32Array(Math.max(2 * this.#numbers.length, length));
    longer.set(this.#numbers);
    this.#numbers = longer;
  }
}

/** Number of a list in SlotLists. */
export type ListNumber = number & { readonly __brand?: "ListNumber" };

/**
 * Lists of slots, in the order in which they came.
 *
 * SL1 A slot is in one list at most.
 */
export class SlotLists {
  /**
   * Number of the list that each slot is in, plus one; 0: none. (`#next` and `#before`: its neighbors' slots,
   * likewise.)
   */
  readonly #list = new SlotColumn();
  readonly #next = new SlotColumn();
  readonly #before = new SlotColumn();
  readonly #heads: { first: number; last: number; count: number }[] = [];

  /** Makes an empty list. */
  create(): ListNumber {
    return this.#heads.push({ first: 0, last: 0, count: 0 }) - 1;
  }

  /** Returns the list that a slot is in. */
  of(slot: TupleSlot): ListNumber | null {
    const number = this.#list.get(slot);
    return number === 0 ? null : number - 1;
  }

  count(list: ListNumber): number {
    return this.#head(list).count;
  }

  first(list: ListNumber): TupleSlot | null {
    return orNone(this.#head(list).first);
  }

  /** Returns the slot that comes after another in its list. */
  after(slot: TupleSlot): TupleSlot | null {
    return orNone(this.#next.get(slot));
  }

  /** Puts a slot at the end of a list, or at its beginning. */
  put(list: ListNumber, slot: TupleSlot, isFirst = false): void {
    if (this.of(slot) !== null) throw new Error(`SL1: slot ${slot} is in a list`);
    const head = this.#head(list), own = slot + 1;
    const before = isFirst ? 0 : head.last, next = isFirst ? head.first : 0;
    this.#list.set(slot, list + 1);
    this.#before.set(slot, before);
    this.#next.set(slot, next);
    if (before === 0) head.first = own;
    else this.#next.set(before - 1, own);
    if (next === 0) head.last = own;
    else this.#before.set(next - 1, own);
    head.count++;
  }

  /** Removes a slot from the list that it is in, if any. */
  remove(slot: TupleSlot): void {
    const list = this.of(slot);
    if (list === null) return;
    const head = this.#head(list), next = this.#next.get(slot), before = this.#before.get(slot);
    if (before === 0) head.first = next;
    else this.#next.set(before - 1, next);
    if (next === 0) head.last = before;
    else this.#before.set(next - 1, before);
    this.#list.set(slot, 0);
    head.count--;
  }

  #head(list: ListNumber): { first: number; last: number; count: number } {
    const head = this.#heads[list];
    if (head === undefined) throw new Error(`there is no list ${list}`);
    return head;
  }
}

const orNone = (number: number): TupleSlot | null => number === 0 ? null : number - 1;

/**
 * Slots ordered by a time each: a binary heap that also knows each slot's place in it.
 *
 * SH1 No time is less than that of the place halfway to the top.
 */
export class SlotTimes {
  /** Place of each slot in the heap, plus one; 0: none. */
  readonly #places = new SlotColumn();
  #slots = new Uint32Array(FIRST_SLOTS);
  #times = new Float64Array(FIRST_SLOTS);
  #count = 0;

  get count(): number {
    return this.#count;
  }

  /** Least time of all; Infinity where there is none. */
  get leastMs(): number {
    return this.#count === 0 ? Infinity : this.#times[0] ?? Infinity;
  }

  /** Returns the time of a slot; undefined where it has none. */
  get(slot: TupleSlot): number | undefined {
    const place = this.#places.get(slot);
    return place === 0 ? undefined : this.#times[place - 1];
  }

  set(slot: TupleSlot, ms: number): void {
    let place = this.#places.get(slot) - 1;
    if (place < 0) {
      place = this.#count++;
      if (place === this.#slots.length) this.#grow();
    }
    const before = this.#times[place] ?? 0;
    this.#put(place, slot, ms);
    if (place === this.#count - 1 || ms < before) this.#rise(place);
    else this.#sink(place);
  }

  delete(slot: TupleSlot): void {
    const place = this.#places.get(slot) - 1;
    if (place < 0) return;
    this.#places.set(slot, 0);
    const last = --this.#count;
    if (place === last) return;
    this.#put(place, this.#slots[last] ?? 0, this.#times[last] ?? 0);
    this.#rise(place);
    this.#sink(place);
  }

  /** Takes out the slot with the least time, where that is no later than `nowMs`. */
  takeDue(nowMs: number): TupleSlot | null {
    const slot = this.#slots[0];
    if (slot === undefined || this.leastMs > nowMs) return null;
    this.delete(slot);
    return slot;
  }

  #grow(): void {
    const slots = new Uint32Array(2 * this.#slots.length), times = new Float64Array(2 * this.#times.length);
    slots.set(this.#slots);
    times.set(this.#times);
    this.#slots = slots;
    this.#times = times;
  }

  #put(place: number, slot: TupleSlot, ms: number): void {
    this.#slots[place] = slot;
    this.#times[place] = ms;
    this.#places.set(slot, place + 1);
  }

  #rise(from: number): void {
    let place = from;
    const slot = this.#slots[place] ?? 0, ms = this.#times[place] ?? 0;
    while (place > 0) {
      const above = (place - 1) >> 1, aboveMs = this.#times[above] ?? 0;
      if (aboveMs <= ms) break;
      this.#put(place, this.#slots[above] ?? 0, aboveMs);
      place = above;
    }
    this.#put(place, slot, ms);
  }

  #sink(from: number): void {
    let place = from;
    const slot = this.#slots[place] ?? 0, ms = this.#times[place] ?? 0;
    for (;;) {
      let below = 2 * place + 1;
      if (below >= this.#count) break;
      if (below + 1 < this.#count && (this.#times[below + 1] ?? 0) < (this.#times[below] ?? 0)) below++;
      const belowMs = this.#times[below] ?? 0;
      if (belowMs >= ms) break;
      this.#put(place, this.#slots[below] ?? 0, belowMs);
      place = below;
    }
    this.#put(place, slot, ms);
  }
}
