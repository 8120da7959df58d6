/**
 * Data of the board at any size, from a seed: users, stories (nine in ten old), their comments, and counts.
 *
 * D1  The same options give the same rows, in the same order.
 * D2  Rows come in an order in which nothing refers to a later row.
 */
import { pbkdf2Sync } from "node:crypto";
import { idAt } from "../../../examples/board/ids.ts";
import { Random } from "./random.ts";
import type { Words } from "./words.ts";

/** How much of everything. */
export interface DataSize {
  readonly users: number;
  readonly stories: number;
  readonly comments: number;
  /** Length of a comment's text. */
  readonly commentBytes: number;
  /** Length of a comment's attachment; 0: none. */
  readonly attachmentBytes: number;
  readonly submissions: number;
  readonly categories: number;
}

export interface DataOptions extends DataSize {
  readonly seed: number;
  /** The time at which the newest row was made. */
  readonly nowMs: number;
  readonly words: Words;
}

/** A row to load, or an addition to a counter. */
export type Datum =
  | { readonly kind: "row"; readonly table: string; readonly value: Readonly<Record<string, unknown>> }
  | { readonly kind: "sum"; readonly key: readonly string[]; readonly by: number };

/** Stories are spread over so many days; those of the last three are young. */
const DAYS = 30;
const YOUNG_DAYS = 3;
const DAY_MS = 86_400_000;
const DIGITS = "0123456789abcdefghjkmnpqrstvwxyz";
/** RUBBoS asks nicknames and passwords of this form. */
export const nicknameOf = (user: number): string => `user${user}`;
export const passwordOf = (user: number): string => `password${user}`;

/** An id for a time, its random part drawn from a seed. */
export function seededId(timeMs: number, random: Random): string {
  let id = idAt(timeMs);
  for (let i = 0; i < 8; i++) id += DIGITS[random.below(32)];
  return id;
}

/** The generator. */
export class BoardData {
  readonly #options: DataOptions;
  readonly #random: Random;
  readonly #users: string[] = [];

  constructor(options: DataOptions) {
    this.#options = options;
    this.#random = new Random(options.seed);
  }

  /** All rows and counts. */
  *data(): Iterable<Datum> {
    yield* this.#categories();
    yield* this.#people();
    yield* this.#stories();
    for (let i = 0; i < this.#options.submissions; i++) {
      yield row("submissions", this.#story(this.#options.nowMs - i * 1000));
    }
  }

  *#categories(): Iterable<Datum> {
    for (let i = 0; i < this.#options.categories; i++) {
      const word = this.#options.words.word(this.#random);
      yield row("categories", {
        id: `c${i}`,
        name: `${word.slice(0, 1).toUpperCase()}${word.slice(1)} ${i}`,
      });
    }
  }

  *#people(): Iterable<Datum> {
    const { users, nowMs, words } = this.#options;
    for (let i = 0; i < users; i++) {
      const id = seededId(nowMs - DAYS * DAY_MS - (users - i) * 1000, this.#random);
      this.#users.push(id);
      const nickname = nicknameOf(i);
      const nick = nickname.toLowerCase();
      // RUBBoS: one client in ten is an author.
      const access = i % 10 === 0 ? "author" : "user";
      yield row("users", {
        id,
        nickname,
        nick,
        firstName: words.word(this.#random).slice(0, 60),
        lastName: words.word(this.#random).slice(0, 60),
        access,
      });
      yield row("accounts", {
        nick,
        user: id,
        email: `${nick}@example.org`,
        password: cheapHash(passwordOf(i)),
      });
    }
  }

  *#stories(): Iterable<Datum> {
    const { stories, comments, nowMs } = this.#options;
    let left = comments;
    for (let i = 0; i < stories; i++) {
      const ageMs = (DAYS * DAY_MS * (stories - i)) / stories;
      const timeMs = Math.floor(nowMs - ageMs);
      const old = ageMs > YOUNG_DAYS * DAY_MS;
      const story = this.#story(timeMs);
      yield row(old ? "oldStories" : "stories", story);
      // Up to twice the mean, so that what is left is spread over the stories that are left.
      const count = i === stories - 1
        ? left
        : Math.min(left, this.#random.below(Math.ceil(2 * left / (stories - i)) + 1));
      left -= count;
      yield* this.#comments(String(story["id"]), timeMs, count, old ? "oldComments" : "comments");
    }
  }

  #story(timeMs: number): Record<string, unknown> {
    const { words, categories } = this.#options;
    const title = words.text(this.#random, 20 + this.#random.below(60));
    return {
      id: seededId(timeMs, this.#random),
      title,
      sought: title.toLowerCase().slice(0, 40),
      body: words.text(this.#random, 1024),
      writer: this.#random.pick(this.#users),
      category: `c${this.#random.below(categories)}`,
    };
  }

  *#comments(story: string, storyMs: number, count: number, table: string): Iterable<Datum> {
    const { words, commentBytes, attachmentBytes } = this.#options;
    const ids: string[] = [];
    const children = new Map<string, number>();
    const attachment = attachmentBytes === 0
      ? {}
      : { attachment: attachmentOf(attachmentBytes, this.#random) };
    for (let i = 0; i < count; i++) {
      const id = seededId(storyMs + (i + 1) * 60_000, this.#random);
      const parent = ids.length === 0 || this.#random.unit() < 0.5 ? "" : this.#random.pick(ids);
      const subject = words.text(this.#random, 10 + this.#random.below(50));
      yield row(table, {
        story,
        parent,
        id,
        writer: this.#random.pick(this.#users),
        subject,
        sought: subject.toLowerCase().slice(0, 40),
        text: words.text(this.#random, commentBytes),
        ...attachment,
      });
      ids.push(id);
      children.set(parent, (children.get(parent) ?? 0) + 1);
      yield { kind: "sum", key: ["counts", story, id, "rating"], by: this.#random.below(7) - 1 };
    }
    for (const [parent, by] of children) {
      yield { kind: "sum", key: ["counts", story, parent, "children"], by };
    }
  }
}

const row = (table: string, value: Readonly<Record<string, unknown>>): Datum => ({
  kind: "row",
  table,
  value,
});

/** An attachment of the app's form: a data URL; the same noise in all comments of a story keeps this fast. */
export function attachmentOf(bytes: number, random: Random): string {
  const head = "data:application/octet-stream;base64,";
  const noise = new Uint8Array(Math.max(0, Math.ceil((bytes - head.length) * 3 / 4)));
  for (let i = 0; i < noise.length; i++) noise[i] = random.bits() & 255;
  return (head + noise.toBase64()).slice(0, bytes);
}

/** A hash of one round: people's passwords deserve 600,000, generated ones would take hours. */
function cheapHash(password: string): string {
  const salt = new TextEncoder().encode("generated data..");
  const hash = pbkdf2Sync(password, salt, 1, 32, "sha256");
  return `pbkdf2-sha256$1$${salt.toBase64()}$${hash.toString("base64")}`;
}
