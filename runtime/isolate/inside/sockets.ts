/**
 * WebSockets inside the isolate: the socket that `Deno.upgradeWebSocket` answers, and the pair that Workers make.
 * Both are ends of one kind of object; the end that belongs to the client is carried over the site's socket.
 *
 * K1  Messages sent before the upgrade has left are kept and leave with it, in order.
 * K2  No more leaves than the site takes (socket_window.ts); the rest waits here, in the app's own memory, and
 *     `bufferedAmount` is how much of what was sent is not with the client's connection yet.
 */
import type { FrameWriter } from "../frame_writer.ts";
import { ISOLATE_FRAME } from "../frames.ts";
import { costOf, SOCKET_MESSAGE_BYTES_MAX, SOCKET_WINDOW_BYTES } from "../socket_window.ts";

const OPEN = 1;
const CLOSING = 2;
const CLOSED = 3;

type Message = string | Uint8Array<ArrayBuffer>;

/** A message or the close that waits to be sent to the client, in order. */
type Saying =
  | { readonly kind: "message"; readonly bytes: Uint8Array; readonly isText: boolean }
  | { readonly kind: "close"; readonly code: number; readonly reason: string };

const utf8 = new TextEncoder();
/** Close code for a message that is too long for one frame (the registry of close codes). */
const TOO_BIG = 1009;

/** Bytes of the length before the characters of a text frame. */
const TEXT_LENGTH_BYTES = 4;

/** Bytes of the reason that a close frame takes, as the standard has it. */
const REASON_BYTES_MAX = 123;

/** An end of a WebSocket, as an app sees it. */
export class IsolateSocket extends EventTarget {
  static readonly CONNECTING = 0;
  static readonly OPEN = OPEN;
  static readonly CLOSING = CLOSING;
  static readonly CLOSED = CLOSED;
  readonly CONNECTING = 0;
  readonly OPEN = OPEN;
  readonly CLOSING = CLOSING;
  readonly CLOSED = CLOSED;
  binaryType: BinaryType = "blob";
  readonly extensions = "";
  readonly url = "";
  protocol = "";
  readyState = 0;
  onopen: ((event: Event) => void) | null = null;
  onmessage: ((event: MessageEvent) => void) | null = null;
  onclose: ((event: CloseEvent) => void) | null = null;
  onerror: ((event: Event) => void) | null = null;
  #writer: FrameWriter | undefined;
  #id = 0;
  /** Messages that wait for room, and a close behind them (K2). */
  #queue: Saying[] = [];
  #queuedBytes = 0;
  /** Number of messages that are with the site and not passed on to the client. */
  #sentMessages = 0;
  #sentBytes = 0;
  /** True unless incoming messages wait until a Workers handler calls `accept()`. */
  #accepted = true;
  #waiting: (() => void)[] = [];
  #closed: (() => void) | undefined;
  #other: IsolateSocket | undefined;

  /** Makes a pair as Workers do: the first end goes into the response, the second is the handler's. */
  static pair(): [IsolateSocket, IsolateSocket] {
    const client = new IsolateSocket();
    const server = new IsolateSocket();
    client.#other = server;
    client.binaryType = server.binaryType = "arraybuffer"; // as Workers have it
    server.#accepted = false;
    server.readyState = OPEN;
    return [client, server];
  }

  /** Returns the handler's end of the socket in an upgrade response. */
  static ofUpgrade(socket: object): IsolateSocket {
    if (!(socket instanceof IsolateSocket)) {
      throw new TypeError("webSocket is one end of a WebSocketPair, or comes from Deno.upgradeWebSocket");
    }
    return socket.#other ?? socket;
  }

  /** Lets messages flow: the upgrade has been answered. `closed` is called once, when both ways are over. */
  connect(writer: FrameWriter, id: number, closed: () => void): void {
    this.#writer = writer;
    this.#id = id;
    this.#closed = closed;
    this.#drain();
    if (this.readyState === 0) {
      this.readyState = OPEN;
      queueMicrotask(() => this.#emit(new Event("open")));
    }
  }

  /** Has this end's messages handled from now on (Workers). */
  accept(): void {
    this.#accepted = true;
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const deliver of waiting) deliver();
  }

