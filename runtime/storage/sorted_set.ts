/**
 * A sorted set of strings or numbers in blocks: finding is two binary searches, inserting moves at most one
 * block, appending at the end (what a journal does) moves nothing.
 *
 * B1  No block is empty, and blocks and their items ascend strictly.
 */

/** A block that grows beyond this is halved: 512 items move in well under a microsecond. */
const BLOCK_ITEMS_MAX = 512;

/** Bounds of a walk, half-open: `start` is in, `end` is not. */
export interface Walk<T> {
  readonly start: T;
  readonly end: T;
  readonly limit: number;
  readonly reverse: boolean;
}

/** A sorted set. */
export class SortedSet<T extends string | number> {
  #blocks: T[][] = [];
  #size = 0;

  /** How many items. */
  get size(): number {
    return this.#size;
  }

  /** Adds an item; false where it was in already. */
  add(item: T): boolean {
    const index = Math.max(0, this.#blockAt(item));
    const block = this.#blocks[index];
    if (block === undefined) {
      this.#blocks.push([item]);
      this.#size = 1;
      return true;
    }
    const at = lowerBound(block, item);
    if (block[at] === item) return false;
    block.splice(at, 0, item);
    this.#size++;
    if (block.length > BLOCK_ITEMS_MAX) this.#split(index, block, at);
    return true;
  }

  /** An append at the very end leaves a full block behind, so that a journal's blocks are full, not half full. */
  #split(index: number, block: T[], at: number): void {
    const appended = index === this.#blocks.length - 1 && at === block.length - 1;
    const cut = appended ? block.length - 1 : block.length >> 1;
    this.#blocks.splice(index + 1, 0, block.splice(cut));
  }

  /** Removes an item; false where it was not in. */
  remove(item: T): boolean {
    const index = this.#blockAt(item);
    const block = this.#blocks[index];
    if (block === undefined) return false;
    const at = lowerBound(block, item);
    if (block[at] !== item) return false;
    block.splice(at, 1);
    this.#size--;
    if (block.length === 0) this.#blocks.splice(index, 1);
    return true;
  }

  /** The items within bounds, in the walk's direction, at most `limit`. */
  walk(bounds: Walk<T>): T[] {
    return bounds.reverse ? this.#down(bounds) : this.#up(bounds);
  }

  #up({ start, end, limit }: Walk<T>): T[] {
    const out: T[] = [];
    let index = Math.max(0, this.#blockAt(start));
    let at = lowerBound(this.#blocks[index] ?? [], start);
    for (; index < this.#blocks.length; index++, at = 0) {
      const block = this.#blocks[index] ?? [];
      for (; at < block.length; at++) {
        const item = block[at];
        if (item === undefined || item >= end || out.length >= limit) return out;
        out.push(item);
      }
    }
    return out;
  }

  #down({ start, end, limit }: Walk<T>): T[] {
    const out: T[] = [];
    let index = this.#blockAt(end);
    let at = lowerBound(this.#blocks[index] ?? [], end) - 1;
    for (; index >= 0; index--, at = (this.#blocks[index]?.length ?? 0) - 1) {
      const block = this.#blocks[index] ?? [];
      for (; at >= 0; at--) {
        const item = block[at];
        if (item === undefined || item < start || out.length >= limit) return out;
        out.push(item);
      }
    }
    return out;
  }

  /** Index of the last block whose first item is not above `item`; −1 where there is none. */
  #blockAt(item: T): number {
    let low = 0;
    let high = this.#blocks.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      const first = this.#blocks[middle]?.[0];
      if (first !== undefined && first <= item) low = middle + 1;
      else high = middle;
    }
    return low - 1;
  }
}

/** Index of the first item that is not below `item`. */
function lowerBound<T extends string | number>(block: readonly T[], item: T): number {
  let low = 0;
  let high = block.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    const there = block[middle];
    if (there !== undefined && there < item) low = middle + 1;
    else high = middle;
  }
  return low;
}
