/**
 * Bodies as streams of chunks on a channel, the same at both ends of the socket.
 *
 * A sender may have WINDOW_BYTES on the way, of which a small chunk takes CHUNK_BYTES_LEAST; the receiver gives credit
 * back as its consumer takes chunks, so a slow reader slows the writer and nobody's memory fills. A response begins
 * with a full window; a request body begins with none, and gets it when its handler first reads: a request whose
 * handler never started has not lost a byte of its body, and can go to another isolate.
 *
 * `abort` comes from the sender (the body failed), `stop` from the receiver (no more is wanted).
 */
import type { AppQueues, QueueHold, QueueName } from "./app_queues.ts";
import type { AppTurns } from "./app_turns.ts";
import type { FrameWriter } from "./frame_writer.ts";
import { CHUNK_BYTES_MAX, FrameError, ISOLATE_FRAME } from "./frames.ts";

/**
 * Bytes that may be on the way: 16 chunks of 64 KiB. 650 MB/s were measured with it; below 4 chunks every one waits for
 * its credit.
 */
export const WINDOW_BYTES = 4 * CHUNK_BYTES_MAX;

/** Bytes that a chunk takes of its window at least: about what it takes in memory, however few bytes it has. */
const CHUNK_BYTES_LEAST = 256;

/** Bytes that a chunk takes of its window, counted alike at both ends. */
const costOf = (chunk: Uint8Array): number => Math.max(CHUNK_BYTES_LEAST, chunk.length);

/** Milliseconds of a site's thread that a chunk takes, as measured: read from a connection, and copied into a frame. */
const CHUNK_MS = 0.1;

/** The sending end of one body. */
export class BodySender {
  readonly #writer: FrameWriter;
  readonly #id: number;
  readonly #before: (() => Promise<void>) | undefined;
  readonly #turns: AppTurns | undefined;
  #reader: ReadableStreamDefaultReader<Uint8Array> | undefined;
  #credit = 0;
  #wake: (() => void) | undefined;
  #stopped = false;

  /**
   * @param options `before` is awaited before each chunk leaves (the output gate); `turns` is given at a site: the
   * turns of the app whose body it is.
   */
  constructor(
    writer: FrameWriter,
    id: number,
    options: { credit: number; before?: () => Promise<void>; turns?: AppTurns },
  ) {
    this.#writer = writer;
    this.#id = id;
    this.#before = options.before;
    this.#turns = options.turns;
    this.#credit = options.credit;
  }

