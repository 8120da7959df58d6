/**
 * The messages of sites to each other about rows. The link below is authenticated and FIFO.
 *
 * child → parent   hello · push · fetch · drop · eager · number · compare · wall
 * parent → child   welcome · again · feed · fetched · number · compared · wall
 * any → any        ask (towards the source and up its path) · carry (the answer) · warm · footprint · beat · tuples
 *                  messages about wards (ward_message.ts) · gather (by an adopting site) · gathered (the answer)
 *
 * Bytes and vectors: docs/protocol/journal.md.
 */
import { type Claim, readClaim, writeClaim } from "./claim.ts";
import { CodecError, Reader, Writer } from "../model/codec.ts";
import {
  COMPARE_KINDS,
  type CompareTalk,
  isCompareKind,
  isCompareTalk,
  readCompareBody,
  writeCompareBody,
} from "./compare_message.ts";
import type { SiteId } from "../model/ports.ts";
import type { Range } from "../model/range.ts";
import type { ClockValue, Position, ReplicaNumber } from "../model/row.ts";
import {
  isWardKind,
  isWardTalk,
  readWardBody,
  WARD_KINDS,
  type WardTalk,
  writeWardBody,
} from "./ward_message.ts";
import { readWireRows, type WireRow, writeWireRows } from "./wire_row.ts";

export type { Claim } from "./claim.ts";
export { chunks, shareRows, wireBytes, type WireRow } from "./wire_row.ts";

/** Introduction of a child: its identity, how far its copy of the parent's journal goes, and its coverage. */
export interface ChildHello {
  readonly kind: "hello";
  /** Number of this hello among those of one process; the answer names the hello that it is to. */
  readonly attempt: number;
  /** Replica number of the child; 0: a blank disk that needs a number. */
  readonly replica: ReplicaNumber;
  readonly parentReplica: ReplicaNumber;
  readonly cursor: Position;
  readonly clock: ClockValue;
  readonly tier: string;
  readonly url: string;
  readonly linkAddress: string;
  readonly coverage: readonly Range[];
  /** Details of a site whose last parent was another site (adoption.ts); mostly absent. */
  readonly moved?: MovedSite;
}

/** Details that a site brings along from under another parent. */
export interface MovedSite {
  /** Position up to which the root's journal had arrived at the site. */
  readonly floor: Position;
  /** Id of the site's former parent, where some rows that this one fed it are not known at the root; else "". */
  readonly from: SiteId;
  /**
   * Other children of that parent, as far as the site knows them; the site names itself among them where that parent
   * waits for it.
   */
  readonly siblings: readonly SiteId[];
  /** Sites that an operator has given up. */
  readonly lost: readonly SiteId[];
}

export interface Welcome {
  readonly kind: "welcome";
  /** Number of the hello that it answers. */
  readonly attempt: number;
  readonly replica: ReplicaNumber;
  readonly parentReplica: ReplicaNumber;
  readonly clock: ClockValue;
  /** Position up to which the child's journal has been applied here. */
  readonly pushed: Position;
  /** Site ids from the root to the parent. */
  readonly path: readonly SiteId[];
  /** Ranges of the child's coverage that this site can't vouch for: the child drops them before anything else. */
  readonly refused: readonly Range[];
}

/** Changes of the child's subtree, as of a head of the child's journal (PROTOCOL I1). */
export interface Push {
  readonly kind: "push";
  readonly upTo: Position;
  readonly stable: ClockValue;
  /** Clock below which all versions that the subtree has are in the root's journal (PROTOCOL I9). */
  readonly floor: ClockValue;
  readonly clock: ClockValue;
  readonly rows: readonly WireRow[];
  /** True where more chunks of this batch follow: the receiver stages this one. */
  readonly more: boolean;
}

/** Changes of the parent in what the child covers, as of a head, and the mark (PROTOCOL I2). */
export interface Feed {
  readonly kind: "feed";
  readonly upTo: Position;
  readonly clock: ClockValue;
  /** Positions of the ancestors' journals that have arrived at the parent (its `down`), root first. */
  readonly down: readonly Position[];
  /** Stable clocks, root first, the parent itself last. */
  readonly stable: readonly ClockValue[];
  /** Pair for each ancestor of the parent, root first: the parent's journal up to `own` is in theirs up to `theirs`. */
  readonly reach: readonly (readonly [own: Position, theirs: Position])[];
  /** Position up to which the child's journal has been applied. */
  readonly acked: Position;
  readonly watermark: ClockValue;
  /** True where the parent has no room for pushes: rows that wait, wait at the child. */
  readonly isFull: boolean;
  readonly rows: readonly WireRow[];
  readonly more: boolean;
}

