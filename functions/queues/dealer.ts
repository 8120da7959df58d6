/**
 * The dealer, which decides which outlet is given the messages of an owner: outlets say how many their consumers want,
 * the nearest is served first.
 *
 * Life of a queue here: messages are ready → the nearest outlet is offered them → it wants some: it is served as far as
 * it does, and as long as there are any → it wants none within its time, or no more: the next is offered them, too → …
 * → none is ready any more: those that were offered some hear so.
 *
 * DL1 An outlet is sent no more than its last want has room for, less what was sent since the batch that it had seen
 *     as it said so.
 * DL2 A batch that no outlet has confirmed goes again under its number, and after some times its messages are taken back.
 * DL3 What one queue waits for holds up no other.
 */
import type { SiteId } from "../../store/model/ports.ts";
import type { QueueBacklog } from "./backlog.ts";
import type { MessageLease } from "./leases.ts";
import {
  BATCH_BYTES,
  BATCH_MESSAGES_MAX,
  CONFIRM_MS,
  CONFIRM_TRIES,
  OFFER_AGAIN_MS,
  OFFER_AGAIN_MS_MAX,
  OFFER_PATIENCE_MS,
  WITHDRAW_MS,
} from "./limits.ts";
import type { Batch, HandedMessage, OwnerWord, Want } from "./words.ts";

/** Number of messages and of their bytes. */
export interface Room {
  readonly messages: number;
  readonly bytes: number;
}

/** Outlet for which messages are lent. */
export interface Taker {
  readonly site: SiteId;
  readonly isPull: boolean;
}

export interface DealerPorts {
  readonly site: SiteId;
  readonly nowMs: () => number;
  /** Outlets of a queue, the nearest first. */
  readonly outlets: (queue: string) => readonly SiteId[];
  readonly rttMs: (site: SiteId) => number;
  readonly tell: (to: SiteId, word: OwnerWord) => void;
  readonly wake: (atMs: number) => void;
  readonly isOpen: (queue: QueueBacklog) => boolean;
  readonly leaseMs: (queue: QueueBacklog) => number;
  /** Returns how many messages of a queue are ready. */
  readonly ready: (queue: QueueBacklog) => number;
  /** Lends the next messages that are ready: no more than there is room for, but for the bytes of the last one. */
  readonly lend: (queue: QueueBacklog, room: Room, taker: Taker) => readonly MessageLease[];
  /** Returns the bytes of a message's payload. */
  readonly bytesOf: (lease: MessageLease) => number;
  /** Reads a lent message; null where it can't be given out. */
  readonly prepare: (lease: MessageLease) => Promise<HandedMessage | null>;
  readonly isLent: (lease: MessageLease) => boolean;
  /** Takes back a message of a batch that its outlet has not confirmed. */
  readonly takeBack: (lease: MessageLease) => void;
  readonly fail: (error: unknown) => void;
}

interface Customer {
  readonly site: SiteId;
  want: Want | null;
  /** Number of the customer's last want. */
  wanted: number;
  /**
   * Batches that were sent to it and that it may not have seen yet. (`reading`: what is lent to it and being read;
   * DL1.)
   */
  sent: { readonly number: number; readonly room: Room }[];
  reading: { messages: number; bytes: number };
  isOffered: boolean;
}

interface Counter {
  readonly queue: QueueBacklog;
  readonly customers: Map<SiteId, Customer>;
  /** Time until which the outlet that was offered something last may answer, before the next is offered it. */
  patientUntilMs: number;
  /** Time at which offers are made again to all outlets that had one. (`againMs`: the pause before the next time.) */
  againAtMs: number;
  againMs: number;
  /** Time at which outlets that were offered messages are told that none is ready, as none has been for a while. */
  emptyAtMs: number;
}

interface SentBatch {
  readonly to: SiteId;
  readonly customer: Customer;
  readonly batch: Batch;
  readonly leases: readonly MessageLease[];
  atMs: number;
  tries: number;
}

export class Dealer {
  readonly #ports: DealerPorts;
  readonly #counters = new Map<string, Counter>();
  /** Batches that are not confirmed yet, by number (DL2). */
  readonly #sent = new Map<number, SentBatch>();
  #batches = 0;

  constructor(ports: DealerPorts) {
    this.#ports = ports;
  }