  send(data: string | ArrayBufferLike | ArrayBufferView | Blob): void {
    if (this.readyState >= CLOSING) return;
    if (data instanceof Blob) {
      data.bytes().then((bytes) => this.send(bytes));
      return;
    }
    const message = asMessage(data), writer = this.#writer;
    if (writer === undefined || this.#queue.length > 0 || !this.#hasRoom) return this.#wait(message);
    const isText = typeof message === "string";
    if (message.length > (isText ? SOCKET_MESSAGE_BYTES_MAX / 3 : SOCKET_MESSAGE_BYTES_MAX)) {
      return this.#wait(message); // where its bytes are counted
    }
    writer.begin(isText ? ISOLATE_FRAME.socketText : ISOLATE_FRAME.socketBytes, this.#id);
    if (isText) writer.text(message);
    else writer.rest(message);
    this.#sentMessages++;
    this.#sentBytes += writer.payloadBytes - (isText ? TEXT_LENGTH_BYTES : 0);
    writer.end();
  }

  /** Bytes of messages that were sent and have not been passed on to the client's connection. */
  get bufferedAmount(): number {
    return this.#sentBytes + this.#queuedBytes;
  }

  /** Notes that the site has passed messages on. */
  taken(messages: number, bytes: number): void {
    this.#sentMessages -= messages;
    this.#sentBytes -= bytes;
    this.#drain();
  }

  close(code = 1000, reason = ""): void {
    if (new TextEncoder().encode(reason).length > REASON_BYTES_MAX) {
      throw new DOMException(
        `The close reason may not be longer than ${REASON_BYTES_MAX} bytes`,
        "SyntaxError",
      );
    }
    if (this.readyState >= CLOSING) return;
    this.readyState = CLOSING;
    this.#queue.push({ kind: "close", code, reason });
    this.#drain();
  }

  remoteMessage(message: Message): void {
    if (!this.#accepted) {
      this.#waiting.push(() => this.remoteMessage(message));
      return;
    }
    if (this.readyState !== OPEN) return;
    const data = typeof message === "string"
      ? message
      : this.binaryType === "arraybuffer"
      ? message.buffer
      : new Blob([message]);
    this.#emit(new MessageEvent("message", { data }));
  }

  remoteClose(code: number, reason: string, wasClean: boolean): void {
    if (this.readyState === CLOSED) return;
    this.readyState = CLOSED;
    this.#queue = [];
    this.#emit(new CloseEvent("close", { code, reason, wasClean }));
    this.#closed?.();
    this.#closed = undefined;
  }

  get #hasRoom(): boolean {
    return costOf(this.#sentMessages, this.#sentBytes) < SOCKET_WINDOW_BYTES; // SW1
  }

  /** Keeps a message until there is room for it. */
  #wait(message: Message): void {
    const isText = typeof message === "string", bytes = isText ? utf8.encode(message) : message;
    if (bytes.length > SOCKET_MESSAGE_BYTES_MAX) {
      console.error(
        `a WebSocket message of ${bytes.length} bytes: at most ${SOCKET_MESSAGE_BYTES_MAX} are sent`,
      );
      return this.close(TOO_BIG, `a message has at most ${SOCKET_MESSAGE_BYTES_MAX} bytes`);
    }
    this.#queue.push({ kind: "message", bytes, isText });
    this.#queuedBytes += bytes.length;
    this.#drain();
  }

  /** Sends the messages that there is room for; a close needs none. */
  #drain(): void {
    const writer = this.#writer, id = this.#id;
    if (writer === undefined) return;
    let at = 0;
    for (; at < this.#queue.length; at++) {
      const saying = this.#queue[at];
      if (saying === undefined) break;
      if (saying.kind === "close") {
        writer.begin(ISOLATE_FRAME.socketClose, id).u16(saying.code).text(saying.reason).end();
        continue;
      }
      if (!this.#hasRoom) break;
      const { bytes, isText } = saying;
      if (isText) writer.begin(ISOLATE_FRAME.socketText, id).bytes(bytes).end();
      else writer.begin(ISOLATE_FRAME.socketBytes, id).rest(bytes).end();
      this.#queuedBytes -= bytes.length;
      this.#sentMessages++;
      this.#sentBytes += bytes.length;
    }
    if (at > 0) this.#queue = this.#queue.slice(at);
  }

  #emit(event: Event): void {
    this.dispatchEvent(event);
    const handler = (this as unknown as Record<string, unknown>)[`on${event.type}`];
    if (typeof handler !== "function") return;
    try {
      handler.call(this, event);
    } catch (error) {
      reportError(error);
    }
  }
}

function asMessage(data: string | ArrayBufferLike | ArrayBufferView): Message {
  if (typeof data === "string") return data;
  if (ArrayBuffer.isView(data)) {
    return new Uint8Array(data.buffer as ArrayBuffer, data.byteOffset, data.byteLength).slice();
  }
  if (data instanceof ArrayBuffer || data instanceof SharedArrayBuffer) {
    return new Uint8Array(data as ArrayBuffer).slice();
  }
  return String(data);
}
