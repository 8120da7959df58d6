/**
 * What homes, keepers and the arbiter of two sites say to each other, in one packet. Bytes and vectors:
 * docs/protocol/homes.md.
 *
 * B2  A decoded packet encodes to the bytes that it came from; anything else is refused with a CodecError.
 */
import { CodecError, Reader, Writer } from "../../store/codec.ts";
import { F_MAX } from "../../store/limits.ts";
import type { Owner, StatefulName } from "./api.ts";
import { type Ask, type Base, type LogPiece, OUTCOMES, REFUSALS, type Reply, type RowState } from "./asks.ts";
import {
  CHECKPOINT_BYTES_MAX,
  PART_BYTES_MAX,
  PIECE_BYTES_MAX,
  SEED_BYTES,
  STATE_PARTS_MAX,
  VERSION_BYTES_MAX,
} from "./limits.ts";
import { HOSTS_MAX, isHost } from "./host_owners.ts";
import { isName } from "./name.ts";
import type { StateMark } from "./state_parts.ts";

export interface Numbered<T> {
  readonly number: number;
  readonly body: T;
}

export interface Packet {
  /** Drawn when the sender's process began. */
  readonly boot: number;
  /** The process whose asks the replies are to; 0: not known, and there are none. */
  readonly to: number;
  readonly asks: readonly Numbered<Ask>[];
  readonly replies: readonly Numbered<Reply>[];
}

const ASKS = [
  ...["promise", "install", "align", "append", "fetch", "checkpoint", "forget"] as const,
  ...["acquire", "configure", "yield", "end", "look", "births", "greet", "invite"] as const,
  ...["upload", "parts"] as const,
] as const;
const REPLIES = ["held", "promised", "copy", "refused", "row", "births", "nobody", "full", "parts"] as const;

/** An ask as it goes into packets. */
export const encodeAsk = (ask: Ask): Uint8Array<ArrayBuffer> => writeAsk(new Writer(128), ask).done();
export const encodeReply = (reply: Reply): Uint8Array<ArrayBuffer> =>
  writeReply(new Writer(64), reply).done();

/** A packet of what is encoded already. */
export function joinPacket(
  boot: number,
  to: number,
  asks: readonly Numbered<Uint8Array>[],
  replies: readonly Numbered<Uint8Array>[],
): Uint8Array<ArrayBuffer> {
  const w = new Writer(256).uint(boot).uint(to);
  w.list(asks, ({ number, body }) => w.uint(number).raw(body));
  return w.list(replies, ({ number, body }) => w.uint(number).raw(body)).done();
}

export const encodePacket = ({ boot, to, asks, replies }: Packet): Uint8Array<ArrayBuffer> =>
  joinPacket(
    boot,
    to,
    asks.map(({ number, body }) => ({ number, body: encodeAsk(body) })),
    replies.map(({ number, body }) => ({ number, body: encodeReply(body) })),
  );

/** @throws CodecError for anything that encodePacket does not produce, and for what is beyond its limits. */
export function decodePacket(bytes: Uint8Array): Packet {
  const r = new Reader(bytes);
  const packet = {
    boot: r.uint(),
    to: r.uint(),
    asks: r.list(() => ({ number: r.uint(), body: readAsk(r) })),
    replies: r.list(() => ({ number: r.uint(), body: readReply(r) })),
  };
  r.end();
  return packet;
}

// ── Asks ──

function writeAsk(w: Writer, ask: Ask): Writer {
  w.byte(ASKS.indexOf(ask.kind));
  switch (ask.kind) {
    case "greet":
      return w;
    case "births":
      return writeOwners(w, ask.owners);
    case "look":
    case "invite":
      return writeName(w, ask.name);
    case "acquire":
      return writeName(w, ask.name).uint(ask.seen).uint(ask.grant).text(ask.version);
    case "configure":
      return writeOwners(writeName(w, ask.name).uint(ask.epoch).uint(ask.config), ask.owners);
    case "yield":
      return writeName(w, ask.name).uint(ask.epoch).text(ask.to);
    case "end":
      return writeName(w, ask.name).uint(ask.epoch);
  }
  writeName(w, ask.name).uint(ask.disk).uint(ask.epoch);
  switch (ask.kind) {
    case "install":
      return writeParts(writeBase(w.uint(ask.turn).raw(ask.seed).text(ask.version), ask.base), ask.parts);
    case "align":
      return w.uint(ask.turn).uint(ask.keep);
    case "forget":
      return w.uint(ask.turn);
    case "append":
      return writePieces(w, ask.pieces);
    case "fetch":
      return w.uint(ask.after).flag(ask.whole);
    case "checkpoint":
      return writeParts(writeMark(writeBase(w, ask.base), ask.kept), ask.parts);
    case "upload":
      return writeParts(w.uint(ask.at).uint(ask.first), ask.parts);
    case "parts":
      return w.uint(ask.at).uint(ask.first);
    default:
      return w;
  }
}