export interface Fetch {
  readonly kind: "fetch";
  readonly id: number;
  readonly range: Range;
  /** Number of rows of the answer at most; 0: the whole range. */
  readonly limit: number;
  readonly reverse: boolean;
  /** Name of the trace, as in {@link RowsAsk}, of the first reader that waits for the answer. */
  readonly trace: string;
}

/** Answer to a fetch. It follows a feed message up to the head as of which the rows were read. */
export interface Fetched {
  readonly kind: "fetched";
  readonly id: number;
  /** Range that the child covers from now on: the interval that was read. */
  readonly range: Range;
  readonly rows: readonly WireRow[];
  readonly more: boolean;
  /** True where this range has no replica below the root. */
  readonly refused: boolean;
}

export interface Drop {
  readonly kind: "drop";
  readonly range: Range;
}

/** Request to send each mark at once for a while: a session at the sender waits. */
export interface Eager {
  readonly kind: "eager";
}

/** Request to say hello again: the parent is a new incarnation since the last hello. */
export interface Again {
  readonly kind: "again";
}

/** Request to the root for a replica number (up: number 0), or the number (down), behind the feed. */
export interface NumberMessage {
  readonly kind: "number";
  readonly id: number;
  readonly replica: ReplicaNumber;
  /** Claim of the number, on its way up only. */
  readonly claim: Claim | null;
}

/**
 * Request for pending rows to `replica`'s site, then to each inner site up to below depth `depth` (PROTOCOL C1, C2).
 */
export interface RowsAsk {
  readonly kind: "ask";
  readonly id: number;
  /** Site that wants the answer. */
  readonly to: SiteId;
  readonly replica: ReplicaNumber;
  /** Depth of the common ancestor. */
  readonly depth: number;
  /** Largest `down` of the common ancestor that was seen on the way so far. */
  readonly need: Position;
  readonly rows: readonly WireRow[];
  /** Host's name for the trace that this is part of, passed on as it is; mostly empty. */
  readonly trace: string;
}

export interface Carry {
  readonly kind: "carry";
  readonly id: number;
  readonly outcome: "rows" | "refused" | "too_large";
  /** Position of the common ancestor's journal (`down`) that must have arrived before the rows are installed. */
  readonly need: Position;
  readonly clock: ClockValue;
  readonly rows: readonly WireRow[];
}

/** Request to the site that a session came from, for what the session touched there. */
export interface Warm {
  readonly kind: "warm";
  readonly session: Uint8Array;
}

/** Answer to `warm`: the ranges that the session touched. */
export interface FootprintMessage {
  readonly kind: "footprint";
  readonly ranges: readonly Range[];
}

/** Request for a sign of life and the round trip of a site, or the answer to it (owners/detector.ts). */
export interface Beat {
  readonly kind: "beat";
  /** Stamp of the asker, given back to it in the answer. */
  readonly stamp: number;
  readonly isAnswer: boolean;
}

/** Packet of owners to each other about tuples of one use (owners/packet.ts). */
export interface TuplesMessage {
  readonly kind: "tuples";
  readonly use: string;
  readonly packet: Uint8Array;
}

/**
 * Time of a site, where the clocks of its rows do not tell it (timekeeper.ts): the time of its wall clock, or, to a
 * child that is refused since its clock is ahead, the time that the sender believes.
 */
export interface WallMessage {
  readonly kind: "wall";
  /** Milliseconds since 1970. */
  readonly ms: number;
}

/** Request for all rows that are not known at the root (adoption.ts). */
export interface Gather {
  readonly kind: "gather";
  readonly id: number;
  /**
   * Replica number of the incarnation whose rows have all to be there for an answer; 0: any rows that are there are
   * wanted.
   */
  readonly replica: ReplicaNumber;
}

/** Answer to `gather`, or to its repetition with the same id: all of the rows, as of one head. */
export interface Gathered {
  readonly kind: "gathered";
  readonly id: number;
  /** Position up to which the root's journal must have arrived here before the rows are installed. */
  readonly need: Position;
  readonly clock: ClockValue;
  /** Parent of the site that answers, and its replica number: "" and 0 at the root. */
  readonly parent: SiteId;
  readonly parentReplica: ReplicaNumber;
  readonly rows: readonly WireRow[];
  readonly more: boolean;
}

