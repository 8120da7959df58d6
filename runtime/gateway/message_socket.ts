/**
 * One end of a stream of messages with a close at its end: what a WebSocket is to the gateway, whether it is the
 * client's, an isolate's, or one that goes over a link. Pulled, not pushed, so that a slow reader slows the writer.
 *
 * W1  Messages arrive whole and in order; after the close nothing arrives.
 * W2  A bridge that ends on one side closes the other with the same code.
 */

/** A message, or the end. */
export type SocketEvent =
  | { readonly kind: "message"; readonly data: string | Uint8Array<ArrayBuffer> }
  | { readonly kind: "close"; readonly code: number; readonly reason: string };

/** One end. */
export interface MessageSocket {
  /** The next message; after the close, the close again. */
  next(): Promise<SocketEvent>;
  /** Resolves when there is room for another. */
  send(data: string | Uint8Array<ArrayBuffer>): Promise<void>;
  close(code: number, reason: string): void;
}

/** Abnormal closure, as a receiver reports it; never sent by name. */
const CLOSED_ABNORMALLY = 1006;
/** What we send instead: the server can't go on. */
const INTERNAL_ERROR = 1011;

/** Carries messages between two ends until one closes. */
export async function bridge(a: MessageSocket, b: MessageSocket): Promise<void> {
  await Promise.all([carry(a, b), carry(b, a)]);
}

async function carry(from: MessageSocket, to: MessageSocket): Promise<void> {
  try {
    for (;;) {
      const event = await from.next();
      if (event.kind === "close") return to.close(sendable(event.code), event.reason);
      await to.send(event.data);
    }
  } catch {
    to.close(INTERNAL_ERROR, "");
    from.close(INTERNAL_ERROR, "");
  }
}

/** Codes that an endpoint may send: 1000 and the private ones; the reserved ones only describe. */
export function sendable(code: number): number {
  if (code === 1000 || (code >= 3000 && code <= 4999)) return code;
  if (code === CLOSED_ABNORMALLY) return INTERNAL_ERROR;
  return code >= 1001 && code <= 1014 && code !== 1004 && code !== 1005 ? code : 1000;
}

/** Events waiting to be pulled, from a source that pushes. */
export class SocketQueue {
  readonly #events: SocketEvent[] = [];
  #bytes = 0;
  #close: SocketEvent | null = null;
  #wake: ((event: SocketEvent) => void) | null = null;

  /** Messages that wait. */
  get size(): number {
    return this.#events.length;
  }

  /** And their length, texts by their characters. */
  get bytes(): number {
    return this.#bytes;
  }

  push(event: SocketEvent): void {
    if (this.#close !== null) return;
    if (event.kind === "close") this.#close = event;
    const wake = this.#wake;
    this.#wake = null;
    if (wake !== null) wake(event);
    else if (event.kind === "message") {
      this.#events.push(event);
      this.#bytes += event.data.length;
    }
  }

  next(): Promise<SocketEvent> {
    const event = this.#events.shift() ?? this.#close;
    if (event?.kind === "message") this.#bytes -= event.data.length;
    if (event) return Promise.resolve(event);
    return new Promise((resolve) => this.#wake = resolve);
  }
}

/** A client that reads nothing is not fed more than this; then its sender waits. */
const BUFFERED_BYTES_MAX = 1024 * 1024;
/** How often a full buffer is looked at: WebSocket tells nobody when it drains. */
const DRAIN_POLL_MS = 5;
/** A client that sends faster than it is read is cut off at so many messages, and at so many bytes of several. */
const QUEUED_MESSAGES_MAX = 10_000;
const QUEUED_BYTES_MAX = 16 * 1024 * 1024;

/** The client's end: a WebSocket of this process. */
export class ClientSocket implements MessageSocket {
  readonly #socket: WebSocket;
  readonly #queue = new SocketQueue();
  readonly #open: Promise<void>;

  constructor(socket: WebSocket) {
    this.#socket = socket;
    socket.binaryType = "arraybuffer";
    this.#open = new Promise((resolve) => {
      socket.addEventListener("open", () => resolve(), { once: true });
      socket.addEventListener("close", () => resolve(), { once: true });
    });
    socket.addEventListener("message", (event) => {
      const data: unknown = event.data;
      this.#queue.push({
        kind: "message",
        data: typeof data === "string" ? data : new Uint8Array(data as ArrayBuffer),
      });
      const { size, bytes } = this.#queue;
      const isFull = size > QUEUED_MESSAGES_MAX || (size > 1 && bytes > QUEUED_BYTES_MAX);
      if (isFull && socket.readyState === WebSocket.OPEN) socket.close(1008, "too many messages at once");
    });
    socket.addEventListener(
      "close",
      (event) =>
        this.#queue.push({ kind: "close", code: event.code || CLOSED_ABNORMALLY, reason: event.reason }),
    );
    socket.addEventListener(
      "error",
      () => this.#queue.push({ kind: "close", code: CLOSED_ABNORMALLY, reason: "" }),
    );
  }

  next(): Promise<SocketEvent> {
    return this.#queue.next();
  }

  async send(data: string | Uint8Array<ArrayBuffer>): Promise<void> {
    await this.#open;
    while (this.#socket.bufferedAmount > BUFFERED_BYTES_MAX) {
      await new Promise((resolve) => setTimeout(resolve, DRAIN_POLL_MS));
    }
    if (this.#socket.readyState === WebSocket.OPEN) this.#socket.send(data);
  }

  /** As near to what was asked as this end of a WebSocket may say it. */
  close(code: number, reason: string): void {
    this.#open.then(() => {
      if (this.#socket.readyState < WebSocket.CLOSING) this.#socket.close(code, cutReason(reason));
    }).catch(() => this.#socket.close()); // one that this process opened takes 1000 and 3000 to 4999 only
  }
}

/** As long as a close frame takes. */
const REASON_BYTES_MAX = 123;

/** A reason as a close frame takes it: what an app or another site gives may be longer. */
export function cutReason(reason: string): string {
  let text = reason.slice(0, REASON_BYTES_MAX).toWellFormed();
  while (utf8.encode(text).length > REASON_BYTES_MAX) text = text.slice(0, -1).toWellFormed();
  return text;
}

const utf8 = new TextEncoder();
