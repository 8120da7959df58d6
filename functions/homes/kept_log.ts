/**
 * One log at one keeper: what is in memory of it, and its rows on disk.
 *
 * On disk: ["h", …name] who may write it, ["c", …name] its base, ["p", …name, first] a piece. The pieces are what they
 * were sent as; nothing of them but their numbers is in memory.
 *
 * L1  Pieces follow each other without a gap, the first one right after the base.
 * L2  A cut of pieces and the base that stands for them go in one step of the disk.
 */
import { CodecError, Reader, Writer } from "../../store/codec.ts";
import { type Key, packKey } from "../../store/key.ts";
import type { SiteId } from "../../store/ports.ts";
import type { StatefulName } from "./api.ts";
import type { Base, LogPiece, LogState, Segment } from "./asks.ts";
import { SEED_BYTES } from "./limits.ts";
import { keyOf } from "./name.ts";
import { readBase, readVersion, writeBase } from "./packet.ts";

export const HEADS = "h", BASES = "c", PIECES = "p";

/** Who may write a log, and what it began with. */
export interface Head {
  /** Nothing of an earlier epoch is taken, nor of this one from another site. */
  readonly promised: number;
  readonly by: SiteId;
  /** The epoch in which this log was last made that of its home: only that one may append. */
  readonly aligned: number;
  /** Counts, in that epoch, how often its home has made some owner's log its own. */
  readonly turn: number;
  readonly seed: Uint8Array;
  readonly version: string;
}

/** A piece without its bytes. */
export interface PieceMark {
  readonly epoch: number;
  readonly first: number;
  readonly count: number;
  readonly wakeAtMs: number;
  readonly length: number;
}

export const pieceKey = (name: StatefulName, first: number): Key =>
  (keyOf(PIECES, name) + packKey([first])) as Key;

export const markOf = ({ epoch, first, count, wakeAtMs, bytes }: LogPiece): PieceMark => ({
  epoch,
  first,
  count,
  wakeAtMs,
  length: bytes.length,
});

/** See the file's header. */
export class KeptLog {
  readonly name: StatefulName;
  head: Head;
  /** null: it begins with the first entry. */
  base:
    | { readonly at: number; readonly epoch: number; readonly wakeAtMs: number; readonly length: number }
    | null = null;
  pieces: PieceMark[] = [];
  /** Of base and pieces. */
  bytes = 0;
  /** Counts what was cut, and bases: who reads from the disk meanwhile begins again. */
  cuts = 0;
  /** By the keeper's clock: when it was last written. */
  writtenMs = 0;

  constructor(name: StatefulName, head: Head) {
    this.name = name;
    this.head = head;
  }

  /** Of the pieces. */
  get pieceBytes(): number {
    return this.bytes - (this.base?.length ?? 0);
  }

  get last(): number {
    const piece = this.pieces.at(-1);
    return piece === undefined ? this.base?.at ?? 0 : piece.first + piece.count - 1;
  }

  /** 0: nothing is due. */
  get wakeAtMs(): number {
    return this.pieces.at(-1)?.wakeAtMs ?? this.base?.wakeAtMs ?? 0;
  }

  get state(): LogState {
    const segments: Segment[] = [];
    for (const { epoch, first, count } of this.pieces) {
      if (segments.at(-1)?.epoch === epoch) segments.pop();
      segments.push({ epoch, upTo: first + count - 1 });
    }
    return { base: { at: this.base?.at ?? 0, epoch: this.base?.epoch ?? 0 }, segments };
  }

  /** The epoch of an entry. */
  epochAt(entry: number): number {
    const piece = this.pieces.find(({ first, count }) => entry >= first && entry < first + count);
    return piece?.epoch ?? this.base?.epoch ?? 0;
  }

  setBase(base: Base | null): void {
    this.cuts++;
    const length = base === null ? 0 : base.bytes.length + base.answers.length;
    this.bytes += length - (this.base?.length ?? 0);
    this.base = base === null ? null : { at: base.at, epoch: base.epoch, wakeAtMs: base.wakeAtMs, length };
  }

  add(mark: PieceMark): void {
    this.pieces.push(mark);
    this.bytes += mark.length;
  }

  /** Takes out, and gives back, the pieces that `isCut` says. */
  cut(isCut: (mark: PieceMark) => boolean): PieceMark[] {
    const gone = this.pieces.filter(isCut);
    if (gone.length === 0) return gone;
    this.cuts++;
    this.pieces = this.pieces.filter((mark) => !isCut(mark));
    for (const { length } of gone) this.bytes -= length;
    return gone;
  }
}

export function encodeHead({ promised, by, aligned, turn, seed, version }: Head): Uint8Array {
  return new Writer(64).uint(promised).text(by).uint(aligned).uint(turn).raw(seed).text(version).done();
}

/** @throws CodecError */
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

/** @throws CodecError */
export function decodePiece(first: number, row: Uint8Array): LogPiece {
  const r = new Reader(row);
  const piece = { first, epoch: r.uint(), count: r.uint(), wakeAtMs: r.uint(), bytes: r.bytes() };
  r.end();
  return piece;
}

export const encodeBase = (base: Base): Uint8Array =>
  writeBase(new Writer(base.bytes.length + 64), base).done();

/** @throws CodecError */
export function decodeBase(bytes: Uint8Array): Base {
  const r = new Reader(bytes);
  const base = readBase(r);
  r.end();
  if (base === null) throw new CodecError("a base without a state");
  return base;
}
