/**
 * The hand of one queue at one site: messages that the consumers there have, or are about to get.
 *
 * Life of a message here: it comes in a batch of an owner → it waits in the hand → a handler runs with it, or a client
 * pulls it → a verdict on it goes to its owner.
 *
 * HD1 No more is wanted of owners than consumers can take soon: by messages, bytes and rate (token_bucket.ts).
 * HD2 While a message waits here its lease does not end; a handler has all of it, from when it begins.
 * HD3 A message that is here and is taken by no consumer goes back; so does one that expires here.
 */
import type { SiteId } from "../../store/model/ports.ts";
import { decodeEnvelope, type MessageEnvelope } from "./envelope.ts";
import { HAND_BYTES_MAX, OFFER_AGAIN_MS, PROMISED_MS, PULLS_MAX, UNPULLED_MS } from "./limits.ts";
import type { QueueSettings } from "./settings.ts";
import { TokenBucket } from "./token_bucket.ts";
import type { LeaseTicket, SaidResult, VerdictSaid } from "./verdict_post.ts";
import type { Batch, HandedMessage, OutletWord } from "./words.ts";

/** Message as a consumer gets it. */
export interface MessageDelivery {
  readonly ticket: LeaseTicket;
  readonly attempt: number;
  readonly envelope: MessageEnvelope;
}

/** Outcome of a delivery. `release`: no consumer took the message, which is no attempt. */
export type DeliveryOutcome = VerdictSaid & { readonly kind: "ack" | "retry" | "reject" | "release" };

/**
 * Runs a queue's handler at this site, and returns one outcome for each message. An error that it throws is the outcome
 * of all.
 *
 * @param say tells the outcome of one message, by its place, as soon as that is known: what is told first holds.
 */
export type QueueHandler = (
  messages: readonly MessageDelivery[],
  say: (place: number, outcome: DeliveryOutcome) => void,
) => Promise<readonly DeliveryOutcome[]>;

/** Request of a client that waits for messages. */
export interface PullOptions {
  readonly messages: number;
  readonly waitMs: number;
  /** Time for which the client has the messages to itself; its queue's lease by default. */
  readonly leaseMs?: number;
}

export interface HandPorts {
  readonly queue: string;
  readonly nowMs: () => number;
  readonly wallMs: () => number;
  readonly settings: () => QueueSettings | undefined;
  readonly tell: (to: SiteId, word: OutletWord) => void;
  readonly say: (ticket: LeaseTicket, said: VerdictSaid) => Promise<SaidResult>;
  readonly wake: (atMs: number) => void;
  /** Returns the room that is left at this site for all queues, in bytes. */
  readonly bytesLeft: () => number;
  /** Reports a message whose bytes can't be decoded here. */
  readonly malformed: (ticket: LeaseTicket) => void;
  readonly fail: (error: unknown) => void;
}

interface Held {
  readonly delivery: MessageDelivery;
  /** Time at which the message expires, by the wall clock; 0: never. */
  readonly expiresAtMs: number;
  readonly bytes: number;
  readonly leaseMs: number;
  readonly atMs: number;
  /** Time at which the message was lent, or lent again. */
  lentMs: number;
}

interface Supplier {
  readonly site: SiteId;
  /** Number of messages that the owner has ready. */
  ready: number;
  /** Number of the owner's last batch. */
  seen: number;
  promised: { messages: number; bytes: number };
  promisedAtMs: number;
  /** Number of the last want that was sent to the owner. */
  number: number;
}

interface Pull {
  readonly messages: number;
  readonly untilMs: number;
  readonly leaseMs: number | null;
  readonly resolve: (deliveries: readonly MessageDelivery[]) => void;
}

export class Hand {
  readonly #ports: HandPorts;
  readonly #bucket: TokenBucket;
  #handler: QueueHandler | null = null;
  readonly #suppliers = new Map<SiteId, Supplier>();
  readonly #pulls = new Set<Pull>();
  /** Messages that wait, oldest first. */
  #held: Held[] = [];
  /** Number of batches that handlers have. */
  #running = 0;
  #runningMessages = 0;
  /** Bytes of payloads here. */
  #bytes = 0;
  /** Time at which a pull last ended. */
  #pulledMs = -Infinity;
  /** Time until which the handler is given nothing, as it took nothing. */
  #restsUntilMs = -Infinity;
  #wants = 0;
  #isWoken = false;
  #isClosed = false;

