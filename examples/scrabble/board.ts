/**
 * The board of 15 × 15 squares, and what tiles laid on it make: pure functions.
 *
 * B1  Tiles of one move lie in one line, with no gap that is not filled by tiles that lay there.
 * B2  The first move covers the middle with two tiles at least; every other one touches a tile that lay there.
 * B3  Premium squares count for the move that covers them, and for no later one.
 */
import { RACK_TILES, valueOf } from "./tiles.ts";

export const SIZE = 15;
/** All seven at once. */
const ALL_TILES_BONUS = 50;

/** `T`, `D`: three or two times the word; `t`, `d`: three or two times the letter. The middle doubles. */
export const PREMIUM: readonly string[] = [
  ...["T..d...T...d..T", ".D...t...t...D.", "..D...d.d...D..", "d..D...d...D..d", "....D.....D...."],
  ...[".t...t...t...t.", "..d...d.d...d..", "T..d...D...d..T", "..d...d.d...d..", ".t...t...t...t."],
  ...["....D.....D....", "d..D...d...D..d", "..D...d.d...D..", ".D...t...t...D.", "T..d...T...d..T"],
];

/** Rows after each other; `.` where no tile lies. */
export type Board = string;

export const EMPTY: Board = ".".repeat(SIZE * SIZE);
const MIDDLE = (SIZE * SIZE - 1) / 2;

/** A tile that is laid. */
export interface Laid {
  readonly x: number;
  readonly y: number;
  /** `A`: that letter; `a`: a blank that stands for it. */
  readonly tile: string;
}

/** A word that a move makes. */
export interface Word {
  readonly word: string;
  readonly score: number;
}

/** What a move makes, or why it can't be. */
export type Move =
  | { readonly ok: true; readonly board: Board; readonly words: readonly Word[]; readonly score: number }
  | { readonly ok: false; readonly problem: string };

const refused = (problem: string): Move => ({ ok: false, problem });
const at = (x: number, y: number): number => y * SIZE + x;
const isOn = (x: number, y: number): boolean => x >= 0 && y >= 0 && x < SIZE && y < SIZE;
const tileAt = (board: Board, x: number, y: number): string => isOn(x, y) ? board[at(x, y)] ?? "." : ".";

/** Lays tiles on a board, if they may lie there. Whether its words are words, others decide. */
export function lay(board: Board, tiles: readonly Laid[]): Move {
  if (tiles.length === 0 || tiles.length > RACK_TILES) {
    return refused(`a move is of 1 to ${RACK_TILES} tiles`);
  }
  const cells = [...board];
  for (const { x, y, tile } of tiles) {
    if (!isOn(x, y) || !/^[A-Za-z]$/.test(tile)) {
      return refused("a tile is no letter, or lies beside the board");
    }
    if (cells[at(x, y)] !== ".") return refused("two tiles lie on one square");
    cells[at(x, y)] = tile;
  }
  const laid = cells.join("");
  const problem = misplaced(board, laid, tiles);
  if (problem !== null) return refused(problem);
  const isRow = tiles.length > 1 ? tiles[0]?.y === tiles[1]?.y : null;
  const across = isRow === false ? tiles : tiles.slice(0, 1);
  const down = isRow === true ? tiles : tiles.slice(0, 1);
  const words = [
    ...across.map((tile) => wordThrough(board, laid, tile, 1, 0)),
    ...down.map((tile) => wordThrough(board, laid, tile, 0, 1)),
  ].filter((word) => word !== null);
  const bonus = tiles.length === RACK_TILES ? ALL_TILES_BONUS : 0;
  return { ok: true, board: laid, words, score: words.reduce((sum, { score }) => sum + score, bonus) };
}

/** B1, B2 */
function misplaced(board: Board, laid: Board, tiles: readonly Laid[]): string | null {
  const xs = tiles.map(({ x }) => x), ys = tiles.map(({ y }) => y);
  const [left, right, top, bottom] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
  if (left !== right && top !== bottom) return "the tiles lie in no one line";
  for (let x = left; x <= right; x++) {
    for (let y = top; y <= bottom; y++) {
      if (tileAt(laid, x, y) === ".") return "there is a gap between the tiles";
    }
  }
  if (board === EMPTY) {
    if (laid[MIDDLE] === ".") return "the first word covers the middle";
    return tiles.length === 1 ? "the first word has two letters at least" : null;
  }
  const touches = ({ x, y }: Laid) =>
    [[x - 1, y], [x + 1, y], [x, y - 1], [x, y + 1]].some(([nx = 0, ny = 0]) =>
      tileAt(board, nx, ny) !== "."
    );
  return tiles.some(touches) ? null : "the tiles touch none that lie on the board";
}

/** The word through a new tile in a direction; null where it has one letter only. */
function wordThrough(board: Board, laid: Board, from: Laid, dx: number, dy: number): Word | null {
  let { x, y } = from;
  while (tileAt(laid, x - dx, y - dy) !== ".") [x, y] = [x - dx, y - dy];
  let word = "", score = 0, times = 1;
  for (; tileAt(laid, x, y) !== "."; x += dx, y += dy) {
    const tile = tileAt(laid, x, y);
    const premium = tileAt(board, x, y) === "." ? PREMIUM[y]?.[x] ?? "." : "."; // B3
    word += tile.toUpperCase();
    score += valueOf(tile) * (premium === "t" ? 3 : premium === "d" ? 2 : 1);
    times *= premium === "T" ? 3 : premium === "D" ? 2 : 1;
  }
  return word.length > 1 ? { word, score: score * times } : null;
}
