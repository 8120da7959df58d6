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
import type { Tuple } from "./tuple.ts";

/** What became of an entry: `older`: ours is told in return; `missing`: we have no payload for it. */
export type Merged = "taken" | "older" | "missing" | "full";

export interface TupleExchangePorts {
  readonly boot: number;
  readonly nowMs: () => number;
  readonly send: (to: SiteId, packet: Uint8Array) => Promise<void>;
  readonly watch: (site: SiteId) => () => void;
  readonly isLost: (site: SiteId) => boolean;
  /** An exchange took so long. */
  readonly measured: (site: SiteId, ms: number) => void;
  readonly count: (name: string, by?: number) => void;
  readonly wake: () => void;
  readonly tuple: (id: TupleId) => Tuple | undefined;
  readonly merge: (entry: Entry, from: SiteId) => Merged;
  /** A site has a version on its disk. */
  readonly acked: (tuple: Tuple, site: SiteId) => void;
  readonly forget: (id: TupleId) => void;
  /** A site does not have a payload. */
  readonly lacks: (tuple: Tuple, site: SiteId) => void;
  /** A site is another process now: it may have lost what it had. */
  readonly restarted: (site: SiteId) => void;
  /** X1 has come true; these were shared when it was greeted, and it did not name them. */
  readonly reconciled: (site: SiteId, unnamed: Iterable<TupleId>) => void;
  /** A site has no room for these, or does not take them for another reason. */
  readonly refused: (tuples: readonly Tuple[], site: SiteId) => void;
}

interface Flight {
  readonly sentMs: number;
  readonly bytes: number;
  readonly told: readonly Entry[];
}

interface Peer {
  readonly site: SiteId;
  boot: number;
  /** Of its last packet that was taken. */
  heardSeq: number;
  reconciled: boolean;
  greeting: number;
  greetedMs: number;
  isGreetingDue: boolean;
  readonly shared: Set<TupleId>;
  /** What was shared when it was greeted, and it has not named since. */
  unnamed: Set<TupleId>;
  /** To be told, with the payload or without. */
  readonly due: Map<TupleId, boolean>;
  /** The answer to its greeting: what is left of it. */
  answer: { readonly greeting: number; ids: TupleId[] | null } | null;
  readonly flights: Map<number, Flight>;
  flyingBytes: number;
  /** Longer each time, so that a slow link is not filled with the same again and again. */
  retryMs: number;
  receipts: Receipt[];
  missing: TupleId[];
  forget: TupleId[];
  fullUntilMs: number;
  saidMs: number;
  unwatch: (() => void) | null;
}

/** Packets of one freeze (X2). */
export interface Outgoing {
  /** Before the commit. */
  early(): void;
  /** After it. */
  late(): void;
}

type Body = Partial<Omit<TuplePacket, "boot" | "to" | "seq">>;

export class TupleExchange {
  readonly #ports: TupleExchangePorts;
  readonly #peers = new Map<SiteId, Peer>();
  #seq = 0;
  #greetings = 0;

  constructor(ports: TupleExchangePorts) {
    this.#ports = ports;
  }

  /** Whether a site has nothing to say that is not known here, or nobody can say what it knows (X1). */
  isSettled(site: SiteId): boolean {
    return this.#ports.isLost(site) || this.#peer(site).reconciled;
  }