  constructor(ports: HandPorts) {
    this.#ports = ports;
    this.#bucket = new TokenBucket(ports.settings()?.perSecond ?? Infinity, ports.nowMs());
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Number of messages that wait, or that handlers have. */
  get size(): number {
    return this.#held.length + this.#runningMessages;
  }

  /** True where a handler or a pull here may want something. */
  get isWanting(): boolean {
    return this.#handler !== null || this.#pulls.size > 0;
  }

  serve(handler: QueueHandler | null): void {
    this.#handler = handler;
    this.wakeUp();
  }

  /** Resolves with the messages that there are as soon as there are some, or with none when its time is over. */
  pull(
    { messages, waitMs, leaseMs }: PullOptions,
    signal?: AbortSignal,
  ): Promise<readonly MessageDelivery[]> {
    if (this.#isClosed || this.#pulls.size >= PULLS_MAX || signal?.aborted === true) {
      return Promise.resolve([]);
    }
    const { promise, resolve } = Promise.withResolvers<readonly MessageDelivery[]>();
    const untilMs = this.#ports.nowMs() + waitMs;
    const pull: Pull = { messages, untilMs, leaseMs: leaseMs ?? null, resolve };
    this.#pulls.add(pull);
    signal?.addEventListener("abort", () => this.#ends(pull, []), { once: true });
    this.#ports.wake(untilMs);
    this.wakeUp();
    return promise;
  }

  // ── What owners say ──

  offered(from: SiteId, count: number): void {
    const supplier = this.#supplier(from);
    supplier.ready = count;
    // Room that was promised is not taken any more, or is asked for again.
    supplier.promised = { messages: 0, bytes: 0 };
    this.wakeUp();
  }

  /** Takes the messages of an owner's batch. */
  came(from: SiteId, { number, left, leaseMs, messages }: Batch): void {
    const supplier = this.#supplier(from), { promised } = supplier;
    supplier.ready = left;
    supplier.seen = number;
    supplier.promisedAtMs = this.#ports.nowMs();
    promised.messages = Math.max(0, promised.messages - messages.length);
    for (const message of messages) {
      promised.bytes = Math.max(0, promised.bytes - message.payload.length);
      this.#take(message, leaseMs);
    }
    if (left === 0) supplier.promised = { messages: 0, bytes: 0 };
    this.wakeUp();
  }

  /** Waits for nothing more of a site that can't be heard, but goes on counting its batches and wants. */
  gone(site: SiteId): void {
    const supplier = this.#suppliers.get(site);
    if (supplier === undefined) return;
    supplier.ready = 0;
    supplier.promised = { messages: 0, bytes: 0 };
    this.wakeUp();
  }

  /** Forgets an owner's site, where another process runs now. */
  began(site: SiteId): void {
    this.#suppliers.delete(site);
    this.wakeUp();
  }

  #take({ id, lease, attempt, expiresAtMs, owners, payload }: HandedMessage, leaseMs: number): void {
    const nowMs = this.#ports.nowMs(), ticket = { id, lease, sentMs: 0, owners };
    let envelope: MessageEnvelope;
    try {
      envelope = decodeEnvelope(payload);
    } catch {
      return this.#ports.malformed(ticket);
    }
    const delivery = { ticket: { ...ticket, sentMs: envelope.sentMs }, attempt, envelope };
    this.#held.push({ delivery, expiresAtMs, bytes: payload.length, leaseMs, atMs: nowMs, lentMs: nowMs });
    this.#bytes += payload.length;
    this.#ports.wake(nowMs + leaseMs / 2);
  }

  #supplier(site: SiteId): Supplier {
    let supplier = this.#suppliers.get(site);
    if (supplier === undefined) {
      const promised = { messages: 0, bytes: 0 };
      supplier = { site, ready: 0, seen: 0, promised, promisedAtMs: -Infinity, number: 0 };
      this.#suppliers.set(site, supplier);
    }
    return supplier;
  }

  // ── Giving out ──

