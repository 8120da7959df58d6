/** People who play at real sites, as their pages would, and a witness at each table who is told what they are told. */
import type { State } from "../../../examples/pong/messages.ts";
import type { View } from "../../../examples/scrabble/messages.ts";
import type { Draws } from "../../sim/random.ts";
import { LibrarySocket } from "./library_socket.ts";
import { PlayerSocket, type SocketUse } from "./player_socket.ts";
import { PongWitness } from "./pong_witness.ts";
import { wish } from "./scrabble_bot.ts";
import { ScrabbleWitness } from "./scrabble_witness.ts";

/** How often a person moves a paddle, and thinks of a word. */
const AIM_MS = 33;
const THINK_MS = 400;
/** A table that is played at says something all the time. Longer than a table takes to move to another site. */
const SILENT_MS = 5_000;
/** A move of scrabble is sent again, if nothing is heard of it. */
const AGAIN_MS = 3_000;

/** Plain WebSockets, or those of the client library. */
export type Sockets = "plain" | "library";
const socketFor = (kind: Sockets, use: SocketUse): PlayerSocket | LibrarySocket =>
  kind === "plain" ? new PlayerSocket(use) : new LibrarySocket(use);
/** What was said last arrives within this time, once nothing is killed any more. */
const ARRIVES_MS_MAX = 10_000;

/** What becomes of a table, for those who watch it. */
export interface Watched {
  readonly kind: "pong" | "scrabble";
  readonly name: string;
  /** When something new was last told to each player, and how often. */
  readonly players: readonly { readonly progressMs: number; readonly progress: number }[];
  /** What contradicts, and what was lost. */
  judge(): readonly string[];
  /** Aims that left over connections that broke, and never counted: plain WebSockets may lose some. */
  readonly unanswered: number;
  /** Those that counted. */
  readonly counted: number;
  readonly told: number;
  stop(): Promise<void>;
}

class PongPlayer {
  readonly #socket: PlayerSocket | LibrarySocket;
  readonly #draws: Draws;
  readonly #key = crypto.randomUUID();
  readonly #timer: ReturnType<typeof setInterval>;
  #state: State | null = null;
  #seat: 0 | 1 | null = null;
  #n = 0;
  sent = 0;
  progressMs = 0;
  progress = 0;

