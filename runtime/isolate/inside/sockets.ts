/**
 * WebSockets inside the isolate: the socket that `Deno.upgradeWebSocket` answers, and the pair that Workers make.
 * Both are ends of one kind of object; the end that belongs to the client is carried over the site's socket.
 *
 * K1  Messages sent before the upgrade has left are kept and leave with it, in order.
 */
import type { FrameWriter } from "../frame_writer.ts";
import { FRAME } from "../frames.ts";

const OPEN = 1;
const CLOSING = 2;
const CLOSED = 3;

type Message = string | Uint8Array<ArrayBuffer>;

/** Where an end's outgoing messages go. */
interface Peer {
  message(message: Message): void;
  close(code: number, reason: string): void;
}

/** As the standard has it: what a close frame takes. */
const REASON_BYTES_MAX = 123;

/** One end of a WebSocket, as an app sees it. */
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
  readonly bufferedAmount = 0;
  readonly extensions = "";
  readonly url = "";
  protocol = "";
  readyState = 0;
  onopen: ((event: Event) => void) | null = null;
  onmessage: ((event: MessageEvent) => void) | null = null;
  onclose: ((event: CloseEvent) => void) | null = null;
  onerror: ((event: Event) => void) | null = null;
  #peer: Peer | undefined;
  #early: ((peer: Peer) => void)[] = [];
  /** Until a Workers handler calls `accept()`, incoming messages wait. */
  #accepted = true;
  #waiting: (() => void)[] = [];
  #closed: (() => void) | undefined;
  #other: IsolateSocket | undefined;

  /** A pair as Workers make it: the first end goes into the response, the second is the handler's. */
  static pair(): [IsolateSocket, IsolateSocket] {
    const client = new IsolateSocket();
    const server = new IsolateSocket();
    client.#other = server;
    client.binaryType = server.binaryType = "arraybuffer"; // as Workers have it
    server.#accepted = false;
    server.readyState = OPEN;
    return [client, server];
  }

  /** The handler's end of the socket in an upgrade response. */
  static ofUpgrade(socket: object): IsolateSocket {
    if (!(socket instanceof IsolateSocket)) {
      throw new TypeError("webSocket is one end of a WebSocketPair, or comes from Deno.upgradeWebSocket");
    }
    return socket.#other ?? socket;
  }

  /** The upgrade has been answered: messages flow. `closed` is called once, when both ways are over. */
  connect(writer: FrameWriter, id: number, closed: () => void): void {
    const peer = this.#peer = {
      message: (message: Message) => {
        if (typeof message === "string") writer.begin(FRAME.socketText, id).text(message).end();
        else writer.begin(FRAME.socketBytes, id).rest(message).end();
      },
      close: (code: number, reason: string) => {
        writer.begin(FRAME.socketClose, id).u16(code).text(reason).end();
      },
    };
    this.#closed = closed;
    for (const send of this.#early) send(peer);
    this.#early = [];
    if (this.readyState === 0) {
      this.readyState = OPEN;
      queueMicrotask(() => this.#emit(new Event("open")));
    }
  }

  /** Workers: from now on this end's messages are handled here. */
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
    const message = asMessage(data);
    this.#toPeer((peer) => peer.message(message));
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
    this.#toPeer((peer) => peer.close(code, reason));
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
    this.#emit(new CloseEvent("close", { code, reason, wasClean }));
    this.#closed?.();
    this.#closed = undefined;
  }

  #toPeer(send: (peer: Peer) => void): void {
    if (this.#peer) send(this.#peer);
    else this.#early.push(send);
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
