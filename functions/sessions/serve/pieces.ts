/**
 * Pieces of a home's log: beside an isolate's own bytes each has what the stateful session has seen of the store by
 * then, and what the piece leaves open. So a site that opens the log elsewhere sees at least that, and does the rest.
 *
 *   03 · byte flags · 1: token (token_bytes.ts), varint applied · 2: varint open · 8: varint writer · bytes, up to the
 *   end; 4: marks
 *   02 · bytes, up to the end: nothing was seen since, and nothing is open
 *   01 · token · sized bytes      00 · sized bytes      the form before (P4)
 *
 * P1  A token names all that the entries up to and including its piece rest on: rows that were read, writes with checks
 *     that have a result, what callers had seen; and what effects up to `applied` have written. It is on disk here, and
 *     at this site's owners, before the piece is on any disk: a log that survives rests on nothing that was lost.
 * P2  A piece without a token stands behind one that has it, or nothing was seen yet.
 * P3  What is open is said of each piece, as of that piece: 0 nothing; 1 a handler, call or closure timer; else the
 *     clock of the oldest effect that is not known to be applied, be it of a handler that runs still. `marks`: among
 *     what is open is a write of which only a mark in the store tells whether it was done (own_store.ts, O2).
 * P4  Tokens of the form before lag: what was read for their piece, and what was applied before it, may be missing in
 *     them. The site that wrote them is asked for what it has told since; and they say nothing of what is open.
 * P5  A base names its writer where its token does not: the number under which the run that took the base writes. That
 *     stays what it was when the site takes another number. Entries that follow in the log may be of that writer, whose
 *     epoch is in the base (run_versions.ts).
 */
import type { TokenState } from "../../../store/api/api.ts";
import { Reader, Writer } from "../../../store/model/codec.ts";
import { CodecError } from "../../../store/model/codec.ts";
import { readToken, writeToken } from "./token_bytes.ts";

/** Record of what a session has seen, as its log has it. */
export interface Seen {
  readonly token: TokenState;
  /** Number of the last effect that the token knows to be applied. */
  readonly applied: number;
  /** True for a token that names all (P1); false for one of the form before (P4). */
  readonly isWhole: boolean;
}

/** Head of a piece: what it says beside its bytes. */
export interface PieceHead {
  /** Token of what the session has seen; null: as the piece before says. */
  readonly seen: Seen | null;
  /** Work that the piece leaves open (P3). */
  readonly open: number;
  readonly marks: boolean;
  /** Writer of a base (P5). */
  readonly writer?: number;
}

/** A piece, taken apart. */
export interface OpenPiece extends PieceHead {
  readonly bytes: Uint8Array;
}

/** Head of a piece after which nothing was seen, and nothing is open. */
export const NO_HEAD: PieceHead = { seen: null, open: 0, marks: false };
/** Value of `open` for a session that is not at rest, without an effect that is not applied. */
export const OPEN_WORK = 1;

/**
 * First bytes of pieces. PLAIN is left out in hosts' records (functions/sessions/sealed, CommitForm). A piece of the
 * form before began with a flag.
 */
const PLAIN = 2, HEADED = 3;
const SEEN = 1, OPEN = 2, MARKS = 4, WRITER = 8;

/** Returns bytes with their head as a piece. */
export function wrapPiece(head: PieceHead, bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  const { seen, open, marks, writer: by } = head;
  if (seen === null && open === 0 && !marks && by === undefined) {
    const piece = new Uint8Array(1 + bytes.length);
    piece[0] = PLAIN;
    piece.set(bytes, 1);
    return piece;
  }
  const writer = new Writer(bytes.length + 96);
  if (seen !== null && !seen.isWhole) { // P4: one of the form before is written as it was
    writeToken(writer, seen.token);
    return writer.bytes(bytes).done();
  }
  const said = (seen === null ? 0 : SEEN) | (open === 0 ? 0 : OPEN) | (marks ? MARKS : 0);
  writer.byte(HEADED).byte(said | (by === undefined ? 0 : WRITER));
  if (seen !== null) {
    writeToken(writer, seen.token);
    writer.uint(seen.applied);
  }
  if (open !== 0) writer.uint(open);
  if (by !== undefined) writer.uint(by);
  return writer.raw(bytes).done();
}

/** Takes a piece apart. @throws CodecError */
export function openPiece(piece: Uint8Array): OpenPiece {
  if (piece[0] === PLAIN) return { ...NO_HEAD, bytes: piece.subarray(1) };
  const reader = new Reader(piece);
  if (piece[0] === HEADED) return headed(reader, piece);
  const token = readToken(reader);
  const bytes = reader.bytes();
  reader.end();
  return { ...NO_HEAD, seen: token && { token, applied: 0, isWhole: false }, bytes };
}

function headed(reader: Reader, piece: Uint8Array): OpenPiece {
  reader.byte();
  const flags = reader.byte();
  if (flags === 0 || flags > (SEEN | OPEN | MARKS | WRITER)) {
    throw new CodecError(`a piece of a log has the flags ${flags}`);
  }
  const token = (flags & SEEN) === 0 ? null : readToken(reader);
  if ((flags & SEEN) !== 0 && token === null) {
    throw new CodecError("a piece of a log has a token that is none");
  }
  const seen = token && { token, applied: reader.uint(), isWhole: true };
  const open = (flags & OPEN) === 0 ? 0 : reader.uint();
  if ((flags & OPEN) !== 0 && open === 0) {
    throw new CodecError("a piece of a log leaves nothing open, and says so");
  }
  const by = (flags & WRITER) === 0 ? undefined : reader.uint();
  return {
    ...{ seen, open, marks: (flags & MARKS) !== 0, bytes: piece.subarray(reader.position) },
    ...(by === undefined ? {} : { writer: by }),
  };
}

/** Returns what a piece leaves open (P3); 0 for one that can't be read, with which nobody could do anything. */
export function openOf(piece: Uint8Array): number {
  if (piece[0] !== HEADED) return 0;
  try {
    return headed(new Reader(piece), piece).open;
  } catch (error) {
    if (!(error instanceof CodecError)) throw error;
    return 0;
  }
}

/** Joins a log's pieces: all entries, and the head of the last, with what was seen last. @throws CodecError */
export function joinPieces(
  before: PieceHead | null,
  pieces: readonly { readonly bytes: Uint8Array }[],
): OpenPiece {
  const writer = new Writer();
  let head = before ?? NO_HEAD;
  for (const piece of pieces) {
    const { bytes, ...own } = openPiece(piece.bytes);
    head = { ...own, seen: own.seen ?? head.seen }; // P2
    writer.raw(bytes);
  }
  return { ...head, bytes: writer.done() };
}
