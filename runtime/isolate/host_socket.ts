/**
 * The site's end of a WebSocket that an app accepted: the gateway ties it to the client's real one.
 *
 * Life cycle: `bridge(sink)` once → messages both ways → closed from either end, once.
 *
 * W1  Messages of the app wait for the output gate, in order; the close comes after them.
 */
import type { FrameWriter } from "./frame_writer.ts";
import { FRAME } from "./frames.ts";

/** Where the app's messages go: the client's connection. */
export interface SocketSink {
  message(data: string | Uint8Array<ArrayBuffer>): void;
  /** Nothing follows. */
  close(code: number, reason: string): void;
}

/** The site's end. */
export class HostSocket {
  /** The subprotocol that the app chose; empty for none. */
  readonly protocol: string;
  readonly #writer: FrameWriter;
  readonly #id: number;
  readonly #gate: () => Promise<void>;
  readonly #closed: () => void;
  #sink: SocketSink | undefined;
  #waiting: ((sink: SocketSink) => void)[] = [];
  #order: Promise<void> = Promise.resolve();
  #over = false;

  constructor(
    writer: FrameWriter,
    id: number,
    options: { protocol: string; gate: () => Promise<void>; closed: () => void },
  ) {
    this.protocol = options.protocol;
    this.#writer = writer;
    this.#id = id;
    this.#gate = options.gate;
    this.#closed = options.closed;
  }

  /** Ties the client's end; messages that came before are delivered first. */
  bridge(sink: SocketSink): void {
    this.#sink = sink;
    for (const deliver of this.#waiting) deliver(sink);
    this.#waiting = [];
  }

  /** A message of the client. */
  send(data: string | Uint8Array): void {
    if (this.#over) return;
    if (typeof data === "string") this.#writer.begin(FRAME.socketText, this.#id).text(data).end();
    else this.#writer.begin(FRAME.socketBytes, this.#id).rest(data).end();
  }

  /** The client's end is closed. */
  close(code = 1005, reason = ""): void {
    if (this.#over) return;
    this.#over = true;
    this.#writer.begin(FRAME.socketClose, this.#id).u16(code).text(reason).end();
    this.#closed();
  }

  /** A message of the app. */
  fromApp(data: string | Uint8Array<ArrayBuffer>): void {
    this.#inOrder((sink) => sink.message(data));
  }

  /** The app, or the end of its isolate, closes. */
  closeFromApp(code: number, reason: string): void {
    this.#inOrder((sink) => {
      sink.close(code, reason);
      this.close(code, reason);
    });
  }

  #inOrder(deliver: (sink: SocketSink) => void): void {
    this.#order = this.#order.then(this.#gate).then(() => {
      if (this.#sink) deliver(this.#sink);
      else this.#waiting.push(deliver);
    }).catch((error) => {
      this.#sink?.close(1011, "the store is not available");
      this.close(1011, error instanceof Error ? error.message : "");
    });
  }
}
