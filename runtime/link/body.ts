/**
 * The two ends of one body that crosses a connection: a head frame, then bytes under a credit window, then the end.
 *
 * BD1  Bytes arrive in order and whole; the reader's stream closes only after the sender's source has closed, and fails
 *      when the source fails, the exchange is reset or the link is lost.
 * BD2  A receiver holds at most one window of bytes that nobody has read; its sender holds one chunk of the source more
 *      than fits the window, and does not read the source further. Small parts that wait are joined: each by itself
 *      would take a hundred times its bytes.
 */
import { FRAME_HEADER_BYTES, LINK_FRAME } from "./frame.ts";
import { LINK_PART_BYTES_MAX } from "./limits.ts";
import { ProtocolViolation, type RecordWriter } from "./record.ts";

/** Bytes below which a part is joined with those that wait before it, and the most bytes of a joined part. */
const SMALL_BYTES = 256;
const JOINED_BYTES = 4096;

export class LinkBodySender {
  readonly id: number;
  readonly #window: number;
  readonly #wake: (sender: LinkBodySender) => void;
  readonly #sent: () => void;
  /** Open or answer frame, encoded; leaves before anything else. */
  #head: Uint8Array | null = null;
  #bodiless = false;
  #chunk: Uint8Array | null = null;
  #chunkSent = 0;
  #credit: number;
  #ending = false;
  #over = false;
  #drained: PromiseWithResolvers<void> | null = null;
  #cancelSource: ((reason: unknown) => void) | null = null;
  /** True while it is in the outbox's list of senders that have something to send. */
  listed = false;

  /**
   * @param wake called when there is something to send.
   * @param sent called once, when the end of the body has gone into a record.
   */
  constructor(
    options: { id: number; window: number; wake: (sender: LinkBodySender) => void; sent: () => void },
  ) {
    this.id = options.id;
    this.#window = options.window;
    this.#credit = options.window;
    this.#wake = options.wake;
    this.#sent = options.sent;
  }

