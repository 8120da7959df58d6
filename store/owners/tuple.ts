/**
 * A tuple at one of its owners, in memory and on disk.
 *
 * On disk: ["t", id] → its state, and its payload where that is short; ["p", id] → a longer payload; ["m", id] → the
 * state alone, newer than what stands in ["t", id].
 *
 * T1  Of two versions the larger one holds; of two equal ones that of the larger responsible site, and, where a site
 *     that had lost its disk has stored one id twice, the larger of the two. What is gone is newer than all of its time
 *     that is not, and what somebody has acted on newer than what was given up.
 * T2  The version of a tuple whose producer gave the id begins with the second in which it was stored: its time. What
 *     was given up is of the time at which it had been stored, and what was acted on of all the time that its id is to
 *     be known, too. So the word of an end that comes late does not end what was stored under the same id since.
 * T3  A site that has lost its disk may store an id again that others have, and give it up. While that id is to be known
 *     this does not end what an owner had before: that was acknowledged, perhaps. It counts as of the second that
 *     follows.
 */
import { CodecError, Reader, Writer } from "../model/codec.ts";
import type { SiteId } from "../model/ports.ts";
import type { Entry, TupleId, TupleMark } from "./packet.ts";

/** The number by which a site and its user know a tuple while it is there; used again when it is not. */
export type TupleSlot = number & { readonly __brand?: "TupleSlot" };

/** Who has a tuple, and what it is of: all that thousands of tuples have in common. */
export interface Roster {
  /** What its user put it under, as a queue's name; it never changes. */
  readonly topic: string;
  /** Other owners that it is to have; it never changes. */
  readonly f: number;
  /** Responsible first. */
  readonly owners: readonly SiteId[];
  /** Owners once, which may not know yet that they are none any more. */
  readonly former: readonly SiteId[];
  /** Sites that have not said that they have this version on disk; kept by the one who tells it. */
  readonly unacked: readonly SiteId[];
  readonly gone: boolean;
}

/** What is stored of a tuple beside its payload. */
export interface TupleState extends Omit<Roster, "unacked">, TupleMark {
  readonly version: number;
  /** It is gone, and perhaps nobody has acted on it: its producer was refused. */
  readonly isUnsure: boolean;
  /** It was here when its id was stored again, at a site that did not know it (T3). */
  readonly isRepeated: boolean;
  /** Of its payload. */
  readonly bytes: number;
  /** Until when its id is known after it is gone, in seconds since 1970; 0: no longer than it has to be. */
  readonly rememberUntilS: number;
}

/** How a tuple became a site's own. */
export type How = "stored" | "adopted" | "loaded";

/** One for all: most tuples owe nobody anything most of the time. */
export const NO_SITES: readonly SiteId[] = [];

/** A tuple in motion; one at rest is kept in columns (tuple_table.ts). */
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
  /** In memory as long as somebody needs it, and while the disk does not have it. */
  payload: Uint8Array | null = null;
  /** All its owners had it once: it counts. */
  held = false;
  /** The user was told that it is this site's. */
  acting = false;
  how: How = "loaded";
  /** Owners before this site that were asked for all they share with it, then for this, and those that do not have it. */
  doubts: Map<SiteId, "asked" | "told" | "lost"> | null = null;
  /** Owners that had no room for it when they were told last. */
  refusedBy: readonly SiteId[] = NO_SITES;
  isUnsure: boolean;
  isRepeated: boolean;
  /** The disk has an ["m", id] of it. */
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

  /** Everybody who may have it. */
  get sites(): readonly SiteId[] {
    return this.former.length === 0 ? this.owners : [...this.owners, ...this.former];
  }

  /** A site had no room for it, or may have some. */
  refuses(site: SiteId, isFull: boolean): void {
    if (this.refusedBy.includes(site) === isFull) return;
    const others = this.refusedBy.filter((one) => one !== site);
    this.refusedBy = isFull ? [...others, site] : others.length > 0 ? others : NO_SITES;
  }

  /** A site is to be told this version. */
  owe(site: SiteId): void {
    if (!this.unacked.includes(site)) this.unacked = [...this.unacked, site];
  }

  /** A site has it; false where it owed no answer. */
  settle(site: SiteId): boolean {
    if (!this.unacked.includes(site)) return false;
    const left = this.unacked.filter((one) => one !== site);
    this.unacked = left.length === 0 ? NO_SITES : left;
    return true;
  }
}

