/**
 * Frames: the units of the protocol inside a record's payload. type (1) · length of body (3) · body. A
 * payload consists of whole frames (docs/protocol/frames.md).
 */
import { ProtocolViolation } from "./record.ts";

export const LINK_FRAME = {
  /** A whole store message. */
  message: 0x01,
  /** A store message that travels in parts: total length (4) · first part. */
  messageBegin: 0x02,
  messagePart: 0x03,
  /** Room for so many more bytes of store frames (4). */
  messageCredit: 0x04,
  /** A request: id (4) · flags (1) · length of kind (1) · kind · head. */
  open: 0x10,
  /** The answer to a request: id (4) · flags (1) · head. */
  answer: 0x11,
  /** Bytes of a body: id (4) · bytes. */
  data: 0x12,
  /** The last bytes of a body: id (4) · bytes. */
  dataLast: 0x13,
  /** The receiver wants no more of the sender's body: id (4). */
  stop: 0x14,
  /** The exchange is over, both bodies: id (4) · code (1) · text. */
  reset: 0x15,
  /** Room for so many more bytes of body: id (4) · bytes (4). */
  credit: 0x16,
  /** A ping: id (4); answered by a pong with the same. */
  ping: 0x20,
  pong: 0x21,
  /** The sender closes on purpose: text. */
  goodbye: 0x22,
} as const;

export const FRAME_HEADER_BYTES = 4;
/** Flag of open and answer frames: no body follows. */
export const FLAG_BODILESS = 1;

/** Calls `visit` with type and body of each frame. @throws ProtocolViolation for a frame that is not whole. */
export function eachFrame(payload: Uint8Array, visit: (type: number, body: Uint8Array) => void): void {
  let at = 0;
  while (at < payload.length) {
    if (at + FRAME_HEADER_BYTES > payload.length) throw new ProtocolViolation("a frame's header is cut");
    const length = byte(payload, at + 1) * 65_536 + byte(payload, at + 2) * 256 + byte(payload, at + 3);
    const end = at + FRAME_HEADER_BYTES + length;
    if (end > payload.length) {
      throw new ProtocolViolation(`a frame of ${length} bytes passes the record's end`);
    }
    visit(byte(payload, at), payload.subarray(at + FRAME_HEADER_BYTES, end));
    at = end;
  }
}

function byte(bytes: Uint8Array, at: number): number {
  return bytes[at] ?? 0;
}

/** Reads the unsigned number at an offset of a frame's body. @throws ProtocolViolation when it is cut. */
export function readU32(body: Uint8Array, at: number): number {
  if (at + 4 > body.length) throw new ProtocolViolation("a frame's body is cut");
  return byte(body, at) * 0x1000000 + byte(body, at + 1) * 65_536 + byte(body, at + 2) * 256 +
    byte(body, at + 3);
}

/** Checks a body's length. @throws ProtocolViolation unless it has exactly so many bytes. */
export function expectLength(body: Uint8Array, length: number): void {
  if (body.length !== length) {
    throw new ProtocolViolation(`a frame's body of ${body.length} bytes, not ${length}`);
  }
}

/** Encodes a frame by itself, for the urgent ones. */
export function encodeFrame(type: number, numbers: readonly number[], rest?: Uint8Array): Uint8Array {
  const length = 4 * numbers.length + (rest?.length ?? 0);
  const frame = new Uint8Array(FRAME_HEADER_BYTES + length);
  const view = new DataView(frame.buffer);
  view.setUint32(0, type * 0x1000000 + length);
  numbers.forEach((number, i) => view.setUint32(FRAME_HEADER_BYTES + 4 * i, number));
  if (rest) frame.set(rest, FRAME_HEADER_BYTES + 4 * numbers.length);
  return frame;
}
