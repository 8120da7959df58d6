/**
 * Packets between homes, keepers and the arbiter of two sites. Bytes and vectors: docs/protocol/homes.md.
 *
 * B2  A decoded packet encodes to the bytes that it came from; anything else is refused with a CodecError.
 * B3  A process that writes the second form draws its number from `BOOT_MIN` on, in packets of the first form too: so
 *     each site knows from the other's first packet which form it reads.
 */
import { CodecError, Reader, Writer } from "../../../store/model/codec.ts";
import { F_MAX } from "../../../store/model/limits.ts";
import type { Owner, StatefulName } from "./api.ts";
import {
  type Base,
  isOfSecondForm,
  type LogPiece,
  OUTCOMES,
  REFUSALS,
  type Reply,
  type RowState,
  type SiteAsk,
} from "./asks.ts";
import {
  CHECKPOINT_BYTES_MAX,
  PIECE_BYTES_MAX,
  SEED_BYTES,
  STATE_PART_BYTES_MAX,
  STATE_PARTS_MAX,
  VERSION_BYTES_MAX,
} from "./limits.ts";
import { HOSTS_MAX, isClient, isClientDisk } from "./host_owners.ts";
import { isName } from "./name.ts";
import type { StateMark } from "./state_parts.ts";

export interface NumberedItem<T> {
  readonly number: number;
  readonly body: T;
}

/** First number of processes that read and write the second form (B3); numbers of the version before are below it. */
export const BOOT_MIN = 2 ** 48;

/**
 * First number of a packet of another form than the first, followed by that form's number. No process of the version
 * before has the number 0.
 */
const OTHER_FORM = 0, SECOND_FORM = 2;

export interface LogPacket {
  /** Highest position of the arbiter that the sender has heard of; left out in a packet of the first form. */
  readonly witness?: number;
  /** Number drawn when the sender's process began. */
  readonly boot: number;
  /** Process whose asks the replies are to; 0 where it is not known, and there are none. */
  readonly to: number;
  readonly asks: readonly NumberedItem<SiteAsk>[];
  readonly replies: readonly NumberedItem<Reply>[];
}

const ASKS = [
  ...["promise", "install", "align", "append", "fetch", "checkpoint", "forget"] as const,
  ...["acquire", "configure", "yield", "end", "look", "births", "greet", "invite"] as const,
  ...["upload", "parts"] as const,
  ...["recorded", "witness", "recall", "names"] as const,
] as const;
const REPLIES = [
  ...["held", "promised", "copy", "refused", "row", "births", "nobody", "full", "parts"] as const,
  ...["witness", "recalled", "names", "waits"] as const,
] as const;

/** Returns an ask as it goes into packets. */
export const encodeAsk = (ask: SiteAsk): Uint8Array<ArrayBuffer> => writeAsk(new Writer(128), ask).done();
export const encodeReply = (reply: Reply): Uint8Array<ArrayBuffer> =>
  writeReply(new Writer(64), reply).done();

/** Returns a packet of asks and replies that are encoded already. */
export function joinPacket(
  { boot, to, witness }: Pick<LogPacket, "boot" | "to" | "witness">,
  asks: readonly NumberedItem<Uint8Array>[],
  replies: readonly NumberedItem<Uint8Array>[],
): Uint8Array<ArrayBuffer> {
  const w = new Writer(256);
  if (witness !== undefined) w.uint(OTHER_FORM).uint(SECOND_FORM).uint(witness);
  w.uint(boot).uint(to);
  w.list(asks, ({ number, body }) => w.uint(number).raw(body));
  return w.list(replies, ({ number, body }) => w.uint(number).raw(body)).done();
}

export const encodeLogPacket = ({ asks, replies, ...head }: LogPacket): Uint8Array<ArrayBuffer> =>
  joinPacket(
    head,
    asks.map(({ number, body }) => ({ number, body: encodeAsk(body) })),
    replies.map(({ number, body }) => ({ number, body: encodeReply(body) })),
  );

/**
 * Reads a packet. @throws CodecError for anything that encodeLogPacket does not produce, and for what is beyond its
 * limits.
 */
export function decodeLogPacket(bytes: Uint8Array): LogPacket {
  const r = new Reader(bytes);
  const packet = {
    ...readHead(r),
    asks: r.list(() => readNumberedAsk(r)),
    replies: r.list(() => readNumbered(r)),
  };
  r.end();
  const { witness, asks, replies } = packet;
  const isNew = asks.some(({ body }) => isOfSecondForm(body)) ||
    replies.some(({ body }) => NEW_REPLIES.has(body.kind));
  if (isNew && witness === undefined) {
    throw new CodecError("a packet of the first form has what only the second has");
  }
  return packet;
}

