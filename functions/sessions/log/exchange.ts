/**
 * Asks to other sites and their replies, in packets: all that one site has to say to another at a time goes in one.
 *
 * Life of an ask: `ask` → in the next packet to its site → (no reply: again after a while, and at once when the site is
 * heard of again) → its reply, or cancelled by who asked.
 *
 * X1  An ask is repeated until it is answered or cancelled, byte by byte the same; its receiver answers it each time.
 * X2  A reply to another process of this site is void.
 * X3  One packet at a time is on its way into a link; what comes meanwhile waits for the next.
 * X4  A site of the version before is sent packets of the first form only, and asks that it does not know are answered
 *     here, with `nobody`. A site of which nothing was heard yet is sent the second form; where that is not answered, a
 *     greeting in the first, whose reply says of which version it is. So no site that reads the second form is asked
 *     anything that matters in the first.
 */
import type { Clock, SiteId } from "../../../store/model/ports.ts";
import { isOfSecondForm, type Reply, type SiteAsk } from "./asks.ts";
import { ASK_RETRY_MS, ASK_RETRY_MS_MAX, LOG_PACKET_BYTES_TARGET } from "./limits.ts";
import {
  BOOT_MIN,
  decodeLogPacket,
  encodeAsk,
  encodeReply,
  joinPacket,
  type NumberedItem,
} from "./packet.ts";

export interface LogExchangePorts {
  readonly site: SiteId;
  readonly boot: number;
  readonly clock: Clock;
  readonly nowMs: () => number;
  readonly send: (to: SiteId, packet: Uint8Array) => Promise<void>;
  /** Returns the highest position of the arbiter that this site has heard of; it goes with every packet. */
  readonly witness: () => number;
  /** Notes that another site has heard of a position of the arbiter; called before what came with it is handled. */
  readonly heard: (from: SiteId, position: number) => void;
  /** Answers an ask; never settles where the disk has failed. */
  readonly handle: (from: SiteId, ask: SiteAsk) => Promise<Reply>;
  readonly count: (name: string, by?: number) => void;
}

/** Ask that is under way. */
export interface Asking {
  readonly reply: Promise<Reply>;
  /** Gives the ask up; its promise never settles then. */
  cancel(): void;
}

interface Open {
  readonly number: number;
  readonly body: Uint8Array;
  /** True for an ask that sites of the version before do not know (X4). */
  readonly isOfSecondForm: boolean;
  readonly resolve: (reply: Reply) => void;
  /** Time at which the ask is sent again; Infinity while it waits for its first packet. */
  againMs: number;
  pauseMs: number;
}

interface Peer {
  /** Number of the other site's process, as of its last packet; 0 while nothing was heard of it. */
  boot: number;
  readonly open: Map<number, Open>;
  /** Numbers of asks that go with the next packet. */
  readonly due: Set<number>;
  replies: NumberedItem<Uint8Array>[];
  /** Asks of the other site that are worked on, and not taken twice. */
  readonly working: Set<string>;
  isSending: boolean;
}

export class LogExchange {
  readonly #ports: LogExchangePorts;
  readonly #peers = new Map<SiteId, Peer>();
  #number = 0;
  #closed = false;

  constructor(ports: LogExchangePorts) {
    // packet.ts B3
    if (ports.boot < BOOT_MIN) {
      throw new RangeError(`the process ${ports.boot} has a number of the version before (packet.ts B3)`);
    }
    this.#ports = ports;
  }

