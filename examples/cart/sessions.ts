/**
 * The two kinds of stateful sessions of the shop: a cart each customer, a shelf each article. Each lives at one site, and
 * goes on at another when that is lost.
 *
 * S1  A piece is on its shelf, in one cart or in one order: what a cart takes the shelf gives, once, whatever site is lost
 *     in between. (The call from cart to shelf carries an id: made again, it is not done again.)
 * S2  A request that a customer sends again with the same key is answered as it was, and not done again.
 * S3  A cart is ordered once. What is ordered is a row of `orders`; a row that is written again is the same row.
 */
import { type EnvOf, map, Session, table } from "sojourn";
import * as z from "zod";
import { articleOf } from "./articles.ts";

const line = z.object({ article: z.string(), count: z.number().int(), cents: z.number().int() });

export const resources = {
  tables: {
    orders: table({
      schema: z.object({
        order: z.string(),
        cart: z.string(),
        at: z.number(),
        lines: z.array(line),
        cents: z.number().int(),
      }),
      key: ["order"],
    }),
  },
  vars: {
    /** A cart that nobody touches for so long is emptied: half an hour. */
    FORGET_MS: "1800000",
  },
} as const;

/** The app's env. */
export type Env = EnvOf<typeof resources, { cart: Cart; shelf: Shelf }>;

export interface Line {
  readonly article: string;
  readonly count: number;
  readonly cents: number;
}

/** What a customer sees of a cart. */
export interface Contents {
  readonly cart: string;
  readonly lines: readonly Line[];
  readonly cents: number;
  /** Once it is ordered. */
  readonly order: string | null;
}

/** What is done, or why not. */
export type Answer =
  | { readonly ok: true; readonly contents: Contents }
  | { readonly ok: false; readonly problem: string };

const refused = (problem: string): Answer => ({ ok: false, problem });

/** Answers are kept for so many keys: a customer who asks again does so soon. */
const KEYS_MAX = 50;

/** What one customer wants. */
export class Cart extends Session<Env> {
  /** Pieces by article, in the order in which they came. */
  counts = map<string, number>();
  answers = map<string, Answer>();
  order: string | null = null;

  show(): Contents {
    const lines = [...this.counts].map(([article, count]): Line => ({
      article,
      count,
      cents: count * (articleOf(article)?.cents ?? 0),
    }));
    const cents = lines.reduce((sum, line) => sum + line.cents, 0);
    return { cart: this.id, lines, cents, order: this.order };
  }

  /** Takes pieces from their shelf, or puts them back where `count` is negative. */
  async add(article: string, count: number, key: string | null): Promise<Answer> {
    return await this.#once(key, async () => {
      if (this.order !== null) return refused(`the cart is ordered already, as ${this.order}`);
      const had = this.counts.get(article) ?? 0;
      const change = Math.max(count, -had);
      const { left } = await this.env.sessions.shelf.get(article).take(change);
      if (left < 0) return refused(`there are only ${left + change} ${article}`);
      if (had + change === 0) this.counts.delete(article);
      else this.counts.set(article, had + change);
      this.setTimer("forgotten", Number(this.env.vars.FORGET_MS));
      return { ok: true, contents: this.show() };
    });
  }

  /** Orders what is in it; asked again, it answers the same. */
  async checkout(): Promise<Answer> {
    if (this.order === null) {
      if (this.counts.size === 0) return refused("the cart is empty");
      const { cart, lines, cents } = this.show();
      // Drawn from the session's own stream: should all of this be done again elsewhere, it is the same.
      const order = crypto.randomUUID();
      await this.env.tables.orders.put({ order, cart, at: Date.now(), lines: [...lines], cents });
      this.order = order;
      this.setTimer("forgotten", Number(this.env.vars.FORGET_MS));
    }
    return { ok: true, contents: this.show() };
  }

  /** S2. */
  async #once(key: string | null, work: () => Promise<Answer>): Promise<Answer> {
    const before = key === null ? undefined : this.answers.get(key);
    if (before !== undefined) return before;
    const answer = await work();
    if (key !== null) {
      this.answers.set(key, answer);
      const [oldest] = this.answers.keys();
      if (this.answers.size > KEYS_MAX && oldest !== undefined) this.answers.delete(oldest);
    }
    return answer;
  }

  /** Nobody came back: what is not ordered goes back to its shelf. */
  override async onTimer(name: string): Promise<void> {
    if (name !== "forgotten") return;
    if (this.order === null) {
      for (const [article, count] of this.counts) await this.env.sessions.shelf.get(article).take(-count);
    }
    this.end();
  }
}

/** The pieces of one article that nobody has. */
export class Shelf extends Session<Env> {
  /** Null: nobody has taken any yet. */
  pieces: number | null = null;

  left(): number {
    return this.pieces ?? articleOf(this.id)?.stock ?? 0;
  }

  /** Takes pieces, or puts them back; how many are left. Negative: so many are missing, and none was taken. */
  take(count: number): { readonly left: number } {
    const left = this.left() - count;
    if (left >= 0) this.pieces = left;
    return { left };
  }
}
