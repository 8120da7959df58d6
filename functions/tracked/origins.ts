/**
 * Where the items of a list were at its last write: what tells kept ones from new ones.
 *
 * While a list only changes in place and at its end, that is two numbers; from the first change further in, it is a
 * number an item.
 */

/** A run of items that are kept, or (`from` −1) of new ones. */
export interface Run {
  readonly from: number;
  readonly count: number;
}

const NEW = -1;

export class Origins {
  /** So many at the beginning are where they were, but for the replaced ones; all after them are new. */
  #kept = 0;
  #replaced: Set<number> | undefined;
  /** Per item where it was, or NEW; takes the place of the two above. */
  #each: number[] | undefined;

  /** After a write or a read of a list of that length. */
  allKept(length: number): void {
    this.#kept = length;
    this.#replaced = this.#each = undefined;
  }

  /** An item was replaced by another. */
  replaced(index: number): void {
    if (this.#each !== undefined) this.#each[index] = NEW;
    else if (index < this.#kept) (this.#replaced ??= new Set()).add(index);
  }

  /** Items were taken out and put in, in a list that had `length`. */
  spliced(at: number, taken: number, put: number, length: number): void {
    if (this.#each === undefined) {
      if (at + taken === length) {
        if (at < this.#kept) {
          this.#kept = at;
          for (const index of this.#replaced ?? []) if (index >= at) this.#replaced?.delete(index);
        }
        return;
      }
      if (at >= this.#kept) return;
      this.#each = this.#expanded(length);
      this.#replaced = undefined;
    }
    if (taken === put) this.#each.fill(NEW, at, at + put);
    else if (put === 0) this.#each.splice(at, taken);
    else if (taken === 0 && put === 1) this.#each.splice(at, 0, NEW);
    else {
      const after = this.#each.slice(at + taken);
      this.#each.length = at;
      for (let i = 0; i < put; i++) this.#each.push(NEW);
      for (const each of after) this.#each.push(each);
    }
  }

  /** The items are in another order now: `order[i]` says where the i-th was. */
  permuted(order: readonly number[]): void {
    const each = this.#each ?? this.#expanded(order.length);
    this.#each = order.map((from) => each[from] ?? NEW);
    this.#replaced = undefined;
  }

  /** The list as runs of kept and of new items; a replaced one counts as new only once there are origins of each. */
  runs(length: number): Run[] {
    if (this.#each === undefined) {
      const runs: Run[] = [];
      if (this.#kept > 0) runs.push({ from: 0, count: this.#kept });
      if (length > this.#kept) runs.push({ from: NEW, count: length - this.#kept });
      return runs;
    }
    const runs: Run[] = [];
    for (let i = 0; i < length;) {
      const from = this.#each[i] ?? NEW;
      let count = 1;
      while (i + count < length && this.#each[i + count] === (from === NEW ? NEW : from + count)) count++;
      runs.push({ from, count });
      i += count;
    }
    return runs;
  }

  /** Items in kept runs that were replaced. */
  get inPlace(): readonly number[] {
    return this.#each === undefined ? [...this.#replaced ?? []].sort((a, b) => a - b) : [];
  }

  /** Whether the item was written before and is still the same. */
  isKept(index: number): boolean {
    if (this.#each !== undefined) return this.#each[index] !== NEW;
    return index < this.#kept && !this.#replaced?.has(index);
  }

  #expanded(length: number): number[] {
    const each = Array.from({ length }, (_, i) => i < this.#kept ? i : NEW);
    for (const index of this.#replaced ?? []) each[index] = NEW;
    return each;
  }
}
