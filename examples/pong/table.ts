/**
 * A table of pong: two players, who may be at any two sites, and whoever watches. It plays in the session itself, thirty
 * frames a second, so that all see one game and no player's machine decides it.
 *
 * Life: somebody sits down → both have → frames, until one is not heard of (the ball waits for both), or has won.
 *
 * T1  `frame` grows by one with each state that is told, and all who watch are told the same one: what two players have of
 *     one number is the same, whatever sites were lost in between.
 * T2  `match` and `seen` never go back, nor do the points of one match. An `aim` that a player sees in `seen` is part of
 *     the game for good.
 * T3  A table at which nobody plays has no timer but the one that ends it.
 * T4  The ball does not move while a player is away, also where this table was: the time in which it had no home is not
 *     played.
 */
import { type From, Session } from "sojourn";
import { aim, type Court, held, newCourt, type Side, step, STEPS_PER_S } from "./court.ts";
import { type Phase, type Said, type State, understood, type You } from "./messages.ts";

/** Thirty frames a second: what people see as smooth with a little interpolation, at a third of the traffic of sixty. */
export const FRAME_MS = 33;
/** After a longer gap than this nobody could have returned the ball: the rest of it is not played. */
const STEPS_MAX = Math.ceil((4 * FRAME_MS * STEPS_PER_S) / 1000);
/** Pages say something four times a second at least; a player of whom nothing is heard for so long is away. */
export const AWAY_MS = 1_500;
/** A seat is kept so long for a player who is away. */
const SEAT_MS = 60_000;
/** A table that everybody has left ends after so long. */
const FORGET_MS = 600_000;

interface Seat {
  /** Known to its player alone: who comes with it has the seat, from any site. */
  readonly key: string;
  readonly name: string;
  /** The connection that plays. */
  readonly peer: string;
  readonly heardMs: number;
}

const SIDES: readonly Side[] = [0, 1];

/** See the file's header. */
export class Table extends Session {
  // Written whole by each checkpoint: it is less than a kilobyte, and all of it changes with each frame.
  court: Court = newCourt(Math.random);
  seats: [Seat | null, Seat | null] = [null, null];
  /** Of each side: the newest `aim` that counts. It outlives who sits there. */
  seen: [number, number] = [0, 0];
  match = 1;
  frame = 0;
  playing = false;
  /** The court is played up to here. */
  playedMs = 0;

  override onOpen(): void {
    this.clearTimer("forget");
    // While it is played, the next frame is near.
    if (!this.playing) this.#broadcast();
  }

  override onMessage(message: string | Uint8Array, from: From): void {
    const said = understood(message);
    if (said === null) return this.#tell(from, { problem: "the table understands only what its page says" });
    this.#heard(from);
    this.#take(said, from);
    if (!this.playing && this.#isEverybodyHere() && this.court.winner === null) this.#begin();
  }

  override onClose(from: From): void {
    const side = this.#sideOf(from);
    // Its seat is kept: a page that lost its site comes back through another.
    if (side !== null) {
      this.#change(side, { heardMs: Date.now() - AWAY_MS });
      this.setTimer("seats", SEAT_MS);
    }
    if (!this.playing) this.#broadcast();
    if (this.clients.every(({ id }) => id === from.id)) this.setTimer("forget", FORGET_MS);
  }

  override onTimer(name: string): void {
    if (name === "frame") this.#play();
    else if (name === "seats") this.#clear();
    else this.end();
  }

  #take(said: Said, from: From): void {
    const side = this.#sideOf(from);
    if (said.kind === "sit") return this.#sit(said, from);
    if (side === null) return this.#tell(from, { problem: "both seats are taken: you watch" });
    switch (said.kind) {
      case "aim":
        // A connection may bring again what an older one had brought.
        if (said.n <= this.seen[side]) return;
        this.seen[side] = said.n;
        this.court = aim(this.court, side, said.y);
        return;
      case "again":
        if (this.court.winner !== null) this.#newMatch();
        return;
      case "leave":
        this.seats[side] = null;
        this.#tell(from);
        return this.playing ? undefined : this.#broadcast();
    }
  }

