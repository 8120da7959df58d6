/**
 * Packets in which owners tell each other of tuples: new tuples, changed owners, tuples that are gone, receipts for
 * packets before. Bytes and vectors: docs/protocol/owners.md.
 */
import { CodecError, Reader, Writer } from "../model/codec.ts";
import {
  F_MAX,
  OWNERS_MAX,
  TUPLE_BYTES_MAX,
  TUPLE_ID_BYTES_MAX,
  TUPLE_NOTE_BYTES_MAX,
  TUPLE_TOPIC_BYTES_MAX,
} from "../model/limits.ts";
import { Names, ReadNames } from "../model/names.ts";
import type { SiteId } from "../model/ports.ts";

export type TupleId = string;

/** Fields of a tuple that the responsible site may change without sending the payload again. */
export interface TupleMark {
  /** Time at which the tuple is to be acted on, by the wall clock. */
  readonly dueMs: number;
  /** A few words of the tuple's user, up to `TUPLE_NOTE_BYTES_MAX` in UTF-8. */
  readonly note: string;
}

/** Fields of a tuple that never change. */
export interface Content {
  /** Name under which the user put the tuple, as a queue's name. */
  readonly topic: string;
  /** Number of owners besides the first that the tuple is to have. */
  readonly f: number;
  /**
   * End of the time for which the id is known after the tuple is gone, in seconds since 1970; 0: no longer than it has
   * to be.
   */
  readonly rememberUntilS: number;
  readonly payload: Uint8Array;
}

/** A tuple as the site that tells it has it. */
export interface Entry {
  readonly id: TupleId;
  /** Number that counts the changes of the tuple's owners and of its mark. */
  readonly version: number;
  readonly owners: readonly SiteId[];
  /** Mark of the tuple; null: the tuple was removed, no owner may have it any more. */
  readonly mark: TupleMark | null;
  /** True where the tuple was removed because its producer was refused, and perhaps nobody has acted on it. */
  readonly isUnsure: boolean;
  /**
   * End of the time for which a removed tuple's id is known, as `Content` has it, for a site that never had that; else
   * 0.
   */
  readonly goneUntilS: number;
  /** Content of the tuple; null: the receiver has it, or says that it is missing. */
  readonly content: Content | null;
}

export interface Receipt {
  readonly seq: number;
  /** True where there was no room for what was new in that packet. */
  readonly full: boolean;
}

export interface TuplePacket {
  /** Number of the sender's process, drawn when it began. */
  readonly boot: number;
  /** Number of the receiver's process, as the sender knows it; 0: not yet. What refers to another process is void. */
  readonly to: number;
  /** Number under which the packet asks for a receipt; 0: it asks for none. */
  readonly seq: number;
  /**
   * Number under which the packet asks for all that the receiver knows of tuples that the two share; 0: it does not
   * ask.
   */
  readonly greeting: number;
  /** Number of the greeting that the entries answer; 0: none. */
  readonly list: number;
  /**
   * Place of this packet among the parts of that answer, from 1 on: a part that is missing makes the answer worth
   * nothing.
   */
  readonly part: number;
  /** True for the last part of that answer. */
  readonly isListEnd: boolean;
  /**
   * Receipts for packets: all entries of these are on the sender's disk, but for those said to be missing or answered
   * by an entry.
   */
  readonly receipts: readonly Receipt[];
  readonly missing: readonly TupleId[];
  readonly entries: readonly Entry[];
  /** Tuples whose end everybody knows. */
  readonly forget: readonly TupleId[];
}

const KIND = { light: 0, full: 1, gone: 2, unsure: 3 } as const;

export function encodeTuplePacket(packet: TuplePacket): Uint8Array<ArrayBuffer> {
  const w = new Writer(256).uint(packet.boot).uint(packet.to).uint(packet.seq);
  w.uint(packet.greeting).uint(packet.list).uint(packet.part).flag(packet.isListEnd);
  w.list(packet.receipts, ({ seq, full }) => w.uint(seq).flag(full));
  w.list(packet.missing, (id) => w.text(id));
  const sites = new Names(), topics = new Names();
  for (const { owners, content } of packet.entries) {
    for (const site of owners) sites.add(site);
    if (content !== null) topics.add(content.topic);
  }
  sites.write(w);
  topics.write(w);
  w.list(packet.entries, ({ id, version, owners, mark, isUnsure, goneUntilS, content }) => {
    w.text(id).uint(version).list(owners, (site) => w.uint(sites.place(site)));
    if (mark === null && isUnsure) return void w.byte(KIND.unsure);
    if (mark === null) return void w.byte(KIND.gone).uint(goneUntilS);
    w.byte(content === null ? KIND.light : KIND.full).uint(mark.dueMs).text(mark.note);
    if (content === null) return;
    w.uint(topics.place(content.topic)).uint(content.f).uint(content.rememberUntilS).bytes(content.payload);
  });
  return w.list(packet.forget, (id) => w.text(id)).done();
}