export type Message =
  | ChildHello
  | Welcome
  | Push
  | Feed
  | Fetch
  | Fetched
  | Drop
  | Eager
  | NumberMessage
  | RowsAsk
  | Carry
  | Again
  | Warm
  | FootprintMessage
  | Beat
  | TuplesMessage
  | WardTalk
  | Gather
  | Gathered
  | CompareTalk
  | WallMessage;

/** Kinds of messages by their wire numbers, which are never reused. */
const KINDS = [
  "hello",
  "welcome",
  "push",
  "feed",
  "fetch",
  "fetched",
  "drop",
  "eager",
  "number",
  "ask",
  "carry",
  "again",
  "warm",
  "footprint",
  "beat",
  "tuples",
  ...WARD_KINDS,
  "gather",
  "gathered",
  ...COMPARE_KINDS,
  "wall",
] as const;
const OUTCOMES = ["rows", "refused", "too_large"] as const;

export function encodeMessage(message: Message): Uint8Array<ArrayBuffer> {
  const w = new Writer(256).byte(KINDS.indexOf(message.kind));
  if (isWardTalk(message)) return writeWardBody(w, message).done();
  if (isCompareTalk(message)) return writeCompareBody(w, message).done();
  switch (message.kind) {
    case "hello":
      w.uint(message.attempt).uint(message.replica).uint(message.parentReplica).uint(message.cursor);
      w.uint(message.clock).text(message.tier).text(message.url).text(message.linkAddress);
      w.list(message.coverage, (range) => writeRange(w, range));
      return (message.moved === undefined ? w : writeMoved(w, message.moved)).done();
    case "welcome":
      w.uint(message.attempt).uint(message.replica).uint(message.parentReplica).uint(message.clock);
      return w.uint(message.pushed).list(message.path, (site) => w.text(site)).list(
        message.refused,
        (range) => writeRange(w, range),
      ).done();
    case "push":
      w.uint(message.upTo).uint(message.stable).uint(message.floor).uint(message.clock).flag(message.more);
      return writeWireRows(w, message.rows).done();
    case "feed":
      w.uint(message.upTo).uint(message.clock).list(message.down, (p) => w.uint(p));
      w.list(message.stable, (c) => w.uint(c)).list(
        message.reach,
        ([own, theirs]) => w.uint(own).uint(theirs),
      );
      w.uint(message.acked).uint(message.watermark).flag(message.isFull).flag(message.more);
      return writeWireRows(w, message.rows).done();
    case "fetch":
      w.uint(message.id).uint(message.limit).flag(message.reverse);
      return writeTrace(writeRange(w, message.range), message.trace).done();
    case "fetched":
      writeRange(w.uint(message.id).flag(message.more).flag(message.refused), message.range);
      return writeWireRows(w, message.rows).done();
    case "drop":
      return writeRange(w, message.range).done();
    case "eager":
    case "again":
      return w.done();
    case "number":
      return writeClaim(w.uint(message.id).uint(message.replica), message.claim).done();
    case "ask":
      w.uint(message.id).text(message.to).uint(message.replica).uint(message.depth).uint(message.need);
      return writeTrace(writeWireRows(w, message.rows), message.trace).done();
    case "carry":
      w.uint(message.id).byte(OUTCOMES.indexOf(message.outcome)).uint(message.need).uint(message.clock);
      return writeWireRows(w, message.rows).done();
    case "warm":
      return w.bytes(message.session).done();
    case "footprint":
      return w.list(message.ranges, (range) => writeRange(w, range)).done();
    case "beat":
      return w.uint(message.stamp).flag(message.isAnswer).done();
    case "tuples":
      return w.text(message.use).bytes(message.packet).done();
    case "wall":
      return w.uint(message.ms).done();
    case "gather":
      return w.uint(message.id).uint(message.replica).done();
    case "gathered":
      w.uint(message.id).uint(message.need).uint(message.clock).text(message.parent);
      return writeWireRows(w.uint(message.parentReplica).flag(message.more), message.rows).done();
  }
}

/** Decodes a message. @throws CodecError for anything that encodeMessage does not produce. */
export function decodeMessage(bytes: Uint8Array): Message {
  const r = new Reader(bytes);
  const kind = KINDS[r.byte()];
  if (kind === undefined) throw new CodecError("a message of an unknown kind");
  const message = readBody(kind, r);
  r.end();
  return message;
}

