/**
 * Links over WebSocket, where only HTTP passes: the same bytes in binary messages, whose boundaries mean nothing. A
 * WebSocket can't be told to read slower, so the bytes that have arrived and were not read are bounded by closing. And
 * Deno collects a message before it shows it, so for a stranger the bytes that the kernel has received are bounded
 * (received.ts), and the time: a stranger has as long as a handshake may take, and then the connection itself is cut
 * (cut_socket.ts).
 */
import { strict as assert } from "node:assert";
import { clearTimeout, setTimeout } from "node:timers";
import type { ByteConnection } from "./byte_connection.ts";
import { cutSocket } from "./cut_socket.ts";
import { HANDSHAKE_BYTES_MAX } from "./limits.ts";
import { type ReceivedWatch, watchReceived } from "./received.ts";

/** Bytes that a member may have unread here: more than the windows of a link let it have under way. */
const UNREAD_BYTES_MAX = 32 * 1024 * 1024;
/** Bytes that a stranger sends until it has proved itself: two messages of the handshake, with their lengths. */
const STRANGER_UNREAD_BYTES_MAX = 2_052;
assert(STRANGER_UNREAD_BYTES_MAX === 2 * (HANDSHAKE_BYTES_MAX + 2));
/** Bytes that may come of a stranger's messages, with the heads of its frames, and whatever comes between two looks. */
const STRANGER_COMING_BYTES_MAX = 16 * 1024;
/**
 * Milliseconds after which a side that does not close in turn is cut off: for a stranger, the time that the reason of a
 * refusal takes.
 */
const CLOSE_MS = { stranger: 1_000, member: 5_000 } as const;
/** Bytes that may be buffered: a write waits while there are more. About a socket's buffer. */
const BUFFERED_BYTES = 256 * 1024;
/** Milliseconds between looks at the buffer: there is no event for one that drains. */
const DRAIN_POLL_MS = 1;

class WebSocketConnection implements ByteConnection {
  readonly #socket: WebSocket;
  #chunks: Uint8Array[] = [];
  #unread = 0;
  #ended = false;
  #isStranger: boolean;
  readonly #received: ReceivedWatch | undefined;
  #cut: ReturnType<typeof setTimeout> | undefined;
  #wake: (() => void) | null = null;
  readonly #closed = Promise.withResolvers<void>();
  /** Makes a waiting write look at once whether there is room. */
  #look: (() => void) | null = null;

  constructor(socket: WebSocket, { isStranger, peer }: { isStranger: boolean; peer: Deno.Addr | undefined }) {
    this.#socket = socket;
    this.#isStranger = isStranger;
    this.#received = peer && watchReceived(peer, (bytes) => {
      if (bytes <= STRANGER_COMING_BYTES_MAX) return;
      this.close();
      cutSocket(socket);
    });
    socket.binaryType = "arraybuffer";
    socket.onmessage = ({ data }) => this.#arrived(data);
    socket.onclose = () => this.#end();
    socket.onerror = () => this.#end();
  }

  #arrived(data: unknown): void {
    const unreadMax = this.#isStranger ? STRANGER_UNREAD_BYTES_MAX : UNREAD_BYTES_MAX;
    if (!(data instanceof ArrayBuffer) || this.#unread + data.byteLength > unreadMax) {
      return this.close();
    }
    if (data.byteLength === 0 || this.#ended) return;
    this.#chunks.push(new Uint8Array(data));
    this.#unread += data.byteLength;
    this.#wake?.();
  }

  #end(): void {
    this.#ended = true;
    if (this.#socket.readyState === WebSocket.CLOSED) {
      clearTimeout(this.#cut);
      this.#received?.end();
      this.#closed.resolve();
    }
    this.#wake?.();
    this.#look?.();
  }

  get closed(): Promise<void> {
    return this.#closed.promise;
  }

  async read(into: Uint8Array): Promise<number | null> {
    while (this.#chunks.length === 0 && !this.#ended) {
      await new Promise<void>((resolve) => this.#wake = resolve);
    }
    const chunk = this.#chunks[0];
    if (!chunk) return null;
    const count = Math.min(chunk.length, into.length);
    into.set(chunk.subarray(0, count));
    if (count === chunk.length) this.#chunks.shift();
    else this.#chunks[0] = chunk.subarray(count);
    this.#unread -= count;
    return count;
  }

  async write(bytes: Uint8Array): Promise<number> {
    if (this.#ended || this.#socket.readyState !== WebSocket.OPEN) throw new Error("The WebSocket is closed");
    this.#socket.send(bytes.slice());
    while (this.#socket.bufferedAmount > BUFFERED_BYTES && !this.#ended) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, DRAIN_POLL_MS);
        this.#look = () => {
          clearTimeout(timer); // no timer is left behind when the connection has ended
          resolve();
        };
      });
    }
    return bytes.length;
  }

  close(): void {
    this.#chunks = [];
    this.#end();
    if (this.#socket.readyState <= WebSocket.OPEN) this.#socket.close();
    if (this.#cut !== undefined || this.#socket.readyState === WebSocket.CLOSED) return;
    const afterMs = this.#isStranger ? CLOSE_MS.stranger : CLOSE_MS.member;
    this.#cut = setTimeout(() => cutSocket(this.#socket), afterMs);
  }

  proved(): void {
    this.#isStranger = false;
    this.#received?.end();
  }
}

/**
 * Takes a WebSocket, one that is open or one that was just upgraded, for `LinkHub.accept`. Resolves when it is open.
 *
 * @param from `isStranger`: the opener may be anybody, until `proved`; `peer`: address of the connection's other end.
 */
export async function overWebSocket(
  socket: WebSocket,
  { isStranger = true, peer }: { readonly isStranger?: boolean; readonly peer?: Deno.Addr } = {},
): Promise<ByteConnection> {
  const connection = new WebSocketConnection(socket, { isStranger, peer });
  if (socket.readyState === WebSocket.CONNECTING) {
    await new Promise<void>((resolve, reject) => {
      socket.addEventListener("open", () => resolve(), { once: true });
      socket.addEventListener("close", () => reject(new Error("The WebSocket could not be opened")), {
        once: true,
      });
    });
  }
  return connection;
}

/**
 * Dials "ws://…" or "wss://…".
 *
 * @param caCerts roots that are trusted beside the system's, PEM.
 * @throws when it can't be opened.
 */
export async function dialWebSocket(url: string, caCerts: readonly string[] = []): Promise<ByteConnection> {
  if (caCerts.length === 0 || !url.startsWith("wss:")) {
    return await overWebSocket(new WebSocket(url), { isStranger: false });
  }
  const client = Deno.createHttpClient({ caCerts: [...caCerts] });
  const socket = new WebSocket(url, { client });
  socket.addEventListener("close", () => client.close(), { once: true });
  return await overWebSocket(socket, { isStranger: false });
}
