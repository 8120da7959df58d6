/**
 * The consumers of all queues at one site, whoever owns the messages: handlers that run here, and clients that pull.
 *
 * OU1 A batch that comes again is confirmed again, and taken once.
 * OU2 What a consumer said reaches an owner, as long as one of them is heard soon (verdict_post.ts).
 */
import type { Clock, SiteId } from "../../store/model/ports.ts";
import { Alarm } from "./alarm.ts";
import { Hand, type MessageDelivery, type PullOptions, type QueueHandler } from "./hand.ts";
import { BATCHES_KNOWN, HANDS_BYTES_MAX } from "./limits.ts";
import type { QueueSettings } from "./settings.ts";
import { type LeaseTicket, type SaidResult, VerdictPost, type VerdictSaid } from "./verdict_post.ts";
import type { OutletWord, OwnerWord } from "./words.ts";

export interface OutletPorts {
  readonly site: SiteId;
  readonly clock: Pick<Clock, "after" | "steadyMs">;
  readonly wallMs: () => number;
  readonly settings: (queue: string) => QueueSettings | undefined;
  readonly tell: (to: SiteId, word: OutletWord) => void;
  /** Whether a site lives, as far as is known here. */
  readonly isHeard: (site: SiteId) => boolean;
  readonly fail: (error: unknown) => void;
}

/** Which batches of an owner were had (OU1). */
class KnownBatches {
  readonly #known = new Set<number>();
  #last = 0;

  /** Whether it is new. Far older ones than the last count as known. */
  add(number: number): boolean {
    if (number <= this.#last - BATCHES_KNOWN || this.#known.has(number)) return false;
    this.#known.add(number);
    this.#last = Math.max(this.#last, number);
    for (const one of this.#known) {
      if (this.#known.size <= 2 * BATCHES_KNOWN) break;
      this.#known.delete(one);
    }
    return true;
  }
}

export class Outlet {
  readonly #ports: OutletPorts;
  readonly #hands = new Map<string, Hand>();
  readonly #post: VerdictPost;
  readonly #alarm: Alarm;
  readonly #batches = new Map<SiteId, KnownBatches>();
  #isClosed = false;

  constructor(ports: OutletPorts) {
    this.#ports = ports;
    this.#alarm = new Alarm(ports.clock, () => this.#tick());
    const { tell, isHeard, fail } = ports;
    this.#post = new VerdictPost({
      ...{ tell, isHeard, fail },
      nowMs: () => ports.clock.steadyMs(),
      wake: (atMs) => this.#alarm.set(atMs),
    });
  }

  /** Queues that have consumers here. */
  get wanted(): string[] {
    return [...this.#hands].filter(([, hand]) => hand.isWanting).map(([queue]) => queue);
  }

  /** Messages of a queue that are here. */
  held(queue: string): number {
    return this.#hands.get(queue)?.size ?? 0;
  }

  /** Verdicts that no owner has taken yet. */
  get unsettled(): number {
    return this.#post.size;
  }

  /** A handler runs here with the messages of a queue from now on; null: none does. */
  serve(queue: string, handler: QueueHandler | null): void {
    this.#hand(queue).serve(handler);
  }

  /** Messages for a client, as soon as there are some. */
  pull(queue: string, options: PullOptions, signal?: AbortSignal): Promise<readonly MessageDelivery[]> {
    return this.#hand(queue).pull(options, signal);
  }

  /** What a client says of a message that it has. */
  say(ticket: LeaseTicket, said: VerdictSaid): Promise<SaidResult> {
    return this.#post.say(ticket, said);
  }

  /** The settings of a queue are others. */
  configured(queue: string): void {
    this.#hands.get(queue)?.wakeUp();
  }

  hear(from: SiteId, word: OwnerWord): void {
    if (this.#isClosed) return;
    if (word.kind === "settled") {
      for (const { number, result } of word.results) this.#post.settled(from, number, result);
    } else if (word.kind === "offer") {
      // Nobody has ever wanted what is in it.
      if (word.count > 0 || this.#hands.has(word.queue)) this.#hand(word.queue).offered(from, word.count);
    } else {
      if (from !== this.#ports.site) this.#ports.tell(from, { kind: "got", batch: word.number });
      let known = this.#batches.get(from);
      if (known === undefined) this.#batches.set(from, known = new KnownBatches());
      if (known.add(word.number)) this.#hand(word.queue).came(from, word);
    }
  }

  /** A site can't be heard any more. */
  gone(site: SiteId): void {
    for (const hand of this.#hands.values()) hand.gone(site);
    this.#post.gone(site);
  }

  /** Another process runs there: its batches have other numbers. */
  began(site: SiteId): void {
    this.#batches.delete(site);
    for (const hand of this.#hands.values()) hand.began(site);
  }

  /** What waits goes back to its owners. */
  close(): void {
    for (const hand of this.#hands.values()) hand.close();
    this.#isClosed = true;
    this.#alarm.stop();
    // What goes back is said after this step.
    void Promise.resolve().then(() => this.#post.close()).catch(this.#ports.fail);
  }

  #hand(queue: string): Hand {
    let hand = this.#hands.get(queue);
    if (hand !== undefined) return hand;
    const { clock, wallMs, settings, tell, fail } = this.#ports;
    hand = new Hand({
      ...{ queue, wallMs, tell, fail },
      nowMs: () => clock.steadyMs(),
      settings: () => settings(queue),
      say: (ticket, said) => this.#post.say(ticket, said),
      wake: (atMs) => this.#alarm.set(atMs),
      bytesLeft: () => this.#bytesLeft(),
      // Its owner can't read it either, and gives it up.
      malformed: (ticket) => void this.#post.say(ticket, { kind: "release", ms: null, error: "" }),
    });
    this.#hands.set(queue, hand);
    return hand;
  }

  #bytesLeft(): number {
    let left = HANDS_BYTES_MAX;
    for (const hand of this.#hands.values()) left -= hand.bytes;
    return left;
  }

  #tick(): void {
    if (this.#isClosed) return;
    this.#post.tick();
    for (const hand of this.#hands.values()) hand.tick();
  }
}
