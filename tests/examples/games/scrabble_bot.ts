/** Somebody who plays scrabble: not well, but by the rules. */
import { type Laid, lay, SIZE } from "../../../examples/scrabble/board.ts";
import type { View } from "../../../examples/scrabble/messages.ts";
import { RACK_TILES, without } from "../../../examples/scrabble/tiles.ts";
import type { Draws } from "../../sim/random.ts";

const text = await Deno.readTextFile(new URL("../../../examples/scrabble/words.txt", import.meta.url));
const words = new Set(text.toUpperCase().split(/\s+/));
const short = [...words].filter((word) => word.length > 1 && word.length < 7);
/** So many words are tried at so many places: enough for most racks, and quick. */
const TRIED_MAX = 4_000;
const PLACES_MAX = 10;

/** Tiles of a rack that make a word through a tile of the board, or through the middle of an empty one. */
export function findMove(board: string, rack: string, draws: Draws): readonly Laid[] | null {
  const lying = [...board].flatMap((tile, at) => tile === "." ? [] : [at]);
  const middle = (SIZE * SIZE - 1) / 2;
  const from = draws.integer(0, short.length - 1);
  for (let place = 0; place < PLACES_MAX; place++) {
    const at = lying.length === 0 ? middle : lying[draws.integer(0, lying.length - 1)] ?? middle;
    const through = board[at] === "." ? null : (board[at] ?? "").toUpperCase();
    const [dx, dy] = draws.chance(0.5) ? [1, 0] : [0, 1];
    for (let i = 0; i < TRIED_MAX; i++) {
      const word = short[(from + i) % short.length] ?? "";
      for (let index = 0; index < word.length; index++) {
        if (through !== null && word[index] !== through) continue;
        const [x, y] = [at % SIZE - index * dx, Math.floor(at / SIZE) - index * dy];
        const tiles = laidFor(board, rack, word, { x, y, dx, dy });
        if (tiles !== null) return tiles;
      }
    }
  }
  return null;
}

interface Line {
  readonly x: number;
  readonly y: number;
  readonly dx: number;
  readonly dy: number;
}

function laidFor(board: string, rack: string, word: string, { x, y, dx, dy }: Line): readonly Laid[] | null {
  const tiles: Laid[] = [];
  let left = rack;
  for (const [i, letter] of [...word].entries()) {
    const [px, py] = [x + i * dx, y + i * dy];
    if (px < 0 || py < 0 || px >= SIZE || py >= SIZE) return null;
    const lies = board[py * SIZE + px] ?? ".";
    if (lies !== ".") {
      if (lies.toUpperCase() !== letter) return null;
      continue;
    }
    const tile = left.includes(letter) ? letter : "_";
    const rest = without(left, tile);
    if (rest === null) return null;
    left = rest;
    tiles.push({ x: px, y: py, tile: tile === "_" ? letter.toLowerCase() : letter });
  }
  if (tiles.length === 0) return null;
  const move = lay(board, tiles);
  return move.ok && move.words.every((each) => words.has(each.word)) ? tiles : null;
}

/** What a player with this view says: a word, an exchange, or that there is none; null where it is not the turn. */
export function wish(view: View, draws: Draws): { readonly kind: string; readonly move: number } | null {
  const { open, yours } = view;
  if (open.phase !== "playing" || open.turn !== yours.seat) return null;
  const move = open.moves.length + 1;
  const tiles = findMove(open.board, yours.rack, draws);
  if (tiles !== null) return Object.assign({ kind: "play", move }, { tiles });
  if (open.bag < RACK_TILES) return { kind: "pass", move };
  return Object.assign({ kind: "exchange", move }, { tiles: yours.rack.slice(0, 3) });
}
