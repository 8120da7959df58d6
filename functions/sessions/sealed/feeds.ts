/**
 * Feeds of the hosts of a home: what it sends each of them of the log, record by record.
 *
 * Life of a feed: `attach` (the host is there, on a new channel, and says where its log ends) → ready (the first record
 * begins a series) → `next`, with each frame that leaves, until `detach`.
 *
 * HF1  What follows from the log up to an entry is told to a host when `reach` has come to that entry, and with the
 *      records that `next` gives then: `reach` is all that was appended for a host that is ahead, and what was released
 *      for any other, also for one that holds no log.
 * HF2  A host counts for its home when it has taken a record of this channel, and up to the end of that record
 *      (host_owners.ts).
 * HF3  The log that one host holds is bounded: before it has too much it is sent the log anew, from the newest base on.
 *      A host that could not hold that either holds nothing.
 * HF4  Nobody waits for a host that does not take what it is sent, and nothing is kept of what it was sent: it holds
 *      nothing until it has taken all of that, and then it is sent the log anew.
 * HF5  The furthest entry that a host may have is known until the host says that it has more: on its next channel its
 *      log goes on from there, and is never replaced by one that is shorter.
 */
import type { StatefulName } from "../log/api.ts";
import type { LogCopy, LogPiece } from "../log/asks.ts";
import {
  HOST_BASE_BYTES_MAX,
  HOST_LOG_BYTES_MAX,
  HOST_RECORDS_MANY,
  HOST_RECORDS_MAX,
  SALT_BYTES,
} from "./limits.ts";
import { tagOf } from "./record.ts";
import { SealedSeries } from "./series.ts";

/** The home's part that feeds need. */
export interface FeedHome {
  readonly name: StatefulName;
  readonly epoch: number;
  /** Last entry that was appended, and last entry that was released. */
  readonly last: number;
  readonly released: number;
  /**
   * Reads the log as this site's disk has it, with all that was appended before; `copyBytes` is about its length in
   * bytes.
   */
  copy(): Promise<LogCopy>;
  readonly copyBytes: number;
  readonly hosts: {
    has(host: string, through: number): boolean;
    drop(host: string): void;
    told(host: string, through: number): void;
    isAhead(host: string): boolean;
    isAwaited(host: string): boolean;
  };
}

export interface FeedPorts {
  /** The cluster's newest secret. */
  readonly secret: Uint8Array;
  readonly random: (length: number) => Uint8Array;
  /** Tells that `reach` of a host is another than before. */
  readonly ready: (host: string) => void;
  readonly failed: (host: string, error: unknown) => void;
}

/** Place where a host's log ends, and the size of what it holds up to there. */
export interface HostLogEnd {
  readonly tag: Uint8Array;
  readonly through: number;
  /** Entry of the base that the log begins with. */
  readonly baseAt: number;
  readonly bytes: number;
  readonly records: number;
}

/** A record that was sent, and where the log ends with it: its tag is looked at when its host comes back. */
interface SentRecord extends Omit<HostLogEnd, "tag"> {
  readonly record: Uint8Array;
}

interface Feed {
  /**
   * Place where the host's log ended when the channel came: it still ends there, as long as nothing of the channel is
   * taken. null: it has none, or has taken something.
   */
  from: HostLogEnd | null;
  /** Number of channels and beginnings so far: what was begun under an earlier one is dropped. */
  turn: number;
  series: SealedSeries | null;
  /** Record that begins the series, until `next` takes it. */
  first: Uint8Array | null;
  /** Pieces that were appended, and are not in the series yet. */
  waiting: LogPiece[];
  /**
   * Pieces that are in the series, and maybe not in the log that another series begins with, while that log is read.
   */
  since: LogPiece[];
  /** Records of this channel that were sent, but for those that are cut. */
  sent: SentRecord[];
  /** Number of records of this channel that were dropped from the beginning of `sent`. */
  cut: number;
  /** Number of records of this channel that the host has said to hold, and the last entry of these. */
  taken: number;
  held: number;
  /** True for a host that was late, until it has taken all that it was sent (HF4). */
  isLate: boolean;
  /**
   * True for a host that was late too often, and is to hold nothing for a while
   * (functions/sessions/attach/tardy_hosts.ts).
   */
  isOut: boolean;
  bytes: number;
  records: number;
  /** Bytes of the host's whole record; 0: that is of an earlier channel. */
  wholeBytes: number;
  /** Entry of the base that the host's log begins with. */
  baseAt: number;
  isHolding: boolean;
  /** True while the log is read for this feed. */
  isRead: boolean;
}

