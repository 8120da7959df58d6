/**
 * Time and links of a tree that lives in one process: time goes on when it is told to, a message takes its link's
 * delay, and every message is counted by the kind it has.
 *
 * V1  A millisecond is over when nothing is left to do in it: everything handed over, every turn taken, every
 *     promise settled. So figures do not depend on how fast the machine is.
 * V2  Messages of one link arrive in the order they were sent: a link has one delay.
 */
import { cpuUsage } from "node:process";
import { setImmediate } from "node:timers";
import { decodeMessage } from "../../../store/wire/message.ts";
import type { Clock, SiteId } from "../../../store/model/ports.ts";
import { CLOCK_EPOCH_MS } from "../../../store/model/row.ts";

/** Who takes messages. */
export interface Receiver {
  receive(from: SiteId, message: Uint8Array): void;
}

/** What went over links. */
export interface Traffic {
  messages: number;
  bytes: number;
}

/** One direction of the links of one kind, by kind of message. */
export type Counts = Map<string, Traffic>;

/** Kinds by their wire number, as far as they were seen. */
const kinds: string[] = [];

/** The kind of a message: its first byte stands for it (docs/protocol/journal.md). */
export function kindOf(message: Uint8Array): string {
  const number = message[0] ?? 0;
  return kinds[number] ??= decodeMessage(message).kind;
}

/** Pushes and feeds without rows are far below this, those with any above. */
const MARK_BYTES_MAX = 100;
const isMark = (message: Uint8Array): boolean =>
  message.length <= MARK_BYTES_MAX && (kindOf(message) === "push" || kindOf(message) === "feed");

/** Everything that shares time. */
export class VirtualWorld implements Clock {
  #nowMs = CLOCK_EPOCH_MS + 365 * 24 * 3_600_000;
  readonly #due = new Map<number, Set<() => void>>();
  readonly #sites = new Map<SiteId, Receiver>();
  #turns = 0;
  /** Messages by the class of their link and direction, as `link` named it. */
  readonly counts = new Map<string, Counts>();

  nowMs(): number {
    return this.#nowMs;
  }

  steadyMs(): number {
    return this.#nowMs;
  }

  after(ms: number, callback: () => void): () => void {
    const atMs = this.#nowMs + Math.max(1, Math.ceil(ms));
    const entry = () => callback();
    const at = this.#due.get(atMs);
    if (at === undefined) this.#due.set(atMs, new Set([entry]));
    else at.add(entry);
    return () => {
      this.#due.get(atMs)?.delete(entry);
    };
  }

  turn(): Promise<void> {
    this.#turns++;
    return new Promise((resolve) =>
      setImmediate(() => {
        this.#turns--;
        resolve();
      })
    );
  }

  /** A site that messages reach from now on. */
  join(site: SiteId, receiver: Receiver): void {
    this.#sites.set(site, receiver);
  }

  leave(site: SiteId): void {
    this.#sites.delete(site);
  }

  /** Sends; `isNow` hands over in the same millisecond, to a receiver that keeps nothing. */
  send(from: SiteId, to: SiteId, message: Uint8Array, o: { link: string; delayMs: number }): void {
    this.#count(o.link, message);
    if (o.delayMs === 0) return this.#sites.get(to)?.receive(from, message);
    this.after(o.delayMs, () => this.#sites.get(to)?.receive(from, message));
  }

  #count(link: string, message: Uint8Array): void {
    let counts = this.counts.get(link);
    if (counts === undefined) this.counts.set(link, counts = new Map());
    const kind = isMark(message) ? `${kindOf(message)} mark` : kindOf(message);
    const traffic = counts.get(kind);
    if (traffic === undefined) counts.set(kind, { messages: 1, bytes: message.length });
    else {
      traffic.messages++;
      traffic.bytes += message.length;
    }
  }

  /** What went over the links of a class since some earlier sum. */
  traffic(link: string, kind?: string): Traffic {
    const sum = { messages: 0, bytes: 0 };
    for (const [name, { messages, bytes }] of this.counts.get(link) ?? []) {
      if (kind !== undefined && kind !== name) continue;
      sum.messages += messages;
      sum.bytes += bytes;
    }
    return sum;
  }

  /** One millisecond (V1). */
  async tick(): Promise<void> {
    const due = this.#due.get(++this.#nowMs);
    this.#due.delete(this.#nowMs);
    if (due === undefined || due.size === 0) return;
    for (const run of due) run();
    await this.settle();
  }

  /** Until nothing is left to do now. */
  async settle(): Promise<void> {
    do await new Promise((resolve) => setImmediate(resolve)); while (this.#turns > 0);
  }

  async run(ms: number): Promise<void> {
    for (let i = 0; i < ms; i++) await this.tick();
  }

  /** @throws Error where it does not come true within `maxMs`. Returns the virtual time that it took. */
  async until(condition: () => boolean, what: string, maxMs = 600_000): Promise<number> {
    const fromMs = this.#nowMs;
    while (!condition()) {
      if (this.#nowMs - fromMs > maxMs) throw new Error(`${what}: not within ${maxMs} virtual ms`);
      await this.tick();
    }
    return this.#nowMs - fromMs;
  }
}

/** CPU of this process, in µs, that some work takes. */
export async function cpuMicros(work: () => Promise<void>): Promise<number> {
  const before = cpuUsage();
  await work();
  const { user, system } = cpuUsage(before);
  return user + system;
}

/** Bytes of the heap that are in use; the process needs `--expose-gc`. */
export function heapBytes(): number {
  const { gc } = globalThis as { gc?: () => void };
  if (gc === undefined) throw new Error("heapBytes needs --v8-flags=--expose-gc");
  gc();
  gc();
  const { heapUsed, external } = Deno.memoryUsage();
  return heapUsed + external;
}
