/**
 * A tuple at one of its owners, in memory and on disk.
 *
 * On disk: ["t", id] → its state, and its payload where that is short; ["p", id] → a longer payload; ["m", id] → the
 * state alone, newer than what stands in ["t", id].
 *
 * T1  Of two versions of a tuple the larger one holds; of two equal ones that of the larger responsible site, and,
 *     where a site that had lost its disk has stored one id twice, the larger of the two. The end of a tuple is newer
 *     than all its versions of the same time, and the end of a tuple that somebody has acted on is newer than that of
 *     one that was given up.
 * T2  The version of a tuple whose producer gave the id begins with the second in which the tuple was stored: its time.
 *     The end of a tuple that was given up is of the time at which the tuple had been stored; the end of a tuple that
 *     was acted on is of all the time that its id is to be known, too. So the word of an end that comes late does not
 *     end what was stored under the same id since.
 * T3  A site that has lost its disk may store an id again that others have, and give it up. While that id is to be
 *     known this does not end the tuple that an owner had before: that was acknowledged, perhaps. That earlier tuple
 *     then counts as one of the second that follows.
 */
import { CodecError, Reader, Writer } from "../model/codec.ts";
import type { SiteId } from "../model/ports.ts";
import type { Entry, TupleId, TupleMark } from "./packet.ts";

/** Number by which a site and its user know a tuple while the tuple is there; used again for another one afterwards. */
export type TupleSlot = number & { readonly __brand?: "TupleSlot" };

/** Owners and topic of a tuple: all that thousands of tuples have in common. */
export interface Roster {
  /** Name under which the user put the tuple, as a queue's name; it never changes. */
  readonly topic: string;
  /** Number of owners besides the first that the tuple is to have; it never changes. */
  readonly f: number;
  /** Sites that are to have the tuple, the responsible one first. */
  readonly owners: readonly SiteId[];
  /** Sites that were owners once, and may not know yet that they are none any more. */
  readonly former: readonly SiteId[];
  /** Sites that have not said that they have this version on disk; kept by the site that tells it. */
  readonly unacked: readonly SiteId[];
  readonly gone: boolean;
}

/** Fields of a tuple that are stored beside its payload. */
export interface TupleState extends Omit<Roster, "unacked">, TupleMark {
  readonly version: number;
  /** True where the tuple is gone, and perhaps nobody has acted on it: its producer was refused. */
  readonly isUnsure: boolean;
  /** True where this tuple was here when its id was stored again at a site that did not know it (T3). */
  readonly isRepeated: boolean;
  /** Length of the payload. */
  readonly bytes: number;
  /**
   * End of the time for which the id is known after the tuple is gone, in seconds since 1970; 0: no longer than it has
   * to be.
   */
  readonly rememberUntilS: number;
}

/** Way in which a tuple became a site's own. */
export type How = "stored" | "adopted" | "loaded";

/** The list without sites, shared by all tuples: most tuples owe nobody anything most of the time. */
export const NO_SITES: readonly SiteId[] = [];

/** A tuple in motion; a tuple at rest is kept in columns (tuple_table.ts). */
export class Tuple implements Roster, TupleState {
  readonly topic: string;
  readonly f: number;
  version: number;
  owners: readonly SiteId[];
  former: readonly SiteId[];
  unacked: readonly SiteId[] = NO_SITES;
  gone: boolean;
  dueMs: number;
  note: string;
  bytes: number;
  rememberUntilS: number;
  /** Payload while somebody needs it in memory, and while the disk does not have it. */
  payload: Uint8Array | null = null;
  /** True once all owners had the tuple at one time: it counts. */
  held = false;
  /** True while the user has been told that the tuple is this site's. */
  acting = false;
  how: How = "loaded";
  /**
   * Owners before this site that were asked for all they share with it, then for this tuple, and those that do not have
   * it.
   */
  doubts: Map<SiteId, "asked" | "told" | "lost"> | null = null;
  /** Owners that had no room for the tuple when they were told last. */
  refusedBy: readonly SiteId[] = NO_SITES;
  isUnsure: boolean;
  isRepeated: boolean;
  /** True where the disk has an ["m", id] of the tuple. */
  isAmended = false;

