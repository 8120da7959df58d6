/**
 * What moves in a frame: pixels that differ from the background, gathered into boxes. Pure functions over grey pixels, row
 * after row.
 *
 * D1  A pixel is in front where it differs by more than `DIFFERENCE` from the mean of the background's frames.
 * D2  Single pixels are noise: a square of 8 × 8 counts where a quarter of it is in front, and a box is of squares that
 *     touch. A box has the bounds of the pixels in front in its squares.
 */

/** Noise of a camera is some 5; of people and cars, 30 and more differ. */
const DIFFERENCE = 24;
/** Pixels of a square's side, and how many of its 64 must be in front. */
const SQUARE = 8;
const IN_FRONT_MIN = 16;
/** Boxes of fewer pixels are leaves and birds. */
const PIXELS_MIN = 64;
/** The largest are answered. */
export const BOXES_MAX = 100;

export interface Size {
  readonly width: number;
  readonly height: number;
}

/** Something that moves. */
export interface Box {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
  /** Of it, in front. */
  readonly pixels: number;
}

/** 1 for each pixel in front (D1). `sum` holds the background's `frames`, added up. */
export function inFront(frame: Uint8Array, sum: Uint16Array, frames: number): Uint8Array<ArrayBuffer> {
  const mask = new Uint8Array(frame.length);
  const most = DIFFERENCE * frames;
  for (let i = 0; i < frame.length; i++) {
    const off = (frame[i] ?? 0) * frames - (sum[i] ?? 0);
    mask[i] = off > most || off < -most ? 1 : 0;
  }
  return mask;
}

/** The boxes of a mask (D2), largest first. */
export function boxesOf(mask: Uint8Array, { width, height }: Size): Box[] {
  const across = Math.ceil(width / SQUARE), down = Math.ceil(height / SQUARE);
  const counts = new Uint8Array(across * down);
  for (let y = 0; y < height; y++) {
    const row = (y / SQUARE | 0) * across, from = y * width;
    for (let x = 0; x < width; x++) {
      counts[row + (x / SQUARE | 0)] = (counts[row + (x / SQUARE | 0)] ?? 0) + (mask[from + x] ?? 0);
    }
  }
  const seen = new Uint8Array(counts.length);
  const boxes: Box[] = [];
  for (let at = 0; at < counts.length; at++) {
    if (seen[at] === 1 || (counts[at] ?? 0) < IN_FRONT_MIN) continue;
    const box = bounds(mask, gather(at, counts, seen, { across, down }), { width, height }, across);
    if (box.pixels >= PIXELS_MIN) boxes.push(box);
  }
  return boxes.sort((a, b) => b.pixels - a.pixels).slice(0, BOXES_MAX);
}

/** All squares that hang together with one. */
function gather(
  from: number,
  counts: Uint8Array,
  seen: Uint8Array,
  { across, down }: { readonly across: number; readonly down: number },
): number[] {
  const squares = [from];
  seen[from] = 1;
  for (let i = 0; i < squares.length; i++) {
    const at = squares[i] ?? 0, column = at % across, row = (at - column) / across;
    for (let y = Math.max(0, row - 1); y <= Math.min(down - 1, row + 1); y++) {
      for (let x = Math.max(0, column - 1); x <= Math.min(across - 1, column + 1); x++) {
        const next = y * across + x;
        if (seen[next] === 1 || (counts[next] ?? 0) < IN_FRONT_MIN) continue;
        seen[next] = 1;
        squares.push(next);
      }
    }
  }
  return squares;
}

function bounds(mask: Uint8Array, squares: readonly number[], { width, height }: Size, across: number): Box {
  let [left, top, right, bottom, pixels] = [width, height, -1, -1, 0];
  for (const square of squares) {
    const fromX = (square % across) * SQUARE, fromY = Math.floor(square / across) * SQUARE;
    for (let y = fromY; y < Math.min(height, fromY + SQUARE); y++) {
      for (let x = fromX; x < Math.min(width, fromX + SQUARE); x++) {
        if (mask[y * width + x] !== 1) continue;
        pixels++;
        [left, right] = [Math.min(left, x), Math.max(right, x)];
        [top, bottom] = [Math.min(top, y), Math.max(bottom, y)];
      }
    }
  }
  return { x: left, y: top, width: right - left + 1, height: bottom - top + 1, pixels };
}
