/**
 * The least of many numbers, one for each holder, known at any time: a binary heap with the holders' places in it.
 * To set one costs the logarithm of their count, to ask for the least nothing.
 *
 * L1  No number is less than that of the place halfway to the top.
 */

interface Entry<T> {
  readonly holder: T;
  value: number;
  place: number;
}

export class Least<T> {
  readonly #heap: Entry<T>[] = [];
  readonly #of = new Map<T, Entry<T>>();

  /** Least number of all; Infinity where there is none. */
  get value(): number {
    return this.#heap[0]?.value ?? Infinity;
  }

  set(holder: T, value: number): void {
    let entry = this.#of.get(holder);
    if (entry === undefined) {
      this.#of.set(holder, entry = { holder, value: Infinity, place: this.#heap.length });
      this.#heap.push(entry);
    }
    const isLess = value < entry.value;
    entry.value = value;
    if (isLess) this.#rise(entry);
    else this.#sink(entry);
  }

  delete(holder: T): void {
    const entry = this.#of.get(holder), last = this.#heap.at(-1);
    if (entry === undefined || last === undefined) return;
    this.#of.delete(holder);
    this.#heap.pop();
    if (last === entry) return;
    this.#put(last, entry.place);
    this.#rise(last);
    this.#sink(last);
  }

  #put(entry: Entry<T>, place: number): void {
    this.#heap[place] = entry;
    entry.place = place;
  }

  #rise(entry: Entry<T>): void {
    let place = entry.place;
    for (;;) {
      const above = place > 0 ? this.#heap[(place - 1) >> 1] : undefined;
      if (above === undefined || above.value <= entry.value) break;
      const free = above.place;
      this.#put(above, place);
      place = free;
    }
    this.#put(entry, place);
  }

  #sink(entry: Entry<T>): void {
    let place = entry.place;
    for (;;) {
      const left = this.#heap[2 * place + 1], right = this.#heap[2 * place + 2];
      const below = right !== undefined && left !== undefined && right.value < left.value ? right : left;
      if (below === undefined || below.value >= entry.value) break;
      const free = below.place;
      this.#put(below, place);
      place = free;
    }
    this.#put(entry, place);
  }
}
