/**
 * The outlet of a site: its consumers of all queues, whichever site owns the messages: handlers that run here, and
 * clients that pull.
 *
 * OU1 A batch that comes again is confirmed again, and taken once.
 * OU2 What a consumer said of a message reaches an owner of it, as long as one of them is heard soon (verdict_post.ts).
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
  /** Reports whether a site lives, as far as is known here. */
  readonly isHeard: (site: SiteId) => boolean;
  readonly fail: (error: unknown) => void;
}

/** Batches of an owner that the outlet has had (OU1). */
class KnownBatches {
  readonly #known = new Set<number>();
  #last = 0;

  /** Adds a batch, and reports whether it is new. Far older ones than the last count as known. */
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

  /** Returns how many messages of a queue are here. */
  held(queue: string): number {
    return this.#hands.get(queue)?.size ?? 0;
  }

  /** Number of verdicts that no owner has taken yet. */
  get unsettled(): number {
    return this.#post.size;
  }

  /** Sets the handler that runs here with the messages of a queue; null: none does. */
  serve(queue: string, handler: QueueHandler | null): void {
    this.#hand(queue).serve(handler);
  }

  /** Resolves with messages for a client, as soon as there are some. */
  pull(queue: string, options: PullOptions, signal?: AbortSignal): Promise<readonly MessageDelivery[]> {
    return this.#hand(queue).pull(options, signal);
  }

  /** Sends a client's verdict on a message that it has. */
  say(ticket: LeaseTicket, said: VerdictSaid): Promise<SaidResult> {
    return this.#post.say(ticket, said);
  }

  /** Looks again at a queue whose settings are others now. */
  configured(queue: string): void {
    this.#hands.get(queue)?.wakeUp();
  }

  hear(from: SiteId, word: OwnerWord): void {
    if (this.#isClosed) return;
    if (word.kind === "settled") {
      for (const { number, result } of word.results) this.#post.settled(from, number, result);
    } else if (word.kind === "offer") {
      // No consumer here has ever wanted what is in that queue.
      if (word.count > 0 || this.#hands.has(word.queue)) this.#hand(word.queue).offered(from, word.count);
    } else {
      if (from !== this.#ports.site) this.#ports.tell(from, { kind: "got", batch: word.number });
      let known = this.#batches.get(from);
      if (known === undefined) this.#batches.set(from, known = new KnownBatches());
      if (known.add(word.number)) this.#hand(word.queue).came(from, word);
    }
  }

  /** Tells hands and verdicts that a site can't be heard any more. */
  gone(site: SiteId): void {
    for (const hand of this.#hands.values()) hand.gone(site);
    this.#post.gone(site);
  }

  /** Forgets the batches of a site where another process runs: its batches have other numbers. */
  began(site: SiteId): void {
    this.#batches.delete(site);
    for (const hand of this.#hands.values()) hand.began(site);
  }

  /** Gives back what waits to its owners, and stops. */
  close(): void {
    for (const hand of this.#hands.values()) hand.close();
    this.#isClosed = true;
    this.#alarm.stop();
    // Messages that go back are told after this step.
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
      // The owner can't read it either, and gives it up.
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
