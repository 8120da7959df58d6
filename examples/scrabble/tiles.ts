/**
 * The hundred tiles. On a rack a tile is `A` to `Z`, or `_` for a blank; on the board a blank that stands for a letter is
 * that letter in lower case, and counts nothing.
 */

/** How many there are of each, and what each counts: as published, for English. */
const TILES: Readonly<Record<string, readonly [count: number, value: number]>> = {
  ...{ A: [9, 1], B: [2, 3], C: [2, 3], D: [4, 2], E: [12, 1], F: [2, 4], G: [3, 2], H: [2, 4], I: [9, 1] },
  ...{ J: [1, 8], K: [1, 5], L: [4, 1], M: [2, 3], N: [6, 1], O: [8, 1], P: [2, 3], Q: [1, 10], R: [6, 1] },
  ...{ S: [4, 1], T: [6, 1], U: [4, 1], V: [2, 4], W: [2, 4], X: [1, 8], Y: [2, 4], Z: [1, 10], _: [2, 0] },
};

export const RACK_TILES = 7;

/** What a tile counts, on a rack or on the board. */
export const valueOf = (tile: string): number => TILES[tile]?.[1] ?? 0;

export const valuesOf = (tiles: string): number => [...tiles].reduce((sum, tile) => sum + valueOf(tile), 0);

/** The tile of a rack that a tile of the board was. */
export const onRack = (tile: string): string => tile === tile.toLowerCase() ? "_" : tile;

/** All tiles, in an order that `draw` (numbers of [0, 1)) decides. */
export const newBag = (draw: () => number): string =>
  shuffled(Object.entries(TILES).map(([tile, [count]]) => tile.repeat(count)).join(""), draw);

/** The same tiles in another order. */
export function shuffled(tiles: string, draw: () => number): string {
  const all = [...tiles];
  for (let i = all.length - 1; i > 0; i--) {
    const other = Math.floor(draw() * (i + 1));
    [all[i], all[other]] = [all[other] ?? "", all[i] ?? ""];
  }
  return all.join("");
}

/** A rack without some tiles; null where it does not have them all. */
export function without(rack: string, tiles: Iterable<string>): string | null {
  let left = rack;
  for (const tile of tiles) {
    const at = left.indexOf(tile);
    if (at < 0) return null;
    left = left.slice(0, at) + left.slice(at + 1);
  }
  return left;
}
