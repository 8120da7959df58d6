/**
 * The window of an app's WebSocket: how much may be on the way to its client, counted alike at both ends of the frames.
 * Messages that the client does not take stay in the isolate, where the app sees them (`bufferedAmount`) and its own
 * memory bounds them.
 *
 * SW1  The isolate begins a message only while less than SOCKET_WINDOW_BYTES are with the site; so the site has at most
 *      that and one message. An isolate that sends more has been bent, and is ended.
 * SW2  The site gives back what it has passed on, in messages and their bytes.
 */
import { ISOLATE_FRAME_BYTES_MAX } from "./frames.ts";

/**
 * Bytes that may be on the way, as for a body: with 16 KiB a message, sixteen under way, which hides the way to the
 * site many times over.
 */
export const SOCKET_WINDOW_BYTES = 256 * 1024;
/** Bytes that a message takes beside its own, roughly: a window of empty ones is a thousand. */
export const MESSAGE_BYTES = 256;
/** Bytes that are given back together, unless nothing waits any more. */
export const TAKEN_BYTES = SOCKET_WINDOW_BYTES / 4;
/** Bytes of a message of an app: what a frame holds. Above, its socket is closed with 1009. */
export const SOCKET_MESSAGE_BYTES_MAX = ISOLATE_FRAME_BYTES_MAX - 64;

/** Returns the bytes that messages take of the window, by their number and their bytes. */
export const costOf = (messages: number, bytes: number): number => messages * MESSAGE_BYTES + bytes;
