/**
 * Frames between a site and an isolate: the one format on the Unix socket, used at both ends.
 *
 *   u32 length of what follows · u8 type · u32 id · payload          (little endian)
 *
 * `id` names a channel: a request (given by the site, below FETCH_ID_BASE) or an outgoing fetch (given by the
 * isolate, from FETCH_ID_BASE on). Frames collect in one buffer and leave in one write per turn of the event
 * loop: that is where the throughput comes from.
 *
 * F1  Frames of one connection arrive in the order in which they were ended.
 * F2  A payload's views are valid only until the handler returns; what is kept is copied.
 * F3  The reader trusts no length: a frame above the limit, or a read beyond a payload, throws FrameError, and
 *     the site kills the isolate that sent it.
 */

/** What a frame means. */
export const FRAME = {
  // site → isolate
  load: 1,
  request: 2,
  cancel: 3,
  storeReply: 4,
  ping: 5,
  fetchHead: 6,
  // isolate → site
  ready: 20,
  loaded: 21,
  loadFailed: 22,
  response: 23,
  failed: 24,
  settled: 25,
  storeCall: 26,
  storeStop: 27,
  log: 28,
  pong: 29,
  fetchStart: 30,
  fetchAbort: 31,
  upgrade: 32,
  started: 33,
  // both ways, on any channel
  data: 50,
  end: 51,
  abort: 52,
  credit: 53,
  stop: 57,
  socketText: 54,
  socketBytes: 55,
  socketClose: 56,
} as const;

/** Channel ids from here on are outgoing fetches. */
export const FETCH_ID_BASE = 0x80000000;
/** A body chunk on the wire: larger ones are cut. Transfer costs flatten out above 16–32 KiB. */
export const CHUNK_BYTES_MAX = 64 * 1024;
/** Larger than a bundle (10 MiB), an atomic (4 MiB) or a page of rows; what exceeds it is garbage. */
export const FRAME_BYTES_MAX = 48 * 1024 * 1024;

const HEADER_BYTES = 9;
const BUFFER_BYTES = 64 * 1024;
/** A buffer that one large batch has grown is given back. */
const BUFFER_KEEP_MAX = 1024 * 1024;

/** Thrown for bytes that are no frame, and for reads beyond a payload. */
export class FrameError extends Error {
  override readonly name = "FrameError";
  readonly code = "frame_invalid";
}

/** The part of a connection that frames need. */
export interface ByteConnection {
  read(into: Uint8Array): Promise<number | null>;
  write(bytes: Uint8Array): Promise<number>;
}

const utf8 = new TextEncoder();
const utf8Decoder = new TextDecoder();

/** Collects frames and writes them, one write per turn of the event loop. */
export class FrameWriter {
  readonly #connection: ByteConnection;
  readonly #broken: (error: unknown) => void;
  #bytes = new Uint8Array(BUFFER_BYTES);
  #view = new DataView(this.#bytes.buffer);
  #spare = new Uint8Array(BUFFER_BYTES);
  #at = 0;
  #frameAt = -1;
  #scheduled = false;
  #writing = false;
  #closed = false;
  #idle: (() => void)[] = [];

  constructor(connection: ByteConnection, broken: (error: unknown) => void) {
    this.#connection = connection;
    this.#broken = broken;
  }

