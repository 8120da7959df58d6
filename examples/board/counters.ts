/**
 * What many people change at once: the number of answers to a comment, ratings of comments and of users. Each is
 * a sum in kv: additions made at several sites at the same time all count.
 *
 * ["counts", story, comment, "children" | "rating"], the story itself being comment "" · ["karma", user]
 */
import type { Env } from "./resources.ts";

/** RUBBoS keeps ratings within these bounds; a sum may run beyond, so it is shown cut off. */
export const RATING_MIN = -1;
export const RATING_MAX = 5;

/** The counts of one comment. */
export interface Counts {
  readonly children: number;
  readonly rating: number;
}

const NONE: Counts = { children: 0, rating: 0 };

/** The key of one count. */
export const countKey = (
  story: string,
  comment: string,
  what: keyof Counts,
) => ["counts", story, comment, what];
/** The key of a user's rating. */
export const karmaKey = (user: string) => ["karma", user];

const shownRating = (sum: number): number => Math.max(RATING_MIN, Math.min(RATING_MAX, sum));

/** The counts of all comments of a story: one range. */
export class StoryCounts {
  readonly #byComment = new Map<string, Counts>();

  private constructor() {}

  /** Reads them. */
  static async read(kv: Env["kv"], story: string): Promise<StoryCounts> {
    const counts = new StoryCounts();
    for await (const { key, value } of kv.list<number>({ prefix: ["counts", story] })) {
      const comment = String(key[2]);
      counts.#byComment.set(comment, { ...counts.of(comment), [String(key[3])]: value });
    }
    return counts;
  }

  /** The counts of one comment; nothing counted is zero. The story itself is comment "". */
  of(comment: string): Counts {
    const { children, rating } = this.#byComment.get(comment) ?? NONE;
    return { children, rating: shownRating(rating) };
  }

  /** For JSON: counts by comment. */
  toJSON(): Record<string, Counts> {
    return Object.fromEntries([...this.#byComment.keys()].map((comment) => [comment, this.of(comment)]));
  }

  /** How many comments of the story have which rating, lowest first. */
  byRating(): { rating: number; count: number }[] {
    const histogram = new Map<number, number>();
    for (const comment of this.#byComment.keys()) {
      if (comment === "") continue;
      const { rating } = this.of(comment);
      histogram.set(rating, (histogram.get(rating) ?? 0) + 1);
    }
    return [...histogram].map(([rating, count]) => ({ rating, count })).sort((a, b) => a.rating - b.rating);
  }
}
