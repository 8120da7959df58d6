/**
 * The isolate's end of a WebSocket as a {@link MessageSocket}; the isolate's side holds messages at the output gate.
 */
import type { HostSocket } from "../isolate/host_socket.ts";
import { type MessageSocket, type SocketEvent, SocketQueue } from "./message_socket.ts";

/** A message, and the bytes that it counts for in the window of its socket. */
type Counted = SocketEvent & { readonly bytes?: number };

export class SocketOfIsolate implements MessageSocket {
  readonly #socket: HostSocket;
  readonly #queue = new SocketQueue<Counted>();
  /** Bytes of the message that was handed out last: when the next is asked for, that one has been passed on. */
  #out: number | undefined;
  #cut: ((code: number, reason: string) => void) | undefined;

  constructor(socket: HostSocket) {
    this.#socket = socket;
    socket.bridge({
      message: (data, bytes) => this.#queue.push({ kind: "message", data, bytes }),
      close: (code, reason) => this.#queue.push({ kind: "close", code, reason }),
      cut: (code, reason) => {
        this.#queue.clear();
        this.#queue.push({ kind: "close", code, reason });
        this.#cut?.(code, reason);
      },
    });
  }

  whenCut(tell: (code: number, reason: string) => void): void {
    this.#cut = tell;
  }

  async next(): Promise<SocketEvent> {
    if (this.#out !== undefined) this.#socket.taken(this.#out, this.#queue.size === 0);
    this.#out = undefined;
    const event = await this.#queue.next();
    this.#out = event.bytes;
    return event;
  }

  send(data: string | Uint8Array<ArrayBuffer>): Promise<void> {
    return this.#socket.send(data);
  }

  close(code: number, reason: string): void {
    this.#queue.clear();
    this.#socket.close(code, reason);
  }
}
