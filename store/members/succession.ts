/**
 * Succession of incarnations: which of them goes on with the rows of which, as the system rows (topology.ts) say of
 * sites that took a new number and kept their disk, under another parent or under one that lost its own.
 *
 * An incarnation that goes on: ended with a `next` → its successor has said what it kept (`kept`) → settled: all of its
 * subtree's entries are in the journal of the successor's parent, and its end is as late as its last word.
 *
 * U1  Settled is an incarnation that the successor's parent has written to be so.
 * U2  Over is an incarnation that is settled, or whose last successor has ended without a next: nobody brings more of
 *     it.
 * U3  A parent may give a number to a site that has left it meanwhile. The site itself says which incarnation it has
 *     followed: its row is written under the number that it took. The other number is unused, and over. An incarnation
 *     that goes on under the number that it had says so in the end of the other.
 */
import type { ClockValue, Position, ReplicaNumber } from "../model/row.ts";

/**
 * Row of a successor (`kept`): all that the incarnation had stands in the successor's journal before this row, or in
 * the root's journal up to `floor`.
 */
export interface SuccessorWord {
  /** Position of the root's journal up to which it has the rest of what the incarnation had. */
  readonly floor: Position;
  /** Position of the former parent's journal up to which the root was known to have it. */
  readonly known: Position;
  /** True where the incarnation had taken nothing from its parent that the root was not known to have. */
  readonly whole: boolean;
  readonly clock: ClockValue;
  /** Incarnation that wrote the row. */
  readonly by: ReplicaNumber;
}

export class Succession {
  readonly #endOf: (number: ReplicaNumber) => ClockValue | undefined;
  readonly #next = new Map<ReplicaNumber, ReplicaNumber>();
  readonly #before = new Map<ReplicaNumber, Set<ReplicaNumber>>();
  readonly #kept = new Map<ReplicaNumber, SuccessorWord>();
  readonly #given = new Map<ReplicaNumber, ReplicaNumber>();
  readonly #unused = new Set<ReplicaNumber>();
  /** Incarnations that ended with a next, and are not settled. */
  readonly #open = new Set<ReplicaNumber>();

  /** @param endOf returns the stable clock that an incarnation ended with. */
  constructor(endOf: (number: ReplicaNumber) => ClockValue | undefined) {
    this.#endOf = endOf;
  }

  ended(number: ReplicaNumber, next: ReplicaNumber | undefined, isSettled: boolean): void {
    if (next === undefined) return;
    this.#follow(number, this.#kept.get(number)?.by ?? next);
    if (isSettled) this.#open.delete(number); // U1
    else this.#open.add(number);
  }

  kept(number: ReplicaNumber, kept: SuccessorWord): void {
    this.#kept.set(number, kept);
    this.#follow(number, kept.by);
  }

  #follow(number: ReplicaNumber, next: ReplicaNumber): void {
    // Numbers rise: an incarnation that is followed by itself, or by an earlier one, would lead round and round.
    if (next <= number) return;
    this.#before.get(this.#next.get(number) ?? 0)?.delete(number);
    this.#next.set(number, next);
    const before = this.#before.get(next) ?? new Set();
    this.#before.set(next, before.add(number));
  }

  /** Notes that a number was given to a disk that came as another. */
  given(number: ReplicaNumber, to: ReplicaNumber): void {
    this.#given.set(number, to);
  }

  /** Notes that its site never took a number: an incarnation that was ended for it goes on as it was. */
  unused(number: ReplicaNumber): void {
    this.#unused.add(number);
  }

  /** Reports whether a number was given and never taken (U3). */
  isUnused(number: ReplicaNumber): boolean {
    if (this.#unused.has(number)) return true;
    const kept = this.#kept.get(this.#given.get(number) ?? 0);
    return kept !== undefined && kept.by !== number;
  }

  /** Returns what the successor of an incarnation said that it kept. */
  keptOf(number: ReplicaNumber): SuccessorWord | undefined {
    return this.#kept.get(number);
  }

  /**
   * Returns the incarnation that goes on with an incarnation's rows by now: itself while it lives, null where none
   * does.
   */
  heir(number: ReplicaNumber): ReplicaNumber | null {
    for (let at = number;;) {
      if (this.#endOf(at) === undefined) return at;
      const next = this.#next.get(at);
      if (next === undefined) return null;
      if (this.#unused.has(next)) return at;
      at = next;
    }
  }

  /**
   * Returns the last incarnation that goes on with an incarnation's rows, itself where none does, whether or not it
   * lives.
   */
  last(number: ReplicaNumber): ReplicaNumber {
    for (let at = number;;) {
      // The incarnation's own site says so first.
      const isOver = this.#endOf(at) !== undefined || this.#kept.has(at);
      const next = isOver ? this.#next.get(at) : undefined;
      if (next === undefined || this.#unused.has(next)) return at;
      at = next;
    }
  }

  nextOf(number: ReplicaNumber): ReplicaNumber | undefined {
    return this.#next.get(number);
  }

  /** Reports whether an incarnation is over (U2); one that lives is not. */
  isOver(number: ReplicaNumber): boolean {
    if (this.isUnused(number)) return true;
    return this.#next.has(number) && (!this.#open.has(number) || this.heir(number) === null);
  }

  /** Lists incarnations that still have something to bring. */
  unsettled(): ReplicaNumber[] {
    return [...this.#open].filter((number) => !this.isOver(number));
  }

  isUnsettled(number: ReplicaNumber): boolean {
    return this.#open.has(number) && !this.isOver(number);
  }

  /**
   * Returns a clock up to which all entries are in the root's journal. @param stable the root's stable clock (adoption
   * F3).
   */
  bound(stable: ClockValue): ClockValue {
    return Math.min(stable, ...this.unsettled().map((number) => this.#endOf(number) ?? 0));
  }

  /** Lists incarnations that one goes on with, at any remove, and that are not settled. */
  unsettledBefore(number: ReplicaNumber): ReplicaNumber[] {
    const found: ReplicaNumber[] = [];
    for (const before of this.#before.get(number) ?? []) {
      found.push(...this.unsettledBefore(before));
      if (this.#open.has(before)) found.push(before);
    }
    return found;
  }
}
