/**
 * Log at one keeper: what is in memory of it, and its rows on disk.
 *
 * On disk: ["h", …name] its head, ["c", …name] its base, ["p", …name, first] a piece, ["s", …name, number] a part
 * of a state, ["u", …name] the number after the last one of these, while there are some that no base has named, ["r",
 * …name] the newest configuration that its home has said to be on record (recollection.ts).
 * Pieces and parts are what they were sent as; nothing of them but their numbers is in memory.
 *
 * L1  Pieces follow each other without a gap, the first one right after the base.
 * L2  A cut of pieces and the base that stands for them go in one step of the disk; so do the parts that a base names
 *     last, and those that go because it does not.
 * L3  Parts of the base have the numbers `first` and on. What was uploaded has those after, and takes no others' place
 *     before a base has named it.
 */
import { CodecError, Reader, Writer } from "../../../store/model/codec.ts";
import { type Key, packKey } from "../../../store/model/key.ts";
import type { SiteId } from "../../../store/model/ports.ts";
import type { StatefulName } from "./api.ts";
import type { Base, EpochSegment, LogPiece, LogState } from "./asks.ts";
import { SEED_BYTES } from "./limits.ts";
import { keyOf } from "./name.ts";
import { readBase, readBaseAs, readVersion, writeBase } from "./packet.ts";
import { lengthOfParts, NO_STATE, type PartMark, stateMarkOf as markOfState } from "./state_parts.ts";

export const HEADS = "h", BASES = "c", PIECES = "p", PARTS = "s", ENDS = "u", RECORDED = "r";

/** Head of a log: the home that may write it, and what the log began with. */
export interface Head {
  /** Epoch that was promised: nothing of an earlier one is taken, nor of this one from another site. */
  readonly promised: number;
  readonly by: SiteId;
  /** Epoch in which this log was last made that of its home: only that home may append. */
  readonly aligned: number;
  /** Count, in that epoch, of the times that its home has made some owner's log its own. */
  readonly turn: number;
  readonly seed: Uint8Array;
  readonly version: string;
}

/** Piece without its bytes. */
export interface PieceMark {
  readonly epoch: number;
  readonly first: number;
  readonly count: number;
  readonly wakeAtMs: number;
  readonly length: number;
  /** Open work that the piece leaves (ports.ts, `openOf`). */
  readonly open: number;
}

export const logPieceKey = (name: StatefulName, first: number): Key =>
  (keyOf(PIECES, name) + packKey([first])) as Key;

export const partKey = (name: StatefulName, number: number): Key =>
  (keyOf(PARTS, name) + packKey([number])) as Key;

/** Numbers and marks of the parts of a base (L3). */
export interface KeptParts {
  readonly first: number;
  readonly marks: readonly PartMark[];
}

/** Parts that came for a base at the entry `at`, in place of the parts before (`start` 0) or behind them. */
export interface BaseUpload {
  readonly at: number;
  readonly start: number;
  readonly marks: PartMark[];
}

interface KeptBase {
  readonly at: number;
  readonly epoch: number;
  readonly wakeAtMs: number;
  readonly length: number;
}

const NO_PARTS: KeptParts = { first: 0, marks: [] };

export const pieceMarkOf = ({ epoch, first, count, wakeAtMs, bytes }: LogPiece, open: number): PieceMark => ({
  open,
  epoch,
  first,
  count,
  wakeAtMs,
  length: bytes.length,
});

/** Log at a keeper (see the file's header). */
export class KeptLog {
  readonly name: StatefulName;
  head: Head;
  /** Base of the log; null where it begins with the first entry. */
  base: KeptBase | null = null;
  /** Parts of the base's state. */
  parts: KeptParts = NO_PARTS;
  #upload: BaseUpload | null = null;
  /** Number after the last part on disk. */
  partsEnd = 0;
  hasEnd = false;
  pieces: PieceMark[] = [];
  /** Bytes of the base, its state, what was uploaded, and the pieces. */
  bytes = 0;
  /** True while a piece after the base left something open: its home is watched. */
  hasLeftOpen = false;
  /** Count of cuts and of bases: a reader of the disk begins again where it has changed meanwhile. */
  cuts = 0;
  /** Time of the last write, by the keeper's clock. */
  writtenMs = 0;
  /** Newest configuration that the home has said to be on record, since this process began. */
  recorded = 0;

  constructor(name: StatefulName, head: Head) {
    this.name = name;
    this.head = head;
  }

  /** Bytes of the pieces. */
  pieceBytes = 0;

  get upload(): BaseUpload | null {
    return this.#upload;
  }

