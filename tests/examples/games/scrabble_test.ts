/** Scrabble: board and rules, and a table whose home is lost between moves and in the middle of them. */
import assert from "node:assert/strict";
import { EMPTY, type Laid, lay, PREMIUM, SIZE } from "../../../examples/scrabble/board.ts";
import { Table, TURN_MS } from "../../../examples/scrabble/game.ts";
import { understood, type View } from "../../../examples/scrabble/messages.ts";
import { act, type Game, newGame, type Outcome, winners } from "../../../examples/scrabble/rules.ts";
import { newBag, onRack, valuesOf, without } from "../../../examples/scrabble/tiles.ts";
import { isWord } from "../../../examples/scrabble/words.ts";
import type { SessionObject } from "../../../functions/sessions/turn/handler.ts";
import { Draws } from "../../sim/random.ts";
import { GameHome, inHome } from "./game_home.ts";
import { findMove, wish } from "./scrabble_bot.ts";
import { ScrabbleWitness } from "./scrabble_witness.ts";

const across = (word: string, x: number, y: number): Laid[] =>
  [...word].map((tile, i) => ({ tile, x: x + i, y }));

function laid(board: string, tiles: readonly Laid[]) {
  const move = lay(board, tiles);
  assert.ok(move.ok, JSON.stringify(move));
  return move;
}

const problemOf = (board: string, tiles: readonly Laid[]) => {
  const move = lay(board, tiles);
  return move.ok ? null : move.problem;
};

Deno.test("tiles are a hundred and count 187; premium squares are as published", () => {
  const bag = newBag(() => 0.5);
  assert.deepEqual([bag.length, valuesOf(bag)], [100, 187]);
  const count = (premium: string) => PREMIUM.join("").split(premium).length - 1;
  assert.deepEqual(["T", "D", "t", "d"].map(count), [8, 17, 12, 24]);
  for (let y = 0; y < SIZE; y++) {
    for (let x = 0; x < SIZE; x++) {
      assert.equal(PREMIUM[y]?.[x], PREMIUM[x]?.[y], "mirrored at the diagonal");
      assert.equal(PREMIUM[y]?.[x], PREMIUM[SIZE - 1 - y]?.[x], "and at the middle row");
    }
  }
});

Deno.test("words count their tiles, with the premium squares that the move covers, and all it makes", () => {
  // HORN across through the middle: 4 + 1 + 1 + 1, doubled.
  const horn = laid(EMPTY, across("HORN", 5, 7));
  assert.deepEqual([horn.score, horn.words], [14, [{ word: "HORN", score: 14 }]]);
  // FARM down through the R: none of its new squares is a premium, and the middle counts no more.
  const farm = laid(horn.board, [{ tile: "F", x: 7, y: 5 }, { tile: "A", x: 7, y: 6 }, {
    tile: "M",
    x: 7,
    y: 8,
  }]);
  assert.deepEqual(farm.words, [{ word: "FARM", score: 4 + 1 + 1 + 3 }]);
  // PASTE across below, against FARM's M: several words in one move.
  const paste = laid(farm.board, across("PASTE", 5, 9));
  assert.deepEqual(paste.words.map(({ word }) => word), ["PASTE", "FARMS"]);
  // P on a triple letter (F10), E on another (J10): 9 + 1 + 1 + 1 + 3; FARMS 10.
  assert.deepEqual([paste.words[0]?.score, paste.words[1]?.score, paste.score], [15, 10, 25]);
  // A tile beside two words makes one with each; the word has the premium, and later ones have not.
  const mob = laid(paste.board, across("OB", 8, 8));
  assert.deepEqual(mob.words.map(({ word }) => word), ["MOB", "NOT", "BE"]);
  assert.deepEqual(mob.words.map(({ score }) => score), [3 + 2 + 3, 1 + 2 + 1, 3 + 1]);
  // All seven at once: fifty more. A blank counts nothing.
  assert.equal(laid(EMPTY, across("RETAINS", 4, 7)).score, 2 * 7 + 50);
  assert.equal(laid(EMPTY, across("hORN", 5, 7)).score, 6);
});