  /** Schedules a look at what is to be done, after the current step. */
  wakeUp(): void {
    if (this.#isWoken || this.#isClosed) return;
    this.#isWoken = true;
    void Promise.resolve().then(() => {
      this.#isWoken = false;
      if (!this.#isClosed) this.#step();
    }).catch(this.#ports.fail);
  }

  /** Ends pulls, extends leases and gives out messages whose time has come. */
  tick(): void {
    const nowMs = this.#ports.nowMs();
    for (const pull of this.#pulls) {
      if (nowMs >= pull.untilMs) this.#ends(pull, []);
      else this.#ports.wake(pull.untilMs);
    }
    for (const held of [...this.#held]) this.#keep(held);
    if (this.#held.length + this.#suppliers.size > 0) this.#step();
  }

  #step(): void {
    const settings = this.#ports.settings(), nowMs = this.#ports.nowMs();
    if (settings === undefined) return this.#giveBack();
    this.#bucket.configure(settings.perSecond, nowMs);
    this.#giveBackExpired();
    this.#serveHandler(settings);
    this.#servePulls();
    this.#giveBackUnpulled();
    this.#ask(settings);
  }

  #serveHandler({ concurrency, batchMax, batchWaitMs }: QueueSettings): void {
    const { nowMs, wake } = this.#ports, handler = this.#handler;
    if (nowMs() < this.#restsUntilMs) return wake(this.#restsUntilMs);
    while (handler !== null && this.#running < concurrency) {
      const [first] = this.#held;
      if (first === undefined) return;
      const readyMs = first.atMs + batchWaitMs;
      if (this.#held.length < batchMax && nowMs() < readyMs) return wake(readyMs);
      const count = this.#affordable(batchMax);
      if (count === 0) return;
      this.#run(handler, this.#held.splice(0, count));
    }
  }

  /** Returns how many messages may be given out now, and takes their tokens. */
  #affordable(most: number): number {
    const nowMs = this.#ports.nowMs(), tokens = this.#bucket.available(nowMs);
    const count = Math.min(most, this.#held.length, tokens);
    if (count === 0 && this.#held.length > 0) this.#ports.wake(this.#bucket.nextMs(nowMs));
    if (count > 0) this.#bucket.take(count, nowMs);
    return count;
  }

  #run(handler: QueueHandler, batch: readonly Held[]): void {
    this.#running++;
    this.#runningMessages += batch.length;
    for (const held of batch) this.#lendAgain(held, held.leaseMs); // HD2
    const said = new Set<number>();
    const say = (place: number, outcome: DeliveryOutcome) => {
      const held = batch[place];
      if (held === undefined || said.has(place) || this.#isClosed) return;
      said.add(place);
      void this.#ports.say(held.delivery.ticket, outcome);
    };
    void this.#outcomes(handler, batch, say).then((outcomes) => {
      this.#running--;
      this.#runningMessages -= batch.length;
      for (const { bytes } of batch) this.#bytes -= bytes;
      if (this.#isClosed) return;
      if (outcomes.length > 0 && outcomes.every(({ kind }) => kind === "release")) this.#rest();
      batch.forEach((_, place) => {
        say(place, outcomes[place] ?? { kind: "retry", ms: null, error: "its handler said nothing of it" });
      });
      this.wakeUp();
    }).catch(this.#ports.fail);
  }

  async #outcomes(
    handler: QueueHandler,
    batch: readonly Held[],
    say: Parameters<QueueHandler>[1],
  ): Promise<readonly DeliveryOutcome[]> {
    try {
      return await handler(batch.map(({ delivery }) => delivery), say);
    } catch (error) {
      const text = error instanceof Error ? error.message : String(error);
      return batch.map(() => ({ kind: "retry", ms: null, error: text }));
    }
  }

  #rest(): void {
    this.#restsUntilMs = this.#ports.nowMs() + OFFER_AGAIN_MS;
    this.#ports.wake(this.#restsUntilMs);
  }

  #servePulls(): void {
    for (const pull of this.#pulls) {
      const count = this.#held.length === 0 ? 0 : this.#affordable(pull.messages);
      if (count === 0) return;
      const batch = this.#held.splice(0, count);
      for (const held of batch) {
        this.#bytes -= held.bytes;
        this.#lendAgain(held, pull.leaseMs ?? held.leaseMs);
      }
      this.#ends(pull, batch.map(({ delivery }) => delivery));
    }
  }

  #ends(pull: Pull, deliveries: readonly MessageDelivery[]): void {
    if (!this.#pulls.delete(pull)) return;
    this.#pulledMs = this.#ports.nowMs();
    this.#ports.wake(this.#pulledMs + UNPULLED_MS);
    pull.resolve(deliveries);
  }

  /** Extends the lease of a message: its consumer has it for `leaseMs` from now on. */
  #lendAgain(held: Held, leaseMs: number): void {
    const nowMs = this.#ports.nowMs();
    if (leaseMs === held.leaseMs && nowMs - held.lentMs < leaseMs / 8) return;
    held.lentMs = nowMs;
    void this.#ports.say(held.delivery.ticket, { kind: "extend", ms: leaseMs, error: "" }).then((result) => {
      if (result !== "done") this.#drop(held);
    }).catch(this.#ports.fail);
  }

  /** Extends the lease of a message that waits, when half of it is over (HD2). */
  #keep(held: Held): void {
    const { nowMs, wake } = this.#ports, atMs = held.lentMs + held.leaseMs / 2;
    if (nowMs() < atMs) return wake(atMs);
    this.#lendAgain(held, held.leaseMs);
    wake(nowMs() + held.leaseMs / 2);
  }

  /** Drops a message that is not lent to this site any more, unless a consumer has it. */
  #drop(held: Held): void {
    const place = this.#held.indexOf(held);
    if (place < 0) return;
    this.#held.splice(place, 1);
    this.#bytes -= held.bytes;
    this.wakeUp();
  }