  begin(type: number, id: number): this {
    // A frame whose writing threw half-way is dropped.
    if (this.#frameAt >= 0) this.#at = this.#frameAt;
    this.#frameAt = this.#at;
    this.#room(HEADER_BYTES);
    this.#at += 4;
    this.#bytes[this.#at++] = type;
    this.#view.setUint32(this.#at, id, true);
    this.#at += 4;
    return this;
  }

  end(): void {
    this.#view.setUint32(this.#frameAt, this.#at - this.#frameAt - 4, true);
    this.#frameAt = -1;
    if (this.#scheduled || this.#writing) return;
    this.#scheduled = true;
    setImmediate(this.#flush);
  }

  /** A frame without payload. */
  signal(type: number, id: number): void {
    this.begin(type, id).end();
  }

  u8(value: number): this {
    this.#room(1);
    this.#bytes[this.#at++] = value;
    return this;
  }

  u16(value: number): this {
    this.#room(2);
    this.#view.setUint16(this.#at, value, true);
    this.#at += 2;
    return this;
  }

  u32(value: number): this {
    this.#room(4);
    this.#view.setUint32(this.#at, value, true);
    this.#at += 4;
    return this;
  }

  f64(value: number): this {
    this.#room(8);
    this.#view.setFloat64(this.#at, value, true);
    this.#at += 8;
    return this;
  }

  /** The bytes as they are, to the end of the payload. */
  rest(bytes: Uint8Array): this {
    this.#room(bytes.length);
    this.#bytes.set(bytes, this.#at);
    this.#at += bytes.length;
    return this;
  }

  bytes(bytes: Uint8Array): this {
    return this.u32(bytes.length).rest(bytes);
  }

  /** UTF-8 with its length. */
  text(text: string): this {
    this.#room(4 + text.length * 3);
    const written = this.#encode(text, this.#at + 4);
    this.#view.setUint32(this.#at, written, true);
    this.#at += 4 + written;
    return this;
  }

  /** UTF-8, to the end of the payload. */
  restText(text: string): this {
    this.#room(text.length * 3);
    this.#at += this.#encode(text, this.#at);
    return this;
  }

  #encode(text: string, at: number): number {
    const length = text.length;
    let i = 0;
    // Short ASCII, which most heads are, is cheaper byte by byte than by a call out of JavaScript.
    if (length < 512) {
      for (; i < length; i++) {
        const unit = text.charCodeAt(i);
        if (unit > 0x7f) break;
        this.#bytes[at + i] = unit;
      }
    }
    return i === length ? i : utf8.encodeInto(text, this.#bytes.subarray(at)).written;
  }

  /** A byte string (one code unit a byte) with its length. */
  byteString(text: string): this {
    const length = text.length;
    this.#room(4 + length);
    this.#view.setUint32(this.#at, length, true);
    this.#at += 4;
    for (let i = 0; i < length; i++) this.#bytes[this.#at + i] = text.charCodeAt(i);
    this.#at += length;
    return this;
  }

  /** Resolves when everything ended so far has been handed to the system. */
  async drained(): Promise<void> {
    if (this.#closed || (!this.#scheduled && !this.#writing)) return;
    await new Promise<void>((resolve) => this.#idle.push(resolve));
  }

  /** Drops what was not written; later frames go nowhere. */
  close(): void {
    this.#closed = true;
    this.#at = 0;
    this.#wake();
  }

  #wake(): void {
    const idle = this.#idle;
    this.#idle = [];
    for (const resolve of idle) resolve();
  }

  #room(length: number): void {
    const need = this.#at + length;
    if (need <= this.#bytes.length) return;
    const grown = new Uint8Array(Math.max(need, this.#bytes.length * 2));
    grown.set(this.#bytes.subarray(0, this.#at));
    this.#bytes = grown;
    this.#view = new DataView(grown.buffer);
  }

  #flush = (): void => {
    this.#scheduled = false;
    if (this.#frameAt >= 0) this.#at = this.#frameAt;
    this.#frameAt = -1;
    if (this.#writing || this.#at === 0) return;
    if (this.#closed) {
      this.#at = 0;
      return;
    }
    this.#writing = true;
    const batch = this.#bytes.subarray(0, this.#at);
    const next = this.#spare;
    this.#spare = this.#bytes.length > BUFFER_KEEP_MAX ? new Uint8Array(BUFFER_BYTES) : this.#bytes;
    this.#bytes = next;
    this.#view = new DataView(next.buffer);
    this.#at = 0;
    this.#writeAll(batch).then(this.#written, (error) => {
      this.#writing = false;
      this.close();
      this.#broken(error);
    });
  };

  #written = (): void => {
    this.#writing = false;
    if (this.#at > 0) this.#flush();
    else if (this.#idle.length > 0) this.#wake();
  };

  async #writeAll(batch: Uint8Array): Promise<void> {
    let at = await this.#connection.write(batch);
    while (at < batch.length) at += await this.#connection.write(batch.subarray(at));
  }
}

const SLAB_BYTES = 64 * 1024;
/** A sixteenth: what is left unused at a slab's end, and what one small copy keeps alive, stays bounded. */
const SLAB_COPY_MAX = SLAB_BYTES / 16;
let slab = new Uint8Array(SLAB_BYTES);
let slabAt = 0;

/** Reads one payload, never beyond its end (F3). */
export class Payload {
  #bytes: Uint8Array;
  #view: DataView;
  #at = 0;
  #end = 0;

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

  /** A view of all that is left (F2). */
  restView(): Uint8Array {
    return this.#bytes.subarray(this.#take(this.left), this.#end);
  }

  /** A copy of all that is left. */
  rest(): Uint8Array<ArrayBuffer> {
    return this.#bytes.slice(this.#take(this.left), this.#end) as Uint8Array<ArrayBuffer>;
  }

  /**
   * A copy of all that is left, for bytes that live as long as a request: small ones share a slab, since a buffer
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

  text(): string {
    const length = this.u32();
    const at = this.#take(length);
    return utf8Decoder.decode(this.#bytes.subarray(at, at + length));
  }

  byteString(): string {
    const length = this.u32();
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

/** Takes frames as they arrive. */
export type FrameHandler = (type: number, id: number, payload: Payload) => void;

/**
 * Reads frames until the connection ends; resolves at its end.
 *
 * @throws FrameError for what is no frame (F3); what the handler throws ends reading too.
 */
export async function readFrames(connection: ByteConnection, handler: FrameHandler): Promise<void> {
  let buffer = new Uint8Array(BUFFER_BYTES);
  let view = new DataView(buffer.buffer);
  const payload = new Payload(buffer);
  let from = 0;
  let to = 0;
  for (;;) {
    const count = await connection.read(buffer.subarray(to));
    if (count === null) return;
    to += count;
    let need = HEADER_BYTES;
    while (to - from >= HEADER_BYTES) {
      const length = view.getUint32(from, true);
      if (length < HEADER_BYTES - 4 || length > FRAME_BYTES_MAX) {
        throw new FrameError(`a frame has 5 to ${FRAME_BYTES_MAX} bytes, not ${length}`);
      }
      need = 4 + length;
      if (to - from < need) break;
      payload.reset(buffer, from + HEADER_BYTES, from + need);
      handler(view.getUint8(from + 4), view.getUint32(from + 5, true), payload);
      from += need;
      need = HEADER_BYTES;
    }
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
