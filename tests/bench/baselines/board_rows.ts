/**
 * A bulletin board's rows after RUBBoS, as the app in examples/board keys and encodes them: users, stories by age
 * and by category, comments by story and level, with attachments where the paper adds 10 or 100 KB.
 *
 * B1  Rows follow from their numbers alone, so that a client knows what a row says without having read it: who
 *     wrote a story, what a comment answers.
 * B2  Only lengths matter to what is measured: texts are as long as RUBBoS's, and say nothing.
 */
import { encodeValue } from "../../../functions/values/value.ts";
import { type Key, packKey, unpackKey } from "../../../store/model/key.ts";
import { longValue } from "./disk.ts";
import type { Datum } from "./queries.ts";

/** How much of everything. */
export interface BoardSize {
  readonly users: number;
  readonly stories: number;
  readonly commentsPerStory: number;
  readonly categories: number;
  /** Added to each comment. */
  readonly attachmentBytes: number;
}

/** The paper's 195 comments a story; stories and users beyond those that its 100 clients can reach are left out. */
export const PAPER_BOARD: BoardSize = {
  users: 500,
  stories: 27,
  commentsPerStory: 195,
  categories: 20,
  attachmentBytes: 0,
};

/** The app's own ids have 18 characters. */
const idOf = (kind: string, number: number): string => kind + number.toString(36).padStart(17, "0");
const numberOf = (id: string): number => parseInt(id.slice(1), 36);
/** No client writes more often. */
const WRITES_MAX = 1_000;
const key = (...parts: readonly string[]): Key => packKey(["a", "board", "t", ...parts]);

/** RUBBoS: texts have at most 1,024 bytes, comments in the paper's rows about 700. */
const TEXT_BYTES: readonly [number, number] = [1, 1_024];
const SUBJECT = "a subject of the usual length";
const texts = new Map<number, string>();

function text(bytes: number): string {
  const known = texts.get(bytes) ?? "x".repeat(bytes);
  texts.set(bytes, known);
  return known;
}

/** A number in [0, below) that follows from others (murmur's finaliser). */
export function mixed(below: number, ...numbers: readonly number[]): number {
  let hash = 0x9e3779b9;
  for (const number of numbers) {
    hash = Math.imul(hash ^ number, 0x85ebca6b);
    hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
    hash ^= hash >>> 16;
  }
  return (hash >>> 0) % below;
}

/** Names of rows, ranges of lists, and rows. */
export class Board {
  readonly size: BoardSize;

  constructor(size: BoardSize) {
    this.size = size;
  }

  writerOf(story: number): number {
    return mixed(this.size.users, 1, story);
  }

  categoryOf(story: number): number {
    return mixed(this.size.categories, 2, story);
  }

  /** The user behind a client. */
  userOf(client: number): number {
    return mixed(this.size.users, 8, client);
  }

  /** Who wrote the n-th comment that a story had from the beginning. */
  authorOf(story: number, n: number): number {
    return mixed(this.size.users, 3, story, n);
  }

  /** Who wrote a comment, by its key. */
  authorOfRow(row: Key): number {
    const { story, id } = this.parsed(row);
    const number = numberOf(id);
    return id.startsWith("c") ? this.authorOf(story, number) : this.userOf(Math.floor(number / WRITES_MAX));
  }

  /** What a comment's key says. */
  parsed(row: Key): { story: number; parent: string; id: string } {
    const [story, parent, id] = unpackKey(row).slice(-3).map(String);
    return { story: numberOf(story ?? ""), parent: parent ?? "", id: id ?? "" };
  }

  /** What a story's key, or its entry in a category, says. */
  readonly storyOf = (row: Key): number => numberOf(String(unpackKey(row).at(-1)));

  /** The k-th thing that a client writes. */
  readonly writtenId = (client: number, k: number): string => idOf("w", client * WRITES_MAX + k);

  /** Which comment the n-th answers; empty: the story itself, as every second does. */
  parentOf(story: number, n: number): string {
    return n === 0 || mixed(5, 4, story, n) < 2 ? "" : idOf("c", mixed(n, 5, story, n));
  }

  readonly userKey = (user: number): Key => key("users", idOf("u", user));
  readonly storyKey = (story: number): Key => key("stories", idOf("s", story));
  readonly categoriesPrefix = key("categories");
  readonly storiesPrefix = key("stories");
  readonly commentsPrefix = key("comments");
  readonly byCategory = (category: number): Key => key("stories by category", idOf("g", category));
  /** `parent`: the id of the comment that is answered; empty for the story itself. */
  readonly level = (story: number, parent: string): Key => key("comments", idOf("s", story), parent);
  readonly commentKey = (story: number, parent: string, comment: string): Key =>
    key("comments", idOf("s", story), parent, comment);

  /** What a moderator leaves behind. */
  moderation(id: string, comment: string): Datum {
    const value = { id, moderator: id, comment, rating: 1 };
    return { key: key("moderations", id), value: encodeValue(value) };
  }

  user(user: number): Datum {
    const nick = `user${user}`;
    const value = {
      id: idOf("u", user),
      nickname: nick,
      nick,
      firstName: "Firstname",
      lastName: "Lastname",
      access: "user",
    };
    return { key: this.userKey(user), value: encodeValue(value) };
  }

  comment(story: number, parent: string, id: string, author: number): Datum {
    const bytes = TEXT_BYTES[0] + mixed(TEXT_BYTES[1] - TEXT_BYTES[0], 6, story, id.length, author);
    const value = encodeValue({
      story: idOf("s", story),
      parent,
      id,
      writer: idOf("u", author),
      subject: SUBJECT,
      sought: SUBJECT,
      children: 0,
      rating: 0,
      text: text(bytes),
    });
    const { attachmentBytes } = this.size;
    const whole = attachmentBytes === 0 ? value : longValue(value.length + attachmentBytes);
    return { key: this.commentKey(story, parent, id), value: whole };
  }

  *data(): Iterable<Datum> {
    const { users, stories, commentsPerStory, categories } = this.size;
    for (let i = 0; i < categories; i++) {
      yield {
        key: key("categories", idOf("g", i)),
        value: encodeValue({ id: idOf("g", i), name: `Category ${i}` }),
      };
    }
    for (let i = 0; i < users; i++) yield this.user(i);
    for (let story = 0; story < stories; story++) {
      yield* this.#story(story);
      for (let n = 0; n < commentsPerStory; n++) {
        yield this.comment(story, this.parentOf(story, n), idOf("c", n), this.authorOf(story, n));
      }
    }
  }

  *#story(story: number): Iterable<Datum> {
    const id = idOf("s", story), category = idOf("g", this.categoryOf(story));
    const body = text(TEXT_BYTES[0] + mixed(TEXT_BYTES[1] - TEXT_BYTES[0], 7, story));
    yield {
      key: this.storyKey(story),
      value: encodeValue({
        id,
        title: "A title as long as most",
        body,
        writer: idOf("u", this.writerOf(story)),
        category,
      }),
    };
    yield { key: key("stories by category", category, id), value: encodeValue("0123456789") };
  }
}
