/**
 * What client and session say to each other, on one WebSocket.
 *
 *   client → session   JSON {n, method, path, headers, body}
 *   session → client   u32 length of the head (big endian) · head, JSON {n, status, headers} · the body, compressed
 *
 * Replies come in the order of the requests (a session handles one at a time): so the windows of both ends agree.
 */
import * as z from "zod";

const header = z.tuple([z.string().max(1_000), z.string().max(16_384)]);

/** A request, as the client sends it. */
export const asked = z.object({
  /** Counts the client's requests. */
  n: z.number().int().min(1),
  method: z.enum(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"]),
  /** With its query; on the origin, whatever it says. */
  path: z.string().max(8_192).regex(/^\/(?!\/)/, "a path that begins with one /"),
  headers: z.array(header).max(100),
  body: z.string().max(1024 * 1024).nullable(),
});
export type Asked = z.infer<typeof asked>;

const head = z.object({
  n: z.number().int(),
  status: z.number().int().min(200).max(599),
  headers: z.array(header),
  /** Of the body before it was compressed. */
  bytes: z.number().int().min(0).max(1024 * 1024),
});
export type ReplyHead = z.infer<typeof head>;

const utf8 = new TextEncoder();
const HEAD_LENGTH_BYTES = 4;

/** A reply as one message. */
export function encodeReply(replyHead: ReplyHead, packed: Uint8Array): Uint8Array<ArrayBuffer> {
  const text = utf8.encode(JSON.stringify(replyHead));
  const message = new Uint8Array(HEAD_LENGTH_BYTES + text.length + packed.length);
  new DataView(message.buffer).setUint32(0, text.length);
  message.set(text, HEAD_LENGTH_BYTES);
  message.set(packed, HEAD_LENGTH_BYTES + text.length);
  return message;
}

/** A reply, read. @throws Error for what is none. */
export function decodeReply(message: Uint8Array): { readonly head: ReplyHead; readonly packed: Uint8Array } {
  const length = message.length < HEAD_LENGTH_BYTES
    ? -1
    : new DataView(message.buffer, message.byteOffset).getUint32(0);
  const end = HEAD_LENGTH_BYTES + length;
  if (length < 0 || end > message.length) throw new Error(`${message.length} bytes are no reply`);
  const text = new TextDecoder().decode(message.subarray(HEAD_LENGTH_BYTES, end));
  return { head: head.parse(JSON.parse(text)), packed: message.subarray(end) };
}