function readAsk(r: Reader): Ask {
  const kind = oneOf(r, ASKS);
  switch (kind) {
    case "greet":
      return { kind };
    case "births":
      return { kind, owners: readOwners(r) };
    case "look":
    case "invite":
      return { kind, name: readName(r) };
    case "acquire":
      return { kind, name: readName(r), seen: r.uint(), grant: r.uint(), version: readVersion(r) };
    case "configure":
      return { kind, name: readName(r), epoch: r.uint(), config: r.uint(), owners: readOwners(r) };
    case "yield":
      return { kind, name: readName(r), epoch: r.uint(), to: r.text() };
    case "end":
      return { kind, name: readName(r), epoch: r.uint() };
  }
  const of = { name: readName(r), disk: r.uint(), epoch: r.uint() };
  switch (kind) {
    case "install":
      return {
        ...{ kind, ...of, turn: r.uint(), seed: readSeed(r), version: readVersion(r) },
        ...{ base: readBase(r), parts: readParts(r) },
      };
    case "align":
      return { kind, ...of, turn: r.uint(), keep: r.uint() };
    case "forget":
      return { kind, ...of, turn: r.uint() };
    case "append":
      return { kind, ...of, pieces: readPieces(r) };
    case "fetch":
      return { kind, ...of, after: r.uint(), whole: r.flag() };
    case "checkpoint": {
      const base = readBase(r);
      if (base === null) throw new CodecError("a checkpoint without a state");
      return { kind, ...of, base, kept: readMark(r), parts: readParts(r) };
    }
    case "upload":
      return { kind, ...of, at: r.uint(), first: r.uint(), parts: readParts(r) };
    case "parts":
      return { kind, ...of, at: r.uint(), first: r.uint() };
    default:
      return { kind, ...of };
  }
}

// ── Replies ──

function writeReply(w: Writer, reply: Reply): Writer {
  w.byte(REPLIES.indexOf(reply.kind));
  switch (reply.kind) {
    case "held":
      return w.uint(reply.through);
    case "promised":
      w.uint(reply.disk).flag(reply.aligned).flag(reply.log !== null);
      if (reply.log === null) return w;
      writeMark(w.uint(reply.log.base.at).uint(reply.log.base.epoch), reply.log.base.state);
      return w.list(reply.log.segments, ({ epoch, upTo }) => w.uint(epoch).uint(upTo));
    case "copy":
      writeParts(writeBase(w.raw(reply.seed).text(reply.version), reply.base), reply.parts);
      return writePieces(w, reply.pieces).flag(reply.more);
    case "parts":
      return writeParts(w, reply.parts);
    case "refused":
      return w.byte(REFUSALS.indexOf(reply.why)).uint(reply.epoch).uint(reply.last);
    case "row":
      return writeRow(w.byte(OUTCOMES.indexOf(reply.outcome)).flag(reply.row !== null), reply.row);
    case "births":
      return w.uint(reply.number);
    case "full":
      return w.uint(reply.max);
    case "nobody":
      return w;
  }
}

function readReply(r: Reader): Reply {
  const kind = oneOf(r, REPLIES);
  switch (kind) {
    case "held":
      return { kind, through: r.uint() };
    case "promised":
      return { kind, disk: r.uint(), aligned: r.flag(), log: r.flag() ? readLogState(r) : null };
    case "copy":
      return {
        kind,
        seed: readSeed(r),
        version: readVersion(r),
        base: readBase(r),
        parts: readParts(r),
        pieces: readPieces(r),
        more: r.flag(),
      };
    case "parts":
      return { kind, parts: readParts(r) };
    case "refused":
      return { kind, why: oneOf(r, REFUSALS), epoch: r.uint(), last: r.uint() };
    case "row":
      return { kind, outcome: oneOf(r, OUTCOMES), row: r.flag() ? readRow(r) : null };
    case "births":
      return { kind, number: r.uint() };
    case "full":
      return { kind, max: r.uint() };
    case "nobody":
      return { kind };
  }
}

function readLogState(r: Reader) {
  const base = { at: r.uint(), epoch: r.uint(), state: readMark(r) };
  let last = base.at, epoch = base.epoch;
  const segments = r.list(() => {
    const segment = { epoch: r.uint(), upTo: r.uint() };
    if (segment.upTo <= last || segment.epoch < epoch) throw new CodecError("segments of a log do not rise");
    ({ upTo: last, epoch } = segment);
    return segment;
  });
  return { base, segments };
}

function writeRow(w: Writer, row: RowState | null): Writer {
  if (row === null) return w;
  writeOwners(w.text(row.site).uint(row.epoch).uint(row.config), row.owners);
  return w.text(row.version).flag(row.ended).text(row.movesTo);
}

const readRow = (r: Reader): RowState => ({
  site: r.text(),
  epoch: r.uint(),
  config: r.uint(),
  owners: readOwners(r),
  version: readVersion(r),
  ended: r.flag(),
  movesTo: r.text(),
});

