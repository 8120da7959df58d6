/**
 * How much an app's WebSocket may have on the way to its client, counted alike at both ends of the frames: what the
 * client does not take stays in the isolate, where the app sees it (`bufferedAmount`) and its own memory bounds it.
 *
 * SW1  The isolate begins a message only while less than SOCKET_WINDOW_BYTES are with the site; so the site has at most
 *      that and one message. An isolate that sends more has been bent, and is ended.
 * SW2  What the site has passed on it gives back, in messages and their bytes.
 */
import { ISOLATE_FRAME_BYTES_MAX } from "./frames.ts";

/** As a body's: with 16 KiB a message, sixteen under way, which hides the way to the site many times over. */
export const SOCKET_WINDOW_BYTES = 256 * 1024;
/** What a message takes beside its bytes, roughly: a window of empty ones is a thousand. */
export const MESSAGE_BYTES = 256;
/** Given back together, unless nothing waits any more. */
export const TAKEN_BYTES = SOCKET_WINDOW_BYTES / 4;
/** A message of an app: what a frame holds. Above, its socket is closed with 1009. */
export const SOCKET_MESSAGE_BYTES_MAX = ISOLATE_FRAME_BYTES_MAX - 64;

/** What so many messages of so many bytes count for. */
export const costOf = (messages: number, bytes: number): number => messages * MESSAGE_BYTES + bytes;
