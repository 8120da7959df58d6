/**
 * Queries as SessionStore keeps them (its query cache and its command cache): ranges of keys, those subsumed by a
 * wider one left out.
 */
import type { Key } from "../../../store/model/key.ts";
import { isPoint, keyAfter, pointRange, type Range } from "../../../store/model/range.ts";

/** A read: rows by key (SELECT … WHERE key IN …), or a range, from one of its ends, up to a limit (0: all of it). */
export type Query =
  | { readonly kind: "rows"; readonly keys: readonly Key[] }
  | { readonly kind: "list"; readonly range: Range; readonly limit: number; readonly reverse: boolean };

/** What a row is called and holds. */
export interface Datum {
  readonly key: Key;
  readonly value: Uint8Array<ArrayBuffer>;
}

/** The ranges that a query asks for. */
export const rangesOf = (query: Query): Range[] =>
  query.kind === "rows" ? query.keys.map(pointRange) : [query.range];

/** The part of a list's range that was read: with a limit it ends at the last row. */
export function intervalRead(
  query: Query & { kind: "list" },
  found: readonly { readonly key: Key }[],
): Range {
  const last = found.at(-1);
  if (query.limit === 0 || found.length < query.limit || last === undefined) return query.range;
  return query.reverse
    ? { start: last.key, end: query.range.end }
    : { start: query.range.start, end: keyAfter(last.key) };
}

/** A set of queries. */
export class Queries {
  readonly #points = new Map<Key, Range>();
  #ranges: Range[] = [];

  constructor(ranges: readonly Range[] = []) {
    for (const range of ranges) this.add(range);
  }

  /** Whether one query of the set subsumes the range. */
  covers(range: Range): boolean {
    if (isPoint(range) && this.#points.has(range.start)) return true;
    return this.#ranges.some((wider) => wider.start <= range.start && wider.end >= range.end);
  }

  add(range: Range): void {
    if (this.covers(range)) return;
    if (isPoint(range)) {
      this.#points.set(range.start, range);
      return;
    }
    const isWithin = (other: Range) => range.start <= other.start && range.end >= other.end;
    for (const point of this.#points.values()) if (isWithin(point)) this.#points.delete(point.start);
    this.#ranges = this.#ranges.filter((other) => !isWithin(other));
    this.#ranges.push(range);
  }

  list(): Range[] {
    return [...this.#ranges, ...this.#points.values()];
  }
}
