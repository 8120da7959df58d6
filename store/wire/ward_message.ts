/**
 * The messages of sites to each other about wards. A ward is the pending rows of one site that others hold for it.
 *
 * source → owner   ward · release
 * owner → source   warded
 * any → owner      standIn (asks an owner in the place of a site that does not answer)
 * owner → any      stoodIn
 * any ↔ root       newest (which configuration of an incarnation is the newest that the root has)
 */
import { CodecError, type Reader, type Writer } from "../model/codec.ts";
import type { ClockValue, Position, ReplicaNumber, Row } from "../model/row.ts";
import { readWireRows, writeWireRows } from "./wire_row.ts";

/**
 * Part of the source's journal past `after`, up to a head: rows that are not known to be in the root's, its own and its
 * subtree's.
 */
export interface WardMessage {
  readonly kind: "ward";
  readonly replica: ReplicaNumber;
  /** Number of the configuration that the message is sent under. */
  readonly config: number;
  /** True where that configuration is in effect: rows for which this message is acknowledged are told to sessions. */
  readonly settled: boolean;
  /** Position up to which the owner must have the ward already. */
  readonly after: Position;
  readonly head: Position;
  readonly clock: ClockValue;
  /** Positions of the source's ancestors (its `down`) at the head, root first. */
  readonly down: readonly Position[];
  /** Position of the source's journal that is in each ancestor's, root first. */
  readonly reach: readonly Position[];
  /** Number of this message in a batch of several, from 0. */
  readonly part: number;
  readonly more: boolean;
  /** Rows with their positions in the source's journal. */
  readonly rows: readonly Row[];
}

/** Answer of an owner: how far its ward reaches, on its disk; and why it took nothing, if so. */
export interface Warded {
  readonly kind: "warded";
  readonly replica: ReplicaNumber;
  readonly config: number;
  readonly settled: boolean;
  readonly position: Position;
  readonly refused: WardRefusal;
}

/** Note that another configuration is in effect, without this owner: it may forget the ward. */
export interface Release {
  readonly kind: "release";
  readonly replica: ReplicaNumber;
  readonly config: number;
}

/** Request to an owner for the rows that an incarnation has pending towards the ancestor at `depth` (PROTOCOL O4). */
export interface StandIn {
  readonly kind: "standIn";
  readonly id: number;
  readonly replica: ReplicaNumber;
  readonly depth: number;
  /** Position up to which the ward has to reach. */
  readonly position: Position;
}

export interface StoodIn {
  readonly kind: "stoodIn";
  readonly id: number;
  readonly outcome: "rows" | "behind" | "too_large";
  readonly position: Position;
  /** Number of the newest configuration under which the owner has acknowledged rows that were told to sessions. */
  readonly config: number;
  readonly clock: ClockValue;
  readonly down: readonly Position[];
  readonly rows: readonly Row[];
}

export interface Newest {
  readonly kind: "newest";
  readonly id: number;
  readonly replica: ReplicaNumber;
  readonly isAnswer: boolean;
  /** Number of the newest configuration, in an answer; 0 for none. */
  readonly config: number;
}

export type WardTalk = WardMessage | Warded | Release | StandIn | StoodIn | Newest;

/** Kinds of messages about wards, in the order of their wire numbers. */
export const WARD_KINDS = ["ward", "warded", "release", "standIn", "stoodIn", "newest"] as const;
type WardKind = WardTalk["kind"];

/** Reason for which an owner takes nothing; "none": it takes the rows. "gap": it lacks the rows before them. */
export type WardRefusal = typeof WARD_REFUSALS[number];
export const WARD_REFUSALS = [
  "none",
  "gap",
  "stranger",
  "ended",
  "older",
  "full",
  "clock",
] as const;
const OUTCOMES = ["rows", "behind", "too_large"] as const;

export const isWardKind = (kind: string): kind is WardKind =>
  (WARD_KINDS as readonly string[]).includes(kind);
export const isWardTalk = <M extends { readonly kind: string }>(message: M | WardTalk): message is WardTalk =>
  isWardKind(message.kind);

/** Writes rows with their positions. */
export function writeWardRows(w: Writer, rows: readonly Row[]): Writer {
  w.list(rows, (row) => w.uint(row.position));
  return writeWireRows(w, rows);
}

export function readWardRows(r: Reader): Row[] {
  const positions = r.list(() => r.uint());
  const rows = readWireRows(r);
  if (rows.length !== positions.length) throw new CodecError("rows of a ward lack their positions");
  return rows.map((row, i) => ({ ...row, position: positions[i] ?? 0 }));
}

const uints = (r: Reader): number[] => r.list(() => r.uint());

function named<T>(names: readonly T[], r: Reader): T {
  const name = names[r.byte()];
  if (name === undefined) throw new CodecError("a message about a ward says what is not known");
  return name;
}

/** Writes the body of a message, behind its kind. */
export function writeWardBody(w: Writer, m: WardTalk): Writer {
  switch (m.kind) {
    case "ward":
      w.uint(m.replica).uint(m.config).flag(m.settled).uint(m.after).uint(m.head).uint(m.clock);
      w.list(m.down, (p) => w.uint(p)).list(m.reach, (p) => w.uint(p)).uint(m.part).flag(m.more);
      return writeWardRows(w, m.rows);
    case "warded":
      w.uint(m.replica).uint(m.config).flag(m.settled).uint(m.position);
      return w.byte(WARD_REFUSALS.indexOf(m.refused));
    case "release":
      return w.uint(m.replica).uint(m.config);
    case "standIn":
      return w.uint(m.id).uint(m.replica).uint(m.depth).uint(m.position);
    case "stoodIn":
      w.uint(m.id).byte(OUTCOMES.indexOf(m.outcome)).uint(m.position).uint(m.config);
      w.uint(m.clock).list(m.down, (p) => w.uint(p));
      return writeWardRows(w, m.rows);
    case "newest":
      return w.uint(m.id).uint(m.replica).flag(m.isAnswer).uint(m.config);
  }
}

/** Reads the body of a message. @throws CodecError */
export function readWardBody(kind: WardKind, r: Reader): WardTalk {
  switch (kind) {
    case "ward":
      return {
        kind,
        replica: r.uint(),
        config: r.uint(),
        settled: r.flag(),
        after: r.uint(),
        head: r.uint(),
        clock: r.uint(),
        down: uints(r),
        reach: uints(r),
        part: r.uint(),
        more: r.flag(),
        rows: readWardRows(r),
      };
    case "warded":
      return {
        kind,
        replica: r.uint(),
        config: r.uint(),
        settled: r.flag(),
        position: r.uint(),
        refused: named(WARD_REFUSALS, r),
      };
    case "release":
      return { kind, replica: r.uint(), config: r.uint() };
    case "standIn":
      return {
        kind,
        id: r.uint(),
        replica: r.uint(),
        depth: r.uint(),
        position: r.uint(),
      };
    case "stoodIn":
      return {
        kind,
        id: r.uint(),
        outcome: named(OUTCOMES, r),
        position: r.uint(),
        config: r.uint(),
        clock: r.uint(),
        down: uints(r),
        rows: readWardRows(r),
      };
    case "newest":
      return { kind, id: r.uint(), replica: r.uint(), isAnswer: r.flag(), config: r.uint() };
  }
}