// ── Parts ──

function oneOf<T>(r: Reader, all: readonly T[]): T {
  const one = all[r.byte()];
  if (one === undefined) throw new CodecError("a value is none of those that there are");
  return one;
}

export const writeName = (w: Writer, name: StatefulName): Writer =>
  w.text(name.app).text(name.class).text(name.id);

export function readName(r: Reader): StatefulName {
  const name = { app: r.text(), class: r.text(), id: r.text() };
  if (!isName(name)) throw new CodecError("a stateful session has a bad name");
  return name;
}

export const writeOwners = (w: Writer, owners: readonly Owner[]): Writer =>
  w.list(owners, ({ site, disk }) => w.text(site).uint(disk));

/** Each site once, and no more than there may be. */
export function readOwners(r: Reader): Owner[] {
  const owners = r.list(() => ({ site: r.text(), disk: r.uint() }));
  const sites = new Set(owners.map(({ site }) => site));
  const hosts = owners.filter(isHost);
  if (owners.length - hosts.length > F_MAX + 1 || sites.size !== owners.length) {
    throw new CodecError(`a log has ${owners.length} owners: expected up to ${F_MAX + 1}, each site once`);
  }
  if (hosts.length > HOSTS_MAX || hosts.some(({ disk }) => disk !== 0)) {
    throw new CodecError(`a log has ${hosts.length} hosts: expected up to ${HOSTS_MAX}, without a disk`);
  }
  return owners;
}

export function readVersion(r: Reader): string {
  const version = r.text();
  if (version.length > VERSION_BYTES_MAX) throw new CodecError("a version is too long");
  return version;
}

function readSeed(r: Reader): Uint8Array {
  return Uint8Array.from({ length: SEED_BYTES }, () => r.byte());
}

export function writeBase(w: Writer, base: Base | null): Writer {
  w.flag(base !== null);
  if (base === null) return w;
  w.uint(base.at).uint(base.epoch).uint(base.wakeAtMs).text(base.version);
  return writeMark(w.bytes(base.bytes).bytes(base.answers), base.state);
}

export const readBase = (r: Reader): Base | null => r.flag() ? readBaseAs(r, readMark) : null;

/** @param readState reads what its state is named by. */
export function readBaseAs(r: Reader, readState: (r: Reader) => StateMark): Base {
  const base = {
    at: r.uint(),
    epoch: r.uint(),
    wakeAtMs: r.uint(),
    version: readVersion(r),
    bytes: r.bytes(),
    answers: r.bytes(),
    state: readState(r),
  };
  if (base.at === 0) throw new CodecError("a checkpoint of nothing");
  if (base.bytes.length > CHECKPOINT_BYTES_MAX) {
    throw new CodecError(`a checkpoint has ${base.bytes.length} bytes, more than ${CHECKPOINT_BYTES_MAX}`);
  }
  return base;
}

const writeMark = (w: Writer, { count, check }: StateMark): Writer => w.uint(count).uint(check);

function readMark(r: Reader): StateMark {
  const mark = { count: r.uint(), check: r.uint() };
  if (mark.count > STATE_PARTS_MAX || mark.check >= 2 ** 32 || (mark.count === 0 && mark.check > 0)) {
    throw new CodecError("a state's mark is beyond its limits");
  }
  return mark;
}

const writeParts = (w: Writer, parts: readonly Uint8Array[]): Writer =>
  w.list(parts, (part) => w.bytes(part));

const readParts = (r: Reader): Uint8Array[] =>
  r.list(() => {
    const part = r.bytes();
    if (part.length <= PART_BYTES_MAX) return part;
    throw new CodecError(`a part of a state has ${part.length} bytes, more than ${PART_BYTES_MAX}`);
  });

const writePieces = (w: Writer, pieces: readonly LogPiece[]): Writer =>
  w.list(
    pieces,
    (piece) =>
      w.uint(piece.epoch).uint(piece.first).uint(piece.count).uint(piece.wakeAtMs).bytes(piece.bytes),
  );

/** One after the other without a gap. */
function readPieces(r: Reader): LogPiece[] {
  let next = 0, epoch = 0;
  return r.list(() => {
    const piece = {
      epoch: r.uint(),
      first: r.uint(),
      count: r.uint(),
      wakeAtMs: r.uint(),
      bytes: r.bytes(),
    };
    if (piece.first === 0 || piece.count === 0 || piece.bytes.length > PIECE_BYTES_MAX) {
      throw new CodecError("a piece of a log is beyond its limits");
    }
    if (piece.epoch < epoch || (next !== 0 && piece.first !== next)) {
      throw new CodecError("pieces of a log do not follow each other");
    }
    next = piece.first + piece.count;
    if (!Number.isSafeInteger(next)) throw new CodecError("a piece of a log is beyond its limits");
    epoch = piece.epoch;
    return piece;
  });
}