const NEW_REPLIES: ReadonlySet<string> = new Set(["witness", "recalled", "names", "waits"]);

function readHead(r: Reader): Pick<LogPacket, "boot" | "to" | "witness"> {
  const first = r.uint();
  if (first !== OTHER_FORM) return { boot: first, to: r.uint() };
  if (r.uint() !== SECOND_FORM) throw new CodecError("a packet of an unknown form");
  const head = { witness: r.uint(), boot: r.uint(), to: r.uint() };
  if (head.boot === 0) throw new CodecError("a packet of nobody's");
  return head;
}

const readNumberedAsk = (r: Reader): NumberedItem<SiteAsk> => ({ number: r.uint(), body: readAsk(r) });
const readNumbered = (r: Reader): NumberedItem<Reply> => ({ number: r.uint(), body: readReply(r) });

// ── Asks ──

function writeAsk(w: Writer, ask: SiteAsk): Writer {
  w.byte(ASKS.indexOf(ask.kind));
  switch (ask.kind) {
    case "greet":
    case "witness":
      return w;
    case "births":
      return writeOwners(w, ask.owners);
    case "names":
      w.flag(ask.after !== null);
      return ask.after === null ? w : writeName(w, ask.after);
    case "look":
    case "invite":
    case "recall":
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
    case "recorded":
      return writeOwners(w.uint(ask.config), ask.owners);
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

function readAsk(r: Reader): SiteAsk {
  const kind = oneOf(r, ASKS);
  switch (kind) {
    case "greet":
    case "witness":
      return { kind };
    case "births":
      return { kind, owners: readOwners(r) };
    case "names":
      return { kind, after: r.flag() ? readName(r) : null };
    case "look":
    case "invite":
    case "recall":
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
    case "recorded":
      return { kind, ...of, config: r.uint(), owners: readOwners(r) };
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
    case "witness":
      return w.uint(reply.disk).uint(reply.position).list(reply.jumps, (jump) => w.uint(jump));
    case "recalled":
      return writeRecalled(w, reply);
    case "names":
      return w.list(reply.names, (name) => writeName(w, name)).flag(reply.more);
    case "waits":
      return w.list(reply.sites, (site) => w.text(site));
    case "nobody":
      return w;
  }
}

type Recalled = Extract<Reply, { readonly kind: "recalled" }>;

function writeRecalled(w: Writer, { disk, log, home, granted, ended }: Recalled): Writer {
  w.uint(disk).flag(log !== null);
  if (log !== null) {
    writeOwners(w.uint(log.promised).text(log.by).uint(log.config), log.owners).text(log.version);
  }
  w.flag(home !== null);
  if (home !== null) writeOwners(w.uint(home.epoch).uint(home.config), home.owners).flag(home.isChanging);
  return w.uint(granted).uint(ended);
}

const readRecalled = (r: Reader): Recalled => ({
  kind: "recalled",
  disk: r.uint(),
  log: r.flag()
    ? { promised: r.uint(), by: r.text(), config: r.uint(), owners: readOwners(r), version: readVersion(r) }
    : null,
  home: r.flag() ? { epoch: r.uint(), config: r.uint(), owners: readOwners(r), isChanging: r.flag() } : null,
  granted: r.uint(),
  ended: r.uint(),
});

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
    case "witness":
      return { kind, disk: r.uint(), position: r.uint(), jumps: r.list(() => r.uint()) };
    case "recalled":
      return readRecalled(r);
    case "names":
      return { kind, names: r.list(() => readName(r)), more: r.flag() };
    case "waits":
      return { kind, sites: r.list(() => r.text()) };
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

/** Reads owners: each site once, and no more than there may be. */
export function readOwners(r: Reader): Owner[] {
  const owners = r.list(() => ({ site: r.text(), disk: r.uint() }));
  const sites = new Set(owners.map(({ site }) => site));
  const hosts = owners.filter(isClient);
  if (owners.length - hosts.length > F_MAX + 1 || sites.size !== owners.length) {
    throw new CodecError(`a log has ${owners.length} owners: expected up to ${F_MAX + 1}, each site once`);
  }
  if (hosts.length > HOSTS_MAX || !hosts.every(({ disk }) => isClientDisk(disk))) {
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

/** Reads a base. @param readState reads what names its state. */
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
    if (part.length <= STATE_PART_BYTES_MAX) return part;
    throw new CodecError(`a part of a state has ${part.length} bytes, more than ${STATE_PART_BYTES_MAX}`);
  });

const writePieces = (w: Writer, pieces: readonly LogPiece[]): Writer =>
  w.list(
    pieces,
    (piece) =>
      w.uint(piece.epoch).uint(piece.first).uint(piece.count).uint(piece.wakeAtMs).bytes(piece.bytes),
  );

/** Reads pieces that follow each other without a gap. */
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
