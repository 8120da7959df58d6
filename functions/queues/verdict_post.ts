/**
 * The post of verdicts: what consumers at a site say of messages, on its way to the messages' owners.
 *
 * Life of a verdict: `say` → told to the owner that lent the message → settled; or not settled in its time, or told to
 * an owner that cannot be heard: an acknowledgement is told the next owner, anything else the same one again → … →
 * given up: the message will come again.
 *
 * VP1 Only the owner that lent a message can give it another time: no other is asked to.
 * VP2 What was said last of a message under a lease holds: what was said before, and is not settled, is over.
 */
import type { SiteId } from "../../store/model/ports.ts";
import type { TupleId } from "../../store/owners/packet.ts";
import { VERDICT_AGAIN_MS, VERDICT_MS_MAX } from "./limits.ts";
import type { OutletWord, Verdict, VerdictResult } from "./words.ts";

/** Ticket that names a message that was lent; a consumer shows it. */
export interface LeaseTicket {
  readonly id: TupleId;
  readonly lease: number;
  /** Time at which the message was sent (envelope.ts EN1). */
  readonly sentMs: number;
  /** Sites that own the message; the one that lent it is the first. */
  readonly owners: readonly SiteId[];
}

/** Verdict as a consumer says it. */
export type VerdictSaid = Pick<Verdict, "kind" | "ms" | "error">;
/** Result of a verdict as the consumer gets it. `unreachable`: no owner could be heard. */
export type SaidResult = VerdictResult | "unreachable";

export interface VerdictPostPorts {
  readonly nowMs: () => number;
  readonly wake: (atMs: number) => void;
  readonly tell: (to: SiteId, word: Extract<OutletWord, { readonly kind: "verdicts" }>) => void;
  readonly isHeard: (site: SiteId) => boolean;
  readonly fail: (error: unknown) => void;
}

interface Pending {
  readonly verdict: Verdict;
  readonly owners: readonly SiteId[];
  readonly sinceMs: number;
  /** Place in `owners` of the site that was told last. */
  place: number;
  /** Sites that do not have the message. */
  readonly lacking: Set<SiteId>;
  againAtMs: number;
  readonly resolve: (result: SaidResult) => void;
}

export class VerdictPost {
  readonly #ports: VerdictPostPorts;
  /** Verdicts that are not settled, by number, oldest first. */
  readonly #pending = new Map<number, Pending>();
  /** Number of the last verdict of each lease (VP2). */
  readonly #last = new Map<string, number>();
  readonly #outgoing = new Map<SiteId, Verdict[]>();
  #number = 0;

  constructor(ports: VerdictPostPorts) {
    this.#ports = ports;
  }

  /** Number of verdicts that are not settled. */
  get size(): number {
    return this.#pending.size;
  }

  say({ id, lease, sentMs, owners }: LeaseTicket, { kind, ms, error }: VerdictSaid): Promise<SaidResult> {
    const nowMs = this.#ports.nowMs(), number = ++this.#number, key = `${lease} ${id}`;
    this.#settle(this.#last.get(key) ?? 0, "over");
    this.#last.set(key, number);
    const { promise, resolve } = Promise.withResolvers<SaidResult>();
    const pending: Pending = {
      verdict: { number, id, lease, sentMs, kind, ms, error },
      owners,
      sinceMs: nowMs,
      place: 0,
      lacking: new Set(),
      againAtMs: nowMs,
      resolve,
    };
    this.#pending.set(number, pending);
    if (this.#isHeard(owners[0])) this.#tell(pending);
    else this.#next(pending);
    return promise;
  }

  settled(from: SiteId, number: number, result: VerdictResult): void {
    const pending = this.#pending.get(number);
    if (pending === undefined) return;
    if (result !== "unknown") return this.#settle(number, result);
    pending.lacking.add(from);
    this.#next(pending);
  }

  /** Tells the next owner the verdicts that were told a site which can't be heard any more. */
  gone(site: SiteId): void {
    for (const pending of [...this.#pending.values()]) {
      if (pending.owners[pending.place] === site) this.#next(pending);
    }
  }

  /** Tells verdicts again, or gives them up, whose time has come. */
  tick(): void {
    const nowMs = this.#ports.nowMs();
    for (const pending of [...this.#pending.values()]) {
      if (nowMs >= pending.sinceMs + VERDICT_MS_MAX) this.#settle(pending.verdict.number, "unreachable");
      else if (nowMs >= pending.againAtMs) this.#next(pending);
      else this.#ports.wake(pending.againAtMs);
    }
  }

  close(): void {
    for (const number of [...this.#pending.keys()]) this.#settle(number, "unreachable");
  }

  /** Tells a verdict to the next site that may know of the message, or to the same one again. */
  #next(pending: Pending): void {
    const { owners, lacking, verdict: { number, kind } } = pending;
    if (kind !== "ack") { // VP1
      if (lacking.size > 0) return this.#settle(number, "unknown");
      if (!this.#isHeard(owners[0])) return this.#settle(number, "unreachable");
      return this.#tell(pending);
    }
    if (owners.every((site) => lacking.has(site))) return this.#settle(number, "unknown");
    for (let step = 1; step <= owners.length; step++) {
      const place = (pending.place + step) % owners.length, site = owners[place];
      if (site === undefined || lacking.has(site) || !this.#isHeard(site)) continue;
      pending.place = place;
      return this.#tell(pending);
    }
    // No owner is heard just now.
    this.#later(pending);
  }

  #isHeard(site: SiteId | undefined): boolean {
    return site !== undefined && this.#ports.isHeard(site);
  }

  #later(pending: Pending): void {
    pending.againAtMs = this.#ports.nowMs() + VERDICT_AGAIN_MS;
    this.#ports.wake(pending.againAtMs);
  }

  /** Sends a verdict to its current owner: what is said in one step goes in one word. */
  #tell(pending: Pending): void {
    this.#later(pending);
    const to = pending.owners[pending.place];
    if (to === undefined) return;
    let verdicts = this.#outgoing.get(to);
    if (verdicts === undefined) {
      this.#outgoing.set(to, verdicts = []);
      void Promise.resolve().then(() => {
        const all = this.#outgoing.get(to) ?? [];
        this.#outgoing.delete(to);
        this.#ports.tell(to, { kind: "verdicts", verdicts: all });
      }).catch(this.#ports.fail);
    }
    verdicts.push(pending.verdict);
  }

  #settle(number: number, result: SaidResult): void {
    const pending = this.#pending.get(number);
    if (pending === undefined) return;
    this.#pending.delete(number);
    const { lease, id } = pending.verdict, key = `${lease} ${id}`;
    if (this.#last.get(key) === number) this.#last.delete(key);
    pending.resolve(result);
  }
}
