/**
 * What a home's log holds beside an isolate's own bytes: what the stateful session had seen of the store when it was
 * written, so that whoever opens it elsewhere has at least that.
 *
 *   01 · token (token_bytes.ts) · sized bytes: entries, or a checkpoint      02 · bytes, up to the end: nothing was seen since
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

/** Hosts' records leave it out (functions/sealed_log, CommitForm). A piece of before this form began with 00, and a size. */
const PLAIN = 2;

/** Bytes with what had been seen; null: as the piece before says. */
export function wrapPiece(token: TokenState | null, bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  if (token === null) {
    const piece = new Uint8Array(1 + bytes.length);
    piece[0] = PLAIN;
    piece.set(bytes, 1);
    return piece;
  }
  const writer = new Writer(bytes.length + 64);
  writeToken(writer, token);
  return writer.bytes(bytes).done();
}

/** @throws CodecError */
export function openPiece(piece: Uint8Array): OpenPiece {
  if (piece[0] === PLAIN) return { token: null, bytes: piece.subarray(1) };
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