  /** Adds to the bytes that may be sent. @throws FrameError for more than a window, which no sender is owed. */
  credit(bytes: number): void {
    if (this.#credit + bytes > WINDOW_BYTES) throw new FrameError("a body is asked for beyond its window");
    this.#credit += bytes;
    this.#wake?.();
  }

  /** Stops sending: the receiver wants no more. */
  stop(reason?: unknown): void {
    if (this.#stopped) return;
    this.#stopped = true;
    this.#wake?.();
    this.#reader?.cancel(reason).catch(() => {});
  }

  /** Sends a stream to its end; resolves to the number of bytes sent. The receiver is told of a stream that fails. */
  async send(stream: ReadableStream<Uint8Array>, bytesMax = Infinity): Promise<number> {
    // Nothing of the stream is touched before there is room: what was never asked for can be sent elsewhere.
    await this.#room();
    if (this.#stopped) return 0;
    const reader = this.#reader = stream.getReader();
    let total = 0;
    try {
      while (!this.#stopped) {
        const { done, value } = await reader.read();
        if (done) break;
        const chunk = asBytes(value);
        total += chunk.length;
        if (total > bytesMax) throw new BodyTooLarge(bytesMax);
        await this.#chunk(chunk);
      }
      if (!this.#stopped) this.#writer.signal(ISOLATE_FRAME.end, this.#id);
    } catch (error) {
      if (!this.#stopped) this.#writer.begin(ISOLATE_FRAME.abort, this.#id).text(messageOf(error)).end();
      this.#stopped = true;
      reader.cancel(error).catch(() => {});
      if (error instanceof BodyTooLarge) throw error;
    }
    return total;
  }

  async #chunk(chunk: Uint8Array): Promise<void> {
    for (let at = 0; at < chunk.length && !this.#stopped; at += CHUNK_BYTES_MAX) {
      if (this.#credit <= 0) await this.#room();
      if (this.#before) await this.#before();
      const turn = this.#turns?.take(CHUNK_MS);
      if (turn instanceof Promise) await turn;
      if (this.#stopped) return;
      const part = chunk.subarray(at, at + CHUNK_BYTES_MAX);
      this.#credit -= costOf(part);
      this.#writer.begin(ISOLATE_FRAME.data, this.#id).rest(part).end();
    }
  }

  async #room(): Promise<void> {
    while (this.#credit <= 0 && !this.#stopped) {
      await new Promise<void>((resolve) => this.#wake = resolve);
      this.#wake = undefined;
    }
  }
}

/** The failure of a body that went over its limit. */
export class BodyTooLarge extends Error {
  override readonly name = "BodyTooLarge";
  readonly code = "limit_body";
  constructor(bytesMax: number) {
    super(`the body is larger than the ${bytesMax} bytes that are accepted`);
  }
}

function asBytes(value: unknown): Uint8Array {
  if (value instanceof Uint8Array) return value;
  if (ArrayBuffer.isView(value)) return new Uint8Array(value.buffer, value.byteOffset, value.byteLength);
  if (value instanceof ArrayBuffer) return new Uint8Array(value);
  throw new TypeError(`a body stream yields Uint8Array chunks, not ${typeof value}`);
}

/** Returns an error's message; of a thrown value that is no error, its text. */
export const messageOf = (error: unknown): string => error instanceof Error ? error.message : String(error);

/** The receiving end of one body: a stream that asks for more as it is read. */
export class BodyReceiver {
  readonly stream: ReadableStream<Uint8Array<ArrayBuffer>>;
  readonly #writer: FrameWriter;
  readonly #id: number;
  readonly #before: (() => Promise<void>) | undefined;
  readonly #closed: () => void;
  readonly #hold: QueueHold | undefined;
  #queue: Uint8Array<ArrayBuffer>[] = [];
  #queuedBytes = 0;
  #granted: boolean;
  #state: "open" | "ended" | "failed" | "done" = "open";
  #error: Error | undefined;
  #wake: (() => void) | undefined;

  /**
   * @param options `granted`: the sender began with a full window. `before` is awaited before each chunk is handed on
   * (the output gate); `closed` is called once at the end. `waits` is given at a site: the app's queues, and which of
   * them it is.
   */
  constructor(
    writer: FrameWriter,
    id: number,
    options: {
      granted: boolean;
      before?: () => Promise<void>;
      closed?: () => void;
      waits?: { readonly queues: AppQueues; readonly queue: QueueName };
    },
  ) {
    this.#writer = writer;
    this.#id = id;
    this.#granted = options.granted;
    this.#before = options.before;
    this.#closed = options.closed ?? (() => {});
    this.#hold = options.waits?.queues.hold(options.waits.queue, (why) => this.#shed(why));
    this.stream = new ReadableStream<Uint8Array<ArrayBuffer>>({
      pull: (controller) => this.#pull(controller),
      cancel: (reason) => this.#cancel(reason),
    }, { highWaterMark: 0 });
  }

  /** True while more of the body is to come. */
  get isOpen(): boolean {
    return this.#state === "open";
  }

  /** Takes a chunk that has arrived; returns false when the sender ignored its window. */
  data(chunk: Uint8Array<ArrayBuffer>): boolean {
    if (this.#state !== "open") return true;
    this.#queue.push(chunk);
    const cost = costOf(chunk);
    this.#queuedBytes += cost;
    this.#hold?.add(cost);
    this.#wake?.();
    return this.#queuedBytes <= WINDOW_BYTES + CHUNK_BYTES_MAX;
  }

  end(): void {
    if (this.#state === "open") this.#state = "ended";
    this.#wake?.();
  }

  fail(error: Error): void {
    if (this.#state === "done" || this.#state === "failed") return;
    this.#state = "failed";
    this.#error = error;
    this.#queue = [];
    this.#hold?.end();
    this.#wake?.();
  }

  /**
   * Gives the body up because the app has too much waiting at this site: its reader is told, and the sender is to stop.
   */
  #shed(why: string): void {
    if (this.#state === "open") this.#writer.begin(ISOLATE_FRAME.stop, this.#id).text(why).end();
    this.fail(new Error(why));
  }

  async #pull(controller: ReadableStreamDefaultController<Uint8Array<ArrayBuffer>>): Promise<void> {
    if (!this.#granted) {
      this.#granted = true;
      if (this.#state === "open") this.#writer.begin(ISOLATE_FRAME.credit, this.#id).u32(WINDOW_BYTES).end();
    }
    while (this.#queue.length === 0 && this.#state === "open") {
      await new Promise<void>((resolve) => this.#wake = resolve);
      this.#wake = undefined;
    }
    if (this.#state === "done") return;
    if (this.#state === "failed") return this.#fail(controller);
    const chunk = this.#queue.shift();
    if (chunk === undefined) {
      controller.close();
      return this.#finish();
    }
    if (this.#before) await this.#before();
    const cost = costOf(chunk);
    this.#queuedBytes -= cost;
    this.#hold?.add(-cost);
    if (this.#state === "open") this.#writer.begin(ISOLATE_FRAME.credit, this.#id).u32(cost).end();
    controller.enqueue(chunk);
    if (this.#state === "ended" && this.#queue.length === 0) {
      controller.close();
      this.#finish();
    }
  }

  #fail(controller: ReadableStreamDefaultController<Uint8Array<ArrayBuffer>>): void {
    controller.error(this.#error);
    this.#finish();
  }

  #finish(): void {
    this.#state = "done";
    this.#hold?.end();
    this.#closed();
  }

  #cancel(reason: unknown): void {
    if (this.#state === "open") {
      this.#writer.begin(ISOLATE_FRAME.stop, this.#id).text(messageOf(reason ?? "cancelled")).end();
    }
    this.#queue = [];
    this.#finish();
  }
}