  #sit({ key, name }: Extract<Said, { kind: "sit" }>, from: From): void {
    const side = SIDES.find((each) => this.seats[each]?.key === key) ??
      SIDES.find((each) => this.seats[each] === null);
    if (side === undefined) return this.#tell(from, { problem: "both seats are taken: you watch" });
    const before = this.#sideOf(from);
    if (before !== null && before !== side) this.seats[before] = null;
    const isNew = this.seats[side]?.key !== key;
    // A match of two is over when one of them has been replaced.
    if (isNew && this.#hasBegun()) this.#newMatch();
    this.seats[side] = { key, name, peer: from.id, heardMs: Date.now() };
    this.#tell(from);
    this.#broadcast();
  }

  /** Some frames later: the steps that are due, told to everybody. */
  #play(): void {
    const now = Date.now();
    if (!this.#isEverybodyHere()) return this.#rest();
    const due = Math.floor(((now - this.playedMs) * STEPS_PER_S) / 1000);
    const steps = Math.min(due, STEPS_MAX);
    for (let i = 0; i < steps; i++) this.court = step(this.court, Math.random);
    // What is less than a step is played with the next frame; of a gap (T4) nothing is left.
    this.playedMs = steps < due ? now : this.playedMs + (steps * 1000) / STEPS_PER_S;
    if (this.court.winner !== null) return this.#rest();
    this.setTimer("frame", FRAME_MS);
    this.#broadcast();
  }

  #begin(): void {
    this.playing = true;
    this.playedMs = Date.now();
    this.court = held(this.court);
    this.clearTimer("seats");
    this.setTimer("frame", FRAME_MS);
    this.#broadcast();
  }

  /** T3 */
  #rest(): void {
    this.playing = false;
    this.clearTimer("frame");
    this.setTimer("seats", SEAT_MS);
    this.#broadcast();
  }

  /** Seats of players who have been away for long are free. */
  #clear(): void {
    const agoMs = (seat: Seat) => Date.now() - seat.heardMs;
    for (const side of SIDES) {
      const seat = this.seats[side];
      if (seat !== null && agoMs(seat) >= SEAT_MS) this.seats[side] = null;
    }
    if (this.seats.some((seat) => seat !== null && agoMs(seat) >= AWAY_MS)) this.setTimer("seats", SEAT_MS);
    this.#broadcast();
  }

  #isEverybodyHere(): boolean {
    return this.seats.every((seat) => seat !== null && Date.now() - seat.heardMs < AWAY_MS);
  }

  #hasBegun(): boolean {
    const { points: [left, right], rally } = this.court;
    return left + right + rally > 0;
  }

  #newMatch(): void {
    this.match++;
    this.court = newCourt(Math.random);
  }

  #heard(from: From): void {
    const side = this.#sideOf(from);
    if (side !== null) this.#change(side, { heardMs: Date.now() });
  }

  #change(side: Side, change: Partial<Seat>): void {
    const seat = this.seats[side];
    if (seat !== null) this.seats[side] = { ...seat, ...change };
  }

  #sideOf(from: From): Side | null {
    return SIDES.find((side) => this.seats[side]?.peer === from.id) ?? null;
  }

  #tell(from: From, more: { readonly problem?: string } = {}): void {
    const seat = this.#sideOf(from);
    const you: You = { kind: "you", seat, seen: seat === null ? 0 : this.seen[seat], ...more };
    from.send(JSON.stringify(you));
  }

  /** T1 */
  #broadcast(): void {
    this.frame++;
    const text = JSON.stringify(this.#state());
    for (const client of this.clients) client.send(text);
  }

  #phase(): Phase {
    if (this.court.winner !== null) return "over";
    if (this.seats.includes(null)) return "empty";
    if (!this.playing) return "away";
    return this.court.hold > 0 ? "hold" : "rally";
  }

  #state(): State {
    const { ball, paddles, points, rally, longest, winner } = this.court;
    const short = (value: number) => Math.round(value * 100) / 100;
    const [left, right] = this.seats;
    return {
      ...{ kind: "state", frame: this.frame, match: this.match, phase: this.#phase() },
      ...{ points, rally, longest, winner, seen: this.seen },
      ball: [short(ball.x), short(ball.y), short(ball.vx), short(ball.vy)],
      paddles: [short(paddles[0]), short(paddles[1])],
      names: [left?.name ?? null, right?.name ?? null],
      watching: this.clients.length,
    };
  }
}

/** A table whose players hold its log: it goes on also where the only disk that had it is lost with its site. */
export class SharedTable extends Table {
  static durability = "hosts" as const;
}
