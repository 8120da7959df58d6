/**
 * RUBBoS's interactions as requests to the board, and what a client remembers of the answers: which stories,
 * comments and submissions it could click on.
 */
import { type AnsweredRow, categoryGroup, counterOf, levelGroup, rowsAt, textAt, textOf } from "./answers.ts";
import { attachmentOf, nicknameOf, passwordOf } from "./generator.ts";
import type { Added, SeenList, Written } from "./history.ts";
import type { Random } from "./random.ts";
import type { Interaction } from "./transitions.ts";
import type { Words } from "./words.ts";

/** A request as a client makes it, and what it means. */
export interface Action {
  readonly path: string;
  /** The fields of a form: makes it a POST. */
  readonly form?: Readonly<Record<string, unknown>>;
  /** Rows that the request names, and would show: an answer 404 says that they are gone. */
  readonly names?: readonly string[];
  /** What it adds to counters if it is done; it may need the answer to name them. */
  readonly adds?: (answer: unknown) => Added[];
  /** Rows that it deletes if it is done, though no answer says so. */
  readonly deletes?: readonly Written[];
  /** Which lists the answer shows whole. */
  readonly lists?: (answer: unknown) => SeenList[];
  /** Remembers what one can click on. */
  readonly remember?: (answer: unknown) => void;
  /** The story that the answer's counts belong to. */
  readonly story?: string;
}

/** How a client writes. */
export interface Habits {
  readonly user: number;
  readonly words: Words;
  readonly commentBytes: number;
  readonly attachmentBytes: number;
}

/** What one client remembers, and its way to do each interaction. */
export class Clicks {
  readonly #random: Random;
  readonly #habits: Habits;
  #stories: readonly AnsweredRow[] = [];
  #story: AnsweredRow | null = null;
  #comments: readonly AnsweredRow[] = [];
  #comment: AnsweredRow | null = null;
  #categories: readonly AnsweredRow[] = [];
  #submissions: readonly AnsweredRow[] = [];
  #next: string | null = null;
  #loggedIn = false;

  constructor(habits: Habits, random: Random) {
    this.#habits = habits;
    this.#random = random;
  }

  get loggedIn(): boolean {
    return this.#loggedIn;
  }

  /** A new session knows nothing. */
  forget(): void {
    [this.#stories, this.#comments, this.#categories, this.#submissions] = [[], [], [], []];
    [this.#story, this.#comment, this.#next, this.#loggedIn] = [null, null, null, false];
  }

  /** Logs in as the client's user. */
  logIn(): Action {
    const { user } = this.#habits;
    return {
      path: "/logins",
      form: { nickname: nicknameOf(user), password: passwordOf(user) },
      remember: () => this.#loggedIn = true,
    };
  }

  /** The request of an interaction. */
  of(interaction: Interaction): Action {
    switch (interaction) {
      case "StoriesOfTheDay":
        return this.#home();
      case "Register":
        return { path: "/register" };
      case "RegisterUser":
        return this.#register();
      case "Browse":
        return { path: "/browse" };
      case "BrowseCategories":
        return { path: "/categories", remember: (answer) => this.#categories = rowsAt(answer, "categories") };
      case "BrowseStoriesInCategory":
        return this.#category();
      case "OlderStories":
        return this.#older();
      case "ViewStory":
        return this.#viewStory();
      case "ViewComment":
        return this.#viewComment();
      case "PostComment":
        return this.#story === null ? this.#home() : { path: `/stories/${this.#story.key[0]}/reply` };
      case "StoreComment":
        return this.#storeComment();
      case "ModerateComment":
        return this.#moderate(false);
      case "StoreModerateLog":
        return this.#moderate(true);
      case "SubmitStory":
        return { path: "/submit", remember: (answer) => this.#categories = rowsAt(answer, "categories") };
      case "StoreStory":
        return this.#storeStory();
      case "Search":
        return { path: "/search" };
      case "SearchInStories":
        return this.#search("stories", (answer) => this.#stories = rowsAt(answer, "stories"));
      case "SearchInComments":
        return this.#search("comments", (answer) => this.#comments = rowsAt(answer, "comments"));
      case "SearchInUsers":
        return this.#search("users", () => {});
      case "Author (login)":
        return { path: "/login" };
      case "Author (task)":
        return this.logIn();
      case "ReviewStories":
        return this.#review();
      case "AcceptStory":
      case "RejectStory":
        return this.#decide(interaction === "AcceptStory" ? "accept" : "reject");
    }
  }

  #home(): Action {
    return {
      path: "/",
      lists: (answer) => [newestFirst("stories", rowsAt(answer, "stories"), 10, null)],
      remember: (answer) => this.#stories = rowsAt(answer, "stories"),
    };
  }

  #register(): Action {
    const nickname = `new-${this.#random.bits().toString(36)}${this.#random.bits().toString(36)}`;
    return {
      path: "/accounts",
      form: {
        nickname,
        firstName: "New",
        lastName: "Reader",
        email: `${nickname}@example.org`,
        password: `password of ${nickname}`,
      },
      remember: () => this.#loggedIn = true,
    };
  }

  #category(): Action {
    const category = this.#categories.length === 0
      ? "c0"
      : String(this.#random.pick(this.#categories).key[0]);
    const before = this.#random.unit() < 0.5 ? null : this.#next;
    return {
      path: `/categories/${category}${before === null ? "" : `?before=${before}`}`,
      lists: (answer) => [newestFirst(categoryGroup(category), rowsAt(answer, "stories"), 20, before)],
      remember: (answer) => this.#rememberPage(answer),
    };
  }

  #older(): Action {
    const before = this.#random.unit() < 0.3 ? null : this.#next;
    return {
      path: `/older${before === null ? "" : `?before=${before}`}`,
      lists: (answer) => [newestFirst("stories", rowsAt(answer, "stories"), 20, before)],
      remember: (answer) => this.#rememberPage(answer),
    };
  }

  #rememberPage(answer: unknown): void {
    const stories = rowsAt(answer, "stories");
    if (stories.length > 0) this.#stories = stories;
    this.#next = textAt(answer, "next");
  }

