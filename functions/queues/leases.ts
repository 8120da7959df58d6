/**
 * The leases of an owner: messages that consumers have, each lent to one consumer until a time.
 *
 * LE1 A message is lent to one consumer at a time, under a number that no other loan of this process has.
 */
import type { SiteId } from "../../store/model/ports.ts";
import type { TupleId } from "../../store/owners/packet.ts";
import type { TupleSlot } from "../../store/owners/tuple.ts";
import type { QueueBacklog } from "./backlog.ts";
import { SlotTimes } from "./slot_columns.ts";

/** Loan of a message to a consumer. */
export interface MessageLease {
  readonly slot: TupleSlot;
  readonly id: TupleId;
  readonly queue: QueueBacklog;
  readonly number: number;
  readonly to: SiteId;
  /** True where a client of the site `to` has the message, and keeps it whatever becomes of that site. */
  readonly isPull: boolean;
  /** Number of deliveries of the message, this one included; 0 while its payload is being read. */
  attempt: number;
  /** Time at which the message was sent, known once its payload is read (envelope.ts). */
  sentMs: number;
  backoffMs: readonly number[] | null;
}

export class Leases {
  readonly #bySlot = new Map<TupleSlot, MessageLease>();
  /** Time at which each lease ends, by the steady clock. */
  readonly #ends = new SlotTimes();
  #next: number;

  /**
   * Makes an empty set of leases.
   *
   * @param first the number of the first lease: drawn, so that another process's are others.
   */
  constructor(first: number) {
    this.#next = first;
  }

  get count(): number {
    return this.#bySlot.size;
  }

  /** Time at which the first of the leases ends. */
  get nextEndMs(): number {
    return this.#ends.leastMs;
  }

  get(slot: TupleSlot): MessageLease | undefined {
    return this.#bySlot.get(slot);
  }

  all(): IterableIterator<MessageLease> {
    return this.#bySlot.values();
  }

  lend(of: Pick<MessageLease, "slot" | "id" | "queue" | "to" | "isPull">, untilMs: number): MessageLease {
    if (this.#bySlot.has(of.slot)) throw new Error(`LE1: ${of.id} is lent`);
    const lease = { ...of, number: this.#next++, attempt: 0, sentMs: 0, backoffMs: null };
    this.#bySlot.set(of.slot, lease);
    this.#ends.set(of.slot, untilMs);
    return lease;
  }

  /** Reports whether a lease is the one under which its message is lent now. */
  holds(lease: MessageLease): boolean {
    return this.#bySlot.get(lease.slot) === lease;
  }

  extend(lease: MessageLease, untilMs: number): void {
    if (this.holds(lease)) this.#ends.set(lease.slot, untilMs);
  }

  end(slot: TupleSlot): void {
    this.#bySlot.delete(slot);
    this.#ends.delete(slot);
  }

  /** Returns the next lease whose time is over, and takes it out of those that have a time. */
  nextEnded(nowMs: number): MessageLease | undefined {
    const slot = this.#ends.takeDue(nowMs);
    return slot === null ? undefined : this.#bySlot.get(slot);
  }
}
