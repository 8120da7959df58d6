/**
 * The sending end of a connection: collects frames and writes them together.
 *
 * FW1  Frames that wait are not copied again as more come: a buffer with more than PART_BYTES of whole frames is put
 *      aside, and a new one begun. One buffer that doubles would be made anew at 64 MiB, which takes a site's thread 60
 *      ms.
 */
import {
  BACKLOG_BYTES_MAX,
  BUFFER_BYTES,
  BUFFER_KEEP_MAX,
  HEADER_BYTES,
  type IsolateConnection,
} from "./frames.ts";

const utf8 = new TextEncoder();
// The timers of the process: in an isolate of stateful sessions the global is the app's, and recorded.
const { setImmediate, setTimeout, clearTimeout } = globalThis;
/** Milliseconds after which a frame that nobody waits for is written alone. */
const LATER_MS = 10;

/**
 * Bytes of whole frames above which a buffer is put aside (FW1). Short of it buffers double; no frame but a long
 * value's is longer.
 */
const PART_BYTES = 256 * 1024;

/** Collects frames and writes them, one write per turn of the event loop. */
export class FrameWriter {
  readonly #connection: IsolateConnection;
  readonly #broken: (error: unknown) => void;
  readonly #overflow: ((bytes: number) => void) | undefined;
  readonly #resized: ((bytes: number) => void) | undefined;
  #bytes = new Uint8Array(BUFFER_BYTES);
  #view = new DataView(this.#bytes.buffer);
  #spare = new Uint8Array(BUFFER_BYTES);
  /** Frames that wait before those in `#bytes` (FW1). */
  #parts: Uint8Array[] = [];
  #partBytes = 0;
  #partsKept = 0;
  #at = 0;
  #frameAt = -1;
  #scheduled = false;
  #writing = false;
  #batchBytes = 0;
  #batchKept = 0;
  #toldKept = BUFFER_BYTES;
  #closed = false;
  #idle: (() => void)[] = [];
  #later: ReturnType<typeof setTimeout> | undefined;