Deno.test("tiles that may not lie so are refused with why", () => {
  const { board } = laid(EMPTY, across("HORN", 5, 7));
  assert.match(problemOf(EMPTY, across("HORN", 0, 0)) ?? "", /covers the middle/);
  assert.match(problemOf(EMPTY, across("A", 7, 7)) ?? "", /two letters/);
  assert.match(problemOf(board, across("FARM", 0, 0)) ?? "", /touch none/);
  assert.match(problemOf(board, across("FARM", 5, 7)) ?? "", /two tiles lie/);
  assert.match(problemOf(board, [{ tile: "A", x: 4, y: 7 }, { tile: "B", x: 5, y: 8 }]) ?? "", /no one line/);
  assert.match(problemOf(board, [{ tile: "A", x: 4, y: 7 }, { tile: "B", x: 10, y: 7 }]) ?? "", /gap/);
  assert.match(problemOf(board, across("ABC", 13, 7)) ?? "", /beside the board/);
  assert.match(problemOf(board, []) ?? "", /1 to 7/);
});

const rules = { isWord, draw: () => 0.3 };
const done = (outcome: Outcome): Game => {
  assert.ok(outcome.ok, JSON.stringify(outcome));
  return outcome.game;
};

Deno.test("a move takes tiles from the rack and the bag; what can't be done changes nothing", () => {
  const game = { ...newGame(2, () => 0.3), racks: ["HORNABC", "FARMXYZ"], bag: "EEEEEEEEEE" };
  const next = done(act(game, { kind: "play", tiles: across("HORN", 5, 7) }, rules));
  assert.deepEqual([next.racks[0], next.bag, next.points, next.turn], ["ABCEEEE", "EEEEEE", [14, 0], 1]);
  const no = (wish: Parameters<typeof act>[1]) => {
    const outcome = act(game, wish, rules);
    return outcome.ok ? "" : outcome.problem;
  };
  assert.match(no({ kind: "play", tiles: across("HORNS", 5, 7) }), /not on your rack/);
  assert.match(no({ kind: "play", tiles: across("HRN", 5, 7) }), /HRN: not in the list/);
  assert.match(no({ kind: "exchange", tiles: "Q" }), /not on your rack/);
  const exchanged = done(act(game, { kind: "exchange", tiles: "HO" }, rules));
  assert.deepEqual([exchanged.racks[0]?.length, exchanged.bag.length], [7, 10]);
  assert.equal(
    [...exchanged.racks[0] ?? "", ...exchanged.bag].sort().join(""),
    [..."HORNABCEEEEEEEEEE"].sort().join(""),
  );
});

Deno.test("a game ends when somebody is out, nobody scores, or one is left", () => {
  const begun = newGame(2, () => 0.3);
  const last = { ...begun, racks: ["HORN", "QZ"], bag: "", points: [10, 30] };
  const out = done(act(last, { kind: "play", tiles: across("HORN", 5, 7) }, rules));
  assert.deepEqual([out.isOver, out.points, winners(out)], [true, [10 + 14 + 20, 10], [0]]);
  let idle: Game = { ...begun, racks: ["AE", "Q"], points: [5, 20] };
  for (let i = 0; i < 6; i++) {
    assert.equal(idle.isOver, false);
    idle = done(act(idle, { kind: i % 2 === 0 ? "pass" : "time" }, rules));
  }
  assert.deepEqual([idle.isOver, idle.points], [true, [3, 10]]);
  const left = done(act(begun, { kind: "resign" }, rules));
  assert.deepEqual([left.isOver, winners(left)], [true, [1]]);
  const three = done(act(newGame(3, () => 0.3), { kind: "resign" }, rules));
  assert.deepEqual([three.isOver, three.turn], [false, 1]);
  const again = done(act(done(act(three, { kind: "pass" }, rules)), { kind: "pass" }, rules));
  assert.equal(again.turn, 1, "who has resigned has no turn");
  assert.ok(!act(left, { kind: "pass" }, rules).ok);
});