  #viewStory(): Action {
    if (this.#stories.length === 0) return this.#home();
    const { key, table } = this.#random.pick(this.#stories);
    const id = key[0] ?? "";
    return {
      path: `/stories/${id}`,
      names: [`${table}/${id}`],
      story: id,
      lists: (answer) => [oldestFirst(levelGroup(id, ""), answer)],
      remember: (answer) => {
        this.#story = rowsAt(answer, "story")[0] ?? null;
        this.#comments = rowsAt(answer, "comments");
        this.#comment = null;
      },
    };
  }

  #viewComment(): Action {
    if (this.#comments.length === 0) return this.#viewStory();
    const row = this.#random.pick(this.#comments);
    const [story = "", , id = ""] = row.key;
    return {
      path: pathOf(row),
      names: [`${row.table}/${row.key.join("/")}`],
      story,
      lists: (answer) => [oldestFirst(levelGroup(story, id), answer)],
      remember: (answer) => {
        this.#comment = rowsAt(answer, "comment")[0] ?? null;
        const answers = rowsAt(answer, "comments");
        if (answers.length > 0) this.#comments = answers;
      },
    };
  }

  #storeComment(): Action {
    const story = this.#story?.key[0];
    if (story === undefined) return this.#home();
    const to = this.#comment?.key[0] === story && this.#random.unit() < 0.7 ? this.#comment : null;
    const { words, commentBytes, attachmentBytes } = this.#habits;
    const attachment = attachmentBytes === 0
      ? {}
      : { attachment: attachmentOf(attachmentBytes, this.#random) };
    return {
      path: `/stories/${story}/comments`,
      form: {
        to: to === null ? "" : refOf(to),
        subject: words.text(this.#random, 40),
        text: words.text(this.#random, commentBytes),
        ...attachment,
      },
      adds: (answer) => {
        const [row] = rowsAt(answer, "comment");
        const children = { counter: counterOf(["counts", story, to?.key[2] ?? "", "children"]), by: 1 };
        if (row === undefined) return [children];
        const by = textOf(row, "writer") === "" ? 0 : 1;
        return [children, { counter: counterOf(["counts", story, row.key[2] ?? "", "rating"]), by }];
      },
    };
  }

  #moderate(store: boolean): Action {
    const row = this.#comment ?? (this.#comments.length === 0 ? null : this.#random.pick(this.#comments));
    if (row === null) return this.#viewStory();
    this.#comment = row;
    const path = `${pathOf(row)}/moderate`;
    if (!store) return { path, names: [`${row.table}/${row.key.join("/")}`] };
    const rating = this.#random.unit() < 0.5 ? 1 : -1;
    const [story = "", , id = ""] = row.key;
    const writer = textOf(row, "writer");
    return {
      path,
      form: { rating },
      adds: () => [
        { counter: counterOf(["counts", story, id, "rating"]), by: rating },
        ...writer === "" ? [] : [{ counter: counterOf(["karma", writer]), by: rating }],
      ],
    };
  }

  #storeStory(): Action {
    const { words } = this.#habits;
    const category = this.#categories.length === 0
      ? "c0"
      : String(this.#random.pick(this.#categories).key[0]);
    return {
      path: "/submissions",
      form: { title: words.text(this.#random, 60), body: words.text(this.#random, 1024), category },
    };
  }

  #search(what: string, remember: (answer: unknown) => void): Action {
    // A word's first letters, so that something is found now and then.
    const query = this.#habits.words.word(this.#random).slice(0, 3);
    return { path: `/search/${what}?q=${encodeURIComponent(query)}`, remember };
  }

  #review(): Action {
    return {
      path: "/submissions",
      lists: (answer) => [newestFirst("submissions", rowsAt(answer, "submissions"), 20, null)],
      remember: (answer) => this.#submissions = rowsAt(answer, "submissions"),
    };
  }

  #decide(verdict: "accept" | "reject"): Action {
    if (this.#submissions.length === 0) return this.#review();
    const row = this.#random.pick(this.#submissions);
    this.#submissions = this.#submissions.filter((other) => other !== row);
    return {
      path: `/submissions/${row.key[0]}/${verdict}`,
      form: {},
      names: [`submissions/${row.key[0]}`],
      deletes: [{ row: `submissions/${row.key[0]}`, version: null, hash: null }],
    };
  }
}

const refOf = (comment: AnsweredRow): string => {
  const [, parent = "", id = ""] = comment.key;
  return parent === "" ? id : `${parent}.${id}`;
};

const pathOf = (comment: AnsweredRow): string => `/stories/${comment.key[0]}/comments/${refOf(comment)}`;

/** What a page of a list, newest first, shows whole: down to its last row, or to the list's end. */
function newestFirst(
  group: string,
  rows: readonly AnsweredRow[],
  full: number,
  before: string | null,
): SeenList {
  return { group, from: rows.length < full ? "" : rows.at(-1)?.key.at(-1) ?? "", to: before };
}

/** What the first page of a level shows whole: up to its last row, or to the level's end. */
function oldestFirst(group: string, answer: unknown): SeenList {
  const next = textAt(answer, "next");
  return { group, from: "", to: next === null ? null : `${next}0` };
}
