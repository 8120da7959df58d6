/**
 * The ports of the client library: what it uses of the program or page that it is in (host.ts), and nothing else of the
 * world.
 */

/** Connection of the platform's `WebSocket`. */
export interface Socket {
  readonly bufferedAmount: number;
  send(data: string | Uint8Array<ArrayBuffer>): void;
  /** Closes the connection. @param code 1000, or 3000 to 4999; none: not said. */
  close(code?: number, reason?: string): void;
}

/** Listener of a connection. Nothing is called after `closed`, and nothing before `open` has returned. */
export interface SocketListener {
  /** Reports that the connection is open. @param protocol the subprotocol that the server took; "" for none. */
  opened(protocol: string): void;
  message(data: string | Uint8Array<ArrayBuffer>): void;
  closed(code: number, reason: string): void;
}

/** Clock, with timers. */
export interface ClientClock {
  /** Returns the time in milliseconds, which never goes back. */
  nowMs(): number;
  /** Calls `run` once after a time, unless the returned function is called before. */
  after(ms: number, run: () => void): () => void;
}

/** Change of a storage: the bytes of a name, or null where they are removed. */
export type StorageChange = readonly [name: string, bytes: Uint8Array | null];

/**
 * Storage that lasts over a restart of the program or a reload of its page: bytes by name. Names are sorted as texts,
 * so that records of one thing with padded numbers lie together, and are cut off from the front.
 */
export interface ClientStorage {
  /** Returns all entries whose name begins with `prefix`, in the order of their names. */
  list(prefix: string): Promise<(readonly [name: string, bytes: Uint8Array])[]>;
  /** Makes all of the changes or none, after those of earlier calls. Resolves when they are on disk. */
  commit(changes: readonly StorageChange[]): Promise<void>;
  /**
   * Claims a name for this program or page, until it ends or calls the returned function: two pages do not share what
   * is kept under one name. Null where another page has it.
   *
   * @param isPatient waits a moment for a page that is just ending.
   */
  claim(name: string, isPatient: boolean): Promise<(() => void) | null>;
  /** Closes the storage. Resolves when all that was committed is on disk. */
  close(): Promise<void>;
}

/** Program or page that a client runs in. */
export interface ClientHost extends ClientClock {
  /** Address that others are relative to; null where there is none. */
  readonly base: string | null;
  fetch(input: RequestInfo | URL, init?: RequestInit): Promise<Response>;
  /**
   * Opens a connection. The tokens are sent in a header where the platform can; else they are in the address's query.
   */
  open(url: string, options: SocketOptions, listener: SocketListener): Socket;
  /** Opens the platform's own WebSocket: for addresses that are none of the app's. */
  openElsewhere(url: string | URL, protocols?: string | string[]): WebSocket;
  /** Draws a text that is never drawn again. */
  draw(): string;
  /** Draws a number from 1 to 2^53 − 1, of 48 random bits. */
  number(): number;
}

/** Options of a connection. */
export interface SocketOptions {
  readonly protocols: readonly string[];
  /** Tokens of the session, as many as the header may have. */
  readonly tokens: readonly string[];
}
