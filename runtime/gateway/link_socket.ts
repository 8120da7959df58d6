/**
 * A WebSocket over a link: its messages as frames in the two bodies of a forwarded request.
 *
 *   u32 length of what follows (big endian) · u8 kind (1 text, 2 bytes, 3 close) · payload; a close's payload is
 *   u16 code · UTF-8 reason
 *
 * LKS1  A stream that ends without a close frame reads as closed abnormally.
 */
import { type MessageSocket, type SocketEvent } from "./message_socket.ts";

const KIND = { text: 1, bytes: 2, close: 3 } as const;
/**
 * Longest frame in bytes, its kind included: Deno's WebSockets take 64 MiB; a larger message between sites is garbage.
 */
const FRAME_BYTES_MAX = 64 * 1024 * 1024 + 1;

const utf8 = new TextEncoder();
const utf8Decoder = new TextDecoder();

/** Encodes one frame. */
export function encodeSocketFrame(kind: 1 | 2 | 3, payload: Uint8Array): Uint8Array<ArrayBuffer> {
  const frame = new Uint8Array(5 + payload.length);
  new DataView(frame.buffer).setUint32(0, payload.length + 1);
  frame[4] = kind;
  frame.set(payload, 5);
  return frame;
}

/** An end of a socket whose other end is at another site. */
export class LinkSocket implements MessageSocket {
  /** Frames for the other site: the body of the request or of the answer. */
  readonly outgoing: ReadableStream<Uint8Array<ArrayBuffer>>;
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>;
  readonly #writer: WritableStreamDefaultWriter<Uint8Array<ArrayBuffer>>;
  #pending = new Uint8Array(0);
  #ended: SocketEvent | null = null;
  #closing = false;

  constructor(
    incoming: ReadableStream<Uint8Array>,
    outgoing: TransformStream<Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>>,
  ) {
    this.#reader = incoming.getReader();
    this.outgoing = outgoing.readable;
    this.#writer = outgoing.writable.getWriter();
    this.#writer.closed.catch(() => {});
  }

  async next(): Promise<SocketEvent> {
    if (this.#ended !== null) return this.#ended;
    const frame = await this.#frame().catch(() => null);
    if (frame === null) return this.#end(1006, "");
    const payload = frame.subarray(1);
    if (frame[0] === KIND.text) return { kind: "message", data: utf8Decoder.decode(payload) };
    if (frame[0] === KIND.bytes) return { kind: "message", data: payload.slice() };
    if (frame[0] !== KIND.close || payload.length < 2) return this.#end(1006, "");
    const code = (payload[0] ?? 0) << 8 | (payload[1] ?? 0);
    return this.#end(code, utf8Decoder.decode(payload.subarray(2)));
  }

  async send(data: string | Uint8Array<ArrayBuffer>): Promise<void> {
    if (this.#closing) return;
    await this.#writer.write(
      typeof data === "string"
        ? encodeSocketFrame(KIND.text, utf8.encode(data))
        : encodeSocketFrame(KIND.bytes, data),
    );
  }

  close(code: number, reason: string): void {
    if (this.#closing) return;
    this.#closing = true;
    const text = utf8.encode(reason);
    const payload = new Uint8Array(2 + text.length);
    new DataView(payload.buffer).setUint16(0, code);
    payload.set(text, 2);
    this.#writer.write(encodeSocketFrame(KIND.close, payload)).then(() => this.#writer.close()).catch(
      () => {},
    );
  }

  /**
   * Closes at once: the client behind the link takes nothing. What waits is not sent, and the other site is told by the
   * end of both ways.
   */
  cut(): void {
    this.#closing = true;
    this.#writer.abort(new Error("the socket is cut off")).catch(() => {});
    this.#reader.cancel().catch(() => {});
  }

  #end(code: number, reason: string): SocketEvent {
    this.#reader.cancel().catch(() => {});
    return this.#ended = { kind: "close", code, reason };
  }

  async #frame(): Promise<Uint8Array | null> {
    while (this.#pending.length < 4 || this.#pending.length < 4 + this.#length()) {
      if (this.#pending.length >= 4 && this.#length() > FRAME_BYTES_MAX) return null;
      const { done, value } = await this.#reader.read();
      if (done) return null;
      const joined = new Uint8Array(this.#pending.length + value.length);
      joined.set(this.#pending);
      joined.set(value, this.#pending.length);
      this.#pending = joined;
    }
    const end = 4 + this.#length();
    const frame = this.#pending.slice(4, end);
    this.#pending = this.#pending.slice(end);
    return frame;
  }

  #length(): number {
    return new DataView(this.#pending.buffer, this.#pending.byteOffset, 4).getUint32(0);
  }
}
