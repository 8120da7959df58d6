/** What the client library needs of the program or page that it is in (host.ts), and nothing else of the world. */

/** One connection of the platform's `WebSocket`. */
export interface Socket {
  readonly bufferedAmount: number;
  send(data: string | Uint8Array<ArrayBuffer>): void;
  /** @param code 1000, or 3000 to 4999; none: not said. */
  close(code?: number, reason?: string): void;
}

/** What becomes of it. Nothing is called after `closed`, and nothing before `open` has returned. */
export interface SocketListener {
  /** @param protocol the subprotocol that the server took; "" for none. */
  opened(protocol: string): void;
  message(data: string | Uint8Array<ArrayBuffer>): void;
  closed(code: number, reason: string): void;
}

/** Time, and something to be done later. */
export interface ClientClock {
  /** Never goes back. */
  nowMs(): number;
  /** Calls back once, unless cancelled. */
  after(ms: number, run: () => void): () => void;
}

/** A change of what is kept: the bytes of a name, or null where they go. */
export type StorageChange = readonly [name: string, bytes: Uint8Array | null];

/**
 * What is kept over a restart of the program or a reload of its page: bytes by name. Names are sorted as texts, so that
 * records of one thing with padded numbers lie together, and are cut off from the front.
 */
export interface ClientStorage {
  /** All whose name begins so, in the order of their names. */
  list(prefix: string): Promise<(readonly [name: string, bytes: Uint8Array])[]>;
  /** Makes all of the changes or none, after those of earlier calls. Resolves when they are on disk. */
  commit(changes: readonly StorageChange[]): Promise<void>;
  /**
   * Makes a name this program's or page's own until it ends or lets it go: two pages do not share what is kept under
   * one. Null where another has it.
   *
   * @param isPatient waits a moment for a page that is just ending.
   */
  claim(name: string, isPatient: boolean): Promise<(() => void) | null>;
  /** What was committed is kept when it resolves. */
  close(): Promise<void>;
}

/** The program or page. */
export interface ClientHost extends ClientClock {
  /** What addresses are relative to; null where there is no such thing. */
  readonly base: string | null;
  fetch(input: RequestInfo | URL, init?: RequestInit): Promise<Response>;
  /** @param headers sent along where the platform can; else they are in the address's query. */
  open(url: string, options: SocketOptions, listener: SocketListener): Socket;
  /** The platform's own: for addresses that are none of the app's. */
  openElsewhere(url: string | URL, protocols?: string | string[]): WebSocket;
  /** A text that nobody draws again. */
  draw(): string;
  /** 1 to 2^53 − 1, of 48 random bits. */
  number(): number;
}

/** How a socket is opened. */
export interface SocketOptions {
  readonly protocols: readonly string[];
  /** Of the session, as many as the header may have. */
  readonly tokens: readonly string[];
}