  /** Gives back messages that no handler and no pull has taken for a while (HD3). */
  #giveBackUnpulled(): void {
    const { nowMs, wake } = this.#ports;
    if (this.isWanting || this.#held.length === 0) return;
    const atMs = Math.max(this.#pulledMs, this.#held[0]?.atMs ?? 0) + UNPULLED_MS;
    if (nowMs() >= atMs) this.#giveBack();
    else wake(atMs);
  }

  /** Gives back messages that have expired: their owner gives them up. */
  #giveBackExpired(): void {
    const wallMs = this.#ports.wallMs();
    const isOver = ({ expiresAtMs }: Held) => expiresAtMs > 0 && expiresAtMs <= wallMs;
    if (this.#held.some(isOver)) this.#giveBack(isOver);
  }

  #giveBack(which: (held: Held) => boolean = () => true): void {
    const all = this.#held;
    this.#held = all.filter((held) => !which(held));
    for (const { delivery, bytes } of all.filter(which)) {
      this.#bytes -= bytes;
      void this.#ports.say(delivery.ticket, { kind: "release", ms: null, error: "" });
    }
  }

  // ── Asking ──

  /** Asks the owners that have something for as much as there is room for, each for its part (HD1). */
  #ask(settings: QueueSettings): void {
    const { nowMs, wake, tell, queue } = this.#ports;
    if (!this.isWanting) return;
    if (nowMs() < this.#restsUntilMs) return;
    for (const supplier of this.#suppliers.values()) {
      const atMs = supplier.promisedAtMs + PROMISED_MS;
      if (supplier.promised.messages === 0) continue;
      if (nowMs() < atMs) wake(atMs);
      else {
        supplier.promised = { messages: 0, bytes: 0 };
        supplier.ready = 0; // It offers again what it has.
      }
    }
    const offering = [...this.#suppliers.values()].filter(({ ready }) => ready > 0);
    if (offering.length === 0) return;
    const room = this.#room(settings);
    if (room.messages <= 0 || room.bytes <= 0) return;
    const share = Math.ceil(room.messages / offering.length), bytes = Math.ceil(room.bytes / offering.length);
    let left = room.messages;
    for (const supplier of offering) {
      const { promised } = supplier;
      const more = Math.min(share, left, supplier.ready - promised.messages);
      // Most of that is on its way already.
      if (more <= 0 || more < promised.messages / 2) continue;
      left -= more;
      supplier.promised = { messages: promised.messages + more, bytes: promised.bytes + bytes };
      supplier.promisedAtMs = nowMs();
      supplier.number = ++this.#wants;
      wake(nowMs() + PROMISED_MS);
      tell(supplier.site, {
        kind: "want",
        queue,
        number: supplier.number,
        seen: supplier.seen,
        ...supplier.promised,
        isPull: this.#handler === null,
      });
    }
  }

  #room({ concurrency, batchMax }: QueueSettings): { messages: number; bytes: number } {
    const nowMs = this.#ports.nowMs();
    let messages = -this.#held.length,
      bytes = Math.min(HAND_BYTES_MAX - this.#bytes, this.#ports.bytesLeft());
    for (const { promised } of this.#suppliers.values()) {
      messages -= promised.messages;
      bytes -= promised.bytes;
    }
    const isEmpty = messages === 0 && this.#bytes === 0;
    const tokens = this.#bucket.available(nowMs);
    if (tokens < 1) this.#ports.wake(this.#bucket.nextMs(nowMs));
    let most = 0;
    // One batch more than the handlers have at one time: the next one is there when one of them ends.
    if (this.#handler !== null) most = (concurrency + 1) * batchMax - this.#runningMessages;
    else for (const pull of this.#pulls) most += pull.messages;
    // One message may always come.
    return { messages: messages + Math.min(most, tokens), bytes: Math.max(bytes, isEmpty ? 1 : 0) };
  }

  /** Gives back what waits. What handlers have stays with them, and their outcomes are not told. */
  close(): void {
    for (const pull of this.#pulls) this.#ends(pull, []);
    this.#giveBack();
    this.#isClosed = true;
  }
}
