/**
 * The fetches of one site that are under way: one serves all who wait for its range. Fetches of single keys, which most
 * are when thousands of readers miss at once, are found by the key; only wider ones are looked at one by one.
 *
 * F2  A fetch that nobody waits for any more does not outlast a link that is down (uplink.ts): a site that is cut off
 *     for long is asked for many keys that it does not hold.
 * F3  Readers have no more than FETCHES_MAX under way: a parent that is cut off itself answers none of them.
 */
import type { Digest } from "../model/digest.ts";
import type { Key } from "../model/key.ts";
import type { Fetch } from "../wire/message.ts";
import { isPoint, overlap, type Range } from "../model/range.ts";
import { Stager } from "../core/stager.ts";

export interface Fetching extends Omit<Fetch, "id"> {
  id: number;
  /** Fetch that this one is a part of; null where a reader or a child asked for it (resync.ts). */
  readonly whole: Fetching | null;
  /** Digest that the parent was told of what this site has in the range; null where it was told nothing. */
  said: Digest | null;
  /** Number of times that the parent was told a digest, or is about to be. */
  tries: number;
  /** Number of parts that are still to come of an answer in parts; null where it has not come in parts. */
  parts: number | null;
  readonly done: PromiseWithResolvers<void>;
  readonly stager: Stager;
  /** Readers that wait, none of them for long. */
  readonly waiting: Set<PromiseWithResolvers<void>>;
  /** True where a caller other than a reader waits, for as long as it takes. */
  isWanted: boolean;
}

const isWholePoint = ({ range, limit }: Pick<Fetch, "range" | "limit">): boolean =>
  limit === 0 && isPoint(range);

export class Fetches {
  readonly #byId = new Map<number, Fetching>();
  /** Fetches of one key each, by the key. */
  readonly #points = new Map<Key, Fetching>();
  /** All other fetches. */
  readonly #wide = new Set<Fetching>();

  /** Returns a fetch whose answer will serve for another wanted one, too. */
  serving(wanted: Pick<Fetch, "range" | "limit" | "reverse">): Fetching | undefined {
    const { range, limit, reverse } = wanted;
    const point = isPoint(range) ? this.#points.get(range.start) : undefined;
    if (point !== undefined) return point;
    for (const f of this.#wide) {
      const inside = f.range.start <= range.start && f.range.end >= range.end;
      const equal = f.range.start === range.start && f.range.end === range.end;
      // A range that is compared takes longer than a part of it does by itself.
      if (f.tries > 0 && !equal) continue;
      const same = equal && f.reverse === reverse;
      if ((inside && f.limit === 0) || (same && limit > 0 && f.limit >= limit)) return f;
    }
    return undefined;
  }

  begin(fetch: Fetch, whole: Fetching | null = null): Fetching {
    const fetching: Fetching = {
      ...fetch,
      whole,
      said: null,
      tries: 0,
      parts: null,
      done: Promise.withResolvers<void>(),
      stager: new Stager(),
      waiting: new Set(),
      isWanted: whole !== null,
    };
    // Readers come and go: a reader that hung on the promise itself would stay there until it is settled.
    fetching.done.promise.then(
      () => fetching.waiting.forEach((reader) => reader.resolve()),
      (error) => fetching.waiting.forEach((reader) => reader.reject(error)),
    );
    this.#byId.set(fetch.id, fetching);
    if (isWholePoint(fetch)) this.#points.set(fetch.range.start, fetching);
    else this.#wide.add(fetching);
    return fetching;
  }

  /** Gives a fetch another number, since it is asked for anew: answers to the former question are nobody's. */
  renumber(fetching: Fetching, id: number): void {
    this.#byId.delete(fetching.id);
    fetching.id = id;
    this.#byId.set(id, fetching);
  }

  get(id: number): Fetching | undefined {
    return this.#byId.get(id);
  }

  end(fetching: Fetching): void {
    this.#byId.delete(fetching.id);
    if (isWholePoint(fetching)) this.#points.delete(fetching.range.start);
    else this.#wide.delete(fetching);
  }

  get size(): number {
    return this.#byId.size;
  }

  /** Ends a fetch that nobody waits for any more (F2). */
  endUnwanted(fetching: Fetching): void {
    if (!fetching.isWanted && fetching.waiting.size === 0 && this.#byId.get(fetching.id) === fetching) {
      this.end(fetching);
    }
  }

  all(): Iterable<Fetching> {
    return this.#byId.values();
  }

  /** Reports whether a key of a range is being fetched. */
  touch(range: Range): boolean {
    if (isPoint(range) && this.#points.has(range.start)) return true;
    const others = isPoint(range) ? this.#wide : this.#byId.values();
    for (const fetching of others) if (overlap(fetching.range, range)) return true;
    return false;
  }
}
