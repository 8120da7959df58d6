/**
 * The talk between sites that share tuples: what each still has to tell whom, in packets that are sent again until
 * there is a receipt.
 *
 * Life of a peer: first shared tuple → greeted, and its answer heard to the end: reconciled → suspected, or a new
 * process of it: greeted again → … → nothing shared any more: not watched.
 *
 * X1  A peer is reconciled when all that it knew of shared tuples has come since this process began, since it was last
 *     suspected, and since its own process began.
 * X2  A packet tells what the disk has as of the freeze that made it; only new tuples that nobody counts on yet go
 *     earlier. A receipt says that its entries are on disk.
 * X3  What a process said to, or of, another process of a site is void.
 * X4  A packet that comes after a later one is dropped, and told again without it: what it says may be over.
 * X5  A peer that this site must hear, since this site was away for longer than it had said, is not settled by being
 *     suspected: only by what it tells, or by leaving the tree.
 * X6  Of a peer that said that it stops this site knows whether the peer had told all up to then: else it may have
 *     adopted tuples of which this process never heard (tuples.ts O8). A peer that was silent before it said so has
 *     not told all, even if it was silent only for so long that it may have taken this site for dead meanwhile: two
 *     that lose each other do not find it out at once. That a site is heard does not show that it hears: where a link
 *     loses one way only, until who hears nothing ends it (runtime/link: 5 s), the peer may have adopted, and not
 *     told, what this site acts on as well: a living site was taken for dead then, and no more follows from it than O3
 *     has. This is known of one stop, which is named by the time of return. The disk has it for the next process,
 *     which believes it once nothing has come from that peer for as long as silence takes to be noticed: the peer may
 *     be back, and this site may not have been there to hear that.
 */
import {
  OWNER_FULL_MS,
  OWNER_WINDOW_BYTES,
  PACKET_RETRY_MS,
  PACKET_RETRY_MS_MAX,
  PROBE_MS,
  TUPLE_PACKET_BYTES_TARGET,
} from "../model/limits.ts";
import type { SiteId } from "../model/ports.ts";
import {
  encodeTuplePacket,
  type Entry,
  entryBytes,
  type Receipt,
  type TupleId,
  type TuplePacket,
} from "./packet.ts";
import { SlotSet } from "./slot_set.ts";
import { compareEntry, entryOf, type Roster, type Tuple, type TupleSlot } from "./tuple.ts";
import type { TupleTable } from "./tuple_table.ts";

/**
 * Outcome of merging an entry. `older`: this site's version is told in return; `missing`: this site has no payload for
 * it.
 */
export type Merged = "taken" | "same" | "older" | "missing" | "full";

export interface TupleExchangePorts {
  readonly boot: number;
  readonly nowMs: () => number;
  readonly send: (to: SiteId, packet: Uint8Array) => Promise<void>;
  readonly watch: (site: SiteId) => () => void;
  readonly isLost: (site: SiteId) => boolean;
  /** Time at which a site that said that it stops will be back; null once that time is over, or the site is back. */
  readonly awaitedUntilMs: (site: SiteId) => number | null;
  /** Reports whether a site was heard so lately that it can't have taken this site for dead. */
  readonly isInTouch: (site: SiteId) => boolean;
  /** Returns how long a site is silent before it is suspected, as it is configured now. */
  readonly suspectMs: () => number;
  /** Called with the time that an exchange with a site took. */
  readonly measured: (site: SiteId, ms: number) => void;
  readonly count: (name: string, by?: number) => void;
  readonly wake: () => void;
  readonly table: TupleTable;
  readonly merge: (entry: Entry, from: SiteId) => Merged;
  /** Called where a site has a version on its disk. */
  readonly acked: (tuple: Tuple, site: SiteId) => void;
  readonly forget: (id: TupleId) => void;
  /** Called where a site does not have a payload. */
  readonly lacks: (tuple: Tuple, site: SiteId) => void;
  /** Called where a site named a tuple as it is here: the site's disk has that. */
  readonly agreed: (id: TupleId, site: SiteId) => void;
  /** Called where a site is another process now: a receipt that it gave may be worth nothing. */
  readonly restarted: (site: SiteId) => void;
  /**
   * Called once X1 has come true: what was shared when the site was greeted, and it did not name, may be lost there.
   * Also called where X6 is believed.
   */
  readonly reconciled: (site: SiteId) => void;
  /** Called where a site that will be back at a time has told all (X6): the next process is to know it. */
  readonly toldAll: (site: SiteId, untilMs: number) => void;
  /** Called once all sites that had to be heard were (X5). */
  readonly heardAll: () => void;
  /** Called where a site has no room for tuples, or does not take them for another reason. */
  readonly refused: (tuples: readonly Tuple[], site: SiteId) => void;
}

