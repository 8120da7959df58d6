/** Grey pictures as cameras and `ffmpeg -pix_fmt gray` write them: binary PGM. */
import type { Size } from "./detect.ts";

/** A picture. */
export interface Picture extends Size {
  /** Row after row. */
  readonly pixels: Uint8Array<ArrayBuffer>;
}

/** `P5`, width, height, 255; a comment may stand between them. */
const HEAD = /^P5\s(?:#[^\n]*\n)?\s*(\d{1,5})\s+(\d{1,5})\s+255\s/;
const HEAD_BYTES_MAX = 200;
const latin1 = new TextDecoder("latin1");

/** @throws TypeError where it is no such picture. */
export function readPgm(bytes: Uint8Array<ArrayBuffer>): Picture {
  const [head, w, h] = HEAD.exec(latin1.decode(bytes.subarray(0, HEAD_BYTES_MAX))) ?? [];
  if (head === undefined) {
    throw new TypeError("a frame is a binary PGM (P5) of 8 bits: 'P5 768 576 255', then its pixels");
  }
  const [width, height] = [Number(w), Number(h)];
  const pixels = bytes.subarray(head.length);
  if (width === 0 || height === 0 || pixels.length !== width * height) {
    throw new TypeError(`a frame of ${width} × ${height} has ${width * height} pixels, not ${pixels.length}`);
  }
  return { width, height, pixels };
}

/** The same, as bytes. */
export function writePgm({ width, height, pixels }: Picture): Uint8Array<ArrayBuffer> {
  const head = new TextEncoder().encode(`P5 ${width} ${height} 255\n`);
  const bytes = new Uint8Array(head.length + pixels.length);
  bytes.set(head);
  bytes.set(pixels, head.length);
  return bytes;
}

/** A mask as a picture of bits (PBM, `P4`), in front is black. */
export function writePbm(mask: Uint8Array, { width, height }: Size): Uint8Array<ArrayBuffer> {
  const head = new TextEncoder().encode(`P4 ${width} ${height}\n`);
  const rowBytes = Math.ceil(width / 8);
  const bytes = new Uint8Array(head.length + rowBytes * height);
  bytes.set(head);
  for (let y = 0; y < height; y++) {
    for (let x = 0; x < width; x++) {
      const at = head.length + y * rowBytes + (x >> 3);
      bytes[at] = (bytes[at] ?? 0) | (mask[y * width + x] ?? 0) << (7 - (x & 7));
    }
  }
  return bytes;
}