/** @throws CodecError for anything that encodeTuplePacket does not produce, and for tuples beyond their limits. */
export function decodeTuplePacket(bytes: Uint8Array): TuplePacket {
  const r = new Reader(bytes);
  const head = {
    boot: r.uint(),
    to: r.uint(),
    seq: r.uint(),
    greeting: r.uint(),
    list: r.uint(),
    part: r.uint(),
    isListEnd: r.flag(),
    receipts: r.list(() => ({ seq: r.uint(), full: r.flag() })),
    missing: r.list(() => readId(r)),
  };
  const sites = new ReadNames(r), topics = new ReadNames(r);
  const entries = r.list(() => {
    const id = readId(r), version = r.uint();
    const owners = r.list(() => sites.at(r.uint()));
    if (owners.length === 0 || owners.length > OWNERS_MAX || new Set(owners).size !== owners.length) {
      throw new CodecError(`a tuple has ${owners.length} owners: expected up to ${OWNERS_MAX}, each once`);
    }
    return { id, version, owners, ...readBody(r, topics) };
  });
  sites.end();
  topics.end();
  const forget = r.list(() => readId(r));
  r.end();
  return { ...head, entries, forget };
}

function readId(r: Reader): TupleId {
  const id = r.text();
  if (!isTupleId(id)) throw new CodecError("a tuple has a bad id");
  return id;
}

function readBody(r: Reader, topics: ReadNames): Pick<Entry, "mark" | "isUnsure" | "goneUntilS" | "content"> {
  const kind = r.byte();
  if (kind === KIND.unsure) return { mark: null, isUnsure: true, goneUntilS: 0, content: null };
  if (kind === KIND.gone) return { mark: null, isUnsure: false, goneUntilS: readUntilS(r), content: null };
  if (kind !== KIND.light && kind !== KIND.full) throw new CodecError("an entry is of an unknown kind");
  const mark = { dueMs: r.uint(), note: r.text() };
  if (!isNote(mark.note)) throw new CodecError(`a note has more than ${TUPLE_NOTE_BYTES_MAX} bytes`);
  if (kind === KIND.light) return { mark, isUnsure: false, goneUntilS: 0, content: null };
  const topic = topics.at(r.uint()), f = r.uint(), rememberUntilS = readUntilS(r), payload = r.bytes();
  if (!isTopic(topic)) throw new CodecError("a tuple has a bad topic");
  if (f > F_MAX) throw new CodecError(`a tuple wants ${f} other owners, more than ${F_MAX}`);
  if (payload.length > TUPLE_BYTES_MAX) {
    throw new CodecError(`a tuple has ${payload.length} bytes, more than ${TUPLE_BYTES_MAX}`);
  }
  return { mark, isUnsure: false, goneUntilS: 0, content: { topic, f, rememberUntilS, payload } };
}

function readUntilS(r: Reader): number {
  const untilS = r.uint();
  if (untilS > REMEMBER_UNTIL_S_MAX) throw new CodecError("an id is to be known for too long");
  return untilS;
}

/** Last second until which an id can be known: seconds have 32 bits in memory, until 2106. */
export const REMEMBER_UNTIL_S_MAX = 2 ** 32 - 1;

const utf8 = new TextEncoder();
const isWithin = (text: string, bytesMax: number): boolean =>
  text.length <= bytesMax && text.isWellFormed() &&
  (text.length * 3 <= bytesMax || utf8.encode(text).length <= bytesMax);
/** Reports whether a text can be a tuple's id. */
export const isTupleId = (id: string): boolean => id.length > 0 && isWithin(id, TUPLE_ID_BYTES_MAX);
/** Reports whether a text can be a topic. */
export const isTopic = (topic: string): boolean =>
  topic.length > 0 && !topic.includes("\n") && isWithin(topic, TUPLE_TOPIC_BYTES_MAX);
/** Reports whether a text can be a mark's note. */
export const isNote = (note: string): boolean => isWithin(note, TUPLE_NOTE_BYTES_MAX);

/** Counts the bytes that an entry takes in a packet, within a few. */
export const entryBytes = ({ id, owners, mark, content }: Entry): number =>
  id.length + owners.length + 4 + (mark === null ? 5 : 7 + mark.note.length) +
  (content === null ? 0 : 10 + content.payload.length);
