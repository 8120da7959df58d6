/**
 * Reach of each peer: the entry of the log up to which it may be told, where hosts hold the log
 * (docs/protocol/hosts.md). Hosts that are ahead are told what follows from an entry as soon as that is appended, with
 * the log up to there, all others when it is released. Where no hosts hold the log, what is here is released.
 *
 * PR1  An output leaves to a host with all records up to its entry, in the frame before or in its own. Commits that
 *      come at one go leave in one record.
 * PR2  A host is asked to hold the log on each channel anew; while its feed gets ready nothing leaves to it.
 * PR3  What was recovered is released before any peer is told a thing of it: it is at all owners, and at the hosts on
 *      record where others wait for these.
 * PR4  A host that does not take what it is sent, each record in its time, is none until it does: nobody waits for it,
 *      and what is kept of records that are on their way is bounded. One that is late again is no host for a while
 *      (tardy_hosts.ts).
 * PR5  A host that leaves is told that it has left when it is off the record: it drops what it holds then, and an
 *      opening would wait for it for ever. The same goes for a program that says to be a peer on record and can't go on
 *      as it; that one hears it also once another program has shown to hold that peer's log. Hosts are on record for a
 *      while after the class has said that they hold the log no longer: until then this goes for them, too.
 */
import { HOSTS_MAX } from "../log/host_owners.ts";
import type { HomePeer } from "./home_peer.ts";
import { RECORDS_MS, TAKEN_LATE_MS } from "./limits.ts";
import type { HostsOnRecord, LoggedPeers, PeerClock, PeerFeeds } from "./ports.ts";
import type { TardyHosts } from "./tardy_hosts.ts";

/** Reach of a session's peers (see the file's header). */
export class Reach {
  readonly #clock: PeerClock;
  #feeds: PeerFeeds | null = null;
  #onRecord: HostsOnRecord | null = null;
  #released = 0;
  /** Peers that have a feed: hosts. */
  readonly #hosts = new Set<HomePeer>();
  /** Other peers that something waits for. */
  readonly #waiting = new Set<HomePeer>();
  #cancelRecords: (() => void) | null = null;
  /** Last record that each host had been sent, and lacked, when that was last looked at (PR4). */
  readonly #due = new Map<HomePeer, number>();
  #cancelLook: (() => void) | null = null;
  readonly #tardy: TardyHosts;
  /** Peers that may be hosts again after a while, with what ends the wait. */
  readonly #out = new Map<HomePeer, () => void>();
  #isFlushing = false;
  /** Words for hosts that have gone and are on record, by id (PR5). */
  readonly #leaving = new Map<string, () => void>();

  constructor(clock: PeerClock, tardy: TardyHosts) {
    this.#clock = clock;
    this.#tardy = tardy;
  }

  /**
   * Takes the feeds of a session that was opened.
   *
   * @param ahead left out: hosts hold none of the log, or do no longer.
   * @param onRecord left out: the feeds know who is on record, and without feeds nobody is.
   */
  begin(ahead: LoggedPeers["ahead"], onRecord: HostsOnRecord | null = ahead?.feeds ?? null): void {
    this.#onRecord = onRecord;
    if (ahead === undefined) return this.#end();
    this.#feeds = ahead.feeds;
    this.#released = Math.max(this.#released, ahead.released); // PR3
  }

