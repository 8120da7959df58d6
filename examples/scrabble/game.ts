/**
 * A table with a crossword game: up to four players, at any sites, and whoever watches.
 *
 * Life: players sit down → one of them starts → turns, each of two minutes → over → another game.
 *
 * S1  `moment` grows by one with all that happens; whoever looks is told the same of one moment, but for their own rack.
 * S2  A move that anybody was told is never taken back; those of a game are told in full, in their order.
 * S3  A rack is told to its player alone, and what is in the bag to nobody.
 * S4  A move says which it is. Sent again, after an answer was lost with a site, it is not made twice.
 */
import { type From, Session } from "sojourn";
import { type Open, type Problem, type Said, understood, type View } from "./messages.ts";
import { act, type Game, newGame, SEATS_MAX, winners, type Wish } from "./rules.ts";
import { isWord } from "./words.ts";

/** Then the turn passes, so that nobody waits for a player who has gone. */
export const TURN_MS = 120_000;
/** A table that everybody has left ends after so long. */
const FORGET_MS = 3_600_000;

interface Seat {
  /** Known to its player alone: who comes with it has the seat, from any site. */
  readonly key: string;
  readonly name: string;
}

/** See the file's header. */
export class Table extends Session {
  seats: Seat[] = [];
  /** Seats by connection. */
  sitting = new Map<string, string>();
  game: Game | null = null;
  round = 0;
  moment = 0;
  endsMs: number | null = null;

  override onOpen(from: From): void {
    this.clearTimer("forget");
    this.#show(from);
  }

  override onMessage(message: string | Uint8Array, from: From): void {
    const said = understood(message);
    const problem = said === null ? "the table understands only what its page says" : this.#take(said, from);
    if (problem === null) return;
    const words: Problem = { kind: "problem", problem };
    from.send(JSON.stringify(words));
    // Who is refused may have an old view: a connection to another site told less.
    this.#show(from);
  }

  override onClose(from: From): void {
    const key = this.sitting.get(from.id);
    this.sitting.delete(from.id);
    const isGone = ![...this.sitting.values()].includes(key ?? "");
    // A game waits for those who play it; a table where none has begun does not.
    if (isGone && this.game === null && this.seats.some((seat) => seat.key === key)) {
      this.seats = this.seats.filter((seat) => seat.key !== key);
      this.#happened();
    }
    if (this.clients.every(({ id }) => id === from.id)) this.setTimer("forget", FORGET_MS);
  }

  override onTimer(name: string): void {
    if (name === "forget") this.end();
    else this.#move({ kind: "time" });
  }

  /** Does what was said; the text says why it is not done. */
  #take(said: Said, from: From): string | null {
    const seat = this.#seatOf(from);
    switch (said.kind) {
      case "sit":
        return this.#sit(said, from);
      case "start":
        return this.#start(seat);
      case "leave":
        return this.#leave(seat, from);
    }
    if (seat === null) return "take a seat first";
    if (this.game === null) return "the game has not begun";
    const next = this.game.moves.length + 1;
    if (said.move < next && this.game.moves[said.move - 1]?.by === seat) { // S4
      this.#show(from);
      return null;
    }
    if (said.move !== next) return `that was for move ${said.move}; the next is move ${next}`;
    if (this.game.turn !== seat) return `it is the turn of ${this.seats[this.game.turn]?.name}`;
    return this.#move(said);
  }

  #sit({ key, name }: Extract<Said, { kind: "sit" }>, from: From): string | null {
    const own = this.seats.findIndex((seat) => seat.key === key);
    if (own < 0) {
      if (this.#isPlaying()) return "the game has begun: you watch";
      if (this.seats.length >= SEATS_MAX) return `all ${SEATS_MAX} seats are taken: you watch`;
      this.#clear();
      this.seats.push({ key, name });
      this.sitting.set(from.id, key);
      this.#happened();
      return null;
    }
    this.sitting.set(from.id, key);
    this.#show(from);
    return null;
  }

  #start(seat: number | null): string | null {
    if (seat === null) return "take a seat first";
    if (this.#isPlaying()) return "the game has begun already";
    if (this.seats.length < 2) return "it takes two players";
    this.round++;
    this.game = newGame(this.seats.length, Math.random);
    this.#turn();
    this.#happened();
    return null;
  }

  #leave(seat: number | null, from: From): string | null {
    if (seat === null) return null;
    if (this.#isPlaying()) return "the game has begun: resign, if you want to go";
    this.#clear();
    this.seats.splice(seat, 1);
    this.sitting.delete(from.id);
    this.#happened();
    return null;
  }

  #move(wish: Wish): string | null {
    if (this.game === null) return null;
    const outcome = act(this.game, wish, { isWord, draw: Math.random });
    if (!outcome.ok) return outcome.problem;
    this.game = outcome.game;
    this.#turn();
    this.#happened();
    return null;
  }

  /** The next player has the whole time. */
  #turn(): void {
    if (this.#isPlaying()) {
      this.endsMs = Date.now() + TURN_MS;
      this.setTimer("turn", TURN_MS);
    } else {
      this.endsMs = null;
      this.clearTimer("turn");
    }
  }

  /** Seats change: a game that is over is of those who played it. */
  #clear(): void {
    if (this.game?.isOver === true) this.game = null;
  }

  #isPlaying(): boolean {
    return this.game !== null && !this.game.isOver;
  }

  #seatOf(from: From): number | null {
    const key = this.sitting.get(from.id);
    const seat = this.seats.findIndex((each) => each.key === key);
    return seat < 0 ? null : seat;
  }

  /** S1 */
  #happened(): void {
    this.moment++;
    for (const client of this.clients) this.#show(client);
  }

  #show(to: From): void {
    const seat = this.#seatOf(to);
    const rack = seat === null ? "" : this.game?.racks[seat] ?? "";
    const view: View = {
      ...{ kind: "view", moment: this.moment, open: this.#open() },
      yours: { seat, rack, nowMs: Date.now(), watching: this.clients.length },
    };
    to.send(JSON.stringify(view));
  }

  /** S3 */
  #open(): Open {
    const { game } = this;
    const names = this.seats.map(({ name }) => name);
    if (game === null) {
      return {
        ...{
          phase: "waiting",
          round: this.round,
          names,
          board: "",
          points: names.map(() => 0),
          bag: 0,
          turn: 0,
        },
        ...{ racks: names.map(() => 0), moves: [], winners: [], endsMs: null },
      };
    }
    return {
      ...{ phase: game.isOver ? "over" : "playing", round: this.round, names, board: game.board },
      ...{ points: game.points, racks: game.racks.map((rack) => rack.length), bag: game.bag.length },
      ...{
        turn: game.turn,
        moves: game.moves,
        winners: game.isOver ? winners(game) : [],
        endsMs: this.endsMs,
      },
    };
  }
}
