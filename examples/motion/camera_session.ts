/**
 * What is known of one camera: the frames that its background is the mean of. A stateful session of tens of megabytes.
 *
 * Every so many frames, one goes into the background, and the oldest leaves it. The state is as the paper's video analytics
 * have it (CESSNA, 7.1): 120 frames of 768 × 576, spread over minutes.
 *
 * C1  `sum` is the frames in `ring` added up: pixel for pixel, always.
 * C2  Of a frame that goes into the background a checkpoint has that frame and the sum; of any other one, some numbers.
 * C3  A frame that can't be used changes nothing.
 * C4  A frame that is sent again, because its answer was lost with a site, is answered as it was and counted once.
 */
import { bytes, type EnvOf, list, Session } from "sojourn";
import { type Box, boxesOf, inFront, type Size } from "./detect.ts";
import { type Picture, readPgm, writePbm } from "./pgm.ts";

export const resources = {
  vars: {
    /** Frames that the background is the mean of: 120 of 768 × 576 are 53 MB. A sum of 16 bits takes 257 of them. */
    DEPTH: "120",
    /** Of so many frames one goes into the background. */
    EVERY: "10",
  },
} as const;

type Env = EnvOf<typeof resources>;

/** The largest frame: those of the paper. One has to fit a request of 1 MiB. */
export const PIXELS_MAX = 768 * 576;

/** What a frame is answered with. */
export interface Seen {
  /** Its number. */
  readonly frame: number;
  /** Frames in the background. With few of them, what stands still is taken for moving later. */
  readonly background: number;
  readonly boxes: readonly Box[];
}

/** See the file's header. */
export class Camera extends Session<Env> {
  ring = list<ReturnType<typeof bytes>>();
  /** Of 16 bits each. */
  sum = bytes(0);
  size: Size | null = null;
  frames = 0;
  /** Frames that have gone into the background. */
  learned = 0;
  /** The newest frame that had a key (C4): a camera sends the next when it has the answer. */
  answered: { readonly key: string; readonly seen: Seen } | null = null;

  /** One frame; also told how it looked. @throws TypeError for what is no frame of this camera. */
  look(pgm: Uint8Array<ArrayBuffer>): Seen {
    return this.#look(readPgm(pgm)).seen;
  }

  /** `POST`: a frame as PGM; answers JSON, or with `?mask` a PBM of what is in front. `GET`: what is known. */
  override async fetch(request: Request): Promise<Response> {
    if (request.method === "GET") {
      const { size, frames, learned } = this;
      return Response.json({
        size,
        frames,
        background: Math.min(learned, this.#depth()),
        stateBytes: this.#stateBytes(),
      });
    }
    const key = request.headers.get("idempotency-key")?.slice(0, 200) ?? null;
    if (key !== null && this.answered?.key === key) return Response.json(this.answered.seen);
    try {
      const picture = readPgm(await request.bytes());
      const { seen, mask } = this.#look(picture);
      if (key !== null) this.answered = { key, seen };
      if (!new URL(request.url).searchParams.has("mask")) return Response.json(seen);
      const headers = { "content-type": "image/x-portable-bitmap", "x-frame": `${seen.frame}` };
      return new Response(writePbm(mask, picture), { headers });
    } catch (error) {
      if (!(error instanceof TypeError)) throw error;
      return Response.json({ problem: error.message }, { status: 400 });
    }
  }

  #depth(): number {
    return Math.min(257, Math.max(1, Number(this.env.vars.DEPTH) || 1));
  }

  #stateBytes(): number {
    return (this.ring.length * this.sum.length) / 2 + this.sum.length;
  }

  #look(picture: Picture): { readonly seen: Seen; readonly mask: Uint8Array } {
    this.#fit(picture);
    const background = Math.min(this.learned, this.#depth());
    const sum = this.sum.slice();
    const mask = background === 0
      ? new Uint8Array(picture.pixels.length)
      : inFront(picture.pixels, new Uint16Array(sum.buffer), background);
    if (this.frames % Math.max(1, Number(this.env.vars.EVERY) || 1) === 0) this.#learn(picture.pixels);
    const frame = ++this.frames;
    return { seen: { frame, background, boxes: boxesOf(mask, picture) }, mask };
  }

  /** The first frame says how large they are. */
  #fit({ width, height }: Picture): void {
    const { size } = this;
    if (size === null) {
      if (width * height > PIXELS_MAX) {
        throw new TypeError(
          `a frame has at most ${PIXELS_MAX} pixels, as 768 × 576 have; this one is of ${width} × ${height}`,
        );
      }
      this.size = { width, height };
      this.sum.resize(2 * width * height);
    } else if (size.width !== width || size.height !== height) {
      throw new TypeError(
        `frames of this camera are of ${size.width} × ${size.height}, not ${width} × ${height}`,
      );
    }
  }

  /** C1 */
  #learn(pixels: Uint8Array<ArrayBuffer>): void {
    const frame = this.ring.at(this.learned % this.#depth());
    const oldest = frame?.slice();
    if (frame === undefined) this.ring.push(bytes(pixels));
    else frame.set(pixels);
    this.sum.edit(0, this.sum.length, (part) => {
      const sum = new Uint16Array(part.buffer, part.byteOffset, part.length / 2);
      for (let i = 0; i < sum.length; i++) sum[i] = (sum[i] ?? 0) + (pixels[i] ?? 0) - (oldest?.[i] ?? 0);
    });
    this.learned++;
  }
}
