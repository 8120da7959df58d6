/**
 * Who is interested in which keys: one index from a key to its subscribers, so that the cost of routing a change
 * follows the number of interested subscribers, not of all.
 *
 * A *place* is a range as it was subscribed to, with all who have just that one: thousands of children that cover
 * the system rows are one place. Points, which most places are, lie in one map by key. The key space of the wider
 * ones is cut into segments at their ends; a segment lists the places that hold it: few, since ranges nest.
 *
 * Coming and going cost a subscriber what its own ranges are, however many others there are.
 *
 * U1  A place has subscribers, and a segment has places, in the order in which they came to be.
 * U2  The ranges of one subscriber are disjoint: a new one trims those that it overlaps, as coverage.ts does. So a
 *     key finds each of its subscribers once.
 */
import type { Key } from "../model/key.ts";
import { isEmpty, isPoint, type Range } from "../model/range.ts";
import { RangeMap, type RangeSegment } from "../model/range_map.ts";

type Place<T> = RangeSegment<Set<T>>;

export class Subscriptions<T> {
  readonly #points = new RangeMap<Set<T>>();
  readonly #segments = new RangeMap<readonly Place<T>[]>();
  /** The places of each subscriber. */
  readonly #of = new Map<T, RangeMap<Set<T>>>();

  /** The subscribers of a key, as of now. */
  at(key: Key): readonly T[] {
    const point = this.#points.at(key), segment = this.#segments.at(key);
    if (segment === undefined) return point === undefined ? [] : [...point.value];
    const [first, second] = segment.value;
    if (first !== undefined && second === undefined && point === undefined) return [...first.value];
    const all = segment.value.flatMap((place) => [...place.value]);
    return point === undefined ? all : all.concat([...point.value]);
  }

  /** Whether a subscriber has a key. */
  has(subscriber: T, key: Key): boolean {
    return this.#of.get(subscriber)?.at(key) !== undefined;
  }

  /** Whether anyone subscribes to any key of a range. */
  touches(range: Range): boolean {
    return this.#points.touches(range) || this.#segments.touches(range);
  }

  /** The subscribers of any key of a range. */
  within(range: Range): Set<T> {
    const places = this.#segments.overlapping(range).flatMap(({ value }) => value);
    return new Set([...this.#points.overlapping(range), ...places].flatMap((place) => [...place.value]));
  }

  /** How many ranges a subscriber has. */
  count(subscriber: T): number {
    return this.#of.get(subscriber)?.size ?? 0;
  }

  /** Every range that someone subscribes to. */
  ranges(): Range[] {
    const places = new Set([...this.#segments].flatMap(({ value }) => value));
    return [...this.#points, ...places].map(({ start, end }) => ({ start, end }));
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

  /** Takes a range out of a subscriber's (U2). */
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
    if (isPoint(place)) return this.#points.remove(place);
    for (const { start, end, value } of this.#segments.overlapping(place)) {
      const rest = value.filter((other) => other !== place);
      if (rest.length === 0) this.#segments.remove({ start, end });
      else this.#segments.insert({ start, end, value: rest });
    }
    this.#join(place.start);
    this.#join(place.end);
  }

  #find(range: Range): Place<T> | undefined {
    if (isPoint(range)) return this.#points.at(range.start);
    return this.#segments.at(range.start)?.value
      .find((place) => place.start === range.start && place.end === range.end);
  }

  /** A new place, with no subscriber yet. */
  #found({ start, end }: Range): Place<T> {
    const place: Place<T> = { start, end, value: new Set() };
    if (isPoint(place)) {
      this.#points.insert(place);
      return place;
    }
    this.#cut(start);
    this.#cut(end);
    let at = start;
    for (const segment of this.#segments.overlapping(place)) {
      if (segment.start > at) this.#segments.insert({ start: at, end: segment.start, value: [place] });
      this.#segments.insert({ ...segment, value: [...segment.value, place] }); // U1
      at = segment.end;
    }
    if (at < end) this.#segments.insert({ start: at, end, value: [place] });
    return place;
  }

  #cut(at: Key): void {
    const segment = this.#segments.at(at);
    if (segment === undefined || segment.start === at) return;
    this.#segments.insert({ start: segment.start, end: at, value: segment.value });
    this.#segments.insert({ start: at, end: segment.end, value: segment.value });
  }

  /** Undoes a cut where no place ends there any more. */
  #join(at: Key): void {
    const right = this.#segments.at(at);
    const left = right?.start === at ? this.#segments.before(at) : undefined;
    if (right === undefined || left === undefined || left.end !== at) return;
    const isOne = left.value.length === right.value.length &&
      left.value.every((place, i) => place === right.value[i]);
    if (!isOne) return;
    this.#segments.remove(right);
    this.#segments.insert({ start: left.start, end: right.end, value: left.value });
  }
}
