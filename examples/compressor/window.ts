/**
 * The window: the last 32 KiB of plain text that went from the session to its client, which both have. Deflate takes it
 * as a dictionary, so what was sent before is named and not sent again.
 *
 * W1  Both ends have the same window after the same replies: each puts in what it sent, or got, whole and in order.
 */
import { deflateRaw, Inflate } from "pako"; // node:zlib takes no dictionary in Deno

/** As far back as deflate can point. */
export const WINDOW_BYTES = 32 * 1024;

/** Where a window's bytes are: tracked in the session, plain at the client. */
export interface WindowBytes {
  slice(start: number, end: number): Uint8Array<ArrayBuffer>;
  set(source: Uint8Array, offset: number): void;
}

/** A ring of {@link WINDOW_BYTES}. `written` counts all bytes that were ever put in. */
export interface Window {
  readonly bytes: WindowBytes;
  written: number;
}

/** What is in it, oldest first. */
function contentOf({ bytes, written }: Window): Uint8Array<ArrayBuffer> {
  if (written <= WINDOW_BYTES) return bytes.slice(0, written);
  const at = written % WINDOW_BYTES;
  const content = new Uint8Array(WINDOW_BYTES);
  content.set(bytes.slice(at, WINDOW_BYTES), 0);
  content.set(bytes.slice(0, at), WINDOW_BYTES - at);
  return content;
}

/** W1 */
function put(window: Window, plain: Uint8Array): void {
  const last = plain.subarray(Math.max(0, plain.length - WINDOW_BYTES));
  const at = (window.written + plain.length - last.length) % WINDOW_BYTES;
  const head = last.subarray(0, WINDOW_BYTES - at);
  window.bytes.set(head, at);
  window.bytes.set(last.subarray(head.length), 0);
  window.written += plain.length;
}

/** Without an empty one, which is none. */
const against = (window: Window) => window.written === 0 ? {} : { dictionary: contentOf(window) };

/** Plain bytes as they travel. */
export function compress(window: Window, plain: Uint8Array<ArrayBuffer>): Uint8Array {
  const packed = deflateRaw(plain, against(window));
  put(window, plain);
  return packed;
}

/** The other way, to so many bytes. @throws Error for what was not made with this window. */
export function expand(window: Window, packed: Uint8Array, bytes: number): Uint8Array<ArrayBuffer> {
  const inflate = new Inflate({ raw: true, ...against(window) });
  const plain = new Uint8Array(bytes);
  let length = 0;
  inflate.onData = (chunk) => {
    if (length + chunk.length > bytes) throw new Error(`more than ${bytes} bytes came for ${bytes}`);
    plain.set(chunk, length);
    length += chunk.length;
  };
  inflate.push(packed, true);
  if (inflate.err !== 0 || !inflate.ended || length !== bytes) {
    throw new Error(`${length} bytes came for ${bytes}: ${inflate.msg || "they end early"}`);
  }
  put(window, plain);
  return plain;
}
