/**
 * Links over WebSocket, where only HTTP passes: the same bytes in binary messages, whose boundaries mean nothing.
 * A WebSocket can't be told to read slower, so what has arrived and was not read is bounded by closing.
 */
import type { ByteConnection } from "./byte_connection.ts";

/** More than the windows of a link let a member have under way; a stranger has a handshake's worth. */
const UNREAD_BYTES_MAX = 32 * 1024 * 1024;
/** A write waits while more than this is buffered: about a socket's buffer. */
const BUFFERED_BYTES = 256 * 1024;
/** There is no event for a buffer that drains. */
const DRAIN_POLL_MS = 1;

class WebSocketConnection implements ByteConnection {
  readonly #socket: WebSocket;
  #chunks: Uint8Array[] = [];
  #unread = 0;
  #ended = false;
  #wake: (() => void) | null = null;

  constructor(socket: WebSocket) {
    this.#socket = socket;
    socket.binaryType = "arraybuffer";
    socket.onmessage = ({ data }) => this.#arrived(data);
    socket.onclose = () => this.#end();
    socket.onerror = () => this.#end();
  }

  #arrived(data: unknown): void {
    if (!(data instanceof ArrayBuffer) || this.#unread + data.byteLength > UNREAD_BYTES_MAX) {
      return this.close();
    }
    if (data.byteLength === 0 || this.#ended) return;
    this.#chunks.push(new Uint8Array(data));
    this.#unread += data.byteLength;
    this.#wake?.();
  }

  #end(): void {
    this.#ended = true;
    this.#wake?.();
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
      await new Promise((resolve) => setTimeout(resolve, DRAIN_POLL_MS));
    }
    return bytes.length;
  }

  close(): void {
    this.#chunks = [];
    this.#end();
    if (this.#socket.readyState <= WebSocket.OPEN) this.#socket.close();
  }
}

/** Takes a WebSocket, one that is open or one that was just upgraded, for `LinkHub.accept`. Resolves when it is open. */
export async function overWebSocket(socket: WebSocket): Promise<ByteConnection> {
  const connection = new WebSocketConnection(socket);
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
  if (caCerts.length === 0 || !url.startsWith("wss:")) return await overWebSocket(new WebSocket(url));
  const client = Deno.createHttpClient({ caCerts: [...caCerts] });
  const socket = new WebSocket(url, { client });
  socket.addEventListener("close", () => client.close(), { once: true });
  return await overWebSocket(socket);
}
