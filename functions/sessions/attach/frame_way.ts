/**
 * Way for frames between a host side and a home, both ends pulled: within this site, or over a link as the two bodies
 * of a request (kind `stateful-peer`).
 *
 *   over a link each frame is   u32 length (big endian) · bytes
 *
 * FW1  Frames arrive whole and in order. A stream that ends in the middle of a frame, or a frame that is longer than
 *      one can be, ends the way.
 * FW2  After `close` what was sent before still goes out; then the other end finds the way ended, and ends its own half.
 */
import type { Channel, ChannelReader, PeerClock } from "./mod.ts";

export type Frame = Uint8Array<ArrayBuffer>;

/** End of a way. */
export interface FrameWay {
  send(frame: Frame): void;
  /** Bytes that are sent, and not taken at the other end or by the link. */
  readonly bufferedBytes: number;
  /** Resolves when there is room for more. */
  ready(): Promise<void>;
  /** Returns the next frame; null where the way has ended. */
  next(): Promise<Frame | null>;
  close(): void;
}

/**
 * Bytes of the largest frame: a message of 4 MiB with an increment of 8 MiB, and their heads; what is longer is
 * garbage.
 */
export const FORWARDED_FRAME_BYTES_MAX = 13 * 1024 * 1024;
/** Bytes that wait from which on a sender has to wait. */
const WAITING_BYTES_MAX = 1024 * 1024;
/** Cost of a frame that waits, beside its bytes: small ones count too. */
const FRAME_COST_BYTES = 128;
/** Time for the other end to end its half. */
const CLOSE_MS = 5_000;

/** Direction of a way within this site. */
class Pipe {
  readonly #frames: Frame[] = [];
  #bytes = 0;
  #isEnded = false;
  #wake: (() => void) | null = null;
  #drained: PromiseWithResolvers<void> | null = null;

  push(frame: Frame): void {
    if (this.#isEnded) return;
    this.#frames.push(frame);
    this.#bytes += frame.length + FRAME_COST_BYTES;
    this.#wake?.();
  }

  end(): void {
    this.#isEnded = true;
    this.#wake?.();
    this.#drained?.resolve();
  }

  get bytes(): number {
    return this.#bytes;
  }

  ready(): Promise<void> {
    if (this.#bytes <= WAITING_BYTES_MAX || this.#isEnded) return Promise.resolve();
    return (this.#drained ??= Promise.withResolvers()).promise;
  }

  async next(): Promise<Frame | null> {
    while (this.#frames.length === 0) {
      if (this.#isEnded) return null;
      await new Promise<void>((resolve) => this.#wake = resolve);
      this.#wake = null;
    }
    const frame = this.#frames.shift() ?? null;
    if (frame !== null) this.#bytes -= frame.length + FRAME_COST_BYTES;
    if (this.#bytes <= WAITING_BYTES_MAX) {
      this.#drained?.resolve();
      this.#drained = null;
    }
    return frame;
  }
}

/** Returns the two ends of a way within this site. */
export function localWay(): [FrameWay, FrameWay] {
  const there = new Pipe(), back = new Pipe();
  const end = (out: Pipe, into: Pipe): FrameWay => ({
    send: (frame) => out.push(frame),
    get bufferedBytes() {
      return out.bytes;
    },
    ready: () => out.ready(),
    next: () => into.next(),
    close: () => {
      out.end();
      into.end();
    },
  });
  return [end(there, back), end(back, there)];
}

/** End of a way whose other end is at another site. */
export class StreamWay implements FrameWay {
  /** Stream that the other site is to read: the body of the request or of the answer. */
  readonly outgoing: ReadableStream<Frame>;
  readonly #writer: WritableStreamDefaultWriter<Frame>;
  #reader: ReadableStreamDefaultReader<Uint8Array> | null = null;
  #pending: Uint8Array = new Uint8Array(0);
  #waiting = 0;
  #isClosed = false;
  readonly #clock: PeerClock;
  #cancelLate: () => void = () => {};
  readonly #ended = Promise.withResolvers<void>();

  constructor(clock: PeerClock) {
    this.#clock = clock;
    const { readable, writable } = new TransformStream<Frame, Frame>();
    this.outgoing = readable;
    this.#writer = writable.getWriter();
    this.#writer.closed.catch(() => {});
  }

  /** Resolves when nothing more is read. */
  get ended(): Promise<void> {
    return this.#ended.promise;
  }

  /** Begins to read the other half, which is there now. */
  read(incoming: ReadableStream<Uint8Array>): this {
    this.#reader = incoming.getReader();
    return this;
  }

  send(frame: Frame): void {
    if (this.#isClosed) return;
    const bytes = new Uint8Array(4 + frame.length);
    new DataView(bytes.buffer).setUint32(0, frame.length);
    bytes.set(frame, 4);
    const cost = bytes.length + FRAME_COST_BYTES;
    this.#waiting += cost;
    // A way that broke is found by its reader.
    this.#writer.write(bytes).catch(() => {}).finally(() => this.#waiting -= cost);
  }

  get bufferedBytes(): number {
    return this.#waiting;
  }

  async ready(): Promise<void> {
    if (this.#waiting > WAITING_BYTES_MAX) await this.#writer.ready.catch(() => {});
  }

  async next(): Promise<Frame | null> {
    const frame = await this.#frame().catch(() => null);
    if (frame === null) {
      this.close();
      this.#leave();
    }
    return frame;
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#writer.close().catch(() => {}); // FW2
    if (this.#reader !== null) this.#cancelLate = this.#clock.after(CLOSE_MS, () => this.#leave()); // FW2
  }

  /** Ends the way at once: nothing more is read, and a reader that waits for the next frame finds it ended. */
  break(): void {
    this.close();
    this.#leave();
  }

  #leave(): void {
    this.#cancelLate();
    this.#reader?.cancel().catch(() => {});
    this.#ended.resolve();
  }

  async #frame(): Promise<Frame | null> {
    const head = await this.#take(4);
    if (head === null) return null;
    const length = new DataView(head.buffer).getUint32(0);
    return length > FORWARDED_FRAME_BYTES_MAX ? null : await this.#take(length); // FW1
  }

  /**
   * Returns the next so many bytes, each copied once, however small the pieces they come in; null where they do not
   * come.
   */
  async #take(length: number): Promise<Frame | null> {
    const bytes = new Uint8Array(length);
    for (let at = 0;;) {
      const part = this.#pending.subarray(0, length - at);
      bytes.set(part, at);
      at += part.length;
      this.#pending = this.#pending.subarray(part.length);
      if (at === length) return bytes;
      const chunk = await this.#reader?.read();
      if (chunk === undefined || chunk.done) return null; // FW1
      this.#pending = chunk.value;
    }
  }
}

/** Returns a way as a channel of a host side or a home side. */
export const channelOf = (way: FrameWay): Channel => ({
  send: (frame) => way.send(frame),
  bufferedBytes: () => way.bufferedBytes,
  close: () => way.close(),
});

/**
 * Gives a side the frames of a way until it has ended.
 *
 * @param failed told of a fault of that side: its own way ends, and no other.
 */
export async function feed(
  way: FrameWay,
  reader: ChannelReader,
  failed: (error: unknown) => void,
): Promise<void> {
  try {
    for (let frame = await way.next(); frame !== null; frame = await way.next()) reader.frame(frame);
  } catch (error) {
    way.close();
    failed(error);
  }
  reader.broken();
}