Deno.test("games that are played to their end keep all hundred tiles, and every word is a word", () => {
  for (let seed = 0; seed < 3; seed++) {
    const draws = new Draws(`game ${seed}`);
    const draw = () => draws.integer(0, 999_999) / 1e6;
    let game = newGame(2 + seed, draw);
    while (!game.isOver) {
      const rack = game.racks[game.turn] ?? "";
      const tiles = findMove(game.board, rack, draws);
      game = done(act(game, tiles === null ? { kind: "pass" } : { kind: "play", tiles }, { isWord, draw }));
      const lying = [...game.board].filter((tile) => tile !== ".").map(onRack).join("");
      assert.equal(without(newBag(draw), lying + game.bag + game.racks.join("")), ""); // R1
    }
    const words = game.moves.flatMap(({ words }) => words.map(({ word }) => word));
    assert.ok(words.length > 10 && words.every(isWord));
  }
});

Deno.test("the list has words, and nothing that only looks like one", () => {
  for (const word of ["horn", "QUIZ", "at", "aardvark", "zoos"]) assert.ok(isWord(word), word);
  for (const word of ["hrn", "", "a b", "aardvark abacus", "ks", "at "]) assert.ok(!isWord(word), word);
});

Deno.test("what is no message of a page is not understood", () => {
  const bad = [
    "",
    "{",
    "3",
    '{"kind":"pass"}',
    '{"kind":"play","move":1,"tiles":[]}',
    '{"kind":"pass","move":0}',
  ];
  const off = [
    '{"kind":"play","move":1,"tiles":[{"x":15,"y":0,"tile":"A"}]}',
    '{"kind":"exchange","move":1,"tiles":"?"}',
  ];
  for (const text of [...bad, ...off, "x".repeat(5000)]) assert.equal(understood(text), null, text);
  assert.equal(understood(new Uint8Array(3)), null);
});

const make = Table as unknown as new () => SessionObject;

/** A player over connections that come and go. */
class Player {
  readonly name: string;
  view: View | null = null;
  problem = "";
  pending: { readonly kind: string; readonly move: number } | null = null;
  #connection: { readonly id: string; readonly heard: string[] } = { id: "", heard: [] };
  #read = 0;

  constructor(readonly home: GameHome, readonly witness: ScrabbleWitness, name: string) {
    this.name = name;
  }

  come(): void {
    this.#connection = this.home.attach();
    this.#read = 0;
    this.say({ kind: "sit", key: `key of ${this.name}`, name: this.name });
    if (this.pending !== null) this.say(this.pending);
  }

