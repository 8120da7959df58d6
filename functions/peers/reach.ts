/**
 * Up to which entry of the log each peer may be told, where hosts hold the log (docs/protocol/hosts.md): hosts that are
 * ahead as soon as it is appended, with the log up to there, all others when it is released. Where no hosts do, what is
 * here is released.
 *
 * PR1  What leaves to a host leaves with all records up to there, in the frame before or in its own. Commits that come at
 *      one go leave in one record.
 * PR2  A host is asked to hold the log on each channel anew; while its feed gets ready nothing leaves to it.
 * PR3  What was recovered counts as released when it is settled; until then nobody is told that a message is in the log
 *      of which he was not told before.
 * PR4  Who does not take what he is sent is no host until he does: nobody waits for him.
 * PR5  Who leaves is told that it has left when it is off the record: it drops what it holds then, and an opening would
 *      wait for it for ever.
 */
import { HOSTS_MAX } from "../homes/host_owners.ts";
import type { HomePeer } from "./home_peer.ts";
import { RECORDS_MS, TAKEN_LATE_MS } from "./limits.ts";
import type { LoggedPeers, PeerClock, PeerFeeds } from "./ports.ts";

/** See the file's header. */
export class Reach {
  readonly #clock: PeerClock;
  #feeds: PeerFeeds | null = null;
  #released = 0;
  #last = 0;
  /** Those that have a feed. */
  readonly #hosts = new Set<HomePeer>();
  /** Others that something waits for. */
  readonly #waiting = new Set<HomePeer>();
  #cancelRecords: (() => void) | null = null;
  /** PR4: the record that each lacked when that was last looked at. */
  readonly #lacked = new Map<HomePeer, number>();
  #cancelLook: (() => void) | null = null;
  #isFlushing = false;
  /** Gone, and on record (PR5). */
  readonly #leaving = new Map<string, () => void>();

  constructor(clock: PeerClock) {
    this.#clock = clock;
  }

  /** PR3 */
  get isSettled(): boolean {
    return this.#feeds === null || this.#released >= this.#last;
  }

  /** What was recovered is of entries up to here. */
  get last(): number {
    return this.#last;
  }

  /** @param ahead left out: hosts hold none of it, or do no longer. */
  begin(ahead: LoggedPeers["ahead"]): void {
    if (ahead === undefined) return this.#end();
    this.#feeds = ahead.feeds;
    this.#last = ahead.last;
    this.#released = Math.max(this.#released, ahead.released);
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
    if (this.#hosts.has(peer) || this.#hosts.size >= HOSTS_MAX) return;
    this.#hosts.add(peer);
    feeds.attach(peer.peer.id, null); // where its log ends it said too long ago
  }

  /** The home is over. */
  close(): void {
    this.#cancelRecords?.();
    this.#cancelRecords = null;
    this.#cancelLook?.();
    this.#cancelLook = null;
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
    this.#lacked.delete(peer); // its records are those of this channel
    const mayHold = this.#hosts.has(peer) || this.#hosts.size < HOSTS_MAX;
    if (feeds === null || log === null || !mayHold) this.lost(peer);
    else {
      this.#hosts.add(peer);
      feeds.attach(peer.peer.id, log.tag);
    }
    this.flush(peer);
  }

  /** It has no channel. */
  lost(peer: HomePeer): void {
    this.#lacked.delete(peer);
    if (this.#hosts.delete(peer)) this.#feeds?.detach(peer.peer.id);
  }

  /** It is no peer any more. */
  gone(peer: HomePeer): void {
    this.#lacked.delete(peer);
    this.#hosts.delete(peer);
    this.#waiting.delete(peer);
    this.#feeds?.forget(peer.peer.id);
  }

  /** PR5: does something as soon as nobody would wait for one that is gone. */
  whenFree(id: string, run: () => void): void {
    if (this.#feeds?.isAwaited(id) === true) this.#leaving.set(id, run);
    else run();
  }

  /** Other hosts are on record, or ready to be told. */
  hostsChanged(): void {
    for (const [id, run] of this.#leaving) {
      if (this.#feeds?.isAwaited(id) === true) continue;
      this.#leaving.delete(id);
      run();
    }
    this.flushHosts();
  }

  taken(peer: HomePeer, records: number): void {
    const feeds = this.#feeds, { id } = peer.peer;
    if (feeds === null || !this.#hosts.has(peer)) return;
    const before = feeds.reach(id);
    feeds.taken(id, records);
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
      if (this.#lacked.size > 0) this.#lookLater(feeds);
    });
  }

  #look(feeds: PeerFeeds, peer: HomePeer): void {
    const { id } = peer.peer, lacks = feeds.untaken(id), before = this.#lacked.get(peer);
    if (lacks > 0 && lacks !== before) return void this.#lacked.set(peer, lacks);
    this.#lacked.delete(peer);
    if (lacks > 0) feeds.late(id);
  }
}