  /**
   * Notes that all channels that waited were greeted: a host that was asked and is not there is none until it is asked
   * again.
   */
  begun(asked: readonly string[]): void {
    const here = new Set([...this.#hosts].map(({ peer }) => peer.id));
    for (const host of asked) if (!here.has(host)) this.#feeds?.detach(host);
  }

  /** Ends all feeds: the class is another now, and all that there is is released. */
  #end(): void {
    const told = [...this.#hosts, ...this.#waiting];
    for (const peer of this.#hosts) this.lost(peer);
    this.#waiting.clear();
    this.#feeds = null;
    for (const peer of told) this.flush(peer);
  }

  /** Asks a peer to hold the log whose channel was there before: other hosts hold it already, or begin to. */
  joins(peer: HomePeer): void {
    const { line } = peer, feeds = this.#feeds;
    if (feeds === null || line?.isWelcomed !== true || line.log === null) return;
    if (this.#hosts.has(peer) || this.#hosts.size >= HOSTS_MAX || this.#isOut(peer)) return;
    this.#hosts.add(peer);
    this.#tardy.begins(peer.peer.id);
    feeds.attach(peer.peer.id, null); // where its log ends it said too long ago
  }

  /** Reports whether a peer is to be no host until it is asked again to be one (PR4). */
  #isOut(peer: HomePeer): boolean {
    const { id } = peer.peer, outMs = this.#tardy.outMs(id);
    if (outMs <= 0) return false;
    this.#out.get(peer)?.();
    const again = () => {
      this.#out.delete(peer);
      if (this.#isOut(peer)) return;
      if (this.#hosts.has(peer)) this.#feeds?.again(id);
      else this.joins(peer);
    };
    this.#out.set(peer, this.#clock.after(outMs, again));
    return true;
  }

  #notOut(peer: HomePeer): void {
    this.#out.get(peer)?.();
    this.#out.delete(peer);
  }

  /** Ends it with the home. */
  close(): void {
    this.#cancelRecords?.();
    this.#cancelRecords = null;
    this.#cancelLook?.();
    this.#cancelLook = null;
    for (const peer of [...this.#out.keys()]) this.#notOut(peer);
  }

  /** Notes that all up to an entry is released, and what of that goes to the store is there. */
  released(entry: number): void {
    if (this.#feeds === null || entry <= this.#released) return;
    this.#released = entry;
    for (const peer of this.#waiting) this.flush(peer);
    this.flushHosts();
  }

  /** Begins to feed a peer that was welcomed (PR2). */
  greeted(peer: HomePeer): void {
    const log = peer.line?.log ?? null, feeds = this.#feeds;
    this.#due.delete(peer); // its records are those of this channel
    const mayHold = this.#hosts.has(peer) || this.#hosts.size < HOSTS_MAX;
    if (feeds === null || log === null || !mayHold || this.#isOut(peer)) this.lost(peer);
    else {
      this.#hosts.add(peer);
      this.#tardy.begins(peer.peer.id);
      feeds.attach(peer.peer.id, log.tag);
    }
    this.flush(peer);
  }

  /** Notes that a peer has no channel. */
  lost(peer: HomePeer): void {
    this.#due.delete(peer);
    if (this.#hosts.delete(peer)) this.#feeds?.detach(peer.peer.id);
  }

  /** Notes that a peer is none any more. */
  gone(peer: HomePeer): void {
    this.#due.delete(peer);
    this.#notOut(peer);
    this.#tardy.gone(peer.peer.id);
    this.#hosts.delete(peer);
    this.#waiting.delete(peer);
    this.#feeds?.forget(peer.peer.id);
  }

  /** Reports whether an opening would wait for a host (PR5). */
  isAwaited(id: string): boolean {
    return this.#onRecord?.isAwaited(id) === true;
  }

  /** Runs something as soon as no opening would wait for a host that is gone (PR5). */
  whenFree(id: string, run: () => void): void {
    if (this.isAwaited(id)) this.#leaving.set(id, run);
    else run();
  }

  /** Notes that other hosts are on record, or ready to be told. */
  hostsChanged(): void {
    for (const id of [...this.#leaving.keys()]) if (!this.isAwaited(id)) this.#free(id);
    this.flushHosts();
  }

  #free(id: string): void {
    const run = this.#leaving.get(id);
    this.#leaving.delete(id);
    run?.();
  }

  taken(peer: HomePeer, records: number): void {
    const feeds = this.#feeds, { id } = peer.peer;
    if (feeds === null || !this.#hosts.has(peer)) return;
    const before = feeds.reach(id);
    feeds.taken(id, records);
    this.#free(id);
    // A host that was on record before it came back is ahead as soon as it counts.
    if (feeds.reach(id) !== before) this.flush(peer);
  }

  /** Tells a peer all that it may be told. */
  flush(peer: HomePeer): void {
    const feeds = this.#feeds;
    if (feeds === null) return peer.flush(Infinity);
    if (this.#hosts.has(peer)) {
      if (peer.hasDue(feeds.reach(peer.peer.id))) this.#flushHost(feeds, peer);
      else this.#recordsSoon();
      return;
    }
    peer.flush(this.#released);
    if (peer.isToldAll) this.#waiting.delete(peer);
    else this.#waiting.add(peer);
  }

  /** Tells hosts of what was appended, when all has been that is at hand (PR1). */
  flushSoon(): void {
    if (this.#isFlushing) return;
    this.#isFlushing = true;
    queueMicrotask(() => {
      this.#isFlushing = false;
      this.flushHosts();
    });
  }

  /** Tells hosts what they may be told now and were not told before. */
  flushHosts(): void {
    for (const peer of this.#hosts) this.flush(peer);
  }

  /** Sends a host records, and outputs with them (PR1). */
  #flushHost(feeds: PeerFeeds, peer: HomePeer): void {
    const { id } = peer.peer;
    const before = feeds.reach(id);
    if (before < 0) return;
    const records = feeds.next(id);
    if (records.length > 0) this.#lookLater(feeds);
    // The log may have become too long to be held there.
    peer.flush(Math.min(before, feeds.reach(id)), records);
  }

  #recordsSoon(): void {
    const feeds = this.#feeds;
    if (feeds === null || this.#hosts.size === 0) return;
    this.#cancelRecords ??= this.#clock.after(RECORDS_MS, () => {
      this.#cancelRecords = null;
      for (const peer of this.#hosts) this.#flushHost(feeds, peer);
    });
  }

  /** Looks later whether hosts have taken what they were sent (PR4). */
  #lookLater(feeds: PeerFeeds): void {
    this.#cancelLook ??= this.#clock.after(TAKEN_LATE_MS, () => {
      this.#cancelLook = null;
      for (const peer of [...this.#hosts]) this.#look(feeds, peer);
      if (this.#due.size > 0) this.#lookLater(feeds);
    });
  }

  #look(feeds: PeerFeeds, peer: HomePeer): void {
    const { id } = peer.peer, lacks = feeds.untaken(id), due = this.#due.get(peer) ?? 0;
    if (lacks > due) return void this.#due.set(peer, feeds.sent(id));
    this.#due.delete(peer);
    if (lacks === 0) return;
    this.#tardy.late(id);
    feeds.late(id, this.#isOut(peer));
  }
}