  wants(queue: QueueBacklog, from: SiteId, want: Want): void {
    const customer = this.#customer(this.#counter(queue), from);
    if (want.number <= customer.wanted) return;
    customer.want = want;
    customer.wanted = want.number;
    customer.sent = customer.sent.filter(({ number }) => number > want.seen);
    customer.isOffered = true;
    // A client waits: its outlet asks the others at once.
    if (want.isPull && this.#ports.ready(queue) === 0) this.#takeOffer(queue, customer);
  }

  got(from: SiteId, number: number): void {
    if (this.#sent.get(number)?.to === from) this.#sent.delete(number);
  }

  /**
   * Forgets a site whose process is over, or that can't be heard: it wants nothing, and has not got what it did not
   * confirm.
   */
  gone(site: SiteId): void {
    for (const { customers } of this.#counters.values()) customers.delete(site);
    for (const [number, { to, leases }] of this.#sent) {
      if (to !== site) continue;
      this.#sent.delete(number);
      leases.forEach((lease) => this.#ports.takeBack(lease));
    }
  }

  /** Gives out what is ready and wanted, or offers it. */
  deal(queue: QueueBacklog): void {
    const { ready, isOpen, outlets, wake, nowMs } = this.#ports, counter = this.#counter(queue);
    if (ready(queue) === 0 || !isOpen(queue)) return this.#isEmpty(counter);
    counter.emptyAtMs = Infinity;
    const sites = outlets(queue.name);
    for (const site of sites) {
      const customer = counter.customers.get(site);
      if (customer === undefined) continue;
      while (ready(queue) > 0 && this.#serve(counter, customer)) counter.againMs = OFFER_AGAIN_MS;
    }
    if (ready(queue) === 0) return this.#isEmpty(counter);
    for (const site of sites) {
      if (nowMs() < counter.patientUntilMs) break;
      const customer = this.#customer(counter, site);
      if (!customer.isOffered) this.#offer(counter, customer);
    }
    if (counter.againAtMs === Infinity) {
      counter.againAtMs = nowMs() + counter.againMs;
      counter.againMs = Math.min(2 * counter.againMs, OFFER_AGAIN_MS_MAX);
    }
    if (counter.patientUntilMs > nowMs()) wake(counter.patientUntilMs);
    wake(counter.againAtMs);
  }

  /** Makes offers and sends batches again whose time has come. */
  tick(): void {
    const { nowMs, wake } = this.#ports;
    for (const counter of this.#counters.values()) {
      const isAgain = nowMs() >= counter.againAtMs;
      if (isAgain) {
        counter.againAtMs = Infinity;
        // An outlet that wants something still is not asked.
        for (const customer of counter.customers.values()) {
          customer.isOffered = this.#roomOf(customer) !== null;
        }
      }
      if (nowMs() >= counter.emptyAtMs) this.#withdraw(counter);
      if (isAgain || counter.patientUntilMs > -Infinity && nowMs() >= counter.patientUntilMs) {
        counter.patientUntilMs = -Infinity;
        this.deal(counter.queue);
      }
      for (const atMs of [counter.emptyAtMs, counter.againAtMs, counter.patientUntilMs]) {
        if (atMs > nowMs()) wake(atMs);
      }
    }
    for (const [number, sent] of this.#sent) {
      if (nowMs() >= sent.atMs + CONFIRM_MS) this.#again(number, sent);
      else wake(sent.atMs + CONFIRM_MS);
    }
  }

  #again(number: number, sent: SentBatch): void {
    if (++sent.tries > CONFIRM_TRIES) {
      this.#sent.delete(number);
      // The outlet may never see the batch, and has that room still.
      sent.customer.sent = sent.customer.sent.filter((one) => one.number !== number);
      return sent.leases.forEach((lease) => this.#ports.takeBack(lease));
    }
    sent.atMs = this.#ports.nowMs();
    this.#ports.tell(sent.to, sent.batch);
    this.#ports.wake(sent.atMs + CONFIRM_MS);
  }

  /** Returns what a customer may be sent (DL1); null: nothing. */
  #roomOf({ want, sent, reading }: Customer): Room | null {
    if (want === null) return null;
    let messages = want.messages - reading.messages, bytes = want.bytes - reading.bytes;
    for (const { room } of sent) {
      messages -= room.messages;
      bytes -= room.bytes;
    }
    return messages > 0 && bytes > 0 ? { messages, bytes } : null;
  }

  /** Lends a customer the next messages that it wants; false where it wants none, or there is nothing to lend. */
  #serve(counter: Counter, customer: Customer): boolean {
    const room = this.#roomOf(customer), { want } = customer;
    if (room === null || want === null) return false;
    const most = {
      messages: Math.min(room.messages, BATCH_MESSAGES_MAX),
      bytes: Math.min(room.bytes, BATCH_BYTES),
    };
    const leases = this.#ports.lend(counter.queue, most, { site: customer.site, isPull: want.isPull });
    if (leases.length === 0) return false;
    const lent = {
      messages: leases.length,
      bytes: leases.reduce((sum, lease) => sum + this.#ports.bytesOf(lease), 0),
    };
    customer.reading.messages += lent.messages;
    customer.reading.bytes += lent.bytes;
    void this.#send(counter, customer, leases, lent).catch(this.#ports.fail);
    return true;
  }

  async #send(
    counter: Counter,
    customer: Customer,
    leases: readonly MessageLease[],
    lent: Room,
  ): Promise<void> {
    const { site, prepare, isLent, ready, isOpen, leaseMs, nowMs, wake, tell } = this.#ports;
    const { queue } = counter;
    const read = await Promise.all(leases.map(async (lease) => ({ lease, message: await prepare(lease) })));
    customer.reading.messages -= lent.messages;
    customer.reading.bytes -= lent.bytes;
    // A message that was read first may have been lost while others were read.
    const lasting = read.filter(({ lease }) => isLent(lease));
    const messages = lasting.flatMap(({ message }) => message ?? []);
    const number = ++this.#batches;
    if (messages.length > 0) {
      const room = {
        messages: messages.length,
        bytes: messages.reduce((sum, { payload }) => sum + payload.length, 0),
      };
      customer.sent.push({ number, room });
      const left = isOpen(queue) ? ready(queue) : 0;
      if (left === 0) this.#close(customer);
      const batch: Batch = {
        kind: "batch",
        number,
        queue: queue.name,
        left,
        leaseMs: leaseMs(queue),
        messages,
      };
      if (customer.site !== site) {
        const lent = lasting.map(({ lease }) => lease);
        this.#sent.set(number, { to: customer.site, customer, batch, leases: lent, atMs: nowMs(), tries: 1 });
        wake(nowMs() + CONFIRM_MS);
      }
      tell(customer.site, batch);
    }
    // What was lent in vain leaves room for others.
    if (messages.length < leases.length) this.deal(queue);
  }

  #offer(counter: Counter, customer: Customer): void {
    const { site, nowMs, rttMs, ready, tell } = this.#ports;
    customer.isOffered = true;
    // An outlet of this site answers at once.
    const patienceMs = customer.site === site ? 1 : OFFER_PATIENCE_MS + rttMs(customer.site);
    counter.patientUntilMs = nowMs() + patienceMs;
    tell(customer.site, { kind: "offer", queue: counter.queue.name, count: ready(counter.queue) });
  }

  /** Sees to it that outlets that were offered something are told after a moment that nothing is ready. */
  #isEmpty(counter: Counter): void {
    counter.againAtMs = Infinity;
    counter.againMs = OFFER_AGAIN_MS;
    counter.patientUntilMs = -Infinity;
    const isOffered = [...counter.customers.values()].some((customer) => customer.isOffered);
    if (!isOffered || counter.emptyAtMs < Infinity) return;
    counter.emptyAtMs = this.#ports.nowMs() + WITHDRAW_MS;
    this.#ports.wake(counter.emptyAtMs);
  }

  #withdraw(counter: Counter): void {
    counter.emptyAtMs = Infinity;
    for (const customer of counter.customers.values()) {
      if (customer.isOffered) this.#takeOffer(counter.queue, customer);
    }
  }

  #takeOffer({ name: queue }: QueueBacklog, customer: Customer): void {
    this.#close(customer);
    this.#ports.tell(customer.site, { kind: "offer", queue, count: 0 });
  }

  #close(customer: Customer): void {
    customer.isOffered = false;
    customer.want = null;
  }

  #counter(queue: QueueBacklog): Counter {
    let counter = this.#counters.get(queue.name);
    if (counter === undefined) {
      counter = {
        queue,
        customers: new Map(),
        patientUntilMs: -Infinity,
        againAtMs: Infinity,
        againMs: OFFER_AGAIN_MS,
        emptyAtMs: Infinity,
      };
      this.#counters.set(queue.name, counter);
    }
    return counter;
  }

  #customer({ customers }: Counter, site: SiteId): Customer {
    let customer = customers.get(site);
    if (customer === undefined) {
      customer = {
        site,
        want: null,
        wanted: 0,
        sent: [],
        reading: { messages: 0, bytes: 0 },
        isOffered: false,
      };
      customers.set(site, customer);
    }
    return customer;
  }
}
