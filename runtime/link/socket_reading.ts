/**
 * Stops to read a WebSocket, and goes on: what its peer sends then waits at the peer. Deno reads what comes for as long as
 * more has come, event by event, and nothing else runs meanwhile: a client that sends small messages as fast as its line
 * takes holds a site's thread for seconds. There is no public way to have it wait, so this takes Deno's own loop over the
 * events of a WebSocket: it ends where the state is CLOSED when an event was dispatched, and can be begun again.
 * `socket_reading_test.ts` fails where a new version of Deno has another.
 *
 * SR1  Between `pause` and `resume` at most one event comes; none is lost, and their order stays.
 * SR2  Code that looks at the socket sees it meanwhile as it was, and it can be sent to and closed.
 * SR3  While it is paused neither a close of the peer nor its answer to a ping is seen: so no pause lasts longer than
 *      PAUSE_MS_MAX, after which one event is read, and whoever closes a socket goes on reading it first.
 */
import { strict as assert } from "node:assert";
import { clearTimeout, setTimeout } from "node:timers";

/** A fraction of the time after which Deno takes a peer for gone that answers no ping (`idleTimeout`, 30 s). */
const PAUSE_MS_MAX = 5_000;

type Loop = (this: WebSocket) => Promise<void>;

/** See the file's header. */
export class SocketReading {
  readonly #socket: WebSocket;
  #isPaused = false;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(socket: WebSocket) {
    this.#socket = socket;
  }

  get isPaused(): boolean {
    return this.#isPaused;
  }

  /** From within an event of the socket: the next one comes after `resume`. Does nothing where Deno has no such loop. */
  pause(): void {
    const socket = this.#socket, state = symbolOf(socket, "[[readyState]]");
    const isOpen = socket.readyState === WebSocket.OPEN; // one that is closing Deno ends with the next message
    if (this.#isPaused || !isOpen || state === undefined || loopOf() === undefined) return;
    this.#isPaused = true;
    const states = socket as unknown as Record<symbol, number>;
    states[state] = WebSocket.CLOSED;
    assert(socket.readyState === WebSocket.CLOSED, "it is the state that the loop looks at");
    // The loop looks as soon as the event has been dispatched, before anything that was put off till then.
    queueMicrotask(() => states[state] = WebSocket.OPEN); // SR2
    this.#timer = setTimeout(() => this.resume(), PAUSE_MS_MAX).unref(); // SR3
  }

  resume(): void {
    if (!this.#isPaused) return;
    this.#isPaused = false;
    clearTimeout(this.#timer);
    const loop = loopOf();
    assert(loop !== undefined, "there was one when it was paused");
    // The loop throws where its connection has been closed under it, which was told then.
    if (this.#socket.readyState !== WebSocket.CLOSED) loop.call(this.#socket).catch(() => {});
  }
}

const symbolOf = (object: object, name: string): symbol | undefined =>
  Object.getOwnPropertySymbols(object).find(({ description }) => description === name);

function loopOf(): Loop | undefined {
  const name = symbolOf(WebSocket.prototype, "[[eventLoop]]");
  const loop: unknown = name && Object.getOwnPropertyDescriptor(WebSocket.prototype, name)?.value;
  return typeof loop === "function" ? loop as Loop : undefined;
}