  /** Number of the next part. */
  get nextPart(): number {
    return this.parts.first + this.parts.marks.length + (this.#upload?.marks.length ?? 0); // L3
  }

  /** Begins to take parts for a base, or takes none (SP2). */
  setUpload(upload: BaseUpload | null): void {
    this.bytes -= lengthOfParts(this.#upload?.marks ?? []);
    this.#upload = upload;
  }

  uploaded(mark: PartMark): void {
    this.#upload?.marks.push(mark);
    this.bytes += mark.length;
  }

  get last(): number {
    const piece = this.pieces.at(-1);
    return piece === undefined ? this.base?.at ?? 0 : piece.first + piece.count - 1;
  }

  /** Time of the earliest named timer; 0 where nothing is due. */
  get wakeAtMs(): number {
    return this.pieces.at(-1)?.wakeAtMs ?? this.base?.wakeAtMs ?? 0;
  }

  /** Open work that the log leaves; 0: none, as after a base. */
  get open(): number {
    return this.pieces.at(-1)?.open ?? 0;
  }

  get state(): LogState {
    const segments: EpochSegment[] = [];
    for (const { epoch, first, count } of this.pieces) {
      if (segments.at(-1)?.epoch === epoch) segments.pop();
      segments.push({ epoch, upTo: first + count - 1 });
    }
    const { at, epoch } = this.base ?? { at: 0, epoch: 0 };
    return { base: { at, epoch, state: markOfState(this.parts.marks) }, segments };
  }

  /** Returns the epoch of an entry. */
  epochAt(entry: number): number {
    return (this.#pieceOf(entry) ?? this.base)?.epoch ?? 0;
  }

  /** Returns the time of the earliest timer when the log ended with that entry, as `wakeAtMs` has it. */
  wakeAtMsAt(entry: number): number {
    return (this.#pieceOf(entry) ?? this.base)?.wakeAtMs ?? 0;
  }

  #pieceOf(entry: number): PieceMark | undefined {
    return this.pieces.find(({ first, count }) => entry >= first && entry < first + count);
  }

  setBase(base: Base | null, parts: KeptParts = { first: this.nextPart, marks: [] }): void {
    this.cuts++;
    this.setUpload(null);
    const length = base === null ? 0 : base.bytes.length + base.answers.length;
    this.bytes += length - (this.base?.length ?? 0) + lengthOfParts(parts.marks) -
      lengthOfParts(this.parts.marks);
    this.base = base === null ? null : { at: base.at, epoch: base.epoch, wakeAtMs: base.wakeAtMs, length };
    this.parts = parts;
    this.partsEnd = Math.max(this.partsEnd, this.nextPart);
  }

  add(mark: PieceMark): void {
    this.pieces.push(mark);
    this.hasLeftOpen ||= mark.open !== 0;
    this.pieceBytes += mark.length;
    this.bytes += mark.length;
  }

  /** Takes out, and returns, the pieces for which `isCut` is true. */
  cut(isCut: (mark: PieceMark) => boolean): PieceMark[] {
    const gone = this.pieces.filter(isCut);
    if (gone.length === 0) return gone;
    this.cuts++;
    this.pieces = this.pieces.filter((mark) => !isCut(mark));
    this.hasLeftOpen &&= this.pieces.length > 0;
    this.bytes -= lengthOfParts(gone);
    this.pieceBytes -= lengthOfParts(gone);
    return gone;
  }
}

export function encodeLogHead({ promised, by, aligned, turn, seed, version }: Head): Uint8Array {
  return new Writer(64).uint(promised).text(by).uint(aligned).uint(turn).raw(seed).text(version).done();
}

/** Reads the head of a log. @throws CodecError */
export function decodeHead(bytes: Uint8Array): Head {
  const r = new Reader(bytes);
  const head = {
    promised: r.uint(),
    by: r.text(),
    aligned: r.uint(),
    turn: r.uint(),
    seed: Uint8Array.from({ length: SEED_BYTES }, () => r.byte()),
    version: readVersion(r),
  };
  r.end();
  return head;
}

export const encodePiece = ({ epoch, count, wakeAtMs, bytes }: LogPiece): Uint8Array =>
  new Writer(bytes.length + 24).uint(epoch).uint(count).uint(wakeAtMs).bytes(bytes).done();

/** Reads a piece. @throws CodecError */
export function decodePiece(first: number, row: Uint8Array): LogPiece {
  const r = new Reader(row);
  const piece = { first, epoch: r.uint(), count: r.uint(), wakeAtMs: r.uint(), bytes: r.bytes() };
  r.end();
  return piece;
}

/**
 * First byte of a row of a base whose state lies beside it; a row of the first form, with all in itself, begins with 1.
 */
const WITH_PARTS = 2;

export function encodeBase(base: Base, { first, marks }: KeptParts): Uint8Array {
  const w = new Writer(base.bytes.length + base.answers.length + 128).byte(WITH_PARTS).uint(first);
  w.list(marks, ({ length, check }) => w.uint(length).uint(check));
  return writeBase(w, base).done();
}

/** Reads a base. @throws CodecError */
export function decodeBase(bytes: Uint8Array): { readonly base: Base; readonly parts: KeptParts } {
  const r = new Reader(bytes);
  if (bytes[0] !== WITH_PARTS) {
    const base = r.flag() ? readBaseAs(r, () => NO_STATE) : null;
    return ended(r, base, NO_PARTS);
  }
  r.byte();
  const first = r.uint();
  const marks = r.list(() => ({ length: r.uint(), check: r.uint() }));
  return ended(r, readBase(r), { first, marks });
}

function ended(r: Reader, base: Base | null, parts: KeptParts) {
  r.end();
  if (base === null) throw new CodecError("a base without a state");
  return { base, parts };
}
