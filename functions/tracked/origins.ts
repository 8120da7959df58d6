/**
 * The origins of a list's items: where each was at the list's last write, which tells kept items from new ones.
 *
 * While a list only changes in place and at its end, they are a number and a set of places; from the first change
 * further in, they are a number for each item.
 */

/** Run of items that were kept, or (`from` −1) of new ones. */
export interface Run {
  readonly from: number;
  readonly count: number;
}

const NEW = -1;

export class Origins {
  /** Number of items at the beginning that are where they were, but for the replaced ones; all after them are new. */
  #kept = 0;
  #replaced: Set<number> | undefined;
  /** Place where each item was, or NEW; used instead of the two above. */
  #each: number[] | undefined;

  /** Counts all items as kept, after a write or a read of a list of that length. */
  allKept(length: number): void {
    this.#kept = length;
    this.#replaced = this.#each = undefined;
  }

  /** Notes that an item was replaced by another. */
  replaced(index: number): void {
    if (this.#each !== undefined) this.#each[index] = NEW;
    else if (index < this.#kept) (this.#replaced ??= new Set()).add(index);
  }

  /** Notes that items were taken out and put in, in a list that had `length` items. */
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

  /** Notes that the items are in another order: `order[i]` is where the i-th was. */
  permuted(order: readonly number[]): void {
    const each = this.#each ?? this.#expanded(order.length);
    this.#each = order.map((from) => each[from] ?? NEW);
    this.#replaced = undefined;
  }

  /**
   * Returns the list as runs of kept and of new items; a replaced item counts as new only once there are origins of
   * each item.
   */
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

  /** Places of items in kept runs that were replaced. */
  get inPlace(): readonly number[] {
    return this.#each === undefined ? [...this.#replaced ?? []].sort((a, b) => a - b) : [];
  }

  /** Reports whether an item was written before and is still the same. */
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
