/**
 * The `WebSocket` as programs know it (https://websockets.spec.whatwg.org), over a {@link Line}. It differs only when a
 * connection breaks: then it stays open, keeps what is sent, and goes on at another site.
 *
 * W1  Events and states come in the order of the standard: `open` once, then messages, then `close` once, after `error`
 *     where it was not closed in an orderly way.
 * W2  Messages leave in the order of the calls, Blobs too.
 * W3  An address that is none of the app's gets the platform's own WebSocket.
 */
import type { Line, LineListener } from "./line.ts";

/** Message that can be sent. */
type Sendable = string | ArrayBufferLike | ArrayBufferView<ArrayBufferLike> | Blob;
type Handler<E extends Event> = ((this: WebSocket, event: E) => unknown) | null;

/** Maker of the lines of one client. */
export interface LineMaker {
  /** Makes a line. @returns null for an address that is none of the app's. */
  line(url: string | URL, protocols: readonly string[], listener: LineListener): {
    readonly url: string;
    readonly line: Promise<Line>;
  } | null;
  openElsewhere(url: string | URL, protocols?: string | string[]): WebSocket;
}

const CONNECTING = 0, OPEN = 1, CLOSING = 2, CLOSED = 3;
/** Pattern of a subprotocol, which is a token of HTTP. */
const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
const REASON_BYTES_MAX = 123;
const utf8 = new TextEncoder();

/** Returns the WebSocket class for one client. */
export function webSocketClass(maker: LineMaker): typeof WebSocket {
  class SessionSocket extends SocketEvents {
    constructor(url: string | URL, protocols?: string | string[] | { protocols?: string | string[] }) {
      super();
      const listed = listOf(protocols);
      const made = maker.line(url, listed, this.listener());
      if (made === null) {
        // W3: a constructor may answer another object, and this one is what `new WebSocket` answers elsewhere.
        return maker.openElsewhere(url, [...listed]) as unknown as SessionSocket;
      }
      this.begin(made.url, made.line);
    }
  }
  // The static and instance members of the two are the same; the types of the platform say more than is used.
  return SessionSocket as unknown as typeof WebSocket;
}

function listOf(
  protocols: string | string[] | { protocols?: string | string[] } | undefined,
): readonly string[] {
  if (typeof protocols === "object" && !Array.isArray(protocols)) return listOf(protocols.protocols);
  const list = protocols === undefined ? [] : Array.isArray(protocols) ? protocols : [protocols];
  const wrong = list.find((name, at) => !TOKEN.test(name) || list.indexOf(name) !== at);
  if (wrong === undefined) return list;
  throw new DOMException(
    `${JSON.stringify(wrong)} can't be a subprotocol: it is a token, and named once`,
    "SyntaxError",
  );
}

/** State and events of one socket. */
class SocketEvents extends EventTarget {
  static readonly CONNECTING = CONNECTING;
  static readonly OPEN = OPEN;
  static readonly CLOSING = CLOSING;
  static readonly CLOSED = CLOSED;
  readonly CONNECTING = CONNECTING;
  readonly OPEN = OPEN;
  readonly CLOSING = CLOSING;
  readonly CLOSED = CLOSED;
  readonly extensions = "";
  binaryType: BinaryType = "blob";
  onopen: Handler<Event> = null;
  onmessage: Handler<MessageEvent> = null;
  onerror: Handler<Event> = null;
  onclose: Handler<CloseEvent> = null;
  #url = "";
  #protocol = "";
  #state = CONNECTING;
  #line: Line | null = null;
  /** Bytes of Blobs that are being read, and of messages that wait behind them (W2). */
  #waitingBytes = 0;
  #waiting: Promise<void> | null = null;
  #closing: { readonly code: number | undefined; readonly reason: string } | null = null;

  get url(): string {
    return this.#url;
  }
  get protocol(): string {
    return this.#protocol;
  }
  get readyState(): number {
    return this.#state;
  }
  /** Bytes that are not in the session's log yet, as far as is known; of a plain socket those that have not left. */
  get bufferedAmount(): number {
    return this.#waitingBytes + (this.#line?.bufferedBytes ?? 0);
  }