/** Number of slots that one step looks at for an answer: a millisecond. */
const LISTED_SLOTS = 50_000;
/** Number of entries in one packet of an answer: some 30 bytes each make a quarter of a megabyte. */
const LISTED_AT_ONCE = 8_000;

interface Flight {
  readonly sentMs: number;
  readonly bytes: number;
  readonly told: readonly Entry[];
  /** True for a part of an answer: a peer that wants it asks again. */
  readonly isListed: boolean;
}

interface Peer {
  readonly site: SiteId;
  boot: number;
  /** Number of the peer's last packet that was taken. */
  heardSeq: number;
  reconciled: boolean;
  /** Time of return that names the stop before which the peer had told all (X6). */
  toldUntilMs: number | null;
  /** Time of return of such a stop, as an earlier process of this site knew it, and this one does not believe yet. */
  rememberedUntilMs: number | null;
  greeting: number;
  greetedMs: number;
  isGreetingDue: boolean;
  /** Number of tuples that are shared with the peer. */
  shared: number;
  /** Tuples that the peer has named since it was greeted, or has as they are here, or that have come here since. */
  readonly named: SlotSet;
  /** Tuples that the peer is to be told; true: with the payload. */
  readonly due: Map<TupleId, boolean>;
  /** Part of the answer to the peer's greeting that is left to send. */
  answer: { readonly greeting: number; next: TupleSlot; parts: number } | null;
  /**
   * Number of parts that have come of the peer's answer to this site's greeting; `listedMs` is when the last one did.
   */
  listed: number;
  listedMs: number;
  /** Time without a part after which the peer is asked again; longer each time. */
  askMs: number;
  readonly flights: Map<number, Flight>;
  flyingBytes: number;
  /**
   * Time without a receipt after which packets are sent again; longer each time, so that a slow link is not filled with
   * the same packets again and again.
   */
  retryMs: number;
  receipts: Receipt[];
  missing: TupleId[];
  forget: TupleId[];
  fullUntilMs: number;
  saidMs: number;
  unwatch: (() => void) | null;
}

/** The packets of one freeze (X2). */
export interface Outgoing {
  /** Sends the packets that may go before the commit. */
  early(): void;
  /** Sends the packets that have to wait for the commit. */
  late(): void;
}

type Body = Partial<Omit<TuplePacket, "boot" | "to" | "seq">>;

export class TupleExchange {
  readonly #ports: TupleExchangePorts;
  readonly #peers = new Map<SiteId, Peer>();
  #seq = 0;
  #greetings = 0;
  /** Sites that have to be heard yet (X5). */
  readonly #unheard = new Set<SiteId>();
  readonly #begunMs: number;

  constructor(ports: TupleExchangePorts) {
    this.#ports = ports;
    this.#begunMs = ports.nowMs();
  }

