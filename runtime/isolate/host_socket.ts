/**
 * The site's end of a WebSocket that an app accepted: the gateway ties it to the client's real one.
 *
 * Life cycle: `bridge(sink)` once → messages both ways → closed from either end, once.
 *
 * W1  Messages of the app wait for the output gate, in order; the close comes after them.
 * W2  Messages that the sink has not taken are bounded by the socket's window (socket_window.ts), which its isolate
 *     keeps or ends, and by what its app may have waiting at this site: there the client is closed that takes least.
 * W3  A message of the client waits while its isolate does not read: the client pays, not its neighbours.
 */
import type { AppQueues, QueueHold } from "./app_queues.ts";
import { UNREAD_BYTES_MAX } from "./call_slots.ts";
import type { FrameWriter } from "./frame_writer.ts";
import { FrameError, ISOLATE_FRAME } from "./frames.ts";
import { costOf, SOCKET_WINDOW_BYTES, TAKEN_BYTES } from "./socket_window.ts";

/** The client's connection, to which the app's messages go. */
export interface SocketSink {
  /** Passes a message on; `bytes` are to be given back by {@link HostSocket.taken} once that is done. */
  message(data: string | Uint8Array<ArrayBuffer>, bytes: number): void;
  /** Closes the connection after the messages that wait; nothing follows. */
  close(code: number, reason: string): void;
  /** Closes the connection at once: messages that wait are dropped. Where it is left out, {@link close} is called. */
  cut?(code: number, reason: string): void;
}

/** Close code for "try again later" (the registry of close codes). */
const TRY_LATER = 1013;

const SENT = Promise.resolve();

/** The site's end of a WebSocket. */
export class HostSocket {
  /** The subprotocol that the app chose; empty for none. */
  readonly protocol: string;
  readonly #writer: FrameWriter;
  readonly #id: number;
  readonly #gate: () => Promise<void>;
  readonly #closed: () => void;
  readonly #hold: QueueHold;
  #sink: SocketSink | undefined;
  #waiting: ((sink: SocketSink) => void)[] = [];
  #order: Promise<void> = Promise.resolve();
  #over = false;
  #isClosing = false;
  /** Bytes of the app's messages that are not passed on yet, and of those that are and were not given back. */
  #held = 0;
  #takenMessages = 0;
  #takenBytes = 0;

  constructor(
    writer: FrameWriter,
    id: number,
    options: { protocol: string; gate: () => Promise<void>; closed: () => void; queues: AppQueues },
  ) {
    this.protocol = options.protocol;
    this.#writer = writer;
    this.#id = id;
    this.#gate = options.gate;
    this.#closed = options.closed;
    this.#hold = options.queues.hold("socket to client", () => this.#shed());
  }

  /** Ties the client's end; messages that came before are delivered first. */
  bridge(sink: SocketSink): void {
    this.#sink = sink;
    for (const deliver of this.#waiting) deliver(sink);
    this.#waiting = [];
  }

  /** Sends a message of the client to the app. Resolves when there is room for another (W3). */
  send(data: string | Uint8Array): Promise<void> {
    if (this.#over) return SENT;
    if (typeof data === "string") this.#writer.begin(ISOLATE_FRAME.socketText, this.#id).text(data).end();
    else this.#writer.begin(ISOLATE_FRAME.socketBytes, this.#id).rest(data).end();
    return this.#writer.backlogBytes > UNREAD_BYTES_MAX ? this.#room() : SENT;
  }

  async #room(): Promise<void> {
    while (this.#writer.backlogBytes > UNREAD_BYTES_MAX && !this.#over) await this.#writer.drained();
  }

  /** Ends the socket: the client's end is closed. */
  close(code = 1005, reason = ""): void {
    if (this.#over) return;
    this.#over = true;
    this.#hold.end();
    this.#writer.begin(ISOLATE_FRAME.socketClose, this.#id).u16(code).text(reason).end();
    this.#closed();
  }

  /**
   * Takes a message of the app, which had so many bytes in its frame. @throws FrameError for one beyond the window (W2)
   */
  fromApp(data: string | Uint8Array<ArrayBuffer>, bytes: number): void {
    if (this.#over) return;
    if (this.#held >= SOCKET_WINDOW_BYTES) throw new FrameError("a WebSocket ignored its window");
    const cost = costOf(1, bytes);
    this.#held += cost;
    this.#hold.add(cost);
    this.#inOrder((sink) => sink.message(data, bytes));
  }

  /** Notes that a message was passed on. `isLast`: no other waits to be. */
  taken(bytes: number, isLast: boolean): void {
    if (this.#over) return;
    this.#hold.add(-costOf(1, bytes));
    this.#takenMessages++;
    this.#takenBytes += bytes;
    const cost = costOf(this.#takenMessages, this.#takenBytes);
    if (cost < TAKEN_BYTES && !isLast) return;
    this.#held -= cost;
    this.#writer.begin(ISOLATE_FRAME.socketTaken, this.#id).u32(this.#takenMessages).u32(this.#takenBytes);
    this.#takenMessages = this.#takenBytes = 0;
    if (cost < TAKEN_BYTES) this.#writer.endLater();
    else this.#writer.end();
  }

  /**
   * Closes the client's end for the app, or for an isolate that has ended: once, whatever an isolate sends that has
   * been bent (W2).
   */
  closeFromApp(code: number, reason: string): void {
    if (this.#over || this.#isClosing) return;
    this.#isClosing = true;
    this.#inOrder((sink) => {
      sink.close(code, reason);
      this.close(code, reason);
    });
  }

  /** Closes the client's end because too much waits for clients of the app (W2). */
  #shed(): void {
    const reason = "its messages were not taken, and too much waits for clients of this app";
    const sink = this.#sink;
    if (sink?.cut === undefined) sink?.close(TRY_LATER, reason);
    else sink.cut(TRY_LATER, reason);
    this.close(TRY_LATER, reason);
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
