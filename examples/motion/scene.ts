/** A street that does not exist, seen by a camera with noise: a still scene, and what moves through it. All from a seed. */
import type { Size } from "./detect.ts";
import type { Picture } from "./pgm.ts";

/** Where something is that moves, in pixels; none of it need be in the picture. */
export interface Mover {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

/** Of grey: a camera's noise goes so far up and down. */
const NOISE = 5;

/** xorshift32: numbers of 32 bits. */
function draws(seed: number): () => number {
  let state = (seed ^ 0x9e3779b9) >>> 0 || 1;
  return () => {
    state ^= state << 13;
    state >>>= 0;
    state ^= state >>> 17;
    state ^= state << 5;
    return state >>>= 0;
  };
}

interface Walker {
  readonly width: number;
  readonly height: number;
  readonly y: number;
  readonly from: number;
  /** Pixels a frame. */
  readonly speed: number;
  readonly shade: number;
}

/** See the file's header. */
export class Scene {
  readonly size: Size;
  readonly #still: Uint8Array<ArrayBuffer>;
  readonly #walkers: readonly Walker[];
  readonly #seed: number;

  constructor(size: Size, { seed, movers }: { readonly seed: number; readonly movers: number }) {
    this.size = size;
    this.#seed = seed;
    const draw = draws(seed), below = (most: number) => draw() % most;
    this.#still = stillOf(size, below);
    const { width, height } = size;
    this.#walkers = Array.from({ length: movers }, (_, i) => {
      const own = {
        width: Math.round(width * (0.04 + below(5) / 100)),
        height: Math.round(height * (0.08 + below(8) / 100)),
      };
      // Each on a lane of its own, so that two are two.
      const lane = height / movers;
      const y = Math.round(lane * i + Math.max(0, lane - own.height) / 2);
      const speed = (1 + below(3)) * (width / 256) * (below(2) === 0 ? 1 : -1);
      return { ...own, y, from: below(width), speed, shade: below(2) === 0 ? 75 : -75 };
    });
  }

  /** Where everything is that moves. */
  moversAt(frame: number): Mover[] {
    return this.#walkers.map(({ width, height, y, from, speed }) => {
      // In at one side, out at the other, and in again.
      const round = this.size.width + width;
      const x = ((Math.round(from + frame * speed) % round) + round) % round - width;
      return { x, y, width, height };
    });
  }

  /** What the camera sees. The same number gives the same picture. */
  frame(number: number): Picture {
    const { width, height } = this.size;
    const pixels = this.#still.slice();
    this.moversAt(number).forEach((mover, i) => this.#paint(pixels, mover, this.#walkers[i]?.shade ?? 0));
    const draw = draws(this.#seed * 31 + number);
    for (let i = 0; i < pixels.length; i += 4) {
      // Four pixels a number.
      let noise = draw();
      for (let j = i; j < Math.min(i + 4, pixels.length); j++, noise >>>= 8) {
        pixels[j] = Math.min(255, Math.max(0, (pixels[j] ?? 0) + (noise & 255) % (2 * NOISE + 1) - NOISE));
      }
    }
    return { width, height, pixels };
  }

  #paint(pixels: Uint8Array, { x, y, width, height }: Mover, shade: number): void {
    const most = this.size.width;
    for (let row = Math.max(0, y); row < Math.min(this.size.height, y + height); row++) {
      for (let column = Math.max(0, x); column < Math.min(most, x + width); column++) {
        const at = row * most + column;
        pixels[at] = Math.min(255, Math.max(0, (pixels[at] ?? 0) + shade));
      }
    }
  }
}

/** Sky, street, and some houses. */
function stillOf({ width, height }: Size, below: (most: number) => number): Uint8Array<ArrayBuffer> {
  const pixels = new Uint8Array(width * height);
  for (let y = 0; y < height; y++) {
    pixels.fill(90 + Math.round((70 * y) / height), y * width, (y + 1) * width);
  }
  for (let house = 0; house < 12; house++) {
    const [x, y] = [below(width), below(height)];
    const [w, h] = [
      Math.round(width / 12) + below(Math.ceil(width / 8)),
      Math.round(height / 10) + below(Math.ceil(height / 6)),
    ];
    const grey = 85 + below(85);
    for (let row = y; row < Math.min(height, y + h); row++) {
      pixels.fill(grey, row * width + x, row * width + Math.min(width, x + w));
    }
  }
  return pixels;
}
