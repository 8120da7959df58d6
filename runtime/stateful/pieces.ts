/**
 * What a home's log holds beside an isolate's own bytes: what the stateful session had seen of the store when it was
 * written, so that whoever opens it elsewhere has at least that.
 *
 *   token (token_bytes.ts) · entries, or the checkpoint's bytes
 *
 * P1  A piece without a token stands behind one that has it, or nothing was seen yet.
 */
import type { TokenState } from "../../store/api.ts";
import { Reader, Writer } from "../../store/codec.ts";
import { readToken, writeToken } from "./token_bytes.ts";

/** A piece, taken apart. */
export interface OpenPiece {
  readonly token: TokenState | null;
  readonly bytes: Uint8Array;
}

/** Bytes with what had been seen; null: as the piece before says. */
export function wrapPiece(token: TokenState | null, bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  const writer = new Writer(bytes.length + 64);
  writeToken(writer, token);
  return writer.bytes(bytes).done();
}

/** @throws CodecError */
export function openPiece(piece: Uint8Array): OpenPiece {
  const reader = new Reader(piece);
  const token = readToken(reader);
  const bytes = reader.bytes();
  reader.end();
  return { token, bytes };
}

/** A log's pieces as one: all entries, and the newest token among them and `before`. @throws CodecError */
export function joinPieces(
  before: TokenState | null,
  pieces: readonly { readonly bytes: Uint8Array }[],
): OpenPiece {
  const writer = new Writer();
  let token = before;
  for (const piece of pieces) {
    const open = openPiece(piece.bytes);
    token = open.token ?? token;
    writer.raw(open.bytes);
  }
  return { token, bytes: writer.done() };
}
