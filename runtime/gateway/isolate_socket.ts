/** The isolate's end of a WebSocket as a {@link MessageSocket}; the isolate's side holds messages at the gate. */
import type { HostSocket } from "../isolate/host_socket.ts";
import { type MessageSocket, type SocketEvent, SocketQueue } from "./message_socket.ts";

export class IsolateEnd implements MessageSocket {
  readonly #socket: HostSocket;
  readonly #queue = new SocketQueue();

  constructor(socket: HostSocket) {
    this.#socket = socket;
    socket.bridge({
      message: (data) => this.#queue.push({ kind: "message", data }),
      close: (code, reason) => this.#queue.push({ kind: "close", code, reason }),
    });
  }

  next(): Promise<SocketEvent> {
    return this.#queue.next();
  }

  send(data: string | Uint8Array<ArrayBuffer>): Promise<void> {
    this.#socket.send(data);
    return Promise.resolve();
  }

  close(code: number, reason: string): void {
    this.#socket.close(code, reason);
  }
}