  /** Those with whom something is shared. */
  sites(): SiteId[] {
    return [...this.#peers.values()].filter(({ shared }) => shared.size > 0).map(({ site }) => site);
  }

  isFull(site: SiteId): boolean {
    return (this.#peers.get(site)?.fullUntilMs ?? 0) > this.#ports.nowMs();
  }

  /** Ids of what is shared with a site. */
  shared(site: SiteId): TupleId[] {
    return [...this.#peers.get(site)?.shared ?? []];
  }

  /** Something is shared with these sites from now on. */
  share(id: TupleId, sites: readonly SiteId[]): void {
    for (const site of sites) {
      const peer = this.#peer(site);
      peer.shared.add(id);
      if (peer.unwatch !== null) continue;
      peer.unwatch = this.#ports.watch(site);
      this.#greet(peer);
    }
  }

  unshare(id: TupleId, sites: readonly SiteId[]): void {
    for (const site of sites) {
      const peer = this.#peers.get(site);
      peer?.shared.delete(id);
      peer?.due.delete(id);
      if (peer === undefined || peer.shared.size > 0) continue;
      peer.unwatch?.();
      peer.unwatch = null;
      peer.reconciled = peer.isGreetingDue = false;
    }
  }

  /** A site is to hear of a tuple. */
  tell(site: SiteId, id: TupleId, withPayload: boolean): void {
    const { due } = this.#peer(site);
    due.set(id, withPayload || due.get(id) === true);
    this.#ports.wake();
  }

  /** Sites are to hear that everybody knows a tuple's end. */
  tellForget(id: TupleId, sites: readonly SiteId[]): void {
    for (const site of sites) this.#peer(site).forget.push(id);
    this.#ports.wake();
  }

  /** A site is suspected (X1): what flies is told again when it is back. */
  lost(site: SiteId): void {
    const peer = this.#peers.get(site);
    if (peer === undefined) return;
    peer.reconciled = peer.isGreetingDue = false;
    peer.answer = null;
    this.#recall(peer);
  }

  /** A site is to tell all it knows, again. */
  ask(site: SiteId): void {
    const peer = this.#peers.get(site);
    if (peer === undefined || peer.shared.size === 0 || (peer.isGreetingDue && !peer.reconciled)) return;
    peer.reconciled = false;
    this.#greet(peer);
  }

  /** Sends again what has no receipt, greets again who does not answer, and finds out who is another process. */
  tick(): void {
    const nowMs = this.#ports.nowMs();
    for (const peer of this.#peers.values()) {
      if (this.#ports.isLost(peer.site)) continue;
      const [oldest] = peer.flights.values();
      if (oldest !== undefined && nowMs - oldest.sentMs >= peer.retryMs) {
        this.#ports.count("packets_again");
        peer.retryMs = Math.min(2 * peer.retryMs, PACKET_RETRY_MS_MAX);
        this.#recall(peer);
      }
      if (peer.shared.size === 0) continue;
      const isUnanswered = !peer.reconciled && nowMs - peer.greetedMs >= PACKET_RETRY_MS;
      if (isUnanswered || (peer.reconciled && nowMs - peer.saidMs >= PROBE_MS)) {
        this.#greet(peer, peer.reconciled);
      }
    }
  }

  /** What is to be said as of now. */
  freeze(): Outgoing {
    const early: (() => void)[] = [], late: (() => void)[] = [];
    for (const peer of this.#peers.values()) {
      // Receipts go to whoever asks; for the rest a suspect has to be back.
      const isLost = this.#ports.isLost(peer.site);
      const parts = isLost ? [] : this.#freezeDue(peer, early);
      const { receipts, missing, forget } = peer;
      let answer: Body = { receipts, missing, forget };
      if (peer.isGreetingDue && !isLost) answer = { ...answer, greeting: this.#freezeGreeting(peer) };
      const says = receipts.length + missing.length + forget.length > 0 || answer.greeting !== undefined;
      // It rides with what is told, where there is something.
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
    if (packet.greeting !== 0) peer.answer = { greeting: packet.greeting, ids: null };
    let full = false;
    for (const entry of packet.entries) {
      peer.unnamed.delete(entry.id);
      const merged = ports.merge(entry, from);
      if (merged === "older") this.tell(from, entry.id, false);
      else if (merged === "missing") peer.missing.push(entry.id);
      else if (merged === "full") full = true;
    }
    if (isToUs && packet.isListEnd && packet.list === peer.greeting && !peer.reconciled) {
      peer.reconciled = true;
      const { unnamed } = peer;
      peer.unnamed = new Set();
      ports.reconciled(from, unnamed);
    }
    if (isToUs) this.#receipts(peer, packet);
    for (const id of packet.forget) ports.forget(id);
    if (packet.seq !== 0) peer.receipts.push({ seq: packet.seq, full });
    ports.wake();
  }

  #peer(site: SiteId): Peer {
    let peer = this.#peers.get(site);
    if (peer === undefined) {
      peer = {
        site,
        boot: 0,
        heardSeq: 0,
        reconciled: false,
        greeting: 0,
        greetedMs: -Infinity,
        isGreetingDue: false,
        shared: new Set(),
        unnamed: new Set(),
        due: new Map(),
        answer: null,
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
    if (isFirst) return;
    peer.reconciled = false;
    peer.answer = null;
    this.#recall(peer);
    this.#ports.restarted(peer.site);
    if (peer.shared.size > 0) this.#greet(peer);
  }

  /** What flies is to be told again. */
  #recall(peer: Peer): void {
    for (const { told } of peer.flights.values()) {
      for (const entry of told) {
        if (this.#ports.tuple(entry.id)?.unacked.includes(peer.site)) {
          peer.due.set(entry.id, entry.payload !== null || peer.due.get(entry.id) === true);
        }
      }
    }
    peer.flights.clear();
    peer.flyingBytes = 0;
    this.#ports.wake();
  }

  #receipts(peer: Peer, { receipts, missing }: TuplePacket): void {
    const lacks = new Set(missing);
    for (const { seq, full } of receipts) {
      const flight = peer.flights.get(seq);
      if (flight === undefined) continue;
      peer.flights.delete(seq);
      peer.flyingBytes -= flight.bytes;
      peer.retryMs = PACKET_RETRY_MS;
      this.#ports.measured(peer.site, this.#ports.nowMs() - flight.sentMs);
      const refused: Tuple[] = [];
      for (const entry of flight.told) {
        const tuple = this.#ports.tuple(entry.id);
        if (tuple === undefined || !isSame(tuple, entry)) continue;
        if (lacks.has(entry.id) && !entry.gone && entry.payload === null) this.#ports.lacks(tuple, peer.site);
        else if (full && entry.payload !== null) refused.push(tuple);
        else this.#ports.acked(tuple, peer.site);
      }
      if (refused.length === 0) continue;
      peer.fullUntilMs = this.#ports.nowMs() + OWNER_FULL_MS;
      this.#ports.refused(refused, peer.site);
    }
  }

  /** What is due, as far as there is room for it (`OWNER_WINDOW_BYTES`): new tuples go early. */
  #freezeDue(peer: Peer, early: (() => void)[]): Body[] {
    let flyingBytes = peer.flyingBytes;
    const fresh: Entry[] = [], known: Entry[] = [];
    for (const [id, withPayload] of peer.due) {
      if (flyingBytes > OWNER_WINDOW_BYTES) break;
      peer.due.delete(id);
      const tuple = this.#ports.tuple(id);
      if (tuple === undefined) continue;
      const entry = tuple.entry(withPayload ? tuple.payload : null);
      flyingBytes += entryBytes(entry);
      (tuple.held || tuple.gone ? known : fresh).push(entry); // X2
    }
    for (const entries of cut(fresh)) early.push(this.#packet(peer, { entries }));
    const parts: Body[] = [...cut(known)].map((entries) => ({ entries }));
    const { answer } = peer;
    if (answer !== null) answer.ids ??= [...peer.shared].reverse();
    while (
      answer !== null && answer.ids !== null && peer.answer !== null && flyingBytes <= OWNER_WINDOW_BYTES
    ) {
      const entries: Entry[] = [];
      for (let bytes = 0; bytes < TUPLE_PACKET_BYTES_TARGET;) {
        const id = answer.ids.pop();
        if (id === undefined) break;
        const entry = this.#ports.tuple(id)?.entry();
        if (entry === undefined) continue;
        entries.push(entry);
        bytes += entryBytes(entry);
        flyingBytes += entryBytes(entry);
      }
      const isListEnd = answer.ids.length === 0;
      parts.push({ list: answer.greeting, isListEnd, entries });
      if (isListEnd) peer.answer = null;
    }
    return parts;
  }

  /** 0 for a probe: it asks for a receipt only. */
  #freezeGreeting(peer: Peer): number {
    peer.isGreetingDue = false;
    peer.greetedMs = this.#ports.nowMs();
    if (peer.reconciled) return 0;
    peer.unnamed = new Set(peer.shared);
    return peer.greeting;
  }

  /** A packet of now; the result sends it. Every packet but a mere answer asks for a receipt. */
  #packet(peer: Peer, body: Body): () => void {
    const ports = this.#ports;
    const { entries = [] } = body;
    const isAnswer = entries.length === 0 && body.greeting === undefined && body.list === undefined;
    const seq = isAnswer ? 0 : ++this.#seq;
    const bytes = encodeTuplePacket({
      greeting: 0,
      list: 0,
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
      peer.flights.set(seq, { sentMs: nowMs, bytes: bytes.length, told: entries });
      peer.flyingBytes += bytes.length;
    }
    ports.count("packets");
    ports.count("packet_bytes", bytes.length);
    // A link that is down drops it; it is told again then.
    return () => void ports.send(peer.site, bytes).catch(() => {});
  }
}

/** Whether an entry is what is known of a tuple now. */
function isSame(tuple: Tuple, { version, owners, gone }: Entry): boolean {
  return tuple.version === version && tuple.gone === gone && tuple.responsible === owners[0];
}

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