/** Changes that fit between two times (T2); a version has 53 bits, of which seconds since 1970 take 32. */
const VERSIONS_A_SECOND = 2 ** 20;

/** The first version of a tuple whose producer gave its id (T2); one with a drawn id is stored once, and begins with 1. */
export const versionAt = (wallMs: number): number =>
  Math.max(0, Math.floor(wallMs / 1_000)) * VERSIONS_A_SECOND + 1;

/** T2 */
const timeOf = (version: number): number => Math.floor(version / VERSIONS_A_SECOND);

/** Whether a newer version, of one that is here, is of an id that was stored again (T3); in one second where both are the first. */
export const isStoredAgain = (
  { version, mark }: Pick<Entry, "version" | "mark">,
  before: Pick<TupleState, "version">,
): boolean =>
  mark !== null && (timeOf(version) > timeOf(before.version) ||
    (version === before.version && version % VERSIONS_A_SECOND === 1));

/** Whether what is here was so before the store that was given up (T3): its end is not meant. */
export function isBefore(
  { version, rememberUntilS, isRepeated }: Pick<TupleState, "version" | "rememberUntilS" | "isRepeated">,
  end: Pick<Entry, "version" | "isUnsure">,
): boolean {
  const time = timeOf(end.version);
  return end.isUnsure && time < rememberUntilS && (isRepeated || time > timeOf(version));
}

/** The first version of the time that follows (T3). */
export const versionAfter = (version: number): number => (timeOf(version) + 1) * VERSIONS_A_SECOND + 1;

/** A tuple as it is told now; in full where a payload is given. */
export function entryOf(id: TupleId, state: TupleState, payload: Uint8Array | null = null): Entry {
  const { version, owners, gone, isUnsure, dueMs, note, topic, f, rememberUntilS } = state;
  const content = gone || payload === null ? null : { topic, f, rememberUntilS, payload };
  const goneUntilS = gone && !isUnsure ? rememberUntilS : 0;
  return { id, version, owners, mark: gone ? null : { dueMs, note }, isUnsure, goneUntilS, content };
}

/** Negative, zero or positive as an entry is older than, the same as or newer than a tuple (T1). */
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

/** What rows of many tuples have in common, as it was read before: they are few, and reading one takes longest of all. */
const read = new Map<string, Common>();
/** Beyond so many the table begins anew. */
const READ_MAX = 4_096;

type Common = Pick<TupleState, "gone" | "isUnsure" | "isRepeated" | "owners" | "former" | "f" | "topic">;

const endOf = ({ gone, isUnsure, isRepeated }: Common): string =>
  gone ? isUnsure ? "unsure" : "gone" : isRepeated ? "repeated" : "held";

/** As a text of lines: no name has a line break (packet.ts). */
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
 * A row of the disk.
 *
 * @param payload null where it stands in a row of its own, or nowhere.
 */
export function encodeState(state: TupleState, payload: Uint8Array | null): Uint8Array<ArrayBuffer> {
  const common = commonText(state);
  const w = new Writer(64 + common.length + (payload?.length ?? 0)).text(common).uint(state.version);
  w.uint(state.dueMs).text(state.note).uint(state.rememberUntilS).uint(state.bytes).flag(payload !== null);
  return payload === null ? w.done() : w.bytes(payload).done();
}

/** What a row says beside the payload, which may be long and is left where it is. */
export const decodeState = (bytes: Uint8Array): TupleState => readState(new Reader(bytes));

/** All of a row; the payload is null where it stands in a row of its own, or nowhere. */
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
