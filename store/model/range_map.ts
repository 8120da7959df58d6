/**
 * The map of disjoint ranges of keys to a value each, in key order.
 *
 * M1  No two ranges overlap; none is empty.
 */
import { strict as assert } from "node:assert";
import sortedBtree from "sorted-btree";
import type { Key } from "./key.ts";
import type { Range } from "./range.ts";

export interface RangeSegment<V> extends Range {
  readonly value: V;
}

export class RangeMap<V> {
  /** Segments by start. The package is CommonJS, hence the second `default`. */
  readonly #byStart = new sortedBtree.default<string, RangeSegment<V>>();

  get size(): number {
    return this.#byStart.size;
  }

  /** Returns the segment that holds a key. */
  at(key: Key): RangeSegment<V> | undefined {
    const segment = this.#byStart.getPairOrNextLower(key)?.[1];
    return segment !== undefined && key < segment.end ? segment : undefined;
  }

  /** Returns the last segment that begins below a key. */
  before(key: Key): RangeSegment<V> | undefined {
    return this.#byStart.nextLowerPair(key)?.[1];
  }

  /** Reports whether a segment shares a key with a range. */
  touches(range: Range): boolean {
    return range.start < range.end && (this.before(range.end)?.end ?? "") > range.start;
  }

  /** Returns the segments that share a key with a range, in key order. */
  overlapping(range: Range): RangeSegment<V>[] {
    const found: RangeSegment<V>[] = [];
    const first = this.at(range.start);
    if (first !== undefined && first.start < range.start) found.push(first);
    this.#byStart.forRange(range.start, range.end, false, (_, segment) => {
      found.push(segment);
    });
    return found;
  }

  /**
   * Returns the key up to which the keys from `start` on are held without a gap, at most `end`; `start` where none is.
   */
  heldUntil(start: Key, end: Key): Key {
    let until = start;
    while (until < end) {
      const segment = this.at(until);
      if (segment === undefined) break;
      until = segment.end;
    }
    return until < end ? until : end;
  }

  /**
   * Returns the key down to which the keys below `end` are held without a gap, at least `start`; `end` where none is.
   */
  heldFrom(start: Key, end: Key): Key {
    let from = end;
    while (from > start) {
      const segment = this.before(from);
      if (segment === undefined || segment.end < from) break;
      from = segment.start;
    }
    return from > start ? from : start;
  }

  /** Reports whether every key of a range is held. */
  holds(range: Range): boolean {
    return this.heldUntil(range.start, range.end) >= range.end;
  }

  /** Inserts a segment; it must overlap none. */
  insert(segment: RangeSegment<V>): void {
    assert(
      segment.start < segment.end && !this.touches(segment),
      "M1: ranges are disjoint, and none is empty",
    );
    this.#byStart.set(segment.start, segment);
  }

  remove(segment: Range): void {
    this.#byStart.delete(segment.start);
  }

  *[Symbol.iterator](): IterableIterator<RangeSegment<V>> {
    yield* this.#byStart.values();
  }
}