  /**
   * @param overflow is told of a backlog above BACKLOG_BYTES_MAX, as it grows: the other side does not read.
   * @param resized is told of the memory that waiting frames take, as it grows and as it is given back.
   */
  constructor(
    connection: IsolateConnection,
    broken: (error: unknown) => void,
    overflow?: (bytes: number) => void,
    resized?: (bytes: number) => void,
  ) {
    this.#connection = connection;
    this.#broken = broken;
    this.#overflow = overflow;
    this.#resized = resized;
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
    this.#ended();
    if (this.#scheduled || this.#writing || this.#closed) return;
    this.#scheduled = true;
    setImmediate(this.#flush);
  }

  #ended(): void {
    this.#view.setUint32(this.#frameAt, this.#at - this.#frameAt - 4, true);
    this.#frameAt = -1;
    if (this.#closed) this.#drop();
  }

  #drop(): void {
    this.#at = this.#partBytes = this.#partsKept = 0;
    this.#parts = [];
  }

  /** Ends a frame that nobody waits for: it goes with the next that is written, or soon. */
  endLater(): void {
    this.#ended();
    if (this.#scheduled || this.#writing || this.#closed) return;
    this.#later ??= setTimeout(() => {
      this.#later = undefined;
      if (this.#hasFrames && !this.#scheduled && !this.#writing) this.#flush();
    }, LATER_MS);
  }

  /** Writes a frame without payload. */
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

  /** Adds bytes as they are, to the end of the payload. */
  rest(bytes: Uint8Array): this {
    this.#room(bytes.length);
    this.#bytes.set(bytes, this.#at);
    this.#at += bytes.length;
    return this;
  }

  bytes(bytes: Uint8Array): this {
    return this.u32(bytes.length).rest(bytes);
  }

  /** Adds a text as UTF-8 with its length. */
  text(text: string): this {
    this.#room(4 + text.length * 3);
    const written = this.#encode(text, this.#at + 4);
    this.#view.setUint32(this.#at, written, true);
    this.#at += 4 + written;
    return this;
  }

  /** Adds a text as UTF-8, to the end of the payload. */
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

  /** Adds a byte string (one code unit a byte) with its length. */
  byteString(text: string): this {
    const length = text.length;
    this.#room(4 + length);
    this.#view.setUint32(this.#at, length, true);
    this.#at += 4;
    for (let i = 0; i < length; i++) this.#bytes[this.#at + i] = text.charCodeAt(i);
    this.#at += length;
    return this;
  }

  /** Bytes in the payload of the frame that is being written. */
  get payloadBytes(): number {
    return this.#at - this.#frameAt - HEADER_BYTES;
  }

  /** Bytes that the system has not taken yet; 0 once the writer is closed. */
  get backlogBytes(): number {
    return this.#closed ? 0 : this.#partBytes + this.#at + (this.#writing ? this.#batchBytes : 0);
  }

  /** Resolves when everything ended so far has been handed to the system. */
  async drained(): Promise<void> {
    if (this.#closed || (!this.#scheduled && !this.#writing)) return;
    await new Promise<void>((resolve) => this.#idle.push(resolve));
  }

  /**
   * Calls back when everything ended so far has been handed to the system: no promise, where an app may have its own.
   */
  onDrained(callback: () => void): void {
    if (this.#closed || (!this.#scheduled && !this.#writing)) callback();
    else this.#idle.push(callback);
  }

  /** True once the writer is closed: frames go nowhere. */
  get isClosed(): boolean {
    return this.#closed;
  }

  /** Drops what was not written; later frames go nowhere. */
  close(): void {
    this.#closed = true;
    clearTimeout(this.#later);
    this.#drop();
    this.#wake();
  }

  #wake(): void {
    const idle = this.#idle;
    this.#idle = [];
    for (const resolve of idle) resolve();
  }

  get #hasFrames(): boolean {
    return this.#at > 0 || this.#partBytes > 0;
  }

  #room(length: number): void {
    if (this.#at + length <= this.#bytes.length) return;
    const backlogBytes = this.backlogBytes;
    if (backlogBytes > BACKLOG_BYTES_MAX) this.#overflow?.(backlogBytes);
    const whole = this.#frameAt < 0 ? this.#at : this.#frameAt;
    if (whole > PART_BYTES) this.#putAside(whole);
    const grown = new Uint8Array(Math.max(this.#at + length, this.#at * 2, BUFFER_BYTES));
    grown.set(this.#bytes.subarray(0, this.#at));
    this.#setBytes(grown);
    this.#tellKept();
  }

  /** Puts whole frames of the buffer aside (FW1). */
  #putAside(whole: number): void {
    this.#parts.push(this.#bytes.subarray(0, whole));
    this.#partBytes += whole;
    this.#partsKept += this.#bytes.length;
    this.#setBytes(this.#bytes.subarray(whole));
    this.#at -= whole;
    if (this.#frameAt >= 0) this.#frameAt = 0;
  }

  #setBytes(bytes: Uint8Array<ArrayBuffer>): void {
    this.#bytes = bytes;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  #tellKept(): void {
    const kept = this.#partsKept + this.#bytes.length + (this.#writing ? this.#batchKept : 0);
    if (kept === this.#toldKept) return;
    this.#toldKept = kept;
    this.#resized?.(kept);
  }

  #flush = (): void => {
    this.#scheduled = false;
    if (this.#frameAt >= 0) this.#at = this.#frameAt;
    this.#frameAt = -1;
    if (this.#writing || !this.#hasFrames) return;
    if (this.#closed) return this.#drop();
    this.#writing = true;
    this.#batchBytes = this.#partBytes + this.#at;
    this.#batchKept = this.#partsKept + this.#bytes.length;
    const last = this.#bytes.subarray(0, this.#at);
    const batch = this.#parts.length === 0 ? last : [...this.#parts, last];
    const next = this.#spare;
    this.#spare = this.#bytes.length > BUFFER_KEEP_MAX ? new Uint8Array(BUFFER_BYTES) : this.#bytes;
    this.#setBytes(next);
    this.#drop();
    const written = Array.isArray(batch) ? this.#writeEach(batch) : this.#writeAll(batch);
    written.then(this.#written, (error) => {
      this.#writing = false;
      this.close();
      this.#broken(error);
    });
  };

  #written = (): void => {
    this.#writing = false;
    this.#tellKept();
    if (this.#hasFrames) this.#flush();
    else if (this.#idle.length > 0) this.#wake();
  };

  async #writeEach(parts: readonly Uint8Array[]): Promise<void> {
    for (const part of parts) if (part.length > 0) await this.#writeAll(part);
  }

  async #writeAll(batch: Uint8Array): Promise<void> {
    let at = await this.#connection.write(batch);
    while (at < batch.length) at += await this.#connection.write(batch.subarray(at));
  }
}