  say(words: unknown): void {
    this.home.say(this.#connection.id, words);
  }

  read(): void {
    for (const text of this.#connection.heard.slice(this.#read)) {
      this.#read++;
      this.witness.hear(this.#connection.id, text);
      const words = JSON.parse(text);
      if (words.kind === "problem") this.problem = words.problem;
      else this.view = words;
    }
    if (this.pending !== null && (this.view?.open.moves.length ?? 0) >= this.pending.move) {
      this.pending = null;
    }
  }
}

function sitDown(count: number) {
  const home = new GameHome(make), witness = new ScrabbleWitness();
  const players = ["Ann", "Bob", "Cho"].slice(0, count).map((name) => new Player(home, witness, name));
  for (const player of players) player.come();
  players[0]?.say({ kind: "start" });
  home.keep();
  for (const player of players) player.read();
  return { home, witness, players };
}

Deno.test("players see one game whose home is lost between moves and with moves on their way", async () => {
  await inHome(() => {
    for (let seed = 0; seed < 3; seed++) {
      const { home, witness, players } = sitDown(2 + seed % 2);
      const draws = new Draws(`table ${seed}`);
      let kills = 0;
      for (let i = 0; i < 400 && players[0]?.view?.open.phase === "playing"; i++) {
        for (const player of players) {
          if (player.view === null || player.pending !== null) continue;
          player.pending = wish(player.view, draws);
          if (player.pending !== null) player.say(player.pending);
        }
        const isLost = draws.chance(0.25);
        const before = players.map(({ view }) => view?.open.moves.length ?? 0);
        if (isLost && draws.chance(0.5)) home.keep(); // the move is kept, and its answer lost
        if (isLost) {
          home.lose(draws.integer(5, 5_000));
          for (const player of players) player.come();
          kills++;
        }
        home.pass(20, 10);
        for (const [at, player] of players.entries()) {
          player.read();
          assert.ok((player.view?.open.moves.length ?? 0) >= (before[at] ?? 0), "a move vanished");
        }
      }
      const [first] = players;
      assert.equal(first?.view?.open.phase, "over");
      assert.deepEqual(witness.judge(), []);
      assert.ok(kills > 3, `${kills} kills`);
      for (const player of players) assert.deepEqual(player.view?.open, first?.view?.open);
    }
  });
});

Deno.test("a turn that takes too long passes, also while the table has no home", async () => {
  await inHome(() => {
    const { home, players: [ann, bob] } = sitDown(2);
    home.lose(TURN_MS + 1_000);
    home.pass(100);
    ann?.come();
    bob?.come();
    home.pass(100);
    ann?.read();
    assert.deepEqual(ann?.view?.open.moves.map(({ kind, by }) => [kind, by]), [["time", 0]]);
    assert.equal(ann?.view?.open.turn, 1);
  });
});

Deno.test("a move counts once, in its turn, by who has it; a spectator sees no rack", async () => {
  await inHome(() => {
    const { home, witness, players: [ann, bob] } = sitDown(2);
    assert.ok(ann !== undefined && bob !== undefined);
    const cho = new Player(home, witness, "Cho");
    cho.come();
    home.keep();
    cho.read();
    assert.match(cho.problem, /begun: you watch/);
    assert.deepEqual([cho.view?.yours.seat, cho.view?.yours.rack], [null, ""]);
    bob.say({ kind: "pass", move: 1 });
    home.keep();
    bob.read();
    assert.match(bob.problem, /the turn of Ann/);
    ann.say({ kind: "pass", move: 1 });
    ann.say({ kind: "pass", move: 1 });
    home.keep();
    ann.read();
    assert.deepEqual([ann.view?.open.moves.length, ann.problem], [1, ""]);
    bob.say({ kind: "pass", move: 4 });
    home.keep();
    bob.read();
    assert.match(bob.problem, /the next is move 2/);
    assert.deepEqual(witness.judge(), []);
  });
});

Deno.test("a witness finds a fork, a move that vanishes, and a rack that is told to another", () => {
  const view = (moment: number, moves: unknown[], seat: number | null = 0, rack = "ABC", more = {}) =>
    JSON.stringify({
      ...{ kind: "view", moment, yours: { seat, rack } },
      open: {
        ...{
          phase: "playing",
          round: 1,
          names: [],
          board: "",
          points: [],
          racks: [3, 2],
          bag: 1,
          turn: 0,
          moves,
        },
        ...{ winners: [], endsMs: 0, ...more },
      },
    });
  const found = (...heard: string[]) => {
    const witness = new ScrabbleWitness();
    heard.forEach((text, i) => witness.hear(`c${i % 2}`, text));
    return witness.judge().join("; ");
  };
  assert.equal(found(view(1, []), view(1, [], 1, "XY"), view(2, ["a"])), "");
  assert.match(found(view(1, ["a"]), view(1, ["b"])), /two moments 1/);
  assert.match(found(view(1, ["a", "b"]), view(2, ["a"])), /vanished or changed/);
  assert.match(found(view(1, []), view(1, [], null, "ABC")), /told too much/);
  assert.match(found(view(1, [], 0, "ABC", { bagTiles: "Q" })), /told too much/);
});
