/**
 * Walks of an emulated client through the bulletin board, by RUBBoS's transition tables.
 *
 * A table has a column per state the client is in and a row per state it may go to, plus `Back` (to the page
 * before, as with the browser's button) and `End of Session`. Columns don't all sum to 1, so the next state is
 * drawn cumulatively, in the order of the rows; a draw beyond the sum stays where it is.
 */
import { z } from "zod";
import type { Random } from "./random.ts";

/** The pages and actions of the board, in the order of the tables' rows. */
export const INTERACTIONS = [
  "StoriesOfTheDay",
  "Register",
  "RegisterUser",
  "Browse",
  "BrowseCategories",
  "BrowseStoriesInCategory",
  "OlderStories",
  "ViewStory",
  "PostComment",
  "StoreComment",
  "ViewComment",
  "ModerateComment",
  "StoreModerateLog",
  "SubmitStory",
  "StoreStory",
  "Search",
  "SearchInStories",
  "SearchInComments",
  "SearchInUsers",
  "Author (login)",
  "Author (task)",
  "ReviewStories",
  "AcceptStory",
  "RejectStory",
] as const;

export type Interaction = (typeof INTERACTIONS)[number];

const BACK = "Back probability";
const END = "End of Session";

const tableSchema = z.object({
  columns_from_state: z.array(z.string()).length(INTERACTIONS.length),
  p: z.record(z.string(), z.array(z.number().min(0).max(1)).length(INTERACTIONS.length)),
}).refine((table) => INTERACTIONS.every((name) => name in table.p), {
  message: `a transition table needs a row for each of ${INTERACTIONS.join(", ")}`,
});

type Step = Interaction | "back" | "end";
/** Where one goes from each state: steps with their cumulative probability. */
export type Transitions = ReadonlyMap<Interaction, readonly { readonly upTo: number; readonly step: Step }[]>;

/** Parses one table of RUBBoS's file as converted to JSON. @throws where it has another shape. */
export function parseTransitions(file: unknown, name: string): Transitions {
  const tables = z.record(z.string(), z.unknown()).parse(file);
  const { p } = tableSchema.parse(tables[name]);
  const rows: [Step, readonly number[]][] = INTERACTIONS.map((to) => [to, p[to] ?? []]);
  rows.push(["back", p[BACK] ?? []], ["end", p[END] ?? []]);
  return cumulative((to, column) => rows[to]?.[1][column] ?? 0, rows.map(([step]) => step));
}

function cumulative(chance: (row: number, column: number) => number, steps: readonly Step[]): Transitions {
  return new Map(INTERACTIONS.map((from, column) => {
    let upTo = 0;
    const columnSteps = [];
    for (const [row, step] of steps.entries()) {
      const p = chance(row, column);
      if (p > 0) columnSteps.push({ upTo: upTo += p, step });
    }
    return [from, columnSteps];
  }));
}

/**
 * A small table of our own, for where RUBBoS's file is absent: every interaction is reached, one in six writes.
 */
export function builtInTransitions(): Transitions {
  const next: Record<Interaction, Partial<Record<Step, number>>> = {
    "StoriesOfTheDay": {
      ViewStory: 0.4,
      Browse: 0.2,
      Search: 0.1,
      "Author (login)": 0.1,
      SubmitStory: 0.05,
      Register: 0.05,
      end: 0.1,
    },
    "Register": { RegisterUser: 1 },
    "RegisterUser": { StoriesOfTheDay: 0.9, end: 0.1 },
    "Browse": { BrowseCategories: 0.5, OlderStories: 0.5 },
    "BrowseCategories": { BrowseStoriesInCategory: 1 },
    "BrowseStoriesInCategory": {
      ViewStory: 0.6,
      BrowseStoriesInCategory: 0.2,
      back: 0.1,
      StoriesOfTheDay: 0.1,
    },
    "OlderStories": { ViewStory: 0.5, OlderStories: 0.3, StoriesOfTheDay: 0.2 },
    "ViewStory": { PostComment: 0.25, ViewComment: 0.4, ModerateComment: 0.1, back: 0.15, end: 0.1 },
    "PostComment": { StoreComment: 1 },
    "StoreComment": { StoriesOfTheDay: 0.4, ViewStory: 0.5, end: 0.1 },
    "ViewComment": { PostComment: 0.2, ViewComment: 0.3, ModerateComment: 0.1, back: 0.3, end: 0.1 },
    "ModerateComment": { StoreModerateLog: 1 },
    "StoreModerateLog": { StoriesOfTheDay: 0.8, end: 0.2 },
    "SubmitStory": { StoreStory: 1 },
    "StoreStory": { StoriesOfTheDay: 0.6, "Author (login)": 0.3, end: 0.1 },
    "Search": { SearchInStories: 0.5, SearchInComments: 0.3, SearchInUsers: 0.2 },
    "SearchInStories": { ViewStory: 0.6, SearchInStories: 0.2, Search: 0.2 },
    "SearchInComments": { ViewComment: 0.6, StoriesOfTheDay: 0.4 },
    "SearchInUsers": { StoriesOfTheDay: 0.8, Search: 0.2 },
    "Author (login)": { "Author (task)": 1 },
    "Author (task)": { ReviewStories: 1 },
    "ReviewStories": { AcceptStory: 0.5, RejectStory: 0.3, StoriesOfTheDay: 0.2 },
    "AcceptStory": { back: 0.3, StoriesOfTheDay: 0.7 },
    "RejectStory": { back: 0.3, StoriesOfTheDay: 0.7 },
  };
  const steps: Step[] = [...INTERACTIONS, "back", "end"];
  return cumulative((row, column) => {
    const from = INTERACTIONS[column];
    const to = steps[row];
    return from === undefined || to === undefined ? 0 : next[from][to] ?? 0;
  }, steps);
}

/** One client's way through the board: the page it is on, and the pages behind it. */
export class Walk {
  readonly #transitions: Transitions;
  readonly #random: Random;
  #behind: Interaction[] = [];
  #at: Interaction = "StoriesOfTheDay";

  constructor(transitions: Transitions, random: Random) {
    this.#transitions = transitions;
    this.#random = random;
  }

  /** The page the client is on; a session begins with the stories of the day. */
  get at(): Interaction {
    return this.#at;
  }

  /** Goes on; null at the end of the session. */
  step(): Interaction | null {
    const draw = this.#random.unit();
    const step = this.#transitions.get(this.#at)?.find((candidate) => draw < candidate.upTo)?.step ??
      this.#at;
    if (step === "end") return null;
    if (step === "back") return this.#at = this.#behind.pop() ?? "StoriesOfTheDay";
    this.#behind.push(this.#at);
    return this.#at = step;
  }

  /** Begins a new session. */
  restart(): void {
    this.#behind = [];
    this.#at = "StoriesOfTheDay";
  }
}
