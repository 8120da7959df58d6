/** What can go wrong with a request over a link, as a value that crosses it by code. */

/**
 * - `unreachable`: no link to that site, and none could be made; nothing was sent
 * - `closed`: the link was lost while the request was under way; it may have been done
 * - `cancelled`: one of the two sides gave it up
 * - `overloaded`: the other site has too many requests of ours open; nothing was done
 * - `failed`: the handler at the other site threw, or a body failed while it was read
 * - `limit`: larger than a limit of the link; nothing was sent
 */
export type LinkErrorCode = "unreachable" | "closed" | "cancelled" | "overloaded" | "failed" | "limit";

/** A request over a link that did not end with an answer. Recognise it by `code`. */
export class LinkError extends Error {
  override readonly name = "LinkError";
  constructor(readonly code: LinkErrorCode, message: string) {
    super(message);
  }
}

const CODES: readonly LinkErrorCode[] = [
  "unreachable",
  "closed",
  "cancelled",
  "overloaded",
  "failed",
  "limit",
];

/** The code's byte in a reset frame (docs/protocol/frames.md). */
export function errorByte(code: LinkErrorCode): number {
  return CODES.indexOf(code);
}

/** The code of a reset frame's byte; undefined for a byte that means nothing. */
export function linkErrorCode(byte: number): LinkErrorCode | undefined {
  return CODES[byte];
}

/** An error of the other side is bounded and printable before it goes over the link. */
export function errorText(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error);
  return text.slice(0, 500);
}
