/** Errors of a request over a link, as values that cross it by code. */

/**
 * Codes of a request's failure:
 * - `closed`: the link was lost while the request was under way; it may have been done
 * - `cancelled`: one of the two sides gave it up
 * - `overloaded`: the other site has too many requests of ours open; nothing was done
 * - `failed`: the handler at the other site threw, or a body failed while it was read
 * - `limit`: larger than a limit of the link; nothing was sent
 */
export type LinkErrorCode = "unreachable" | "closed" | "cancelled" | "overloaded" | "failed" | "limit";

/** Error of a request over a link that did not end with an answer. Recognise it by `code`. */
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

/** Returns the code's byte in a reset frame (docs/protocol/frames.md). */
export function errorByte(code: LinkErrorCode): number {
  return CODES.indexOf(code);
}

/** Returns the code of a reset frame's byte; undefined for a byte that means nothing. */
export function linkErrorCode(byte: number): LinkErrorCode | undefined {
  return CODES[byte];
}

/** Returns an error's text, bounded and printable, before it goes over the link. */
export function errorText(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error);
  return text.slice(0, 500);
}
