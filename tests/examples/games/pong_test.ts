/** Pong: what happens on a court, and a table whose home is lost in the middle of a rally. */
import assert from "node:assert/strict";
import fc from "fast-check";
import {
  aim,
  BALL_RADIUS,
  COURT,
  type Court,
  HOLD_STEPS,
  newCourt,
  PADDLE,
  POINTS_TO_WIN,
  step,
  STEPS_PER_S,
} from "../../../examples/pong/court.ts";
import { type State, understood } from "../../../examples/pong/messages.ts";
import { AWAY_MS, FRAME_MS, Table } from "../../../examples/pong/table.ts";
import type { SessionObject } from "../../../functions/sessions/turn/handler.ts";
import { Draws } from "../../sim/random.ts";
import { GameHome, inHome } from "./game_home.ts";
import { PongWitness } from "./pong_witness.ts";

const half = () => 0.5;
const after = (court: Court, steps: number): Court => {
  let now = court;
  for (let i = 0; i < steps; i++) now = step(now, half);
  return now;
};

Deno.test("a ball waits, is served, returned by a paddle in its way, and scores past one that is not", () => {
  const begun = newCourt(half); // to the right, straight
  assert.deepEqual(after(begun, HOLD_STEPS).ball, begun.ball);
  const flying = after(begun, HOLD_STEPS + 1);
  assert.ok(flying.ball.x > begun.ball.x);
  const returned = after(begun, HOLD_STEPS + 2 * STEPS_PER_S);
  assert.ok(returned.ball.vx < 0, "it is on its way back");
  assert.equal(returned.rally, 1);
  assert.ok(Math.abs(returned.ball.vx) > begun.ball.vx, "and faster");
  const missed = after(aim(begun, 1, 0), HOLD_STEPS + 1.5 * STEPS_PER_S);
  assert.deepEqual(missed.points, [1, 0]);
  assert.deepEqual([missed.ball.x, missed.rally, missed.hold > 0], [COURT.width / 2, 0, true]);
});

Deno.test("a paddle that is hit at its end sends the ball away steeply", () => {
  const off = PADDLE.half;
  const court = { ...newCourt(half), hold: 0, paddles: [50, 50 - off], wanted: [50, 50 - off] } as const;
  const { ball } = after(court, 1.2 * STEPS_PER_S);
  assert.ok(ball.vx < 0 && ball.vy > 0.8 * -ball.vx, JSON.stringify(ball));
});

Deno.test("a match ends at its points, and nothing moves but paddles", () => {
  let court = aim(newCourt(half), 1, 0);
  for (let i = 0; court.winner === null && i < 1e5; i++) court = step(court, half);
  assert.deepEqual([court.winner, court.points], [0, [POINTS_TO_WIN, 0]]);
  const later = after(aim(court, 0, 90), 600);
  assert.deepEqual([later.ball, later.points], [court.ball, court.points]);
  assert.equal(later.paddles[0], 90);
});

Deno.test("everything stays on the court, points grow by one, speed has a bound, whatever players want", () => {
  const wish = fc.record({
    side: fc.constantFrom(0 as const, 1 as const),
    y: fc.double({ min: -1e6, max: 1e6, noNaN: true }),
    steps: fc.nat(90),
  });
  fc.assert(fc.property(fc.integer(), fc.array(wish, { maxLength: 60 }), (seed, wishes) => {
    const draws = new Draws(`${seed}`);
    const draw = () => draws.integer(0, 1e6 - 1) / 1e6;
    let court = newCourt(draw);
    for (const { side, y, steps } of wishes) {
      court = aim(court, side, y);
      for (let i = 0; i < steps; i++) {
        const before = court;
        court = step(court, draw);
        const { x, y: at, vx, vy } = court.ball;
        assert.ok(x >= -BALL_RADIUS && x <= COURT.width + BALL_RADIUS && at >= 0 && at <= COURT.height);
        assert.ok(Math.hypot(vx, vy) <= 240.001);
        const made = court.points[0] + court.points[1] - before.points[0] - before.points[1];
        assert.ok(made === 0 || made === 1);
        for (const paddle of court.paddles) {
          assert.ok(paddle >= PADDLE.half && paddle <= COURT.height - PADDLE.half);
        }
      }
    }
  }));
});