  /** Reports whether a site has nothing to say that is not known here, or nobody can say what it knows (X1). */
  isSettled(site: SiteId): boolean {
    if (this.#unheard.has(site)) return false;
    return this.#ports.isLost(site) || this.#peer(site).reconciled;
  }

  /** Reports whether a site had told all before the stop that it announced last (X6). */
  hadToldAll(site: SiteId): boolean {
    const untilMs = this.#stopOf(site);
    return untilMs !== null && this.#peers.get(site)?.toldUntilMs === untilMs;
  }

  /** Notes that an earlier process of this site knew that a site had told all before that stop (X6). */
  remember(site: SiteId, untilMs: number): void {
    this.#peer(site).rememberedUntilMs = untilMs;
  }

  /** Requires that all sites with which something is shared are heard (X5). */
  mustHear(): void {
    for (const site of this.sites()) this.#unheard.add(site);
    if (this.#unheard.size === 0) this.#ports.heardAll();
  }

  /** Notes that a site has told all, or never will. */
  heard(site: SiteId): void {
    if (this.#unheard.delete(site) && this.#unheard.size === 0) this.#ports.heardAll();
  }

  /** Sites that have to be heard yet (X5). */
  get unheard(): ReadonlySet<SiteId> {
    return this.#unheard;
  }

  /** Sites with which something is shared. */
  sites(): SiteId[] {
    return [...this.#peers.values()].filter(({ shared }) => shared > 0).map(({ site }) => site);
  }

  isFull(site: SiteId): boolean {
    return (this.#peers.get(site)?.fullUntilMs ?? 0) > this.#ports.nowMs();
  }

  /** Reports whether a tuple is one that a site should have named, and did not. */
  isUnnamed(site: SiteId, slot: TupleSlot): boolean {
    const peer = this.#peers.get(site);
    return peer?.reconciled === true && !peer.named.has(slot);
  }

  /** Notes that a tuple has come here: nobody can have been asked for it. */
  begins(slot: TupleSlot): void {
    for (const peer of this.#peers.values()) peer.named.add(slot);
  }

  /** Counts one shared tuple more for each of these sites. */
  share(sites: readonly SiteId[]): void {
    for (const site of sites) {
      const peer = this.#peer(site);
      peer.shared++;
      if (peer.unwatch !== null) continue;
      peer.unwatch = this.#ports.watch(site);
      this.#greet(peer);
    }
  }

  /** Counts one shared tuple less for each of these sites. */
  unshare(id: TupleId, sites: readonly SiteId[]): void {
    for (const site of sites) {
      const peer = this.#peer(site);
      peer.shared--;
      if (peer.shared < 0) throw new Error(`less than nothing is shared with ${site}`);
      peer.due.delete(id);
      if (peer.shared > 0) continue;
      peer.unwatch?.();
      peer.unwatch = null;
      peer.reconciled = peer.isGreetingDue = false;
      peer.toldUntilMs = null;
    }
  }

  /** Queues a tuple for a site; a lost site is told all that it lacks when it is back. */
  tell(site: SiteId, id: TupleId, withPayload: boolean): void {
    if (this.#ports.isLost(site)) return;
    const { due } = this.#peer(site);
    due.set(id, withPayload || due.get(id) === true);
    this.#ports.wake();
  }

  /** Queues for sites the word that everybody knows a tuple's end. */
  tellForget(id: TupleId, sites: readonly SiteId[]): void {
    for (const site of sites) this.#peer(site).forget.push(id);
    this.#ports.wake();
  }

  /** Takes the news that a site is suspected (X1): what flies is told again when it is back. */
  lost(site: SiteId): void {
    const peer = this.#peers.get(site);
    if (peer === undefined) return;
    this.#noteTold(peer);
    peer.reconciled = peer.isGreetingDue = false;
    peer.askMs = PACKET_RETRY_MS;
    peer.answer = null;
    this.#recall(peer);
    peer.due.clear();
  }

  /** Asks a site to tell all it knows, again. */
  ask(site: SiteId): void {
    const peer = this.#peers.get(site);
    if (peer === undefined) return;
    if (!this.#ports.isLost(site)) peer.toldUntilMs = null;
    if (peer.shared === 0 || (peer.isGreetingDue && !peer.reconciled)) return;
    peer.reconciled = false;
    this.#greet(peer);
  }

  /**
   * Sends again what has no receipt, greets again peers that do not answer, and finds out which are another process.
   */
  tick(): void {
    const nowMs = this.#ports.nowMs(), suspectMs = this.#ports.suspectMs();
    for (const peer of this.#peers.values()) {
      if (peer.rememberedUntilMs !== null && nowMs - this.#begunMs >= suspectMs) this.#believe(peer);
      if (this.#ports.isLost(peer.site)) continue;
      const [oldest] = peer.flights.values();
      if (oldest !== undefined && nowMs - oldest.sentMs >= peer.retryMs) {
        this.#ports.count("packets_again");
        peer.retryMs = Math.min(2 * peer.retryMs, PACKET_RETRY_MS_MAX);
        this.#recall(peer);
      }
      if (peer.shared === 0) continue;
      const isUnanswered = !peer.reconciled && nowMs - Math.max(peer.greetedMs, peer.listedMs) >= peer.askMs;
      if (isUnanswered) peer.askMs = Math.min(2 * peer.askMs, PACKET_RETRY_MS_MAX);
      if (isUnanswered || (peer.reconciled && nowMs - peer.saidMs >= PROBE_MS)) {
        this.#greet(peer, peer.reconciled);
      }
    }
  }

  /** Makes the packets that say what is to be said as of now. */
  freeze(): Outgoing {
    const early: (() => void)[] = [], late: (() => void)[] = [];
    for (const peer of this.#peers.values()) {
      // Receipts go to every peer that asked; for the rest a suspect has to be back.
      const isLost = this.#ports.isLost(peer.site);
      const parts = isLost ? [] : this.#freezeDue(peer, early);
      const { receipts, missing, forget } = peer;
      let answer: Body = { receipts, missing, forget };
      if (peer.isGreetingDue && !isLost) answer = { ...answer, greeting: this.#freezeGreeting(peer) };
      const says = receipts.length + missing.length + forget.length > 0 || answer.greeting !== undefined;
      // The answer rides with the entries, where there are some.
      const [first, ...rest] = parts.length > 0 || !says ? parts : [{ entries: [] }];
      if (first !== undefined) late.push(this.#packet(peer, { ...first, ...answer }));
      for (const part of rest) late.push(this.#packet(peer, part));
      peer.receipts = [];
      peer.missing = [];
      peer.forget = [];
    }
    return { early: () => early.forEach((send) => send()), late: () => late.forEach((send) => send()) };
  }

  received(from: SiteId, packet: TuplePacket): void {
    const peer = this.#peer(from), ports = this.#ports;
    if (packet.boot !== peer.boot) this.#rebooted(peer, packet.boot);
    // X4
    if (packet.seq !== 0 && packet.seq <= peer.heardSeq) return ports.count("packets_stale");
    peer.heardSeq = Math.max(peer.heardSeq, packet.seq);
    const isToUs = packet.to === ports.boot; // X3
    if (packet.greeting !== 0) peer.answer = { greeting: packet.greeting, next: 0, parts: 0 };
    let full = false;
    for (const entry of packet.entries) {
      const merged = ports.merge(entry, from);
      const slot = ports.table.peek(entry.id)?.slot;
      if (slot !== undefined) peer.named.add(slot);
      if (merged === "same") ports.agreed(entry.id, from);
      else if (merged === "older") this.tell(from, entry.id, false);
      else if (merged === "missing") peer.missing.push(entry.id);
      else if (merged === "full") full = true;
    }
    if (isToUs && packet.list !== 0 && packet.list === peer.greeting && !peer.reconciled) {
      this.#listed(peer, packet);
    }
    if (isToUs) this.#receipts(peer, packet);
    for (const id of packet.forget) ports.forget(id);
    if (packet.seq !== 0) peer.receipts.push({ seq: packet.seq, full });
    ports.wake();
  }

  /** Takes a part of the answer to a greeting: all parts together reconcile the peer (X1). */
  #listed(peer: Peer, { part, isListEnd }: TuplePacket): void {
    if (part !== peer.listed + 1) {
      this.#ports.count("lists_broken");
      return this.#greet(peer);
    }
    peer.listed = part;
    peer.listedMs = this.#ports.nowMs();
    if (!isListEnd) return;
    peer.reconciled = true;
    this.#noteTold(peer);
    peer.askMs = PACKET_RETRY_MS;
    this.#ports.reconciled(peer.site);
    this.heard(peer.site);
  }

  /** A site's time of return in whole milliseconds, as the disk has it. */
  #stopOf(site: SiteId): number | null {
    const untilMs = this.#ports.awaitedUntilMs(site);
    return untilMs === null ? null : Math.ceil(untilMs);
  }

  /** Notes that a peer which has said that it stops has told all (X6). */
  #noteTold(peer: Peer): void {
    const untilMs = this.#stopOf(peer.site);
    if (untilMs === null || !peer.reconciled || peer.toldUntilMs === untilMs) return;
    if (!this.#ports.isInTouch(peer.site)) return;
    peer.toldUntilMs = untilMs;
    this.#ports.toldAll(peer.site, untilMs);
  }

  /** Believes what an earlier process knew: nothing has come from the peer, which is still away (X6). */
  #believe(peer: Peer): void {
    peer.toldUntilMs = peer.rememberedUntilMs;
    peer.rememberedUntilMs = null;
    this.#ports.reconciled(peer.site);
  }

  #peer(site: SiteId): Peer {
    let peer = this.#peers.get(site);
    if (peer === undefined) {
      peer = {
        site,
        boot: 0,
        heardSeq: 0,
        reconciled: false,
        toldUntilMs: null,
        rememberedUntilMs: null,
        greeting: 0,
        greetedMs: -Infinity,
        isGreetingDue: false,
        shared: 0,
        named: new SlotSet(),
        due: new Map(),
        answer: null,
        listed: 0,
        listedMs: -Infinity,
        askMs: PACKET_RETRY_MS,
        flights: new Map(),
        flyingBytes: 0,
        retryMs: PACKET_RETRY_MS,
        receipts: [],
        missing: [],
        forget: [],
        fullUntilMs: 0,
        saidMs: -Infinity,
        unwatch: null,
      };
      this.#peers.set(site, peer);
    }
    return peer;
  }

  /** Asks a peer for all it knows, or, as a probe, only whether it is the same process still. */
  #greet(peer: Peer, isProbe = false): void {
    peer.isGreetingDue = true;
    if (!isProbe) peer.greeting = ++this.#greetings;
    this.#ports.wake();
  }

  #rebooted(peer: Peer, boot: number): void {
    const isFirst = peer.boot === 0;
    peer.boot = boot;
    peer.heardSeq = 0;
    peer.toldUntilMs = peer.rememberedUntilMs = null;
    if (isFirst) return;
    peer.reconciled = false;
    peer.answer = null;
    this.#recall(peer);
    this.#ports.restarted(peer.site);
    if (peer.shared > 0) this.#greet(peer);
  }

  /** Queues again all that flies to a peer. */
  #recall(peer: Peer): void {
    for (const { told, isListed } of peer.flights.values()) {
      if (isListed) continue;
      for (const entry of told) {
        if (this.#ports.table.peek(entry.id)?.unacked.includes(peer.site) === true) {
          peer.due.set(entry.id, entry.content !== null || peer.due.get(entry.id) === true);
        }
      }
    }
    peer.flights.clear();
    peer.flyingBytes = 0;
    this.#ports.wake();
  }

  #receipts(peer: Peer, { receipts, missing }: TuplePacket): void {
    const lacks = new Set(missing), { table } = this.#ports;
    for (const { seq, full } of receipts) {
      const flight = peer.flights.get(seq);
      if (flight === undefined) continue;
      peer.flights.delete(seq);
      peer.flyingBytes -= flight.bytes;
      peer.retryMs = PACKET_RETRY_MS;
      this.#ports.measured(peer.site, this.#ports.nowMs() - flight.sentMs);
      const refused: Tuple[] = [];
      for (const entry of flight.told) {
        const view = table.peek(entry.id);
        if (view === undefined || compareEntry(entry, view) !== 0) continue;
        const isLacking = lacks.has(entry.id) && entry.mark !== null && entry.content === null;
        // A peer owes nothing for a tuple that was only listed: that tuple stays at rest.
        if (!isLacking && !view.unacked.includes(peer.site)) continue;
        const tuple = table.get(entry.id);
        if (tuple === undefined) continue;
        if (isLacking) this.#ports.lacks(tuple, peer.site);
        else if (full && entry.content !== null) refused.push(tuple);
        else {
          peer.named.add(tuple.slot);
          this.#ports.acked(tuple, peer.site);
        }
      }
      if (refused.length === 0) continue;
      peer.fullUntilMs = this.#ports.nowMs() + OWNER_FULL_MS;
      this.#ports.refused(refused, peer.site);
    }
  }

  /** Makes packets of what is due, as far as there is room for it (`OWNER_WINDOW_BYTES`): new tuples go early. */
  #freezeDue(peer: Peer, early: (() => void)[]): Body[] {
    const { table } = this.#ports;
    let flyingBytes = peer.flyingBytes;
    const fresh: Entry[] = [], known: Entry[] = [];
    for (const [id, withPayload] of peer.due) {
      if (flyingBytes > OWNER_WINDOW_BYTES) break;
      peer.due.delete(id);
      const tuple = table.get(id);
      if (tuple === undefined) continue;
      const entry = entryOf(id, tuple, withPayload ? tuple.payload : null);
      flyingBytes += entryBytes(entry);
      (tuple.held || tuple.gone ? known : fresh).push(entry); // X2
    }
    for (const entries of cut(fresh)) early.push(this.#packet(peer, { entries }));
    const parts: Body[] = [...cut(known)].map((entries) => ({ entries }));
    for (const part of this.#freezeAnswer(peer, OWNER_WINDOW_BYTES - flyingBytes)) parts.push(part);
    return parts;
  }

  /** Makes the next parts of the answer to a peer's greeting; the rest waits for receipts, and for other work. */
  #freezeAnswer(peer: Peer, room: number): Body[] {
    const { table } = this.#ports, { answer, site } = peer;
    const parts: Body[] = [];
    for (let slots = 0; answer !== null && peer.answer !== null && room >= 0 && slots < LISTED_SLOTS;) {
      const entries: Entry[] = [];
      const visit = (id: TupleId) => {
        const view = table.peek(id);
        if (view !== undefined) entries.push(entryOf(id, view));
      };
      const from = answer.next;
      const most = { slots: LISTED_SLOTS - slots, tuples: LISTED_AT_ONCE };
      answer.next = table.walk(from, most, { wants: (roster) => mayHave(roster, site), visit });
      slots += answer.next - from;
      room -= entries.reduce((bytes, entry) => bytes + entryBytes(entry), 0);
      const isListEnd = answer.next >= table.end;
      if (isListEnd || entries.length > 0) {
        parts.push({ list: answer.greeting, part: ++answer.parts, isListEnd, entries });
      }
      if (isListEnd) peer.answer = null;
    }
    if (peer.answer !== null && room >= 0) this.#ports.wake();
    return parts;
  }

  /** Returns the number of the greeting; 0 for a probe, which asks for a receipt only. */
  #freezeGreeting(peer: Peer): number {
    peer.isGreetingDue = false;
    peer.greetedMs = this.#ports.nowMs();
    if (peer.reconciled) return 0;
    peer.named.clear();
    peer.listed = 0;
    return peer.greeting;
  }

  /** Makes a packet as of now; the result sends it. Every packet but a mere answer asks for a receipt. */
  #packet(peer: Peer, body: Body): () => void {
    const ports = this.#ports;
    const { entries = [] } = body;
    const isAnswer = entries.length === 0 && body.greeting === undefined && body.list === undefined;
    const seq = isAnswer ? 0 : ++this.#seq;
    const bytes = encodeTuplePacket({
      greeting: 0,
      list: 0,
      part: 0,
      isListEnd: false,
      receipts: [],
      missing: [],
      forget: [],
      entries,
      ...body,
      boot: ports.boot,
      to: peer.boot,
      seq,
    });
    const nowMs = peer.saidMs = ports.nowMs();
    if (seq !== 0) {
      peer.flights.set(seq, {
        sentMs: nowMs,
        bytes: bytes.length,
        told: entries,
        isListed: body.list !== undefined,
      });
      peer.flyingBytes += bytes.length;
    }
    ports.count("packets");
    ports.count("packet_bytes", bytes.length);
    // A link that is down drops the packet; its entries are told again then.
    return () => void ports.send(peer.site, bytes).catch(() => {});
  }
}

/** Reports whether a site is one of those that may have a tuple. */
export const mayHave = ({ owners, former }: Roster, site: SiteId): boolean =>
  owners.includes(site) || former.includes(site);

function* cut(entries: readonly Entry[]): Generator<Entry[]> {
  let part: Entry[] = [], bytes = 0;
  for (const entry of entries) {
    part.push(entry);
    bytes += entryBytes(entry);
    if (bytes < TUPLE_PACKET_BYTES_TARGET) continue;
    yield part;
    part = [];
    bytes = 0;
  }
  if (part.length > 0) yield part;
}
