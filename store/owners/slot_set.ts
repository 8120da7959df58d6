/** A set of slots (tuple_table.ts): a bit for each, so that a set for a million slots takes 125 KB. */
import type { TupleSlot } from "./tuple.ts";

const WORD_BITS = 5;

export class SlotSet {
  #words = new Uint32Array(64);

  add(slot: TupleSlot): void {
    const word = slot >> WORD_BITS;
    if (word >= this.#words.length) {
      const longer = new Uint32Array(Math.max(2 * this.#words.length, word + 1));
      longer.set(this.#words);
      this.#words = longer;
    }
    this.#words[word] = (this.#words[word] ?? 0) | 1 << (slot & 31);
  }

  has(slot: TupleSlot): boolean {
    return ((this.#words[slot >> WORD_BITS] ?? 0) & 1 << (slot & 31)) !== 0;
  }

  clear(): void {
    this.#words.fill(0);
  }
}
