/**
 * A game from the first move to the last, as pure functions: whose turn it is, racks, bag, points.
 *
 * R1  Bag, racks and board hold the hundred tiles between them, always.
 * R2  Each move is one more in `moves`, made by who has the turn. Points change by moves, and once more at the end.
 * R3  It is over when the bag and a rack are empty, when nobody has scored for six moves, or when all but one have
 *     resigned. What is left on racks is taken off their points; who has gone out gets it.
 */
import { type Board, EMPTY, type Laid, lay, type Word } from "./board.ts";
import { newBag, onRack, RACK_TILES, shuffled, valuesOf, without } from "./tiles.ts";

/** Moves in a row without points. */
const IDLE_MAX = 6;
export const SEATS_MAX = 4;

/** One move, as everybody sees it. */
export interface Made {
  readonly by: number;
  readonly kind: "play" | "exchange" | "pass" | "time" | "resign";
  readonly words: readonly Word[];
  readonly score: number;
  /** Tiles laid or exchanged. */
  readonly tiles: number;
}

/** A game; `racks` and `bag` are for no other player's eyes. */
export interface Game {
  readonly board: Board;
  /** The next tile is the last. */
  readonly bag: string;
  readonly racks: readonly string[];
  readonly points: readonly number[];
  readonly resigned: readonly boolean[];
  readonly turn: number;
  readonly moves: readonly Made[];
  readonly isOver: boolean;
}

/** What a player wants to do. */
export type Wish =
  | { readonly kind: "play"; readonly tiles: readonly Laid[] }
  | { readonly kind: "exchange"; readonly tiles: string }
  | { readonly kind: "pass" | "time" | "resign" };

/** The game after it, or why it can't be done. */
export type Outcome =
  | { readonly ok: true; readonly game: Game }
  | { readonly ok: false; readonly problem: string };

const refused = (problem: string): Outcome => ({ ok: false, problem });

/** A game for so many players, dealt. */
export function newGame(players: number, draw: () => number): Game {
  const all = newBag(draw);
  const seats = Array.from({ length: players }, (_, seat) => seat);
  const from = (seat: number) => all.length - seat * RACK_TILES;
  return {
    ...{ board: EMPTY, bag: all.slice(0, from(players)), turn: 0, moves: [], isOver: false },
    racks: seats.map((seat) => all.slice(from(seat + 1), from(seat))),
    points: seats.map(() => 0),
    resigned: seats.map(() => false),
  };
}

/** Does what who has the turn wants. `isWord` knows the words, `draw` mixes what is put back. */
export function act(
  game: Game,
  wish: Wish,
  { isWord, draw }: { readonly isWord: (word: string) => boolean; readonly draw: () => number },
): Outcome {
  if (game.isOver) return refused("the game is over");
  switch (wish.kind) {
    case "play":
      return play(game, wish.tiles, isWord);
    case "exchange":
      return exchange(game, wish.tiles, draw);
    case "resign": {
      const resigned = game.resigned.with(game.turn, true);
      return moved({ ...game, resigned }, { kind: "resign" });
    }
    case "pass":
    case "time":
      return moved(game, { kind: wish.kind });
  }
}

function play(game: Game, tiles: readonly Laid[], isWord: (word: string) => boolean): Outcome {
  const move = lay(game.board, tiles);
  if (!move.ok) return move;
  const rack = without(game.racks[game.turn] ?? "", tiles.map(({ tile }) => onRack(tile)));
  if (rack === null) return refused("these tiles are not on your rack");
  const unknown = move.words.map(({ word }) => word).filter((word) => !isWord(word));
  if (unknown.length > 0) return refused(`${unknown.join(", ")}: not in the list of words`);
  const count = Math.min(RACK_TILES - rack.length, game.bag.length);
  const bag = game.bag.slice(0, game.bag.length - count);
  const racks = game.racks.with(game.turn, rack + game.bag.slice(game.bag.length - count));
  const points = game.points.with(game.turn, (game.points[game.turn] ?? 0) + move.score);
  return moved({ ...game, board: move.board, bag, racks, points }, {
    ...{ kind: "play", words: move.words, score: move.score, tiles: tiles.length },
  });
}

function exchange(game: Game, tiles: string, draw: () => number): Outcome {
  if (tiles.length === 0) return refused("choose the tiles to exchange");
  if (game.bag.length < RACK_TILES) return refused(`the bag has fewer than ${RACK_TILES} tiles`);
  const rack = without(game.racks[game.turn] ?? "", tiles);
  if (rack === null) return refused("these tiles are not on your rack");
  const left = game.bag.length - tiles.length;
  const racks = game.racks.with(game.turn, rack + game.bag.slice(left));
  return moved({ ...game, racks, bag: shuffled(game.bag.slice(0, left) + tiles, draw) }, {
    ...{ kind: "exchange", tiles: tiles.length },
  });
}

/** R2, R3: the move is written down, and the next player's turn. */
function moved(game: Game, made: Pick<Made, "kind"> & Partial<Made>): Outcome {
  const moves = [...game.moves, { words: [], score: 0, tiles: 0, ...made, by: game.turn }];
  const next = { ...game, moves, turn: following(game) };
  const staying = game.resigned.filter((has) => !has).length;
  const isOut = game.bag === "" && game.racks[game.turn] === "";
  const isIdle = moves.length >= IDLE_MAX && moves.slice(-IDLE_MAX).every(({ score }) => score === 0);
  return { ok: true, game: isOut || isIdle || staying < 2 ? ended(next, isOut ? game.turn : null) : next };
}

function following({ turn, resigned }: Game): number {
  for (let by = 1; by <= resigned.length; by++) {
    const seat = (turn + by) % resigned.length;
    if (resigned[seat] === false) return seat;
  }
  return turn;
}

function ended(game: Game, out: number | null): Game {
  const left = game.racks.map(valuesOf);
  const all = left.reduce((sum, each) => sum + each, 0);
  const points = game.points.map((each, seat) => each - (left[seat] ?? 0) + (seat === out ? all : 0));
  return { ...game, points, isOver: true };
}

/** The seats that have won: more than one after a draw. Who has resigned has not. */
export function winners(game: Game): number[] {
  const staying = game.points.filter((_, seat) => game.resigned[seat] === false);
  const most = Math.max(...staying);
  return game.points.flatMap((each, seat) => each === most && game.resigned[seat] === false ? [seat] : []);
}
