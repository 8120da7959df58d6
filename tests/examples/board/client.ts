/**
 * One emulated client: walks the board by its transition table, carries its session token from edge to edge, and
 * writes down what it was told.
 *
 * C1  One request at a time; its record is complete before the next one begins.
 * C2  The token it presents is the newest it got: it never skips one, and never makes one up.
 * C3  A write that got no answer is recorded as unknown, and not tried again.
 */
import { type Action, Clicks, type Habits } from "./actions.ts";
import { childrenIn, rowsIn, seen, written } from "./answers.ts";
import type { History, Operation, Written } from "./history.ts";
import type { Random } from "./random.ts";
import { type Interaction, type Transitions, Walk } from "./transitions.ts";

/** An edge as clients reach it. */
export interface Edge {
  readonly id: string;
  /** Sends a request to the app there; rejects when the site can't be reached. */
  readonly send: (path: string, init: RequestInit) => Promise<Response>;
}

/** What a client is told to be. */
export interface ClientOptions {
  readonly transitions: Transitions;
  readonly habits: Habits;
  /** Share of requests after which the client moves to another edge. */
  readonly moveShare: number;
  /** Share of ended walks after which the client begins a new session, with a new token. */
  readonly freshShare: number;
}

/** One request, for the figures. */
export interface Sample {
  readonly interaction: string;
  readonly site: string;
  readonly tookMs: number;
  readonly status: number;
  /** The `handoff` entry of Server-Timing: its description. */
  readonly handoff: string;
  /** … and its duration at the site. */
  readonly handoffMs: number;
  readonly code: string;
  /** The first request at another edge. */
  readonly moved: boolean;
}

const WRITERS: ReadonlySet<Interaction> = new Set([
  "StoreComment",
  "StoreStory",
  "StoreModerateLog",
  "AcceptStory",
  "RejectStory",
]);

/** One client. */
export class EmulatedClient {
  readonly #edges: readonly Edge[];
  readonly #history: History;
  readonly #options: ClientOptions;
  readonly #random: Random;
  readonly #walk: Walk;
  readonly #clicks: Clicks;
  readonly #report: (sample: Sample) => void;
  #record: Operation[];
  #edge: Edge;
  #token: string | null = null;
  /** The app's own cookie: whether it has a login to look up. */
  #cookie: string | null = null;
  #moved = false;

  constructor(
    edges: readonly Edge[],
    history: History,
    options: ClientOptions,
    random: Random,
    report: (sample: Sample) => void,
  ) {
    this.#edges = edges;
    this.#history = history;
    this.#options = options;
    this.#random = random;
    this.#walk = new Walk(options.transitions, random.fork(1));
    this.#clicks = new Clicks(options.habits, random.fork(2));
    this.#report = report;
    this.#record = history.begin();
    this.#edge = random.pick(edges);
  }

  /** Does the next thing; resolves with how long to wait before trying again (0: it went well). */
  async step(): Promise<{ waitMs: number }> {
    const interaction = this.#walk.at;
    if (WRITERS.has(interaction) && !this.#clicks.loggedIn) {
      const waitMs = await this.#request("Login", this.#clicks.logIn());
      if (waitMs > 0) return { waitMs };
    }
    const waitMs = await this.#request(interaction, this.#clicks.of(interaction));
    if (waitMs > 0) return { waitMs };
    if (this.#walk.step() === null) this.#endWalk();
    if (this.#random.unit() < this.#options.moveShare) this.#move();
    return { waitMs: 0 };
  }

  #endWalk(): void {
    this.#walk.restart();
    if (this.#random.unit() < this.#options.freshShare) this.#freshSession();
  }

  #freshSession(): void {
    this.#token = null;
    this.#cookie = null;
    this.#clicks.forget();
    this.#record = this.#history.begin();
  }

  #move(): void {
    const others = this.#edges.filter((edge) => edge !== this.#edge);
    if (others.length === 0) return;
    this.#edge = this.#random.pick(others);
    this.#moved = true;
  }

  /** Makes a request and records it; how long to wait where the site can't serve it now. */
  async #request(interaction: string, action: Action): Promise<number> {
    const startMs = performance.now();
    const edge = this.#edge;
    const moved = this.#moved;
    const answer = await exchange(edge, action, { token: this.#token, cookie: this.#cookie });
    const endMs = performance.now();
    const { status, json, code, handoff, handoffMs } = answer;
    const tookMs = endMs - startMs;
    this.#report({ interaction, site: edge.id, tookMs, status, handoff, handoffMs, code, moved });
    this.#note({ site: edge.id, interaction, startMs, endMs }, action, status, json);
    if (status >= 200 && status < 500 && status !== 410) {
      this.#moved = false;
      this.#token = answer.token ?? this.#token;
      this.#cookie = answer.cookie ?? this.#cookie;
      if (status < 300) action.remember?.(json);
      return 0;
    }
    if (status === 410) this.#freshSession(); // the site's journal is gone: start over, as a person would
    // With one edge out of reach, the next try goes elsewhere; where the source is away, any edge says so.
    this.#move();
    return answer.retryMs;
  }

  /** The name of the row, unseen by clients, that remembers a session's login. */
  #loginRow(): string {
    return `login/${this.#history.sessions.indexOf(this.#record)}`;
  }

