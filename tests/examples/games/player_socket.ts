/**
 * A player's connection to a table at real sites: one socket, at one of several sites; where it breaks, or is silent for too
 * long, at the next. As the pages of the examples do it.
 */

/** What a player does with it. */
export interface SocketUse {
  /** Sites in the order in which they are tried; `ws:` addresses of the table. */
  readonly urls: readonly string[];
  /** A connection is there: say who you are. */
  opened(): void;
  heard(connection: string, text: string): void;
  /** Nothing was heard for so long: the next site. null: it may be silent. */
  silentMsMax(): number | null;
}

/** Between two attempts, once all sites were tried. */
const PAUSE_MS = 250;
const LOOK_MS = 100;

/** See the file's header. */
export class PlayerSocket {
  readonly #use: SocketUse;
  #socket: WebSocket | null = null;
  #tries = 0;
  #number = 0;
  #heardMs = 0;
  #isOver = false;
  #timer: ReturnType<typeof setTimeout> | null = null;
  readonly #watch: ReturnType<typeof setInterval>;
  /** Connections that broke. */
  breaks = 0;

  constructor(use: SocketUse) {
    this.#use = use;
    this.#open();
    this.#watch = setInterval(() => this.#look(), LOOK_MS);
  }

  get isOpen(): boolean {
    return this.#socket?.readyState === WebSocket.OPEN;
  }

  /** Which of the sites it is at. */
  get at(): number {
    return this.#tries % this.#use.urls.length;
  }

  /** Whether it left; nothing is kept of what can't. */
  say(words: unknown): boolean {
    if (!this.isOpen) return false;
    this.#socket?.send(JSON.stringify(words));
    return true;
  }

  async close(): Promise<void> {
    this.#isOver = true;
    clearInterval(this.#watch);
    clearTimeout(this.#timer ?? undefined);
    const socket = this.#socket;
    if (socket === null || socket.readyState === WebSocket.CLOSED) return;
    const closed = new Promise((resolve) => socket.addEventListener("close", resolve));
    socket.close();
    await closed;
  }

  #open(): void {
    const connection = `connection ${++this.#number}`;
    const socket = this.#socket = new WebSocket(this.#use.urls[this.at] ?? "");
    this.#heardMs = performance.now();
    socket.onopen = () => {
      if (socket !== this.#socket) return;
      this.#heardMs = performance.now();
      this.#use.opened();
    };
    socket.onmessage = ({ data }) => {
      if (socket !== this.#socket) return;
      this.#heardMs = performance.now();
      this.#use.heard(connection, String(data));
    };
    socket.onclose = () => this.#next(socket);
    socket.onerror = () => {};
  }

  #look(): void {
    const silent = this.#use.silentMsMax();
    if (this.#socket === null || silent === null || performance.now() - this.#heardMs < silent) return;
    const socket = this.#socket;
    this.#next(socket);
    socket.close();
  }

  #next(socket: WebSocket): void {
    if (socket !== this.#socket || this.#isOver) return;
    this.#socket = null;
    this.#tries++;
    this.breaks++;
    this.#timer = setTimeout(() => this.#open(), this.at === 0 ? PAUSE_MS : 20);
  }
}
