/**
 * The subscriptions to keys: one index from a key to its subscribers, so that the cost of routing a change follows the
 * number of interested subscribers, not of all.
 *
 * A *place* is a range as it was subscribed to, with all subscribers of exactly that range: thousands of children that
 * cover the system rows are one place. Points, which most places are, lie in one map by key, the wider ones in a tree.
 *
 * To come and to go costs a subscriber as much as it has ranges, however many other subscribers there are.
 *
 * U1  A place has subscribers, and a key places, in the order in which they came to be.
 * U2  The ranges of one subscriber are disjoint: a new one trims those that it overlaps, as coverage.ts does. So a
 *     key finds each of its subscribers once.
 */
import type { Key } from "../model/key.ts";
import { isEmpty, isPoint, type Range } from "../model/range.ts";
import { RangeMap, type RangeSegment } from "../model/range_map.ts";
import { RangeTree } from "../model/range_tree.ts";

type Place<T> = RangeSegment<Set<T>>;

export class Subscriptions<T> {
  readonly #points = new RangeMap<Set<T>>();
  readonly #wide = new RangeTree<Place<T>>();
  /** Places of each subscriber. */
  readonly #of = new Map<T, RangeMap<Set<T>>>();

  /** Returns the subscribers of a key, as of now. */
  at(key: Key): readonly T[] {
    const point = this.#points.at(key), wide = this.#wide.at(key);
    const [first, second] = wide;
    if (first === undefined) return point === undefined ? [] : [...point.value];
    if (second === undefined && point === undefined) return [...first.value];
    const all = wide.flatMap((place) => [...place.value]);
    return point === undefined ? all : all.concat([...point.value]);
  }

  /** Reports whether a subscriber has a key. */
  has(subscriber: T, key: Key): boolean {
    return this.#of.get(subscriber)?.at(key) !== undefined;
  }

  /** Reports whether any key of a range has a subscriber. */
  touches(range: Range): boolean {
    return this.#points.touches(range) || this.#wide.overlapping(range).length > 0;
  }

  /** Returns the subscribers of any key of a range. */
  within(range: Range): Set<T> {
    const places = [...this.#points.overlapping(range), ...this.#wide.overlapping(range)];
    return new Set(places.flatMap((place) => [...place.value]));
  }

  /** Returns how many ranges a subscriber has. */
  count(subscriber: T): number {
    return this.#of.get(subscriber)?.size ?? 0;
  }

  /** Returns every range that has a subscriber. */
  ranges(): Range[] {
    return [...this.#points, ...this.#wide.ranges()].map(({ start, end }) => ({ start, end }));
  }

  add(subscriber: T, range: Range): void {
    if (isEmpty(range)) return;
    let own = this.#of.get(subscriber);
    if (own === undefined) this.#of.set(subscriber, own = new RangeMap());
    if ((own.at(range.start)?.end ?? "") >= range.end) return;
    this.#trim(subscriber, own, range);
    this.#enter(subscriber, own, range);
  }

  remove(subscriber: T, range: Range): void {
    const own = this.#of.get(subscriber);
    if (own === undefined || isEmpty(range)) return;
    this.#trim(subscriber, own, range);
    if (own.size === 0) this.#of.delete(subscriber);
  }

  /** Removes a subscriber everywhere. */
  removeAll(subscriber: T): void {
    for (const place of this.#of.get(subscriber) ?? []) this.#leave(subscriber, place);
    this.#of.delete(subscriber);
  }

  /** Takes a range out of a subscriber's ranges (U2). */
  #trim(subscriber: T, own: RangeMap<Set<T>>, range: Range): void {
    for (const old of own.overlapping(range)) {
      own.remove(old);
      this.#leave(subscriber, old);
      if (old.start < range.start) this.#enter(subscriber, own, { start: old.start, end: range.start });
      if (old.end > range.end) this.#enter(subscriber, own, { start: range.end, end: old.end });
    }
  }

  #enter(subscriber: T, own: RangeMap<Set<T>>, range: Range): void {
    const place = this.#find(range) ?? this.#found(range);
    place.value.add(subscriber);
    own.insert(place);
  }

  #leave(subscriber: T, place: Place<T>): void {
    place.value.delete(subscriber);
    if (place.value.size > 0) return;
    if (isPoint(place)) this.#points.remove(place);
    else this.#wide.remove(place);
  }

  #find(range: Range): Place<T> | undefined {
    return isPoint(range) ? this.#points.at(range.start) : this.#wide.get(range);
  }

  /** Makes a new place, with no subscriber yet. */
  #found({ start, end }: Range): Place<T> {
    const place: Place<T> = { start, end, value: new Set() };
    if (isPoint(place)) this.#points.insert(place);
    else this.#wide.add(place, place);
    return place;
  }
}