Deno.test("what is no message of a page is not understood", () => {
  const bad = [
    "",
    "{",
    "[]",
    "null",
    '{"kind":"aim","n":1.5,"y":1}',
    '{"kind":"aim","n":1,"y":null}',
    '{"kind":"sit"}',
  ];
  for (const text of [...bad, `{"kind":"leave","x":"${"x".repeat(1000)}"}`]) {
    assert.equal(understood(text), null, text);
  }
  assert.equal(understood(new Uint8Array(4)), null);
  assert.deepEqual(understood('{"kind":"aim","n":3,"y":-4}'), { kind: "aim", n: 3, y: -4 });
});

/** A player who follows the ball as well as a person, over connections that come and go. */
class Player {
  readonly #home: GameHome;
  readonly #witness: PongWitness;
  readonly #name: string;
  #connection: { readonly id: string; readonly heard: string[] } = { id: "", heard: [] };
  #read = 0;
  #n = 0;
  seat: 0 | 1 | null = null;
  state: State | null = null;
  /** The newest move that the table has said it has. */
  counted = 0;

  constructor(home: GameHome, witness: PongWitness, name: string) {
    this.#home = home;
    this.#witness = witness;
    this.#name = name;
  }

  come(): void {
    this.#connection = this.#home.attach();
    this.#read = 0;
    this.#home.say(this.#connection.id, { kind: "sit", key: `key of ${this.#name}`, name: this.#name });
  }

  leave(): void {
    this.#home.detach(this.#connection.id);
  }

  say(message: unknown): void {
    this.#home.say(this.#connection.id, message);
  }

  read(): void {
    for (const text of this.#connection.heard.slice(this.#read)) {
      this.#read++;
      this.#witness.hear(this.#connection.id, text);
      const words = JSON.parse(text);
      if (words.kind === "you") {
        this.seat = words.seat;
        this.#n = Math.max(this.#n, words.seen);
      } else this.state = words;
    }
    if (this.seat !== null) this.counted = Math.max(this.counted, this.state?.seen[this.seat] ?? 0);
  }

