/**
 * Client with the library, which is its own host side: its gateway relays the frames, unread.
 *
 * RP1  One way for one WebSocket: where the way breaks the WebSocket is closed (4001), and the client's host side comes
 *      again, here or at another site.
 * RP2  Pulled on both sides: a slow reader slows its writer.
 */
import { CLOSE, encodeToHost } from "../../functions/sessions/attach/mod.ts";
import type { MessageSocket, SocketEvent } from "../gateway/message_socket.ts";
import { FORWARDED_FRAME_BYTES_MAX, type FrameWay } from "../../functions/sessions/attach/frame_way.ts";
import { WayRefused } from "../../functions/sessions/serve/peer_ways.ts";
import { FOR_GOOD } from "../../functions/sessions/serve/refusals.ts";

const UNSUPPORTED = 1003;
const TOO_BIG = 1009;

/** Relayed client (see the file's header). */
export class RelayedPeer implements MessageSocket {
  readonly #way: FrameWay;
  #closed: SocketEvent | null = null;

  constructor(way: FrameWay) {
    this.#way = way;
  }

  async next(): Promise<SocketEvent> {
    const frame = await this.#way.next();
    if (frame !== null) return { kind: "message", data: frame };
    return this.#closed ??= { kind: "close", code: CLOSE.broken, reason: "" }; // RP1
  }

  async send(data: string | Uint8Array<ArrayBuffer>): Promise<void> {
    if (this.#closed !== null) return;
    if (typeof data === "string") return this.#end(UNSUPPORTED, "frames are binary messages");
    if (data.length > FORWARDED_FRAME_BYTES_MAX) {
      return this.#end(TOO_BIG, `a frame has at most ${FORWARDED_FRAME_BYTES_MAX} bytes`);
    }
    this.#way.send(data);
    await this.#way.ready(); // RP2
  }

  close(code: number, reason: string): void {
    this.#end(code, reason);
  }

  #end(code: number, reason: string): void {
    this.#closed ??= { kind: "close", code, reason };
    this.#way.close();
  }
}

/** Client that can't be relayed now. It is told why in a frame: browsers say nothing of a handshake that failed. */
export class RefusedPeer implements MessageSocket {
  #frame: Uint8Array<ArrayBuffer> | null;

  constructor(error: unknown) {
    const code = error instanceof WayRefused ? error.code : "internal";
    const message = error instanceof Error ? error.message : String(error);
    const known = code === "superseded_home" ? "stateful_unreachable" : code;
    this.#frame = encodeToHost({
      kind: "refused",
      code: known,
      message,
      retry: FOR_GOOD.has(code) ? "fix" : "retry",
    });
  }

  next(): Promise<SocketEvent> {
    const data = this.#frame;
    this.#frame = null;
    if (data !== null) return Promise.resolve({ kind: "message", data });
    return Promise.resolve({ kind: "close", code: CLOSE.refused, reason: "" });
  }

  send(): Promise<void> {
    return Promise.resolve();
  }

  close(): void {}
}