  constructor(readonly id: TupleId, readonly slot: TupleSlot, state: TupleState) {
    this.topic = state.topic;
    this.f = state.f;
    this.version = state.version;
    this.owners = state.owners;
    this.former = state.former;
    this.gone = state.gone;
    this.isUnsure = state.isUnsure;
    this.isRepeated = state.isRepeated;
    this.dueMs = state.dueMs;
    this.note = state.note;
    this.bytes = state.bytes;
    this.rememberUntilS = state.rememberUntilS;
  }

  get responsible(): SiteId {
    return this.owners[0] ?? "";
  }

  /** All sites that may have the tuple. */
  get sites(): readonly SiteId[] {
    return this.former.length === 0 ? this.owners : [...this.owners, ...this.former];
  }

  /** Notes that a site had no room for the tuple, or, with `isFull` false, that it may have some. */
  refuses(site: SiteId, isFull: boolean): void {
    if (this.refusedBy.includes(site) === isFull) return;
    const others = this.refusedBy.filter((one) => one !== site);
    this.refusedBy = isFull ? [...others, site] : others.length > 0 ? others : NO_SITES;
  }

  /** Notes that a site is to be told this version. */
  owe(site: SiteId): void {
    if (!this.unacked.includes(site)) this.unacked = [...this.unacked, site];
  }

  /** Notes that a site has this version; false where the site owed no answer. */
  settle(site: SiteId): boolean {
    if (!this.unacked.includes(site)) return false;
    const left = this.unacked.filter((one) => one !== site);
    this.unacked = left.length === 0 ? NO_SITES : left;
    return true;
  }
}

/** Number of changes that fit between two times (T2); a version has 53 bits, of which seconds since 1970 take 32. */
const VERSIONS_A_SECOND = 2 ** 20;

/** Makes the first version of a tuple whose producer gave the id (T2); one with a drawn id is stored once, from 1. */
export const versionAt = (wallMs: number): number =>
  Math.max(0, Math.floor(wallMs / 1_000)) * VERSIONS_A_SECOND + 1;

/** Returns the second with which a version begins (T2). */
const timeOf = (version: number): number => Math.floor(version / VERSIONS_A_SECOND);

/**
 * Reports whether a newer version of a tuple that is here comes from an id that was stored again (T3), also in one
 * second where both versions are the first.
 */
export const isStoredAgain = (
  { version, mark }: Pick<Entry, "version" | "mark">,
  before: Pick<TupleState, "version">,
): boolean =>
  mark !== null && (timeOf(version) > timeOf(before.version) ||
    (version === before.version && version % VERSIONS_A_SECOND === 1));

/**
 * Reports whether a tuple that is here is older than the store that was given up (T3): its own end is not meant then.
 */
export function isBefore(
  { version, rememberUntilS, isRepeated }: Pick<TupleState, "version" | "rememberUntilS" | "isRepeated">,
  end: Pick<Entry, "version" | "isUnsure">,
): boolean {
  const time = timeOf(end.version);
  return end.isUnsure && time < rememberUntilS && (isRepeated || time > timeOf(version));
}

/** Makes the first version of the second that follows (T3). */
export const versionAfter = (version: number): number => (timeOf(version) + 1) * VERSIONS_A_SECOND + 1;

/** Makes the entry that tells a tuple as it is now; a full one where a payload is given. */
export function entryOf(id: TupleId, state: TupleState, payload: Uint8Array | null = null): Entry {
  const { version, owners, gone, isUnsure, dueMs, note, topic, f, rememberUntilS } = state;
  const content = gone || payload === null ? null : { topic, f, rememberUntilS, payload };
  const goneUntilS = gone && !isUnsure ? rememberUntilS : 0;
  return { id, version, owners, mark: gone ? null : { dueMs, note }, isUnsure, goneUntilS, content };
}