  /**
   * Sends a message, or keeps it until there is a connection.
   *
   * @throws DOMException `InvalidStateError` before it is open; AppError `limit_value` for one of more than 4 MiB,
   *   `limit_messages` where 16 MiB wait already.
   */
  send(data: Sendable): void {
    if (this.#state === CONNECTING) {
      throw new DOMException("can't send before the WebSocket is open", "InvalidStateError");
    }
    if (this.#state !== OPEN) return;
    if (this.#waiting === null && !(data instanceof Blob)) return this.#line?.send(bytesOf(data));
    const bytes = data instanceof Blob ? data.size : sizeOf(data);
    this.#waitingBytes += bytes;
    const kept = data instanceof Blob ? data.bytes() : Promise.resolve(bytesOf(data));
    const sent = (this.#waiting ?? Promise.resolve()).then(async () => {
      try {
        const message = await kept;
        this.#line?.send(message);
      } catch {
        // As where the platform's own buffer is full: only the close can tell the program.
        this.#line?.close(1011, "a Blob could not be sent");
      } finally {
        this.#waitingBytes -= bytes;
        if (this.#waiting === sent) this.#settle();
      }
    });
    this.#waiting = sent;
  }

  /**
   * Closes the socket.
   *
   * @throws DOMException `InvalidAccessError` for another code, `SyntaxError` for a reason of more than 123 bytes.
   */
  close(code?: number, reason = ""): void {
    if (code !== undefined && code !== 1000 && !(code >= 3000 && code <= 4999)) {
      throw new DOMException(
        `can't close with ${code}: 1000 and 3000 to 4999 are accepted`,
        "InvalidAccessError",
      );
    }
    if (utf8.encode(reason).length > REASON_BYTES_MAX) {
      throw new DOMException(`a reason has at most ${REASON_BYTES_MAX} bytes`, "SyntaxError");
    }
    if (this.#state >= CLOSING) return;
    this.#state = CLOSING;
    this.#closing = { code, reason };
    if (this.#waiting === null) this.#line?.close(code, reason);
  }

  protected begin(url: string, line: Promise<Line>): void {
    this.#url = url;
    line.then((made) => {
      this.#line = made;
      if (this.#closing !== null) made.close(this.#closing.code, this.#closing.reason);
    }, () => this.#ended(1006, "", false));
  }

  protected listener(): LineListener {
    return {
      opened: (protocol) => {
        if (this.#state !== CONNECTING) return;
        this.#protocol = protocol;
        this.#state = OPEN;
        this.#tell(new Event("open"), this.onopen);
      },
      message: (data) => {
        if (this.#state !== OPEN && this.#state !== CLOSING) return;
        const { origin } = new URL(this.#url);
        const event = new MessageEvent("message", { data: this.#asWanted(data), origin });
        this.#tell(event, this.onmessage);
      },
      rejected: (problem) => void this.dispatchEvent(new CustomEvent("rejected", { detail: problem })),
      refused: (problem) => void this.dispatchEvent(new CustomEvent("refused", { detail: problem })),
      away: () => void this.dispatchEvent(new Event("away")),
      back: () => void this.dispatchEvent(new Event("back")),
      closed: (code, reason, isClean) => this.#ended(code, reason, isClean),
    };
  }

  /** Closes the line where that was asked for, as all messages that waited have left. */
  #settle(): void {
    this.#waiting = null;
    if (this.#closing !== null) this.#line?.close(this.#closing.code, this.#closing.reason);
  }

  #ended(code: number, reason: string, wasClean: boolean): void {
    if (this.#state === CLOSED) return;
    this.#state = CLOSED;
    if (!wasClean) this.#tell(new Event("error"), this.onerror);
    this.#tell(new CloseEvent("close", { code, reason, wasClean }), this.onclose);
  }

  #asWanted(data: string | Uint8Array): string | ArrayBuffer | Blob {
    if (typeof data === "string") return data;
    const copy = new Uint8Array(data); // a frame's payload is a part of its frame
    return this.binaryType === "blob" ? new Blob([copy]) : copy.buffer;
  }

  #tell<E extends Event>(event: E, handler: Handler<E>): void {
    // A handler is called as a listener is: an error that it throws is reported, and keeps no listener from being
    // called.
    const call = (each: Event) => handler?.call(this as unknown as WebSocket, each as E);
    this.addEventListener(event.type, call, { once: true });
    this.dispatchEvent(event);
  }
}

const sizeOf = (data: Exclude<Sendable, Blob>): number =>
  typeof data === "string" ? data.length : data.byteLength;

/** Returns a copy of a message: what a caller changes afterwards is not sent. */
function bytesOf(data: Exclude<Sendable, Blob>): string | Uint8Array<ArrayBuffer> {
  if (typeof data === "string") return data.toWellFormed();
  if (ArrayBuffer.isView(data)) {
    return new Uint8Array(new Uint8Array(data.buffer, data.byteOffset, data.byteLength));
  }
  return new Uint8Array(new Uint8Array(data));
}
