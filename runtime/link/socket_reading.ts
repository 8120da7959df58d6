/**
 * Pausing and resuming of a WebSocket's reading: while it is paused, messages wait at the peer. Deno reads events for
 * as long as more have come, one by one, and nothing else runs meanwhile: a client that sends small messages as fast as
 * its line takes holds a site's thread for seconds. There is no public way to have it wait, so this uses Deno's own
 * loop over the events of a WebSocket: the loop ends where the state is CLOSED when an event was dispatched, and can be
 * begun again. `socket_reading_test.ts` fails where a new version of Deno has another loop.
 *
 * SRD1  Between `pause` and `resume` at most one event comes; none is lost, and their order stays.
 * SRD2  Code that looks at the paused socket sees it as it was, and can send to it and close it.
 * SRD3  During a pause neither a close of the peer nor its answer to a ping is seen: so no pause lasts longer than
 *       PAUSE_MS_MAX, after which one event is read, and code that closes a socket resumes its reading first.
 */
import { strict as assert } from "node:assert";
import { clearTimeout, setTimeout } from "node:timers";

/**
 * Milliseconds of the longest pause: a fraction of the time after which Deno takes a peer for gone that answers no ping
 * (`idleTimeout`, 30 s).
 */
const PAUSE_MS_MAX = 5_000;

type Loop = (this: WebSocket) => Promise<void>;

/** Pauses and resumes the reading of one WebSocket. */
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

  /**
   * Pauses the reading; called from within an event of the socket, whose next one comes after `resume`. Does nothing
   * where Deno has no such loop.
   */
  pause(): void {
    const socket = this.#socket, state = symbolOf(socket, "[[readyState]]");
    const isOpen = socket.readyState === WebSocket.OPEN; // Deno ends a closing one with the next message
    if (this.#isPaused || !isOpen || state === undefined || loopOf() === undefined) return;
    this.#isPaused = true;
    const states = socket as unknown as Record<symbol, number>;
    states[state] = WebSocket.CLOSED;
    assert(socket.readyState === WebSocket.CLOSED, "it is the state that the loop looks at");
    // The loop looks as soon as the event has been dispatched, before any task that was deferred till then.
    queueMicrotask(() => states[state] = WebSocket.OPEN); // SRD2
    this.#timer = setTimeout(() => this.resume(), PAUSE_MS_MAX).unref(); // SRD3
  }

  resume(): void {
    if (!this.#isPaused) return;
    this.#isPaused = false;
    clearTimeout(this.#timer);
    const loop = loopOf();
    assert(loop !== undefined, "there was one when it was paused");
    // The loop throws where its connection has been closed meanwhile, of which the close event told then.
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