/** See the file's header. */
export class HostFeeds {
  readonly #home: FeedHome;
  readonly #ports: FeedPorts;
  readonly #feeds = new Map<string, Feed>();
  /** Places where the logs of hosts end that are not there: of the last takeover, and of channels that broke. */
  readonly #ends = new Map<string, HostLogEnd[]>();
  /** By host, the last entry that it was sent, or had when the session was opened (HF5). */
  readonly #furthest = new Map<string, number>();
  /** Entry of the newest base. */
  #baseAt = 0;

  /** @param ends places where the logs of those hosts end that were asked when the session was opened. */
  constructor(home: FeedHome, ports: FeedPorts, ends: ReadonlyMap<string, HostLogEnd> = new Map()) {
    this.#home = home;
    this.#ports = ports;
    for (const [host, end] of ends) {
      this.#ends.set(host, [end]); // host_logs.ts HL1
      this.#furthest.set(host, end.through);
    }
  }

  /** Notes a commit that was appended. */
  appended(piece: LogPiece): void {
    for (const feed of this.#feeds.values()) if (feed.isHolding) feed.waiting.push(piece);
  }

  /** Notes that all disks have the base at an entry. What hosts could not hold may be less now (HF3). */
  based(at: number): void {
    this.#baseAt = at;
    for (const [host, feed] of this.#feeds) this.#holdAgain(host, feed);
  }

  /**
   * Begins a new series for a host that held nothing. Its channel is the same, and what it has taken of that counts on.
   */
  #holdAgain(host: string, feed: Feed): void {
    if (feed.isHolding || feed.isLate || feed.isOut || this.#isTooLong) return;
    feed.isHolding = true;
    void this.#begin(host, feed, null);
  }

  /** True while the log is too long to be held: then it is not even read. */
  get #isTooLong(): boolean {
    return this.#home.copyBytes > HOST_LOG_BYTES_MAX;
  }

  /** Begins the feed of a host that is there, on a new channel. @param tag of its last record; null: it has none. */
  attach(host: string, tag: Uint8Array | null): void {
    const before = this.#feeds.get(host);
    if (before !== undefined) this.#remember(host, before);
    const end = tag === null ? null : this.#ends.get(host)?.find((one) => isSame(one.tag, tag)) ?? null;
    const held = before === undefined ? this.#ends.get(host)?.at(-1)?.through ?? 0 : before.held;
    const feed: Feed = {
      from: end,
      ...{ turn: (before?.turn ?? 0) + 1, series: null, first: null, waiting: [], since: [], sent: [] },
      ...{
        cut: 0,
        taken: 0,
        held: 0,
        isLate: false,
        isOut: false,
        bytes: 0,
        records: 0,
        wholeBytes: 0,
        baseAt: 0,
      },
      ...{ isHolding: true, isRead: false },
    };
    this.#feeds.set(host, feed);
    // A host with less than it was known to have counts when it has come to that again (HF2).
    if ((end?.through ?? 0) < held) this.#home.hosts.drop(host);
    if (this.#isTooLong) this.#overflow(host, feed);
    else void this.#begin(host, feed, end);
  }

  /** Ends the feed of a host whose channel is broken: it is to be waited for no more (HO4). */
  detach(host: string): void {
    const feed = this.#feeds.get(host);
    if (feed !== undefined) {
      this.#remember(host, feed);
      feed.turn++;
      this.#feeds.delete(host);
    }
    // Also a host that was asked for the log and has not come yet.
    this.#home.hosts.drop(host);
  }

  /** Forgets a host that is no peer of the session any more. */
  forget(host: string): void {
    this.detach(host);
    this.#ends.delete(host);
    this.#furthest.delete(host);
  }

  /** Reports whether the site that opens the session would wait for a host. */
  isAwaited(host: string): boolean {
    return this.#home.hosts.isAwaited(host);
  }

  /** Returns the last entry up to which a host may be told things; −1: none yet (HF1). */
  reach(host: string): number {
    const feed = this.#feeds.get(host), home = this.#home;
    if (feed === undefined) return -1;
    if (!feed.isHolding) return home.released;
    if (feed.series === null) return -1;
    return home.hosts.isAhead(host) ? home.last : home.released;
  }

  /** Returns the records that go before, or with, the next frame to a host: all that it may have and has not. */
  next(host: string): Uint8Array[] {
    const feed = this.#feeds.get(host);
    if (feed?.isHolding !== true || feed.series === null) return [];
    const reach = this.reach(host);
    const records = feed.first === null ? [] : [this.#told(host, feed, feed.first)];
    const pieces = takeUpTo(feed, reach);
    if (pieces.length === 0) return records;
    if (feed.isRead) feed.since.push(...pieces);
    let bytes = 0;
    for (const piece of pieces) bytes += piece.bytes.length + PIECE_HEAD_BYTES;
    if (feed.bytes + bytes > HOST_LOG_BYTES_MAX || feed.records >= HOST_RECORDS_MAX) {
      this.#overflow(host, feed);
      return records;
    }
    records.push(this.#told(host, feed, feed.series.next(pieces)));
    if (isLong(feed) && this.#baseAt > feed.baseAt) this.#again(host, feed);
    return records;
  }

  /** Notes that a host has taken so many records of this channel (HF2). */
  taken(host: string, records: number): void {
    const feed = this.#feeds.get(host);
    if (feed?.isLate === true && records === feed.cut) {
      feed.isLate = false;
      this.#holdAgain(host, feed);
    }
    const sent = feed?.sent[records - 1 - feed.cut];
    if (feed === undefined || sent === undefined) return;
    feed.sent.splice(0, records - 1 - feed.cut);
    feed.cut = records - 1;
    feed.taken = records;
    feed.held = sent.through;
    feed.from = null;
    if (feed.isHolding && !this.#home.hosts.has(host, sent.through)) this.#overflow(host, feed);
  }

  /**
   * Returns the first record of a host's channel that it has not said to hold; 0: it holds all, or nothing is waited
   * for.
   */
  untaken(host: string): number {
    const feed = this.#feeds.get(host);
    if (feed?.isHolding !== true) return 0;
    return feed.taken < feed.cut + feed.sent.length ? feed.taken + 1 : 0;
  }

  /** Returns the number of records that a host was sent on its channel. */
  sent(host: string): number {
    const feed = this.#feeds.get(host);
    return feed === undefined ? 0 : feed.cut + feed.sent.length;
  }

  /** Notes that a host has been waited for long enough (HF4). */
  late(host: string, isOut: boolean): void {
    const feed = this.#feeds.get(host);
    if (feed?.isHolding !== true) return;
    feed.cut += feed.sent.length;
    feed.taken = feed.cut;
    Object.assign(feed, { isLate: true, isOut, sent: [] });
    this.#overflow(host, feed);
  }

  /** Lets a host that was late too often hold the log again. */
  again(host: string): void {
    const feed = this.#feeds.get(host);
    if (feed === undefined) return;
    feed.isOut = false;
    this.#holdAgain(host, feed);
  }

  /** Begins a new series. Pieces that an earlier series did not have are in the new one. */
  async #begin(host: string, feed: Feed, end: HostLogEnd | null): Promise<void> {
    const turn = feed.turn;
    feed.isRead = true;
    try {
      const copy = await this.#home.copy();
      if (this.#feeds.get(host) !== feed || feed.turn !== turn) return;
      this.#start(host, feed, copy, end);
    } catch (error) {
      if (this.#feeds.get(host) !== feed || feed.turn !== turn) return;
      this.#ports.failed(host, error);
      this.#overflow(host, feed);
    }
  }

  #start(host: string, feed: Feed, copy: LogCopy, end: HostLogEnd | null): void {
    const { name, epoch, released, last, hosts } = this.#home;
    // A host's log is never replaced by a shorter one (HF5).
    const through = Math.max(hosts.isAhead(host) ? last : released, this.#furthest.get(host) ?? 0);
    const copied = copy.pieces.at(-1), baseAt = copy.base?.at ?? 0;
    const copiedTo = copied === undefined ? baseAt : copied.first + copied.count - 1;
    // Pieces that came meanwhile may be in the copy, too.
    const came = [...feed.since, ...feed.waiting];
    const all = [...copy.pieces, ...came.filter(({ first }) => first > copiedTo)];
    const isIn = ({ first, count }: LogPiece) => first + count - 1 <= through;
    const start = {
      secret: this.#ports.secret,
      of: { name, receiver: host },
      epoch,
      salt: this.#ports.random(SALT_BYTES),
    };
    const goesOn = end !== null && end.through >= baseAt;
    feed.series = goesOn
      ? SealedSeries.further(start, {
        ...end,
        after: end.through,
        pieces: all.filter((piece) => piece.first > end.through && isIn(piece)),
      })
      : SealedSeries.whole(start, { ...copy, pieces: all.filter(isIn) });
    const begun = feed.series.through;
    feed.waiting = all.filter(({ first }) => first > begun);
    feed.since = [];
    feed.isRead = false;
    feed.first = feed.series.first;
    const { bytes, records } = goesOn ? end : { bytes: 0, records: 0 };
    const wholeBytes = goesOn ? 0 : feed.first.length;
    Object.assign(feed, { bytes, records, wholeBytes, baseAt: goesOn ? end.baseAt : baseAt });
    if (
      feed.bytes + feed.first.length > HOST_LOG_BYTES_MAX ||
      (!goesOn && stateBytes(copy) > HOST_BASE_BYTES_MAX)
    ) {
      return this.#overflow(host, feed);
    }
    this.#ports.ready(host);
  }

  #told(host: string, feed: Feed, record: Uint8Array): Uint8Array {
    const { hosts } = this.#home;
    feed.first = null;
    feed.bytes += record.length;
    feed.records++;
    const through = feed.series?.through ?? 0;
    const { baseAt, bytes, records } = feed;
    feed.sent.push({ through, record, baseAt, bytes, records });
    this.#furthest.set(host, Math.max(through, this.#furthest.get(host) ?? 0));
    if (hosts.isAhead(host)) hosts.told(host, through);
    return record;
  }

  /**
   * Begins a new series from the newest base on. Until that is ready, or where it is too long, the feed goes on as it
   * is (HF3).
   */
  #again(host: string, feed: Feed): void {
    if (this.#isTooLong) return;
    feed.baseAt = this.#baseAt; // once for each base
    feed.turn++; // what is read for an earlier beginning is dropped
    void this.#begin(host, feed, null);
  }

  /** Lets a host hold nothing: it is told what others are, when they are (HF3). */
  #overflow(host: string, feed: Feed): void {
    Object.assign(feed, {
      isHolding: false,
      series: null,
      first: null,
      waiting: [],
      since: [],
      turn: feed.turn + 1,
    });
    this.#home.hosts.drop(host);
    this.#ports.ready(host);
  }

  /**
   * Remembers where a host's log may end: of what was sent some may not have arrived, and then the log ends where it
   * did (HF5).
   */
  #remember(host: string, { from, sent }: Feed): void {
    if (sent.length === 0) return;
    const ends = sent.map(({ record, ...end }) => ({ ...end, tag: tagOf(record).slice() })); // the record is not kept
    this.#ends.set(host, from === null ? ends : [from, ...ends]);
  }
}

/**
 * Reports whether a host's log is to begin anew from the next base on: where it has many records, only when its whole
 * record is less than half of its bytes (HF3).
 */
const isLong = ({ bytes, records, wholeBytes }: Feed): boolean =>
  bytes > HOST_LOG_BYTES_MAX / 2 || records > HOST_RECORDS_MAX / 2 ||
  (records > HOST_RECORDS_MANY && bytes > 2 * wholeBytes);

/** Takes the pieces that wait up to an entry. */
function takeUpTo(feed: Feed, reach: number): readonly LogPiece[] {
  const { waiting } = feed;
  let count = 0;
  for (const { first, count: entries } of waiting) {
    if (first + entries - 1 > reach) break;
    count++;
  }
  if (count === 0) return [];
  feed.waiting = count === waiting.length ? [] : waiting.slice(count);
  return count === waiting.length ? waiting : waiting.slice(0, count);
}

/** Bytes of a piece's head in a record, with those of the record: at most. */
const PIECE_HEAD_BYTES = 40;

const stateBytes = ({ base, parts }: LogCopy): number =>
  (base?.bytes.length ?? 0) + (base?.answers.length ?? 0) +
  parts.reduce((sum, { length }) => sum + length, 0);

const isSame = (a: Uint8Array, b: Uint8Array): boolean =>
  a.length === b.length && a.every((byte, at) => byte === b[at]);
