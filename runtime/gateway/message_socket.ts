/**
 * An end of a stream of messages that finishes with a close: a WebSocket as the gateway sees it, be it the client's, an
 * isolate's, or one that goes over a link. Messages are pulled, not pushed, so that a slow reader slows the writer.
 *
 * MK1  Messages arrive whole and in order; after the close nothing arrives.
 * MK2  A bridge that ends on one side closes the other with the same code.
 * MK3  Messages that wait for an end that takes nothing are bounded by their sender, and by what its app may have
 *      waiting at this site; an end that is cut for this drops what waits, and so does the other end.
 * MK4  A client's message is passed on when it is its app's turn (isolate/app_turns.ts, AT5).
 * MK5  A client's unfinished message may take no more memory than a whole one, and what it takes counts for its app
 *      (link/received.ts).
 * MK6  A client's messages are read no faster than they are passed on: a few wait here, and the rest wait at the client
 *      (link/socket_reading.ts). So no client holds its site's thread for longer than those few take.
 */
import type { AppQueues, QueueHold } from "../isolate/app_queues.ts";
import { MESSAGE_BYTES } from "../isolate/socket_window.ts";
import { cutSocket } from "../link/cut_socket.ts";
import { type ReceivedWatch, watchReceived } from "../link/received.ts";
import { SocketReading } from "../link/socket_reading.ts";
import { afterTurn } from "../loop/next_turn.ts";

/** A message, or the close. */
export type SocketEvent =
  | { readonly kind: "message"; readonly data: string | Uint8Array<ArrayBuffer> }
  | { readonly kind: "close"; readonly code: number; readonly reason: string };

/** An end of a socket. */
export interface MessageSocket {
  /** Returns the next message; after the close, the close again. */
  next(): Promise<SocketEvent>;
  /** Sends a message; resolves when there is room for another. */
  send(data: string | Uint8Array<ArrayBuffer>): Promise<void>;
  close(code: number, reason: string): void;
  /** Closes now, whatever waits to be sent; absent where only {@link close} can. */
  cut?(code: number, reason: string): void;
  /** Sets the callback for a cut by this end's own side: the other end is to be cut, too. */
  whenCut?(tell: (code: number, reason: string) => void): void;
}

/** Close code of an abnormal closure, as a receiver reports it; never sent by name. */
const CLOSED_ABNORMALLY = 1006;
/** Close code that is sent instead of CLOSED_ABNORMALLY: the server can't go on. */
const INTERNAL_ERROR = 1011;