/** Compares an entry with a tuple (T1): negative, zero or positive where it is older, the same or newer. */
export function compareEntry(
  entry: Entry,
  tuple: Omit<TupleState, "bytes" | "topic" | "f" | "former" | "isRepeated">,
): number {
  const knownUntilS = tuple.gone && !tuple.isUnsure ? tuple.rememberUntilS : 0;
  const times = Math.max(timeOf(entry.version), entry.goneUntilS) -
    Math.max(timeOf(tuple.version), knownUntilS);
  if (times !== 0) return times;
  const end = (gone: boolean, isUnsure: boolean) => !gone ? 0 : isUnsure ? 1 : 2;
  const ends = end(entry.mark === null, entry.isUnsure) - end(tuple.gone, tuple.isUnsure);
  if (ends !== 0) return ends;
  if (entry.version !== tuple.version) return entry.version - tuple.version;
  const { mark, owners } = entry;
  for (let i = 0; i < owners.length || i < tuple.owners.length; i++) {
    const [x = "", y = ""] = [owners[i], tuple.owners[i]];
    if (x !== y) return x < y ? -1 : 1;
  }
  if (mark === null || mark.dueMs !== tuple.dueMs) return mark === null ? 0 : mark.dueMs - tuple.dueMs;
  return mark.note === tuple.note ? 0 : mark.note < tuple.note ? -1 : 1;
}

/** Common parts of rows that were read before: they are few, and reading one takes longest of all. */
const read = new Map<string, Common>();
/** Size at which the table of common parts is emptied and begins anew. */
const READ_MAX = 4_096;

type Common = Pick<TupleState, "gone" | "isUnsure" | "isRepeated" | "owners" | "former" | "f" | "topic">;

const endOf = ({ gone, isUnsure, isRepeated }: Common): string =>
  gone ? isUnsure ? "unsure" : "gone" : isRepeated ? "repeated" : "held";

/** Writes the common part as lines of text: no name has a line break (packet.ts). */
function commonText(common: Common): string {
  const { f, topic, owners, former } = common;
  return `${endOf(common)}\n${f}\n${topic}\n${owners.length}\n${owners.join("\n")}` +
    (former.length === 0 ? "" : `\n${former.join("\n")}`);
}

function commonOf(text: string): Common {
  let common = read.get(text);
  if (common === undefined) {
    const [end = "", f = "", topic = "", count = "", ...sites] = text.split("\n");
    const owners = sites.splice(0, Number(count));
    const gone = end === "gone" || end === "unsure";
    const ends = { gone, isUnsure: end === "unsure", isRepeated: end === "repeated" };
    common = { ...ends, f: Number(f), topic, owners, former: sites };
    if (commonText(common) !== text) throw new CodecError("a tuple's row is not one of ours");
    if (read.size >= READ_MAX) read.clear();
    read.set(text, common);
  }
  return common;
}

/**
 * Encodes a row of the disk.
 *
 * @param payload null where it stands in a row of its own, or nowhere.
 */
export function encodeState(state: TupleState, payload: Uint8Array | null): Uint8Array<ArrayBuffer> {
  const common = commonText(state);
  const w = new Writer(64 + common.length + (payload?.length ?? 0)).text(common).uint(state.version);
  w.uint(state.dueMs).text(state.note).uint(state.rememberUntilS).uint(state.bytes).flag(payload !== null);
  return payload === null ? w.done() : w.bytes(payload).done();
}

/** Reads a row but for the payload, which may be long and is left where it is. */
export const decodeState = (bytes: Uint8Array): TupleState => readState(new Reader(bytes));

/** Reads all of a row; the payload is null where it stands in a row of its own, or nowhere. */
export function decodeTupleRow(bytes: Uint8Array): { state: TupleState; payload: Uint8Array | null } {
  const r = new Reader(bytes), state = readState(r);
  const payload = r.flag() ? r.bytes() : null;
  r.end();
  if (payload !== null && payload.length !== state.bytes) {
    throw new CodecError("a payload is not as long as it should be");
  }
  return { state, payload };
}

function readState(r: Reader): TupleState {
  const { gone, isUnsure, isRepeated, owners, former, f, topic } = commonOf(r.text());
  const version = r.uint(), dueMs = r.uint(), note = r.text();
  return {
    gone,
    isUnsure,
    isRepeated,
    owners,
    former,
    f,
    topic,
    version,
    dueMs,
    note,
    rememberUntilS: r.uint(),
    bytes: r.uint(),
  };
}
