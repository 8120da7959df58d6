/**
 * The segments of a state as parts at the keepers (functions/sessions/log/state_parts.ts): cut, and compressed where
 * that pays.
 *
 *   byte codec: 0 as it is, 1 zstd; + 128: the segment ends with it · for zstd u32 the length of what is packed · bytes
 *
 * Parts are compressed here and not in the isolate, whose turns would wait: some 2 ms of this site's CPU time for each
 * MB, in between other work (docs/decisions/26-checkpoints-are-what-changed.md has the figures).
 *
 * SC1  Parts of one state, in order, are its segments again; whatever else comes in their place is refused.
 * SC2  A part is never more than PART_BYTES_MAX when it is unpacked, whatever it says; nor less than it says, as the
 *      end of one that was cut would be.
 */
import { constants, zstdCompress, zstdDecompress } from "node:zlib";
import { promisify } from "node:util";
import { CodecError } from "../../../store/model/codec.ts";

const compress = promisify(zstdCompress);
const decompress = promisify(zstdDecompress);

/** Bytes of a segment in one part: with its first byte it is within what keepers take of one. */
const PART_BYTES_MAX = 1 << 20;
/** Bytes below which a part is not compressed: the call would cost more than it saves. */
const COMPRESSED_BYTES_MIN = 4 * 1024;
/** Share of its length above which a compressed part is left as it is: reading it costs time at each opening. */
const COMPRESSED_SHARE_MAX = 0.75;
/** Level of compression: 1 is five times as fast as 3 on frames of a camera, and as small on JSON. */
const LEVEL = 1;

const PLAIN = 0, ZSTD = 1, LAST = 0x80;
/** Bytes of the first byte and the length. */
const ZSTD_HEAD_BYTES = 5;

/** Cuts and compresses segments into parts. */
export async function packState(segments: readonly Uint8Array[]): Promise<Uint8Array[]> {
  const parts: Uint8Array[] = [];
  for (const segment of segments) {
    for (let at = 0;;) {
      const end = Math.min(at + PART_BYTES_MAX, segment.length);
      parts.push(await packed(segment.subarray(at, end), end === segment.length));
      if (end === segment.length) break;
      at = end;
    }
  }
  return parts;
}

async function packed(bytes: Uint8Array, isLast: boolean): Promise<Uint8Array> {
  const last = isLast ? LAST : 0;
  if (bytes.length < COMPRESSED_BYTES_MIN) return headed(PLAIN | last, bytes);
  const params = { [constants.ZSTD_c_compressionLevel]: LEVEL };
  const small = await compress(bytes, { params });
  return small.length <= bytes.length * COMPRESSED_SHARE_MAX
    ? headed(ZSTD | last, small, bytes.length)
    : headed(PLAIN | last, bytes);
}

function headed(head: number, bytes: Uint8Array, length?: number): Uint8Array {
  const at = length === undefined ? 1 : ZSTD_HEAD_BYTES;
  const part = new Uint8Array(at + bytes.length);
  part[0] = head;
  if (length !== undefined) new DataView(part.buffer).setUint32(1, length, true);
  part.set(bytes, at);
  return part;
}

/**
 * Makes segments of parts, unpacked side by side: a session that is opened waits for that. @throws CodecError (SC1,
 * SC2)
 */
export async function unpackState(parts: readonly Uint8Array[]): Promise<Uint8Array[]> {
  const headOf = (part: Uint8Array): number => part[0] ?? 0x7f;
  const all = await Promise.all(parts.map((part) => unpacked(headOf(part) & ~LAST, part)));
  const segments: Uint8Array[] = [];
  let pieces: Uint8Array[] = [];
  for (const [i, part] of parts.entries()) {
    pieces.push(all[i] ?? new Uint8Array());
    if ((headOf(part) & LAST) === 0) continue;
    segments.push(joined(pieces));
    pieces = [];
  }
  if (pieces.length > 0) throw new CodecError("the last part of a state is missing");
  return segments;
}

async function unpacked(codec: number, part: Uint8Array): Promise<Uint8Array> {
  if (codec === PLAIN && part.length <= PART_BYTES_MAX + 1) return part.subarray(1);
  if (codec !== ZSTD || part.length < ZSTD_HEAD_BYTES) {
    throw new CodecError(`a part of a state is in no form that is known here: ${codec}`);
  }
  const length = new DataView(part.buffer, part.byteOffset).getUint32(1, true);
  if (length > PART_BYTES_MAX) {
    throw new CodecError(`a part of a state has ${length} bytes when it is unpacked`);
  }
  let bytes: Uint8Array;
  try {
    bytes = await decompress(part.subarray(ZSTD_HEAD_BYTES), { maxOutputLength: length });
  } catch (error) {
    throw new CodecError(
      `a part of a state can't be unpacked: ${error instanceof Error ? error.message : error}`,
    );
  }
  if (bytes.length !== length) throw new CodecError("a part of a state is cut");
  return new Uint8Array(bytes.buffer, bytes.byteOffset, length);
}

function joined(pieces: readonly Uint8Array[]): Uint8Array {
  const [only] = pieces;
  if (pieces.length === 1 && only !== undefined) return only;
  const all = new Uint8Array(pieces.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const piece of pieces) {
    all.set(piece, at);
    at += piece.length;
  }
  return all;
}
