/** The receiving end of a connection: cuts what arrives into frames, and reads their payloads. */
import {
  BUFFER_BYTES,
  BUFFER_KEEP_MAX,
  FRAME_THINGS_MAX,
  FrameError,
  HEADER_BYTES,
  type IsolateConnection,
} from "./frames.ts";

/** Number of frames, and of their bytes, that are handled without a look at whose turn it is. */
const LOOK_FRAMES = 32;
const LOOK_BYTES = 16 * 1024;
const utf8Decoder = new TextDecoder();
const SLAB_BYTES = 64 * 1024;
/**
 * Bytes up to which a copy shares a slab, a sixteenth of it: what is left unused at a slab's end, and what one small
 * copy keeps alive, stays bounded.
 */
const SLAB_COPY_MAX = SLAB_BYTES / 16;
let slab = new Uint8Array(SLAB_BYTES);
let slabAt = 0;

/** Reads the fields of one payload, never beyond its end (F3). */
export class Payload {
  #bytes: Uint8Array;
  #view: DataView;
  #at = 0;
  #end = 0;
  /** Number of things that the frame has named (F5). */
  #things = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.#end = bytes.length;
  }

  /** Points at other bytes of the same buffer (or of `bytes`, when the buffer has changed). */
  reset(bytes: Uint8Array, at: number, end: number): void {
    if (bytes !== this.#bytes) {
      this.#bytes = bytes;
      this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    }
    this.#at = at;
    this.#end = end;
    this.#things = 0;
  }

  get left(): number {
    return this.#end - this.#at;
  }

  #take(length: number): number {
    const at = this.#at;
    if (length > this.#end - at) {
      throw new FrameError(`a frame ends ${length - (this.#end - at)} bytes before its payload does`);
    }
    this.#at = at + length;
    return at;
  }

  u8(): number {
    return this.#view.getUint8(this.#take(1));
  }

  u16(): number {
    return this.#view.getUint16(this.#take(2), true);
  }

  u32(): number {
    return this.#view.getUint32(this.#take(4), true);
  }

  f64(): number {
    return this.#view.getFloat64(this.#take(8), true);
  }

  /** Returns a view of all that is left (F2), and leaves it to be taken. */
  view(): Uint8Array {
    return this.#bytes.subarray(this.#at, this.#end);
  }

  /** Takes all that is left, as a view (F2). */
  restView(): Uint8Array {
    return this.#bytes.subarray(this.#take(this.left), this.#end);
  }

  /** Takes all that is left, as a copy. */
  rest(): Uint8Array<ArrayBuffer> {
    return this.#bytes.slice(this.#take(this.left), this.#end) as Uint8Array<ArrayBuffer>;
  }

  /**
   * Takes all that is left, as a copy for bytes that live as long as a request: small ones share a slab, since a buffer
   * of its own for each costs more in garbage collection than the whole rest of a request.
   */
  restForRequest(): Uint8Array<ArrayBuffer> {
    const length = this.left;
    if (length > SLAB_COPY_MAX) return this.rest();
    if (slabAt + length > slab.length) {
      slab = new Uint8Array(SLAB_BYTES);
      slabAt = 0;
    }
    const copy = slab.subarray(slabAt, slabAt + length);
    copy.set(this.restView());
    slabAt += length;
    return copy;
  }

  bytes(): Uint8Array<ArrayBuffer> {
    const length = this.u32();
    const at = this.#take(length);
    return this.#bytes.slice(at, at + length) as Uint8Array<ArrayBuffer>;
  }

  /**
   * Takes a text with its length.
   *
   * @param bytesMax a longer text is an error (F5).
   */
  text(bytesMax = Infinity): string {
    const length = this.#upTo(bytesMax);
    const at = this.#take(length);
    return utf8Decoder.decode(this.#bytes.subarray(at, at + length));
  }

  /**
   * Takes the number of things that follow. @throws FrameError for more than `max` (F5), or than there is room for with
   * `bytesEach` bytes each.
   */
  count(max: number, bytesEach: number): number {
    const count = this.u32();
    this.#things += count;
    if (count > max || this.#things > FRAME_THINGS_MAX) {
      throw new FrameError(`a frame names ${count} things where ${Math.min(max, FRAME_THINGS_MAX)} may be`);
    }
    if (count * bytesEach > this.left) {
      throw new FrameError(`a frame names ${count} things and has room for fewer`);
    }
    return count;
  }

  #upTo(bytesMax: number): number {
    const length = this.u32();
    if (length > bytesMax) throw new FrameError(`a field has ${length} bytes where ${bytesMax} may be`);
    return length;
  }

  /**
   * Takes a text, of which at most `bytesMax` bytes are read: a part of a longer string would keep all of that in
   * memory. `cutBytes` is the whole text's length, where that was longer.
   */
  textUpTo(bytesMax: number): { readonly text: string; readonly cutBytes: number | null } {
    const length = this.u32();
    const at = this.#take(length);
    if (length <= bytesMax) {
      return { text: utf8Decoder.decode(this.#bytes.subarray(at, at + length)), cutBytes: null };
    }
    const text = utf8Decoder.decode(this.#bytes.subarray(at, at + bytesMax), { stream: true });
    utf8Decoder.decode(); // half of a character at the end is dropped
    return { text, cutBytes: length };
  }

  /**
   * Takes a string of one byte a character, with its length.
   *
   * @param bytesMax a longer string is an error (F5).
   */
  byteString(bytesMax = Infinity): string {
    const length = this.#upTo(bytesMax);
    const at = this.#take(length);
    let out = "";
    for (let i = at; i < at + length; i += 4096) {
      out += String.fromCharCode.apply(
        null,
        this.#bytes.subarray(i, Math.min(i + 4096, at + length)) as never,
      );
    }
    return out;
  }
}

/** Called with each frame as it arrives. */
export type FrameHandler = (type: number, id: number, payload: Payload) => void;

/** Says when the reader of frames may go on, where others want the same thread. */
export interface Pace {
  /** Called before frames are handled. */
  begin(): void;
  /** True when the frames that were handled have taken all that there was for this turn: `look` is to be called now. */
  readonly isSpent: boolean;
  /**
   * Called with the number of frames handled since the last look or `begin`. Returns null to go on; otherwise a promise
   * that resolves when reading may begin anew.
   */
  look(frames: number): Promise<void> | null;
}

/**
 * Reads frames until the connection ends; resolves at its end.
 *
 * @throws FrameError for bytes that are no frame (F3); an error of the handler ends reading too.
 */
export async function readFrames(
  connection: IsolateConnection,
  frameBytesMax: number,
  handler: FrameHandler,
  pace?: Pace,
): Promise<void> {
  let buffer = new Uint8Array(BUFFER_BYTES);
  let view = new DataView(buffer.buffer);
  const payload = new Payload(buffer);
  let from = 0;
  let to = 0;
  for (;;) {
    const count = await connection.read(buffer.subarray(to));
    if (count === null) return;
    to += count;
    pace?.begin();
    let frames = 0, lookedAt = from;
    let need = HEADER_BYTES;
    while (to - from >= HEADER_BYTES) {
      const length = view.getUint32(from, true);
      if (length < HEADER_BYTES - 4 || length > frameBytesMax) {
        throw new FrameError(`a frame has 5 to ${frameBytesMax} bytes, not ${length}`);
      }
      need = 4 + length;
      if (to - from < need) break;
      payload.reset(buffer, from + HEADER_BYTES, from + need);
      handler(view.getUint8(from + 4), view.getUint32(from + 5, true), payload);
      from += need;
      need = HEADER_BYTES;
      if (pace === undefined) continue;
      if (++frames < LOOK_FRAMES && from - lookedAt < LOOK_BYTES && !pace.isSpent) continue;
      const turn = pace.look(frames);
      frames = 0;
      lookedAt = from;
      if (turn !== null) await turn;
    }
    const turn = frames > 0 ? pace?.look(frames) ?? null : null;
    if (turn !== null) await turn;
    if (from === to) {
      from = to = 0;
      if (buffer.length > BUFFER_KEEP_MAX) {
        buffer = new Uint8Array(BUFFER_BYTES);
        view = new DataView(buffer.buffer);
      }
    } else if (from + need > buffer.length || to === buffer.length) {
      const grown = need > buffer.length ? new Uint8Array(need + BUFFER_BYTES) : buffer;
      grown.set(buffer.subarray(from, to));
      if (grown !== buffer) {
        buffer = grown;
        view = new DataView(buffer.buffer);
      }
      to -= from;
      from = 0;
    }
  }
}