  /** Follows the ball, a little off its middle. */
  play(off: number): void {
    const y = (this.state?.ball[1] ?? 50) + off;
    this.say({ kind: "aim", n: ++this.#n, y });
  }
}

const make = Table as unknown as new () => SessionObject;

function sitDown() {
  const home = new GameHome(make), witness = new PongWitness();
  const players = ["Ann", "Bob"].map((name) => new Player(home, witness, name));
  const [ann, bob] = players;
  assert.ok(ann !== undefined && bob !== undefined);
  for (const player of players) player.come();
  home.keep();
  const round = (draws: Draws) => {
    for (const player of players) {
      player.read();
      player.play(draws.integer(-9, 9));
    }
    home.pass(FRAME_MS);
  };
  return { home, witness, players, ann, bob, round };
}

Deno.test("two players see one game whose home is lost in mid-rally, again and again", async () => {
  await inHome(() => {
    for (let seed = 1; seed <= 4; seed++) {
      const { home, witness, players, ann, bob, round } = sitDown();
      const draws = new Draws(`${seed}`);
      let points = 0;
      for (let kill = 0; kill < 8; kill++) {
        for (let i = draws.integer(40, 200); i > 0; i--) round(draws);
        const before = ann.state;
        const counted = [ann.counted, bob.counted];
        for (const player of players) player.play(0); // lost with the home
        home.lose(draws.integer(10, 4_000));
        for (const player of players) player.come();
        home.pass(FRAME_MS);
        for (const player of players) player.read();
        assert.deepEqual([ann.seat, bob.seat], [0, 1], "they have their seats");
        const now = ann.state;
        assert.ok(before !== null && now !== null && now.frame > before.frame);
        assert.ok(
          now.points.every((each, side) => each >= (before.points[side] ?? 0)) || now.match > before.match,
        );
        assert.ok(now.seen[0] >= (counted[0] ?? 0) && now.seen[1] >= (counted[1] ?? 0));
        if (now.phase === "over") ann.say({ kind: "again" });
        points += now.points[0] + now.points[1];
      }
      assert.deepEqual(witness.judge(), []);
      assert.ok(points > 0 && witness.frames > 500);
    }
  });
});

Deno.test("the ball stands still while the table has no home or a player is away", async () => {
  await inHome(() => {
    const { home, players: [ann, bob], round } = sitDown();
    const draws = new Draws("5");
    assert.ok(ann !== undefined && bob !== undefined);
    for (let i = 0; i < 60; i++) round(draws);
    ann.read();
    const before = ann.state?.ball[0] ?? 0;
    home.lose(10_000);
    home.pass(FRAME_MS);
    ann.come();
    home.pass(AWAY_MS);
    ann.read();
    assert.equal(ann.state?.phase, "away", "Bob is not here");
    assert.ok(Math.abs((ann.state?.ball[0] ?? 0) - before) < 10, "so much is played within two frames");
    const held = ann.state?.ball;
    bob.come();
    ann.play(0);
    home.pass(2 * FRAME_MS);
    ann.read();
    assert.deepEqual([ann.state?.phase, ann.state?.ball], ["hold", held]);
  });
});

Deno.test("a seat is its player's, from any connection, until the player is long away; then it is free", async () => {
  await inHome(() => {
    const { home, witness, players: [ann, bob], round } = sitDown();
    assert.ok(ann !== undefined && bob !== undefined);
    round(new Draws("1"));
    const cho = new Player(home, witness, "Cho");
    cho.come();
    home.keep();
    cho.read();
    assert.equal(cho.seat, null, "both seats are taken");
    cho.play(0);
    ann.leave();
    home.pass(2 * FRAME_MS);
    cho.read();
    assert.deepEqual([cho.state?.phase, cho.state?.seen[0]], ["away", 1]);
    home.pass(70_000, 500);
    cho.come();
    home.keep();
    cho.read();
    assert.equal(cho.seat, 0);
    assert.equal(cho.state?.names[0], "Cho");
    assert.deepEqual(witness.judge(), []);
  });
});

Deno.test("a table that everybody has left ends, and has no other timer", async () => {
  await inHome(() => {
    const { home, players: [ann, bob], round } = sitDown();
    round(new Draws("1"));
    ann?.leave();
    bob?.leave();
    home.pass(140_000, 500);
    assert.deepEqual(home.timers, ["forget"]);
    home.pass(600_000, 1_000);
    assert.ok(home.isEnded);
  });
});

Deno.test("a witness finds a fork, a frame that comes late, and points that go back", () => {
  const frame = (number: number, points: [number, number], rally = 0) =>
    JSON.stringify({
      kind: "state",
      frame: number,
      match: 1,
      points,
      longest: 3,
      seen: [number, number],
      rally,
    });
  const found = (...heard: [string, string][]) => {
    const witness = new PongWitness();
    for (const [who, text] of heard) witness.hear(who, text);
    return witness.judge().join("; ");
  };
  assert.equal(found(["a", frame(1, [0, 0])], ["b", frame(1, [0, 0])], ["a", frame(2, [1, 0])]), "");
  assert.match(found(["a", frame(1, [0, 0])], ["b", frame(1, [0, 0], 1)]), /two frames 1/);
  assert.match(found(["a", frame(2, [0, 0])], ["a", frame(1, [0, 0])]), /a heard frame 1 after 2/);
  assert.match(
    found(["a", frame(1, [1, 0])], ["b", frame(2, [0, 0])]),
    /points of 0 went back from frame 1 to 2/,
  );
});
