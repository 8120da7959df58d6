/** WebSockets as ways of frames, and TCP connections as streams of messages: an agent joins the two. */
import type { MessageSocket, SocketEvent } from "../gateway/message_socket.ts";
import type { Frame, FrameWay } from "../../functions/sessions/attach/frame_way.ts";

/** A WebSocket whose binary messages are frames. */
export class SocketWay implements FrameWay {
  readonly #socket: MessageSocket;
  #sending: Promise<void> = Promise.resolve();
  #bufferedBytes = 0;

  constructor(socket: MessageSocket) {
    this.#socket = socket;
  }

  send(frame: Frame): void {
    this.#bufferedBytes += frame.length;
    this.#sending = this.#socket.send(frame).catch(() => {}) // the reader finds what broke
      .finally(() => this.#bufferedBytes -= frame.length);
  }

  get bufferedBytes(): number {
    return this.#bufferedBytes;
  }

  ready(): Promise<void> {
    return this.#sending;
  }

  async next(): Promise<Frame | null> {
    const event = await this.#socket.next();
    return event.kind === "message" && typeof event.data !== "string" ? event.data : null;
  }

  close(): void {
    this.#socket.close(1000, "");
  }
}

const READ_BYTES = 64 * 1024;
const CLOSED: SocketEvent = { kind: "close", code: 1000, reason: "" };
const utf8 = new TextEncoder();

/** A TCP connection as a socket: bytes that are read at once are a message, whose boundaries mean nothing. */
export class TcpSocket implements MessageSocket {
  readonly #connection: Deno.TcpConn;
  #sending: Promise<void> = Promise.resolve();
  #isClosed = false;

  constructor(connection: Deno.TcpConn) {
    try {
      connection.setNoDelay(true);
    } catch {
      // The connection was reset already: its reader finds that.
    }
    this.#connection = connection;
  }

  async next(): Promise<SocketEvent> {
    const bytes = new Uint8Array(READ_BYTES);
    try {
      const length = this.#isClosed ? null : await this.#connection.read(bytes);
      if (length !== null) return { kind: "message", data: bytes.subarray(0, length) };
    } catch {
      // The connection was reset, or closed from here.
    }
    return CLOSED;
  }

  /** Writes in order; bytes that can't be written any more are dropped, and the reader finds the connection closed. */
  send(data: string | Uint8Array<ArrayBuffer>): Promise<void> {
    const bytes = typeof data === "string" ? utf8.encode(data) : data;
    return this.#sending = this.#sending.then(() => this.#write(bytes)).catch(() => {});
  }

  async #write(bytes: Uint8Array): Promise<void> {
    for (let at = 0; at < bytes.length;) at += await this.#connection.write(bytes.subarray(at));
  }

  close(): void {
    this.#sending.finally(() => {
      if (this.#isClosed) return;
      this.#isClosed = true;
      this.#connection.close();
    });
  }
}