  constructor(kind: Sockets, urls: readonly string[], name: string, witness: PongWitness, draws: Draws) {
    this.#draws = draws;
    this.#socket = socketFor(kind, {
      urls,
      opened: () => void this.#socket.say({ kind: "sit", key: this.#key, name }),
      heard: (connection, text) => {
        witness.hear(`${name}, ${connection}`, text);
        const words = JSON.parse(text);
        if (words.kind === "you") {
          this.#seat = words.seat;
          this.#n = Math.max(this.#n, words.seen);
        } else this.#take(words);
      },
      silentMsMax: () => this.#isPlayed() ? SILENT_MS : null,
    });
    this.#timer = setInterval(() => this.#aim(), AIM_MS);
  }

  #isPlayed(): boolean {
    return this.#state?.phase === "rally" || this.#state?.phase === "hold";
  }

  #take(state: State): void {
    this.#state = state;
    if (state.phase === "over") this.#socket.say({ kind: "again" });
    if (!this.#isPlayed()) return;
    this.progress++;
    this.progressMs = performance.now();
  }

  #aim(): void {
    if (this.#seat === null) return;
    const y = (this.#state?.ball[1] ?? 50) + this.#draws.integer(-10, 10);
    if (this.#socket.say({ kind: "aim", n: this.#n + 1, y })) {
      [this.#n, this.sent] = [this.#n + 1, this.sent + 1];
    }
  }

  /** Aims that count. */
  get counted(): number {
    return this.#seat === null ? 0 : this.#state?.seen[this.#seat] ?? 0;
  }

  /** Moves that never counted though what they were said on did not break. */
  lost = 0;

  async stop(): Promise<void> {
    clearInterval(this.#timer);
    const untilMs = performance.now() + ARRIVES_MS_MAX;
    const isWhole = this.#socket instanceof LibrarySocket && this.#socket.breaks === 0;
    while (isWhole && this.counted < this.#n && performance.now() < untilMs) {
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    this.lost = isWhole ? this.#n - this.counted : 0;
    await this.#socket.close();
  }
}

/** Two play at a table of pong until they are stopped; each begins with another of the sites. */
export function playPong(
  name: string,
  sites: readonly string[],
  draws: Draws,
  kind: Sockets = "plain",
): Watched {
  const witness = new PongWitness();
  const urls = sites.map((site) => `${site.replace("http", "ws")}/pong/${name}/socket`);
  const players = ["Ann", "Bob"].map((player, i) =>
    new PongPlayer(kind, [...urls.slice(i), ...urls.slice(0, i)], player, witness, draws.fork(player))
  );
  return {
    ...{ kind: "pong", name, players },
    judge: () => {
      const lost = players.filter((player) => player.lost !== 0).map(({ lost }) =>
        `${lost} moves of a paddle never counted`
      );
      return [...witness.judge(), ...lost].map((finding) => `${name}: ${finding}`);
    },
    get unanswered() {
      // Their last ones may be on their way, but no more than those of a second.
      return players.reduce((sum, { sent, counted }) => sum + Math.max(0, sent - counted - 30), 0);
    },
    get counted() {
      return players.reduce((sum, player) => sum + player.counted, 0);
    },
    get told() {
      return witness.frames;
    },
    stop: async () => void await Promise.all(players.map((player) => player.stop())),
  };
}

class ScrabblePlayer {
  readonly #socket: PlayerSocket | LibrarySocket;
  readonly #draws: Draws;
  readonly #key = crypto.randomUUID();
  readonly #timer: ReturnType<typeof setInterval>;
  readonly #starts: boolean;
  #view: View | null = null;
  #pending: { readonly kind: string; readonly move: number } | null = null;
  #sentMs = 0;
  readonly problems: string[] = [];
  progressMs = 0;
  progress = 0;

  constructor(kind: Sockets, urls: readonly string[], name: string, witness: ScrabbleWitness, draws: Draws) {
    this.#draws = draws;
    this.#starts = name === "Ann";
    this.#socket = socketFor(kind, {
      urls,
      opened: () => {
        this.#socket.say({ kind: "sit", key: this.#key, name });
        this.#send();
      },
      heard: (connection, text) => {
        witness.hear(`${name}, ${connection}`, text);
        const words = JSON.parse(text);
        if (words.kind === "problem") this.problems.push(words.problem);
        else this.#take(words);
      },
      silentMsMax: () => this.#pending === null ? null : SILENT_MS,
    });
    this.#timer = setInterval(() => this.#think(), THINK_MS);
  }

  #take(view: View): void {
    if (this.#view !== null && view.moment < this.#view.moment) return;
    if (this.#view?.moment !== view.moment) {
      this.progress++;
      this.progressMs = performance.now();
    }
    this.#view = view;
    const { open } = view;
    if (this.#pending !== null && (open.phase !== "playing" || open.moves.length >= this.#pending.move)) {
      this.#pending = null;
    }
  }

  #think(): void {
    if (this.#view === null) return;
    const { open } = this.#view;
    if (open.phase !== "playing") {
      if (this.#starts && open.names.length > 1) this.#socket.say({ kind: "start" });
      return;
    }
    if (this.#pending === null) {
      this.#pending = wish(this.#view, this.#draws);
      this.#send();
    } else if (performance.now() - this.#sentMs > AGAIN_MS) this.#send();
  }

  #send(): void {
    if (this.#pending === null) return;
    this.#sentMs = performance.now();
    this.#socket.say(this.#pending);
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await this.#socket.close();
  }
}

/** What a table says of a move that comes twice or late; anything else that it refuses is a finding. */
const EXPECTED = /^(?:that was for move|it is the turn of|the game has (?:not )?begun|it takes two)/;

/** Two play scrabble, game after game. */
export function playScrabble(
  name: string,
  sites: readonly string[],
  draws: Draws,
  kind: Sockets = "plain",
): Watched {
  const witness = new ScrabbleWitness();
  const urls = sites.map((site) => `${site.replace("http", "ws")}/scrabble/${name}/socket`);
  const players = ["Ann", "Bob"].map((player, i) =>
    new ScrabblePlayer(kind, [...urls.slice(i), ...urls.slice(0, i)], player, witness, draws.fork(player))
  );
  return {
    ...{ kind: "scrabble", name, players, unanswered: 0, counted: 0 },
    judge: () => {
      const refused = players.flatMap(({ problems }) => problems).filter((problem) =>
        !EXPECTED.test(problem)
      );
      return [...witness.judge(), ...refused].map((finding) => `${name}: ${finding}`);
    },
    get told() {
      return witness.views;
    },
    stop: async () => void await Promise.all(players.map((player) => player.stop())),
  };
}
