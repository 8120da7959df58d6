/**
 * Up to which entry of the log each peer may be told, where hosts hold the log (docs/protocol/hosts.md): hosts that are
 * ahead as soon as it is appended, with the log up to there, all others when it is released. Where no hosts do, what is
 * here is released.
 *
 * PR1  What leaves to a host leaves with all records up to there, in the frame before or in its own. Commits that come at
 *      one go leave in one record.
 * PR2  A host is asked to hold the log on each channel anew; while its feed gets ready nothing leaves to it.
 * PR3  What was recovered is released before anybody is told a thing of it: it is at all owners, and at the hosts on
 *      record where others wait for these.
 * PR4  Who does not take what he is sent, each record in its time, is no host until he does: nobody waits for him, and
 *      what is kept of records that are on their way is bounded. Who does so again is none for a while (tardy_hosts.ts).
 * PR5  Who leaves is told that it has left when it is off the record: it drops what it holds then, and an opening would
 *      wait for it for ever. So is who says to be a peer on record, and can't go on as it; or when another program has
 *      shown to hold that peer's log.
 */
import { HOSTS_MAX } from "../log/host_owners.ts";
import type { HomePeer } from "./home_peer.ts";
import { RECORDS_MS, TAKEN_LATE_MS } from "./limits.ts";
import type { LoggedPeers, PeerClock, PeerFeeds } from "./ports.ts";
import type { TardyHosts } from "./tardy_hosts.ts";

/** See the file's header. */
export class Reach {
  readonly #clock: PeerClock;
  #feeds: PeerFeeds | null = null;
  #released = 0;
  /** Those that have a feed. */
  readonly #hosts = new Set<HomePeer>();
  /** Others that something waits for. */
  readonly #waiting = new Set<HomePeer>();
  #cancelRecords: (() => void) | null = null;
  /** PR4: the last record that each had been sent, and lacked, when that was last looked at. */
  readonly #due = new Map<HomePeer, number>();
  #cancelLook: (() => void) | null = null;
  readonly #tardy: TardyHosts;
  /** Those that may be hosts again after a while. */
  readonly #out = new Map<HomePeer, () => void>();
  #isFlushing = false;
  /** Gone, and on record (PR5). */
  readonly #leaving = new Map<string, () => void>();

  constructor(clock: PeerClock, tardy: TardyHosts) {
    this.#clock = clock;
    this.#tardy = tardy;
  }

  /** @param ahead left out: hosts hold none of it, or do no longer. */
  begin(ahead: LoggedPeers["ahead"]): void {
    if (ahead === undefined) return this.#end();
    this.#feeds = ahead.feeds;
    this.#released = Math.max(this.#released, ahead.released); // PR3
  }

  /** Those that waited were greeted: who was asked and is not there is no host for now. */
  begun(asked: readonly string[]): void {
    const here = new Set([...this.#hosts].map(({ peer }) => peer.id));
    for (const host of asked) if (!here.has(host)) this.#feeds?.detach(host);
  }

  /** Its class is another now; all that there is is released. */
  #end(): void {
    const told = [...this.#hosts, ...this.#waiting];
    for (const peer of this.#hosts) this.lost(peer);
    this.#waiting.clear();
    this.#feeds = null;
    for (const peer of told) this.flush(peer);
  }

  /** Others hold the log already, or begin to: a peer whose channel was there before is asked to. */
  joins(peer: HomePeer): void {
    const { line } = peer, feeds = this.#feeds;
    if (feeds === null || line?.isWelcomed !== true || line.log === null) return;
    if (this.#hosts.has(peer) || this.#hosts.size >= HOSTS_MAX || this.#isOut(peer)) return;
    this.#hosts.add(peer);
    this.#tardy.begins(peer.peer.id);
    feeds.attach(peer.peer.id, null); // where its log ends it said too long ago
  }

  /** PR4: whether it is to be no host for now; then it is asked again to be one, later. */
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

  /** The home is over. */
  close(): void {
    this.#cancelRecords?.();
    this.#cancelRecords = null;
    this.#cancelLook?.();
    this.#cancelLook = null;
    for (const peer of [...this.#out.keys()]) this.#notOut(peer);
  }

  /** Released up to an entry, and what of that goes to the store is there. */
  released(entry: number): void {
    if (this.#feeds === null || entry <= this.#released) return;
    this.#released = entry;
    for (const peer of this.#waiting) this.flush(peer);
    this.flushHosts();
  }

  /** It was welcomed (PR2). */
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

  /** It has no channel. */
  lost(peer: HomePeer): void {
    this.#due.delete(peer);
    if (this.#hosts.delete(peer)) this.#feeds?.detach(peer.peer.id);
  }

  /** It is no peer any more. */
  gone(peer: HomePeer): void {
    this.#due.delete(peer);
    this.#notOut(peer);
    this.#tardy.gone(peer.peer.id);
    this.#hosts.delete(peer);
    this.#waiting.delete(peer);
    this.#feeds?.forget(peer.peer.id);
  }

  /** PR5: whoever opens the session would wait for it. */
  isAwaited(id: string): boolean {
    return this.#feeds?.isAwaited(id) === true;
  }

  /** PR5: does something as soon as nobody would wait for one that is gone. */
  whenFree(id: string, run: () => void): void {
    if (this.isAwaited(id)) this.#leaving.set(id, run);
    else run();
  }

  /** Other hosts are on record, or ready to be told. */
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
    // One that was on record before it came back is ahead as soon as it counts.
    if (feeds.reach(id) !== before) this.flush(peer);
  }

  /** Tells it all that it may be told. */
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

  /** Something was appended: they hear of it when all has been that is at hand (PR1). */
  flushSoon(): void {
    if (this.#isFlushing) return;
    this.#isFlushing = true;
    queueMicrotask(() => {
      this.#isFlushing = false;
      this.flushHosts();
    });
  }

  /** They may be told what they were not before. */
  flushHosts(): void {
    for (const peer of this.#hosts) this.flush(peer);
  }

  /** PR1 */
  #flushHost(feeds: PeerFeeds, peer: HomePeer): void {
    const { id } = peer.peer;
    const before = feeds.reach(id);
    if (before < 0) return;
    const records = feeds.next(id);
    if (records.length > 0) this.#lookLater(feeds);
    // It may have become too long to be held there.
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

  /** PR4 */
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
