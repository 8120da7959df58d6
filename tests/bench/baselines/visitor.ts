/**
 * A client of the board: RUBBoS's walk (tests/examples/board/transitions.ts), each page as the queries that RUBBoS's servlets
 * run for it, one table each (SessionStore has no joins).
 *
 * Pages that show a form only read nothing here; searches and what authors do are left out, and so are the writers'
 * names beside comments: with them a query gave twice the rows that the paper's gave. As RUBBoS has it, an answer is
 * counted in the comment that it answers, and a moderator's mark in the comment: whole rows are written again.
 */
import type { Row } from "../../../store/model/row.ts";
import type { Key } from "../../../store/model/key.ts";
import { prefixRange } from "../../../store/model/range.ts";
import type { Random } from "../../examples/board/random.ts";
import { type Transitions, Walk } from "../../examples/board/transitions.ts";
import type { Board } from "./board_rows.ts";
import type { Datum, Query } from "./queries.ts";

/** A replica, to one request of a client. */
export interface Access {
  read(query: Query): Promise<readonly Row[]>;
  write(data: readonly Datum[]): Promise<void>;
}

const DAY_STORIES = 10;
const PAGE_STORIES = 20;

/** One client. */
export class Visitor {
  readonly #board: Board;
  readonly #client: number;
  readonly #random: Random;
  readonly #walk: Walk;
  #stories: number[] = [];
  #story: number | null = null;
  #comments: readonly Row[] = [];
  #writes = 0;
  /** What it asked so far, and how many rows that gave. */
  readonly queries: Query[] = [];
  rows = 0;

  constructor(board: Board, client: number, transitions: Transitions, random: Random) {
    this.#board = board;
    this.#client = client;
    this.#random = random;
    this.#walk = new Walk(transitions, random);
  }

  /** How many queries it has run, writes included. */
  get count(): number {
    return this.queries.length + this.#writes;
  }

  /** The next page. */
  async page(access: Access): Promise<void> {
    const at = this.#walk.step();
    if (at === null) {
      this.#walk.restart();
      return await this.#list(access, this.#newest(DAY_STORIES, this.#board.size.stories));
    }
    switch (at) {
      case "StoriesOfTheDay":
        return await this.#list(access, this.#newest(DAY_STORIES, this.#board.size.stories));
      case "OlderStories":
        return await this.#list(
          access,
          this.#newest(PAGE_STORIES, 1 + this.#random.below(this.#board.size.stories)),
        );
      case "BrowseCategories":
      case "SubmitStory":
        await this.#read(access, {
          kind: "list",
          range: prefixRange(this.#board.categoriesPrefix),
          limit: 0,
          reverse: false,
        });
        return;
      case "BrowseStoriesInCategory":
        return await this.#category(access);
      case "ViewStory":
        return await this.#viewStory(access);
      case "ViewComment":
        return await this.#viewComment(access);
      case "StoreComment":
        return await this.#storeComment(access);
      case "StoreModerateLog":
        return await this.#moderate(access);
      default:
        return;
    }
  }

  async #read(access: Access, query: Query): Promise<readonly Row[]> {
    if (query.kind === "rows" && query.keys.length === 0) return [];
    this.queries.push(query);
    const rows = await access.read(query);
    this.rows += rows.length;
    return rows;
  }

  /** The newest of the stories below a number. */
  #newest(limit: number, below: number): Query {
    const { storiesPrefix, storyKey } = this.#board;
    const range = { start: prefixRange(storiesPrefix).start, end: storyKey(below) };
    return { kind: "list", range, limit, reverse: true };
  }

  async #list(access: Access, query: Query): Promise<void> {
    const rows = await this.#read(access, query);
    this.#stories = rows.map((row) => this.#board.storyOf(row.key));
    await this.#users(access, this.#stories.map((story) => this.#board.writerOf(story)));
  }

  async #users(access: Access, users: readonly number[]): Promise<void> {
    const keys = [...new Set(users)].map((user) => this.#board.userKey(user));
    await this.#read(access, { kind: "rows", keys });
  }

  async #category(access: Access): Promise<void> {
    const range = prefixRange(this.#board.byCategory(this.#random.below(this.#board.size.categories)));
    const entries = await this.#read(access, { kind: "list", range, limit: PAGE_STORIES, reverse: true });
    const stories = entries.map((row) => this.#board.storyOf(row.key));
    const keys = stories.map((story) => this.#board.storyKey(story));
    await this.#read(access, { kind: "rows", keys });
    this.#stories = stories;
  }

  async #viewStory(access: Access): Promise<void> {
    if (this.#stories.length === 0) {
      return await this.#list(access, this.#newest(DAY_STORIES, this.#board.size.stories));
    }
    const story = this.#story = this.#random.pick(this.#stories);
    await this.#read(access, { kind: "rows", keys: [this.#board.storyKey(story)] });
    await this.#users(access, [this.#board.writerOf(story)]);
    await this.#level(access, this.#board.level(story, ""));
  }

  async #level(access: Access, prefix: Key): Promise<void> {
    const rows = await this.#read(access, {
      kind: "list",
      range: prefixRange(prefix),
      limit: 0,
      reverse: false,
    });
    if (rows.length > 0) this.#comments = rows;
  }

  async #viewComment(access: Access): Promise<void> {
    if (this.#comments.length === 0) return await this.#viewStory(access);
    const comment = this.#random.pick(this.#comments);
    const { story, id } = this.#board.parsed(comment.key);
    await this.#read(access, { kind: "rows", keys: [comment.key] });
    await this.#level(access, this.#board.level(story, id));
  }

  async #storeComment(access: Access): Promise<void> {
    const story = this.#story;
    if (story === null) return await this.#viewStory(access);
    const answers = this.#comments.find((row) => this.#board.parsed(row.key).story === story);
    const answered = this.#random.unit() < 0.5 ? undefined : answers;
    const parent = answered === undefined ? "" : this.#board.parsed(answered.key).id;
    const id = this.#board.writtenId(this.#client, this.#writes);
    await this.#write(access, [
      this.#board.comment(story, parent, id, this.#board.userOf(this.#client)),
      ...answered === undefined ? [] : [again(answered)],
    ]);
  }

  async #moderate(access: Access): Promise<void> {
    if (this.#comments.length === 0) return await this.#viewStory(access);
    const comment = this.#random.pick(this.#comments);
    const id = this.#board.writtenId(this.#client, this.#writes);
    await this.#write(access, [
      again(comment),
      this.#board.moderation(id, this.#board.parsed(comment.key).id),
    ]);
  }

  /** One statement a row. */
  async #write(access: Access, data: readonly Datum[]): Promise<void> {
    this.#writes += data.length;
    await access.write(data);
  }
}

/** A row with another number in it: as long as before. */
const again = ({ key, value }: Row): Datum => ({ key, value: new Uint8Array(value ?? []) });
