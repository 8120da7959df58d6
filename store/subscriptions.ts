/**
 * Who is interested in which keys: one index from a key to its subscribers, so that the cost of routing a change
 * follows the number of interested subscribers, not of all.
 *
 * The key space is cut into segments at the ends of all subscribed ranges; each segment holds its set.
 *
 * U1  A set is never empty, and never changed once it stands in a segment.
 */
import type { Key } from "./key.ts";
import { isEmpty, type Range } from "./range.ts";
import { RangeMap } from "./range_map.ts";

export class Subscriptions<T> {
  readonly #segments = new RangeMap<ReadonlySet<T>>();
  readonly #none: ReadonlySet<T> = new Set();

  /** The subscribers of a key. */
  at(key: Key): ReadonlySet<T> {
    return this.#segments.at(key)?.value ?? this.#none;
  }

  /** Whether anyone subscribes to any key of a range. */
  touches(range: Range): boolean {
    return this.#segments.overlapping(range).length > 0;
  }

  /** The subscribers of any key of a range. */
  within(range: Range): Set<T> {
    return new Set(this.#segments.overlapping(range).flatMap((segment) => [...segment.value]));
  }

  /** Every range that someone subscribes to. */
  ranges(): Range[] {
    return [...this.#segments].map(({ start, end }) => ({ start, end }));
  }

  /** Whether a subscriber has the whole range. */
  has(subscriber: T, range: Range): boolean {
    let at = range.start;
    for (const segment of this.#segments.overlapping(range)) {
      if (segment.start > at || !segment.value.has(subscriber)) return false;
      at = segment.end;
    }
    return at >= range.end;
  }

  add(subscriber: T, range: Range): void {
    if (isEmpty(range)) return;
    let at = range.start;
    for (const segment of this.#cut(range)) {
      if (segment.start > at) {
        this.#segments.insert({ start: at, end: segment.start, value: new Set([subscriber]) });
      }
      if (!segment.value.has(subscriber)) {
        this.#segments.insert({ ...segment, value: new Set([...segment.value, subscriber]) });
      }
      at = segment.end;
    }
    if (at < range.end) this.#segments.insert({ start: at, end: range.end, value: new Set([subscriber]) });
  }

  remove(subscriber: T, range: Range): void {
    if (isEmpty(range)) return;
    for (const segment of this.#cut(range)) {
      if (!segment.value.has(subscriber)) continue;
      this.#segments.remove(segment);
      const rest = new Set(segment.value);
      rest.delete(subscriber);
      if (rest.size > 0) this.#segments.insert({ ...segment, value: rest });
    }
  }

  /** Removes a subscriber everywhere. */
  removeAll(subscriber: T): void {
    for (const segment of [...this.#segments]) {
      if (segment.value.has(subscriber)) this.remove(subscriber, segment);
    }
  }

  /** Cuts segments at the range's ends; the segments inside it. */
  #cut(range: Range) {
    for (const at of [range.start, range.end]) {
      const segment = this.#segments.at(at);
      if (segment === undefined || segment.start === at) continue;
      this.#segments.remove(segment);
      this.#segments.insert({ start: segment.start, end: at, value: segment.value });
      this.#segments.insert({ start: at, end: segment.end, value: segment.value });
    }
    return this.#segments.overlapping(range);
  }
}