  /** Asks a site; this site may be asked, too. */
  ask(to: SiteId, ask: SiteAsk): Asking {
    const { promise, resolve } = Promise.withResolvers<Reply>();
    if (to === this.#ports.site) {
      let isWanted = true;
      void this.#ports.handle(to, ask).then((reply) => {
        if (isWanted && !this.#closed) resolve(reply);
      }, () => {}); // the disk has failed: the site stops
      return { reply: promise, cancel: () => void (isWanted = false) };
    }
    const peer = this.#peer(to);
    const isNew = isOfSecondForm(ask);
    if (isNew && isOld(peer)) {
      resolve({ kind: "nobody" }); // X4
      return { reply: promise, cancel: () => {} };
    }
    const number = ++this.#number;
    const open = {
      ...{ number, body: encodeAsk(ask), isOfSecondForm: isNew, resolve },
      ...{ againMs: Infinity, pauseMs: ASK_RETRY_MS },
    };
    peer.open.set(number, open);
    peer.due.add(number);
    this.#flush(to, peer);
    const cancel = () => {
      peer.open.delete(number);
      peer.due.delete(number);
    };
    return { reply: promise, cancel };
  }

  /** Takes a packet of another site. @throws CodecError */
  received(from: SiteId, bytes: Uint8Array): void {
    if (this.#closed) return;
    const packet = decodeLogPacket(bytes);
    const peer = this.#peer(from);
    if (packet.boot !== peer.boot) {
      const isNew = peer.boot === 0;
      peer.boot = packet.boot;
      peer.replies = [];
      if (isOld(peer)) this.#answerNobody(peer);
      if (isNew && isOld(peer)) this.again(from); // what it was sent so far it could not read
    }
    this.#ports.heard(from, packet.witness ?? 0);
    for (const { number, body } of packet.asks) this.#take(from, peer, packet.boot, number, body);
    if (packet.to !== this.#ports.boot) return; // X2
    for (const { number, body } of packet.replies) {
      const open = peer.open.get(number);
      if (open === undefined) continue;
      peer.open.delete(number);
      peer.due.delete(number);
      open.resolve(body);
    }
  }

  /** Sends at once what a site has not answered; called when it is heard of again. */
  again(site: SiteId): void {
    const peer = this.#peers.get(site);
    if (peer === undefined) return;
    for (const open of peer.open.values()) {
      open.pauseMs = ASK_RETRY_MS;
      peer.due.add(open.number);
    }
    this.#flush(site, peer);
  }

  /** Repeats asks that are overdue; to be called a few times a second. */
  tick(): void {
    const nowMs = this.#ports.nowMs();
    for (const [site, peer] of this.#peers) {
      for (const open of peer.open.values()) if (open.againMs <= nowMs) peer.due.add(open.number);
      if (peer.due.size > 0) this.#flush(site, peer);
    }
  }

  close(): void {
    this.#closed = true;
    this.#peers.clear();
  }

  #peer(site: SiteId): Peer {
    let peer = this.#peers.get(site);
    if (peer === undefined) {
      peer = { boot: 0, open: new Map(), due: new Set(), replies: [], working: new Set(), isSending: false };
      this.#peers.set(site, peer);
    }
    return peer;
  }

  #take(from: SiteId, peer: Peer, boot: number, number: number, ask: SiteAsk): void {
    const id = `${boot} ${number}`;
    if (peer.working.has(id)) return;
    peer.working.add(id);
    void this.#ports.handle(from, ask).then((reply) => {
      peer.working.delete(id);
      if (this.#closed || boot !== peer.boot) return;
      peer.replies.push({ number, body: encodeReply(isOld(peer) ? inFirstForm(reply) : reply) });
      this.#flush(from, peer);
    }, () => {}); // the disk has failed: the site stops, and says no more
  }

  #flush(to: SiteId, peer: Peer): void {
    if (peer.isSending || this.#closed) return;
    peer.isSending = true;
    void this.#send(to, peer);
  }

  /** Answers asks that the peer does not know with `nobody` (X4). */
  #answerNobody(peer: Peer): void {
    for (const open of [...peer.open.values()]) {
      if (!open.isOfSecondForm) continue;
      peer.open.delete(open.number);
      peer.due.delete(open.number);
      open.resolve({ kind: "nobody" });
    }
  }

  /** Sends packets, one at a time, until nothing is due (X3). */
  async #send(to: SiteId, peer: Peer): Promise<void> {
    const { clock, boot, witness } = this.#ports;
    await clock.turn();
    while (!this.#closed && (peer.due.size > 0 || peer.replies.length > 0)) {
      if (isUnread(peer)) {
        await this.#ports.send(to, joinPacket({ boot, to: 0 }, [GREETING], [])).catch(() => {});
      }
      const head = { boot, to: peer.boot };
      const packet = joinPacket(
        isOld(peer) ? head : { ...head, witness: witness() },
        this.#asksOf(peer),
        repliesOf(peer),
      );
      this.#ports.count("packets");
      this.#ports.count("packet_bytes", packet.length);
      // A link that is down drops it; X1 sends it again.
      await this.#ports.send(to, packet).catch(() => {});
      await clock.turn();
    }
    peer.isSending = false;
  }

  #asksOf(peer: Peer): NumberedItem<Uint8Array>[] {
    const asks: NumberedItem<Uint8Array>[] = [];
    const nowMs = this.#ports.nowMs();
    let bytes = 0;
    // In the order in which they were asked: an append must not overtake the one before.
    for (const number of [...peer.due].sort((a, b) => a - b)) {
      const open = peer.open.get(number);
      if (open !== undefined) {
        if (asks.length > 0 && bytes + open.body.length > LOG_PACKET_BYTES_TARGET) break;
        if (open.againMs !== Infinity) this.#ports.count("asks_again");
        asks.push({ number, body: open.body });
        bytes += open.body.length;
        open.againMs = nowMs + open.pauseMs;
        open.pauseMs = Math.min(open.pauseMs * 2, ASK_RETRY_MS_MAX);
      }
      peer.due.delete(number);
    }
    return asks;
  }
}

/** Reports whether a peer is of the version before (X4; packet.ts, B3). */
const isOld = ({ boot }: Peer): boolean => boot > 0 && boot < BOOT_MIN;

/** Reports whether something is sent again to a peer of which nothing was heard (X4). */
const isUnread = (peer: Peer): boolean =>
  peer.boot === 0 && [...peer.due].some((number) => peer.open.get(number)?.againMs !== Infinity);

/** Greeting in the first form. Nothing waits for its reply: numbers of asks begin with 1. */
const GREETING = { number: 0, body: encodeAsk({ kind: "greet" }) };

const inFirstForm = (reply: Reply): Reply => reply.kind === "waits" ? { kind: "nobody" } : reply;

/** Takes the replies that fit in one packet, at least one. */
function repliesOf(peer: Peer): NumberedItem<Uint8Array>[] {
  let count = 0, bytes = 0;
  for (const { body } of peer.replies) {
    bytes += body.length;
    if (count > 0 && bytes > LOG_PACKET_BYTES_TARGET) break;
    count++;
  }
  return peer.replies.splice(0, count);
}