function readBody(kind: Message["kind"], r: Reader): Message {
  if (isWardKind(kind)) return readWardBody(kind, r);
  if (isCompareKind(kind)) return readCompareBody(kind, r);
  switch (kind) {
    case "hello":
      return {
        kind,
        attempt: r.uint(),
        replica: r.uint(),
        parentReplica: r.uint(),
        cursor: r.uint(),
        clock: r.uint(),
        tier: r.text(),
        url: r.text(),
        linkAddress: r.text(),
        coverage: r.list(() => readRange(r)),
        ...(r.isAtEnd ? {} : { moved: readMoved(r) }),
      };
    case "welcome":
      return {
        kind,
        attempt: r.uint(),
        replica: r.uint(),
        parentReplica: r.uint(),
        clock: r.uint(),
        pushed: r.uint(),
        path: r.list(() => r.text()),
        refused: r.list(() => readRange(r)),
      };
    case "push":
      return {
        kind,
        upTo: r.uint(),
        stable: r.uint(),
        floor: r.uint(),
        clock: r.uint(),
        more: r.flag(),
        rows: readWireRows(r),
      };
    case "feed":
      return {
        kind,
        upTo: r.uint(),
        clock: r.uint(),
        down: r.list(() => r.uint()),
        stable: r.list(() => r.uint()),
        reach: r.list(() => [r.uint(), r.uint()] as const),
        acked: r.uint(),
        watermark: r.uint(),
        isFull: r.flag(),
        more: r.flag(),
        rows: readWireRows(r),
      };
    case "fetch":
      return {
        kind,
        id: r.uint(),
        limit: r.uint(),
        reverse: r.flag(),
        range: readRange(r),
        trace: readTrace(r),
      };
    case "fetched":
      return {
        kind,
        id: r.uint(),
        more: r.flag(),
        refused: r.flag(),
        range: readRange(r),
        rows: readWireRows(r),
      };
    case "drop":
      return { kind, range: readRange(r) };
    case "eager":
    case "again":
      return { kind };
    case "number":
      return { kind, id: r.uint(), replica: r.uint(), claim: readClaim(r) };
    case "ask":
      return {
        kind,
        id: r.uint(),
        to: r.text(),
        replica: r.uint(),
        depth: r.uint(),
        need: r.uint(),
        rows: readWireRows(r),
        trace: readTrace(r),
      };
    case "carry":
      return {
        kind,
        id: r.uint(),
        outcome: readOutcome(r),
        need: r.uint(),
        clock: r.uint(),
        rows: readWireRows(r),
      };
    case "warm":
      return { kind, session: r.bytes() };
    case "footprint":
      return { kind, ranges: r.list(() => readRange(r)) };
    case "beat":
      return { kind, stamp: r.uint(), isAnswer: r.flag() };
    case "tuples":
      return { kind, use: r.text(), packet: r.bytes() };
    case "wall":
      return { kind, ms: r.uint() };
    case "gather":
      return { kind, id: r.uint(), replica: r.uint() };
    case "gathered":
      return {
        ...{ kind, id: r.uint(), need: r.uint(), clock: r.uint(), parent: r.text(), parentReplica: r.uint() },
        ...{ more: r.flag(), rows: readWireRows(r) },
      };
  }
}

const writeMoved = (w: Writer, { floor, from, siblings, lost }: MovedSite): Writer =>
  w.uint(floor).text(from).list(siblings, (site) => w.text(site)).list(lost, (site) => w.text(site));

const readMoved = (r: Reader): MovedSite => ({
  floor: r.uint(),
  from: r.text(),
  siblings: r.list(() => r.text()),
  lost: r.list(() => r.text()),
});

/** Writes a trace behind everything else, and only where there is one. */
const writeTrace = (w: Writer, trace: string): Writer => trace === "" ? w : w.text(trace);

function readTrace(r: Reader): string {
  if (r.isAtEnd) return "";
  const trace = r.text();
  if (trace === "") throw new CodecError("a trace without a name");
  return trace;
}

function readOutcome(r: Reader): Carry["outcome"] {
  const outcome = OUTCOMES[r.byte()];
  if (outcome === undefined) throw new CodecError("a carry has an unknown outcome");
  return outcome;
}

const writeRange = (w: Writer, range: Range): Writer => w.key(range.start).key(range.end);
const readRange = (r: Reader): Range => ({ start: r.key(), end: r.key() });
