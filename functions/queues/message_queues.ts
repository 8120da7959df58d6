/**
 * The queues of one site: a broker for the messages that it owns, an outlet for the consumers that it has, and the
 * packets that these two exchange with those of other sites.
 *
 * Life: made → `begin` with the tuples of the site, of which `user` hears → words go and come → `close`.
 *
 * SQ1 What refers to another process of its receiver is void: only offers and verdicts are of use to any.
 * SQ2 A site that is taken for another process of itself says so at once.
 */
import type { Clock, SiteId } from "../../store/model/ports.ts";
import { Broker, type BrokerPorts, type MessageTuples } from "./broker.ts";
import { QUEUE_PACKET_BYTES } from "./limits.ts";
import { Outlet } from "./outlet.ts";
import { decodeQueuePacket, encodeQueuePacket, isOwnerWord, type QueueWord, wordBytes } from "./words.ts";

export interface MessageQueuesPorts extends Omit<BrokerPorts, "tell"> {
  readonly clock: Clock;
  /** Reports whether a site lives, as far as is known here. */
  readonly isHeard: (site: SiteId) => boolean;
  /** Sends a packet, which may be lost; packets come in their order. */
  readonly send: (to: SiteId, packet: Uint8Array) => Promise<void>;
}

export class MessageQueues {
  readonly #ports: MessageQueuesPorts;
  readonly broker: Broker;
  readonly outlet: Outlet;
  /** Number (`boot`) of the process of each site that was heard last. */
  readonly #boots = new Map<SiteId, number>();
  readonly #outgoing = new Map<SiteId, QueueWord[]>();
  #isClosed = false;

  constructor(ports: MessageQueuesPorts) {
    this.#ports = ports;
    const { site, clock, wallMs, settings, isHeard, fail } = ports;
    const tell = (to: SiteId, word: QueueWord) => this.#tell(to, word);
    this.broker = new Broker({ ...ports, tell });
    this.outlet = new Outlet({ ...{ site, clock, wallMs, settings, isHeard, fail }, tell });
  }

  /** Starts: the tuples are open. */
  begin(tuples: MessageTuples): void {
    this.broker.begin(tuples);
  }

  /** Takes a packet of another site. @throws CodecError for bytes that are no packet. */
  received(from: SiteId, bytes: Uint8Array): void {
    const { boot, to, words } = decodeQueuePacket(bytes);
    if (this.#isClosed) return;
    const before = this.#boots.get(from), own = this.#ports.boot;
    this.#boots.set(from, boot);
    if (before !== undefined && before !== boot) {
      this.broker.gone(from);
      this.outlet.began(from);
    }
    if (to !== 0 && to !== own) this.#add(from, []); // SQ2
    for (const word of words) {
      if (to === own || word.kind === "offer" || word.kind === "verdicts") this.#hear(from, word); // SQ1
    }
  }

  /** Takes back what is lent to a suspected site, and waits for nothing of it. */
  suspects(site: SiteId): void {
    this.broker.gone(site);
    this.outlet.gone(site);
  }

  /** Applies the settings of a queue, which are others or are known now. */
  async configured(queue: string): Promise<void> {
    this.outlet.configured(queue);
    await this.broker.configured(queue);
  }

  /** Gives back what waits for consumers here, and gives out nothing any more. */
  close(): void {
    this.outlet.close();
    this.broker.close();
    this.#isClosed = true;
  }

  #hear(from: SiteId, word: QueueWord): void {
    if (isOwnerWord(word)) this.outlet.hear(from, word);
    else this.broker.hear(from, word);
  }

  #tell(to: SiteId, word: QueueWord): void {
    if (to === this.#ports.site) this.#hear(to, word);
    else this.#add(to, [word]);
  }

  /** Adds words to the next packet to a site: what is said in one step goes in one packet. */
  #add(to: SiteId, words: readonly QueueWord[]): void {
    const waiting = this.#outgoing.get(to);
    if (waiting !== undefined) return void waiting.push(...words);
    this.#outgoing.set(to, [...words]);
    void Promise.resolve().then(() => {
      const all = this.#outgoing.get(to) ?? [];
      this.#outgoing.delete(to);
      const head = { boot: this.#ports.boot, to: this.#boots.get(to) ?? 0 };
      for (const part of packets(all)) {
        void this.#ports.send(to, encodeQueuePacket({ ...head, words: part })).catch(this.#ports.fail);
      }
    }).catch(this.#ports.fail);
  }
}

/** Divides words into packets, of which there is one at least. */
function* packets(words: readonly QueueWord[]): Generator<readonly QueueWord[]> {
  let part: QueueWord[] = [], bytes = 0;
  for (const word of words) {
    part.push(word);
    bytes += wordBytes(word);
    if (bytes < QUEUE_PACKET_BYTES) continue;
    yield part;
    part = [];
    bytes = 0;
  }
  if (part.length > 0 || words.length === 0) yield part;
}
