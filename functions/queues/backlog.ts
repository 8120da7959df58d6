/**
 * The backlog: messages of all queues that a site is responsible for, by what they wait for, some 30 bytes of memory
 * each.
 *
 * Life of a message here: `delay` → due: ready → `take`n by a consumer: in no list, but counted → `delay`ed again, put
 * `back`, or `bury`ed: dead → ready again by an operator → `forget`.
 *
 * BL1 Each message is in one list of its queue (ready, delayed, dead), or is taken: their counts add up.
 * BL2 A queue's number is its own as long as the process lives.
 */
import type { TupleSlot } from "../../store/owners/tuple.ts";
import { type ListNumber, SlotColumn, SlotLists, SlotTimes } from "./slot_columns.ts";

/** State that a message waits in. */
export type WaitsFor = "ready" | "delayed" | "dead";

/** Messages of one queue. */
export interface QueueBacklog {
  readonly name: string;
  readonly number: number;
  readonly lists: Readonly<Record<WaitsFor, ListNumber>>;
  taken: number;
  /** Bytes of the messages' payloads. */
  bytes: number;
}

const KINDS: readonly WaitsFor[] = ["ready", "delayed", "dead"];

export class MessageBacklog {
  readonly #lists = new SlotLists();
  readonly #queues: QueueBacklog[] = [];
  readonly #byName = new Map<string, QueueBacklog>();
  /** Number of a slot's queue, plus one; 0: none. */
  readonly #queueOf = new SlotColumn();
  readonly #bytes = new SlotColumn();
  /** Time at which each delayed message is ready. (`#expiry`: at which each one that expires does.) */
  readonly #due = new SlotTimes();
  readonly #expiry = new SlotTimes();

  /** Every queue that was ever seen. */
  get queues(): readonly QueueBacklog[] {
    return this.#queues;
  }

  queue(name: string): QueueBacklog {
    let queue = this.#byName.get(name);
    if (queue === undefined) {
      const lists = {
        ready: this.#lists.create(),
        delayed: this.#lists.create(),
        dead: this.#lists.create(),
      };
      queue = { name, number: this.#queues.length, lists, taken: 0, bytes: 0 };
      this.#queues.push(queue);
      this.#byName.set(name, queue);
    }
    return queue;
  }

  /** Returns the queue that a message is in; null where the message is not this site's. */
  queueOf(slot: TupleSlot): QueueBacklog | null {
    return this.#queues[this.#queueOf.get(slot) - 1] ?? null;
  }

  count(queue: QueueBacklog, kind: WaitsFor): number {
    return this.#lists.count(queue.lists[kind]);
  }

  /** Returns how many messages a queue has, in all states. */
  size(queue: QueueBacklog): number {
    return KINDS.reduce((sum, kind) => sum + this.count(queue, kind), queue.taken);
  }

  /** Returns what a message waits for; "taken": nothing. */
  stateOf(slot: TupleSlot): WaitsFor | "taken" | null {
    const queue = this.queueOf(slot), list = this.#lists.of(slot);
    if (queue === null) return null;
    return KINDS.find((kind) => queue.lists[kind] === list) ?? "taken";
  }

  /** Adds a message that this site is responsible for: it is taken, until it is said what it waits for. */
  add(queue: QueueBacklog, slot: TupleSlot, bytes: number): void {
    if (this.queueOf(slot) !== null) throw new Error(`BL1: slot ${slot} is known`);
    this.#queueOf.set(slot, queue.number + 1);
    this.#bytes.set(slot, bytes);
    queue.bytes += bytes;
    queue.taken++;
  }

  /** Returns the bytes of a message's payload. */
  bytesOf(slot: TupleSlot): number {
    return this.#bytes.get(slot);
  }

  /** Makes a message ready, behind all that are, or, where it was taken in vain, before them. */
  ready(slot: TupleSlot, isFirst = false): void {
    this.#move(slot, "ready", isFirst);
  }

  /** Delays a message: it is ready at `untilMs`, by the wall clock. */
  delay(slot: TupleSlot, untilMs: number): void {
    this.#move(slot, "delayed");
    this.#due.set(slot, untilMs);
  }

  /** Has a message expire at `atMs`, by the wall clock, unless it is taken then. */
  expire(slot: TupleSlot, atMs: number): void {
    this.#expiry.set(slot, atMs);
  }

  /** Moves a message to the dead ones: it is given up. */
  bury(slot: TupleSlot): void {
    this.#expiry.delete(slot);
    this.#move(slot, "dead");
  }

  /** Takes the next message that is ready. */
  take(queue: QueueBacklog): TupleSlot | null {
    const slot = this.#lists.first(queue.lists.ready);
    if (slot !== null) this.hold(slot);
    return slot;
  }

  /** Takes a message that waits for something. */
  hold(slot: TupleSlot): void {
    const queue = this.queueOf(slot);
    if (queue === null || this.#lists.of(slot) === null) return;
    this.#lists.remove(slot);
    this.#due.delete(slot);
    queue.taken++;
  }

  /** Forgets a message: this site is not responsible for it any more. */
  forget(slot: TupleSlot): void {
    const queue = this.queueOf(slot);
    if (queue === null) return;
    this.hold(slot);
    this.#expiry.delete(slot);
    this.#queueOf.set(slot, 0);
    queue.taken--;
    queue.bytes -= this.#bytes.get(slot);
  }

  /** Returns the next message that was delayed up to now or earlier. (`nextExpired`: the next that expired.) */
  nextDue(nowMs: number): TupleSlot | null {
    return this.#due.takeDue(nowMs);
  }

  nextExpired(nowMs: number): TupleSlot | null {
    return this.#expiry.takeDue(nowMs);
  }

  /** Time at which `nextDue` or `nextExpired` has something, by the wall clock. */
  get nextMs(): number {
    return Math.min(this.#due.leastMs, this.#expiry.leastMs);
  }

  /** Yields the messages of a list, beginning with `from`, or with the first where `from` is null. */
  *list(queue: QueueBacklog, kind: WaitsFor, from: TupleSlot | null = null): Generator<TupleSlot> {
    let slot = from ?? this.#lists.first(queue.lists[kind]);
    while (slot !== null) {
      const next = this.#lists.after(slot);
      yield slot;
      slot = next;
    }
  }

  /** Returns the oldest message that is ready. */
  firstReady(queue: QueueBacklog): TupleSlot | null {
    return this.#lists.first(queue.lists.ready);
  }

  #move(slot: TupleSlot, kind: WaitsFor, isFirst = false): void {
    const queue = this.queueOf(slot);
    if (queue === null) throw new Error(`BL1: slot ${slot} is none of ours`);
    this.hold(slot);
    queue.taken--;
    this.#lists.put(queue.lists[kind], slot, isFirst);
  }
}