/** Carries messages between two ends until one closes. */
export async function bridge(a: MessageSocket, b: MessageSocket): Promise<void> {
  for (const [one, other] of [[a, b], [b, a]] as const) {
    one.whenCut?.((code, reason) =>
      other.cut === undefined ? other.close(code, reason) : other.cut(code, reason)
    );
  }
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

/**
 * Returns the code itself where an endpoint may send it (1000 and the private ones), else one that it may: the reserved
 * ones only describe.
 */
export function sendable(code: number): number {
  if (code === 1000 || (code >= 3000 && code <= 4999)) return code;
  if (code === CLOSED_ABNORMALLY) return INTERNAL_ERROR;
  return code >= 1001 && code <= 1014 && code !== 1004 && code !== 1005 ? code : 1000;
}

/** Events waiting to be pulled, from a source that pushes. */
export class SocketQueue<Event extends SocketEvent = SocketEvent> {
  #events: Event[] = [];
  #bytes = 0;
  #close: Event | null = null;
  #wake: ((event: Event) => void) | null = null;

  /** Number of messages that wait. */
  get size(): number {
    return this.#events.length;
  }

  /** Length of the messages that wait; texts count by their characters. */
  get bytes(): number {
    return this.#bytes;
  }

  push(event: Event): void {
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

  /** Drops the messages that wait: the other way has closed, and nobody takes them. */
  clear(): void {
    this.#events = [];
    this.#bytes = 0;
  }

  next(): Promise<Event> {
    const event = this.#events.shift() ?? this.#close;
    if (event?.kind === "message") this.#bytes -= event.data.length;
    if (event) return Promise.resolve(event);
    return new Promise((resolve) => this.#wake = resolve);
  }
}

/**
 * Bytes that a client may have untaken of what was sent to it; beyond, its sender waits. A quarter of a socket's
 * window: an app's `bufferedAmount` leaves out no more.
 */
const BUFFERED_BYTES_MAX = 64 * 1024;
/**
 * Milliseconds between two looks at a full buffer, at first and for a client that reads nothing: WebSocket does not
 * tell when it drains.
 */
const DRAIN_POLL_MS = 1;
const DRAIN_POLL_MS_MAX = 64;
/**
 * Messages, and bytes of several messages, that may wait: beyond either of them a client is not read (MK6). They take
 * half a millisecond of the site's thread, and a buffer.
 */
const WAITING_MESSAGES_MAX = 64;
const WAITING_BYTES_MAX = 256 * 1024;

/** The client's end: a WebSocket of this process. */
export class ClientSocket implements MessageSocket {
  readonly #socket: WebSocket;
  readonly #queue = new SocketQueue();
  readonly #open: Promise<void>;
  readonly #hold: QueueHold | undefined;
  readonly #received: ReceivedWatch | undefined;
  readonly #reading: SocketReading;
  /** Bytes that have come of a message that is not whole. */
  #coming = 0;
  #cutTimer: ReturnType<typeof setTimeout> | undefined;

  /**
   * @param options `messageBytesMax`: a longer message closes it with 1009 and is not kept; `queues` of the app that it
   * belongs to; `peer`: the client's address.
   */
  constructor(
    socket: WebSocket,
    { messageBytesMax, queues, peer }: {
      readonly messageBytesMax: number;
      readonly queues?: AppQueues | undefined;
      readonly peer?: Deno.Addr | undefined;
    },
  ) {
    this.#socket = socket;
    this.#reading = new SocketReading(socket);
    this.#received = peer && watchReceived(peer, (bytes) => {
      this.#coming = bytes;
      const beyond = bytes - messageBytesMax - HEADS_BYTES;
      if (beyond > 0) this.#closing(); // a client that is sending hears of a close when it is done
      if (beyond <= STILL_COMING_BYTES_MAX) this.#kept();
      else if (socket.readyState === WebSocket.OPEN) this.#tooLong(messageBytesMax);
      else this.#cutOff();
    });
    this.#hold = queues?.hold("socket from client", () => this.cut(TRY_LATER, "too much waits for this app"));
    socket.binaryType = "arraybuffer";
    this.#open = new Promise((resolve) => {
      const late = setTimeout(() => {
        this.cut(CLOSED_ABNORMALLY, "");
        resolve();
      }, OPEN_MS_MAX);
      for (const event of ["open", "close"]) {
        socket.addEventListener(event, () => {
          clearTimeout(late);
          resolve();
        }, { once: true });
      }
    });
    socket.addEventListener("message", (event) => {
      const data: unknown = event.data;
      const message = typeof data === "string" ? data : new Uint8Array(data as ArrayBuffer);
      this.#received?.whole();
      if (isLonger(message, messageBytesMax)) return this.#tooLong(messageBytesMax);
      this.#queue.push({ kind: "message", data: message });
      this.#kept();
      const { size, bytes } = this.#queue;
      if (size > WAITING_MESSAGES_MAX || (size > 1 && bytes > WAITING_BYTES_MAX)) this.#reading.pause(); // MK6
    });
    socket.addEventListener(
      "close",
      (event) => {
        this.#queue.push({ kind: "close", code: event.code || CLOSED_ABNORMALLY, reason: event.reason });
        this.#hold?.end();
        this.#received?.end();
      },
    );
    socket.addEventListener(
      "error",
      () => this.#queue.push({ kind: "close", code: CLOSED_ABNORMALLY, reason: "" }),
    );
  }

  async next(): Promise<SocketEvent> {
    const waits = this.#queue.next();
    this.#kept();
    const event = await waits;
    if (this.#reading.isPaused && this.#queue.size === 0) afterTurn(() => this.#reading.resume());
    if (event.kind !== "message") return event;
    const turn = this.#hold?.queues.turns.take(MESSAGE_MS + event.data.length * MESSAGE_MS_PER_BYTE);
    if (turn instanceof Promise) await turn;
    return event;
  }

  #tooLong(messageBytesMax: number): void {
    this.#closing();
    this.cut(TOO_BIG, `a message has at most ${messageBytesMax} bytes`);
  }

  /** Counts the messages that wait for the app. */
  #kept(): void {
    const { size, bytes } = this.#queue;
    const waits = size * MESSAGE_BYTES + bytes + UNFINISHED_COPIES * this.#coming;
    if (waits !== this.#hold?.bytes) this.#hold?.add(waits - this.#hold.bytes);
  }

  async send(data: string | Uint8Array<ArrayBuffer>): Promise<void> {
    await this.#open;
    const socket = this.#socket;
    if (socket.readyState !== WebSocket.OPEN) return;
    socket.send(data);
    let before = socket.bufferedAmount;
    if (before <= BUFFERED_BYTES_MAX) return;
    let pollMs = DRAIN_POLL_MS;
    while (socket.bufferedAmount > BUFFERED_BYTES_MAX && socket.readyState === WebSocket.OPEN) {
      await new Promise((resolve) => setTimeout(resolve, pollMs));
      pollMs = socket.bufferedAmount < before ? DRAIN_POLL_MS : Math.min(pollMs * 2, DRAIN_POLL_MS_MAX);
      before = socket.bufferedAmount;
    }
  }

  /** Closes with the code and reason that were asked for, as near as this end of a WebSocket may send them. */
  close(code: number, reason: string): void {
    this.#reading.resume();
    this.#open.then(() => {
      if (this.#socket.readyState < WebSocket.CLOSING) this.#socket.close(code, cutReason(reason));
    }).catch(() => this.#socket.close()) // a socket that this process opened takes 1000 and 3000 to 4999 only
      .then(() => this.#closing());
  }

  cut(code: number, reason: string): void {
    this.#reading.resume(); // its close is an event, too
    if (this.#coming > 0) this.#closing(UNFINISHED_CLOSE_MS); // until then the bytes that have come are kept
    this.#queue.clear();
    this.#queue.push({ kind: "close", code, reason });
    this.#hold?.end();
    this.close(code, reason);
  }

  /** Ends the connection; the socket's `close` event tells of it. */
  #cutOff(): void {
    this.#reading.resume();
    cutSocket(this.#socket);
  }

  /** Cuts the client off where it does not close in turn. */
  #closing(afterMs = CLOSE_MS_MAX): void {
    if (this.#cutTimer !== undefined || this.#socket.readyState === WebSocket.CLOSED) return;
    this.#cutTimer = setTimeout(() => this.#cutOff(), afterMs);
    this.#socket.addEventListener("close", () => clearTimeout(this.#cutTimer), { once: true });
  }
}

/** Reports whether a message has more than `bytesMax` bytes. */
function isLonger(message: string | Uint8Array, bytesMax: number): boolean {
  if (typeof message !== "string") return message.length > bytesMax;
  return message.length > bytesMax ||
    (message.length * 3 > bytesMax && utf8.encode(message).length > bytesMax);
}

/**
 * Milliseconds of the site's thread that a client's message takes, as measured: to be read, unmasked, and handed to its
 * isolate.
 */
const MESSAGE_MS = 0.02;
const MESSAGE_MS_PER_BYTE = 2 / (1024 * 1024);
/** Close code of RFC 6455. */
const TOO_BIG = 1009;
/** Milliseconds that the close may take for a client whose message is still coming, and whose app has no room. */
const UNFINISHED_CLOSE_MS = 1_000;
/**
 * Bytes above a message's limit at which the client is closed before its message is whole, and cut off where it goes
 * on.
 */
const STILL_COMING_BYTES_MAX = 8 * 1024 * 1024;
/** Bytes that a message may have beside its own: heads of frames and of TLS records, and pings among them. */
const HEADS_BYTES = 512 * 1024;
/** Copies of an unfinished message in memory: Deno has a frame while it comes, and the message that it is a part of. */
const UNFINISHED_COPIES = 2;
/** Close code "try again later" (the registry of close codes). */
const TRY_LATER = 1013;
/**
 * Milliseconds in which a socket opens; after that it never will: its client went while it was taken
 * (link/accept_socket.ts).
 */
const OPEN_MS_MAX = 10_000;
/** Milliseconds that a client's close may take: the round trip of a bad network, and what was under way before. */
const CLOSE_MS_MAX = 5_000;

/** Bytes of the longest reason that a close frame has room for. */
const REASON_BYTES_MAX = 123;

/** Returns a reason cut to the length of a close frame: that of an app or another site may be longer. */
export function cutReason(reason: string): string {
  let text = reason.slice(0, REASON_BYTES_MAX).toWellFormed();
  while (utf8.encode(text).length > REASON_BYTES_MAX) text = text.slice(0, -1).toWellFormed();
  return text;
}

const utf8 = new TextEncoder();