  get ready(): boolean {
    if (this.#over) return false;
    return this.#head !== null || (this.#chunk !== null ? this.#credit > 0 : this.#ending);
  }

  /** Sends the head, then the source's bytes. `failed` is called when the source fails. */
  start(
    head: Uint8Array,
    source: ReadableStream<Uint8Array> | null,
    failed: (error: unknown) => void,
  ): void {
    this.#head = head;
    this.#bodiless = source === null;
    this.#wake(this);
    if (source) this.#pump(source, failed);
  }

  async #pump(source: ReadableStream<Uint8Array>, failed: (error: unknown) => void): Promise<void> {
    try {
      const reader = source.getReader();
      this.#cancelSource = (reason) => reader.cancel(reason).catch(() => {});
      for (;;) {
        const { done, value } = await reader.read();
        if (this.#over || this.#ending) return;
        if (done) break;
        if (!(value instanceof Uint8Array)) throw new TypeError("A body's chunks must be Uint8Array");
        if (value.length === 0) continue;
        this.#chunk = value;
        this.#chunkSent = 0;
        this.#wake(this);
        this.#drained = Promise.withResolvers();
        await this.#drained.promise;
        if (this.#over || this.#ending) return;
      }
      this.#ending = true;
      this.#wake(this);
    } catch (error) {
      if (!this.#over && !this.#ending) failed(error);
    }
  }

  grant(bytes: number): void {
    this.#credit += bytes;
    if (this.#credit > this.#window) throw new ProtocolViolation("credit beyond a body's window");
    this.#wake(this);
  }

  /** Ends the body as it is: the receiver wants no more. */
  stop(): void {
    if (this.#over || this.#ending) return;
    this.#ending = true;
    this.#chunk = null;
    this.#releaseSource("The other side wants no more of this body");
    this.#wake(this);
  }

  /** Ends the sender: the exchange is over, and nothing more is sent. */
  close(reason: unknown): void {
    if (this.#over) return;
    this.#over = true;
    this.#chunk = null;
    this.#head = null;
    this.#releaseSource(reason);
  }

  #releaseSource(reason: unknown): void {
    this.#cancelSource?.(reason);
    this.#drained?.resolve();
  }

  /** Moves the head and at most one part into the record. */
  fill(record: RecordWriter, partBytes: number): void {
    if (this.#head) {
      record.append(this.#head);
      this.#head = null;
      if (this.#bodiless) return this.#finish();
    }
    const chunk = this.#chunk;
    if (chunk) {
      const length = Math.min(chunk.length - this.#chunkSent, this.#credit, partBytes, LINK_PART_BYTES_MAX);
      if (length === 0) return;
      record.frame(LINK_FRAME.data, 4 + length);
      record.u32(this.id);
      record.append(chunk.subarray(this.#chunkSent, this.#chunkSent + length));
      this.#credit -= length;
      this.#chunkSent += length;
      if (this.#chunkSent === chunk.length) {
        this.#chunk = null;
        this.#drained?.resolve();
      }
    } else if (this.#ending) {
      record.frame(LINK_FRAME.dataLast, 4);
      record.u32(this.id);
      this.#finish();
    }
  }

  #finish(): void {
    this.#over = true;
    this.#sent();
  }
}

export interface BodyReceiverPorts {
  readonly grant: (bytes: number) => void;
  /** Called when the reader has cancelled the stream. */
  readonly cancelled: () => void;
}

export class LinkBodyReceiver {
  readonly stream: ReadableStream<Uint8Array>;
  readonly #window: number;
  readonly #ports: BodyReceiverPorts;
  #queue: Uint8Array[] = [];
  #queuedBytes = 0;
  /** Bytes that were read and are not yet granted again. */
  #owed = 0;
  #ended = false;
  #discarding = false;
  #wake: (() => void) | null = null;
  #controller: ReadableStreamDefaultController<Uint8Array> | null = null;

  constructor(window: number, ports: BodyReceiverPorts) {
    this.#window = window;
    this.#ports = ports;
    this.stream = new ReadableStream<Uint8Array>({
      start: (controller) => {
        this.#controller = controller;
      },
      pull: (controller) => this.#pull(controller),
      cancel: () => {
        this.#discard();
        if (!this.#ended) this.#ports.cancelled();
      },
    }, { highWaterMark: 0 });
  }

  receive(bytes: Uint8Array, last: boolean): void {
    if (this.#ended) throw new ProtocolViolation("bytes after a body's end");
    this.#queuedBytes += bytes.length;
    if (this.#queuedBytes + this.#owed > this.#window) {
      throw new ProtocolViolation("body bytes beyond the credit");
    }
    this.#ended = last;
    if (!this.#discarding && bytes.length > 0) this.#keep(bytes);
    this.#signal();
  }

  /** Fails the reader: the exchange was reset or the link is lost. */
  fail(error: unknown): void {
    // Bytes that had arrived before, in a whole body, stay readable.
    if (this.#ended) return;
    this.#ended = true;
    const cancelled = this.#discarding;
    this.#discard();
    if (!cancelled) this.#controller?.error(error);
  }

  /** Keeps bytes for the reader; small parts are joined (BD2). */
  #keep(bytes: Uint8Array): void {
    const last = this.#queue.at(-1), length = (last?.length ?? 0) + bytes.length;
    if (last === undefined || bytes.length >= SMALL_BYTES || length > JOINED_BYTES) {
      this.#queue.push(bytes.slice());
      return;
    }
    const hasRoom = last.buffer.byteLength === JOINED_BYTES;
    const joined = hasRoom ? new Uint8Array(last.buffer) : new Uint8Array(JOINED_BYTES);
    if (!hasRoom) joined.set(last);
    joined.set(bytes, last.length);
    this.#queue[this.#queue.length - 1] = joined.subarray(0, length);
  }

  #discard(): void {
    this.#discarding = true;
    this.#queue = [];
    this.#signal();
  }

  #signal(): void {
    this.#wake?.();
    this.#wake = null;
  }

  async #pull(controller: ReadableStreamDefaultController<Uint8Array>): Promise<void> {
    while (this.#queue.length === 0 && !this.#ended && !this.#discarding) {
      await new Promise<void>((resolve) => this.#wake = resolve);
    }
    if (this.#discarding) return;
    const chunk = this.#queue.shift();
    if (chunk === undefined) return controller.close();
    controller.enqueue(chunk);
    if (this.#queue.length === 0 && this.#ended) return controller.close();
    this.#queuedBytes -= chunk.length;
    this.#owed += chunk.length;
    if (this.#owed < this.#window / 4 || this.#ended) return;
    const owed = this.#owed;
    this.#owed = 0;
    this.#ports.grant(owed);
  }
}

/** Encodes an open or answer frame: id · flags · (kind's length · kind, in open) · head. */
export function encodeBodyHead(
  options: { type: number; id: number; flags: number; kind?: Uint8Array; head: Uint8Array },
): Uint8Array {
  const { type, id, flags, kind, head } = options;
  const length = 5 + (kind ? 1 + kind.length : 0) + head.length;
  const frame = new Uint8Array(FRAME_HEADER_BYTES + length);
  const view = new DataView(frame.buffer);
  view.setUint32(0, type * 0x1000000 + length);
  view.setUint32(4, id);
  frame[8] = flags;
  let at = 9;
  if (kind) {
    frame[at] = kind.length;
    frame.set(kind, at + 1);
    at += 1 + kind.length;
  }
  frame.set(head, at);
  return frame;
}