  #note(
    at: Pick<Operation, "site" | "interaction" | "startMs" | "endMs">,
    action: Action,
    status: number,
    json: unknown,
  ): void {
    const done = status >= 200 && status < 300;
    // Logging in shows the user's row; all other forms answer with what they wrote.
    const readsOnly = action.form === undefined || at.interaction === "Login" ||
      at.interaction === "Author (task)";
    const outcome = done ? "acknowledged" : status >= 400 && status < 500 ? "refused" : "unknown";
    const rows = done ? rowsIn(json) : [];
    const gone = status === 404 ? [...action.names ?? []] : [];
    const deleted = new Set((action.deletes ?? []).map((row) => row.row));
    const isDeleted = (row: string) => deleted.has(row);
    const wrote: Written[] = !readsOnly
      ? rows.map((row) => written(this.#history, row)).map((row) =>
        isDeleted(row.row) ? { ...row, hash: null } : row
      )
      : [];
    const logsIn = action.form !== undefined && "password" in action.form;
    const login = logsIn && done ? [{ row: this.#loginRow(), version: LOGGED_IN, hash: LOGGED_IN }] : [];
    // To be told to log in after having logged in is a row of one's own that is gone.
    if (status === 401 && !logsIn) gone.push(this.#loginRow());
    this.#record.push({
      ...at,
      outcome,
      seen: [
        ...(readsOnly && done ? rows : []).map((row) => seen(this.#history, row)),
        ...gone.map((row) => ({ row, version: null, hash: null })),
      ],
      lists: done && readsOnly ? action.lists?.(json) ?? [] : [],
      written: outcome === "unknown" ? action.deletes ?? [] : [...wrote, ...login],
      added: outcome === "refused" ? [] : action.adds?.(json) ?? [],
      counted: done && action.story !== undefined ? childrenIn(json, action.story) : [],
    });
  }
}

/** The version of the row that stands for a session's login: there is one. */
const LOGGED_IN = "1";

interface Answer {
  readonly status: number;
  readonly json: unknown;
  readonly token: string | null;
  readonly cookie: string | null;
  readonly handoff: string;
  readonly handoffMs: number;
  readonly code: string;
  readonly retryMs: number;
}

/** A request that has not been answered after this long never will be: the platform's own limit is 30 s. */
const PATIENCE_MS = 35_000;
/** How soon to try elsewhere when a site is gone. */
const GONE_RETRY_MS = 100;

async function exchange(
  edge: Edge,
  action: Action,
  { token, cookie }: { readonly token: string | null; readonly cookie: string | null },
): Promise<Answer> {
  const headers: Record<string, string> = { accept: "application/json" };
  if (token !== null) headers["sojourn-session"] = token;
  if (cookie !== null) headers["cookie"] = cookie;
  if (action.form !== undefined) headers["content-type"] = "application/json";
  try {
    const response = await edge.send(action.path, {
      headers,
      redirect: "manual",
      signal: AbortSignal.timeout(PATIENCE_MS),
      ...action.form === undefined ? {} : { method: "POST", body: JSON.stringify(action.form) },
    });
    const json = await response.json().catch(() => null);
    const code = typeof json === "object" && json !== null && "code" in json ? String(json.code) : "";
    const timing = response.headers.get("server-timing") ?? "";
    const handoff = /handoff;desc="?([a-z]+)"?;dur=([0-9.]+)/.exec(timing);
    return {
      status: response.status,
      json,
      token: response.headers.get("sojourn-session"),
      cookie: response.headers.getSetCookie().find((set) => set.startsWith("board_"))?.split(";")[0] ?? null,
      handoff: handoff?.[1] ?? "",
      handoffMs: Number(handoff?.[2] ?? NaN),
      code,
      retryMs: Number(response.headers.get("retry-after") ?? 0.2) * 1000,
    };
  } catch {
    return {
      status: 0,
      json: null,
      token: null,
      cookie: null,
      handoff: "",
      handoffMs: NaN,
      code: "no_answer",
      retryMs: GONE_RETRY_MS,
    };
  }
}
