/**
 * What must hold of a history of queues. It reads what producers and consumers saw, what happened to sites, and what is
 * left at the end, and knows neither tuples nor words.
 *
 * - conservation: what a producer was told is stored is done by a consumer, or given up for the reason that is given.
 * - doubled: it is done once, unless its producer or a consumer's site could not be heard for a while, a site that had
 *   it died, or the consumer was late.
 * - together: no two consumers have it at one time, with the same exceptions.
 * - early: it comes no sooner than its producer or its last consumer has said.
 * - expired: it does not come after it expired.
 * - rate, batches: a site's consumers get no more than their queue's settings say, in time and at once.
 * - attempts: it is tried no more often than its queue says, and given up for that no sooner.
 * - poison: one that kills the site of its consumer comes to its end, too.
 */
import type { QueueSettings } from "../../../functions/queues/settings.ts";
import type { Excused } from "../../sim/excuses.ts";
import type { QueueEvent } from "./queue_site.ts";

export type Told =
  & (
    | QueueEvent
    | { readonly kind: "cut" | "healed" }
    | { readonly kind: "stored"; readonly message: string }
    /** An operator has it come again. */
    | { readonly kind: "redriven"; readonly message: string }
    /** It is found to be given up. */
    | { readonly kind: "dead"; readonly message: string; readonly cause: string; readonly attempts: number }
  )
  & { readonly atMs: number };

export interface Ordered {
  readonly message: string;
  readonly queue: string;
  readonly atMs: number;
  readonly delayMs: number;
  readonly ttlMs: number | null;
}

export interface History {
  readonly told: readonly Told[];
  readonly ordered: readonly Ordered[];
  readonly settings: ReadonlyMap<string, QueueSettings>;
  readonly pulls: ReadonlySet<string>;
  /** Whether anything goes wrong between sites at all. */
  readonly isCalm: boolean;
}

export interface Violation {
  readonly checker: string;
  readonly message: string;
  readonly atMs: number;
}

type Begun = Extract<Told, { readonly kind: "begun" }>;
type Said = Extract<Told, { readonly kind: "said" }>;

/** From the owner, which looks at the clock, to the consumer. */
const WAY_MS = 1_500;
/** So long after something was wrong its effects show. */
const SETTLING_MS = 6_000;
/** What a verdict takes to its owner while all is well. */
const VERDICT_MS = 400;
/** A bucket that is full has what comes in so long. */
const FILL_MS = 1_000;

interface Delivered {
  readonly begun: Begun;
  said: Said | null;
}

export function check(history: History, excused: Excused = () => {}): Violation[] {
  const violations: Violation[] = [];
  const say = (checker: string, atMs: number, message: string) => violations.push({ checker, message, atMs });
  const { told, ordered, settings } = history;
  const byMessage = new Map<string, Delivered[]>(), byNumber = new Map<string, Delivered>();
  const troubles: number[] = [];
  /** By message, when it began again: it does not expire any more. */
  const redrivenMs = new Map<string, number>();
  for (const event of told) {
    if (event.kind === "begun") {
      const delivered = { begun: event, said: null };
      byMessage.set(event.message, [...byMessage.get(event.message) ?? [], delivered]);
      byNumber.set(`${event.site} ${event.number}`, delivered);
    } else if (event.kind === "said") {
      const delivered = byNumber.get(`${event.site} ${event.number}`);
      if (delivered !== undefined) delivered.said = event;
    } else if (event.kind === "redriven") redrivenMs.set(event.message, event.atMs);
    else if (event.kind === "fatal") say("fault", event.atMs, `${event.site}: ${event.text}`);
    else if (["down", "suspects", "trusts", "cut", "healed", "closed", "up"].includes(event.kind)) {
      troubles.push(event.atMs);
    }
  }
  const isTroubled = (fromMs: number, toMs: number) =>
    !history.isCalm && troubles.some((atMs) => atMs >= fromMs - SETTLING_MS && atMs <= toMs);
  for (const order of ordered) {
    const delivered = byMessage.get(order.message) ?? [], plan = settings.get(order.queue);
    if (plan === undefined) continue;
    const expiresMs = order.ttlMs === null ? Infinity : order.atMs + order.ttlMs;
    const untilMs = redrivenMs.get(order.message) ?? Infinity;
    checkTimes({ ...order, expiresMs }, delivered.filter(({ begun }) => begun.atMs < untilMs), plan, {
      isCalm: history.isCalm,
      say,
    });
    checkTwice(order, delivered, plan, { isTroubled, say, excused });
  }
  checkEnds(history, byMessage, say);
  checkRates(history, say);
  checkPoison(history, say);
  return violations;
}

type Say = (checker: string, atMs: number, message: string) => void;

function checkTimes(
  { message, atMs, delayMs, expiresMs }: Ordered & { readonly expiresMs: number },
  delivered: readonly Delivered[],
  { leaseMs }: QueueSettings,
  { isCalm, say }: { readonly isCalm: boolean; readonly say: Say },
): void {
  for (const [i, { begun }] of delivered.entries()) {
    const askedMs = delivered.slice(0, i).map(({ said }) =>
      said?.kind === "said" && said.outcome === "retry" && said.ms !== null ? said.atMs + said.ms : -Infinity
    );
    if (begun.atMs < atMs + delayMs) {
      say("early", begun.atMs, `${message} came ${begun.atMs - atMs} ms after it was sent, not ${delayMs}`);
    }
    const last = askedMs.at(-1) ?? -Infinity;
    // What a site that is gone had to say has reached nobody.
    if (isCalm && begun.atMs < last) {
      say("early", begun.atMs, `${message} came ${last - begun.atMs} ms before its consumer wanted it again`);
    }
    if (begun.atMs > expiresMs + WAY_MS + leaseMs) {
      say("expired", begun.atMs, `${message} came ${begun.atMs - expiresMs} ms after it was worth nothing`);
    }
  }
}

function checkTwice(
  { message, queue }: Ordered,
  delivered: readonly Delivered[],
  { leaseMs }: QueueSettings,
  { isTroubled, say, excused }: {
    readonly isTroubled: (fromMs: number, toMs: number) => boolean;
    readonly say: Say;
    readonly excused: Excused;
  },
): void {
  for (const [i, { begun }] of delivered.entries()) {
    for (const before of delivered.slice(0, i)) {
      const endMs = before.said?.atMs ?? Infinity;
      const isDone = before.said?.outcome === "ack" && endMs < begun.atMs;
      const isHeld = endMs > begun.atMs;
      if (!isDone && !isHeld) continue;
      const checker = isDone ? "doubled" : "together";
      const isLate = Math.min(endMs + VERDICT_MS, begun.atMs) >= before.begun.atMs + leaseMs * 0.8;
      if (isLate) excused(`${checker}: the consumer was late`);
      else if (isTroubled(before.begun.atMs, begun.atMs)) {
        excused(`${checker}: a site was gone, or not heard`);
      } else {
        say(
          checker,
          begun.atMs,
          `${message} of ${queue} was begun at ${before.begun.site}, ${before.begun.atMs} ms, and ended ${endMs}, ` +
            `and came again to ${begun.site}`,
        );
      }
      break;
    }
  }
}

/** Conservation, and what is given up. */
function checkEnds(
  { told, ordered, settings, isCalm }: History,
  byMessage: ReadonlyMap<string, readonly Delivered[]>,
  say: Say,
): void {
  const queueOf = new Map(ordered.map((order) => [order.message, order]));
  const deaths = new Map<string, Extract<Told, { readonly kind: "dead" }>[]>();
  for (const event of told) {
    if (event.kind !== "dead") continue;
    deaths.set(event.message, [...deaths.get(event.message) ?? [], event]);
    const order = queueOf.get(event.message), plan = settings.get(order?.queue ?? "");
    const delivered = byMessage.get(event.message) ?? [];
    if (order === undefined || plan === undefined) {
      say("attempts", event.atMs, `${event.message} is dead, and nobody had sent it`);
      continue;
    }
    const hasRejected = delivered.some(({ said }) => said?.outcome === "reject");
    if (event.cause === "rejected" && !hasRejected) {
      say("attempts", event.atMs, `${event.message} was rejected by nobody`);
    }
    if (event.cause === "expired" && (order.ttlMs === null || event.atMs < order.atMs + order.ttlMs)) {
      say("expired", event.atMs, `${event.message} expired before its time`);
    }
    if (event.cause === "attempts") {
      if (event.attempts < plan.maxAttempts) {
        say("attempts", event.atMs, `${event.message} was given up after ${event.attempts} attempts`);
      }
      if (isCalm && delivered.length < plan.maxAttempts) {
        say("attempts", event.atMs, `${event.message} was given up and delivered ${delivered.length} times`);
      }
    }
  }
  for (const event of told) {
    if (event.kind !== "stored") continue;
    const delivered = byMessage.get(event.message) ?? [];
    if (delivered.some(({ said }) => said?.outcome === "ack")) continue;
    if ((deaths.get(event.message) ?? []).length > 0) continue;
    const times = `it was delivered ${delivered.length} times`;
    say(
      "conservation",
      event.atMs,
      `${event.message} was acknowledged, and is neither done nor dead: ${times}`,
    );
  }
  for (const [message, delivered] of byMessage) {
    const order = queueOf.get(message), plan = settings.get(order?.queue ?? "");
    if (plan === undefined || !isCalm) continue;
    const redriven = told.filter((event) => event.kind === "redriven" && event.message === message).length;
    if (delivered.length > plan.maxAttempts * (1 + redriven)) {
      say(
        "attempts",
        delivered.at(-1)?.begun.atMs ?? 0,
        `${message} was delivered ${delivered.length} times`,
      );
    }
  }
}

/** By site and process. */
function checkRates({ told, settings, pulls }: History, say: Say): void {
  const given = new Map<string, number[]>();
  for (const event of told) {
    if (event.kind === "up") {
      for (const key of [...given.keys()]) if (key.startsWith(`${event.site} `)) given.delete(key);
    }
    if (event.kind !== "begun") continue;
    const plan = settings.get(event.queue), key = `${event.site} ${event.queue}`;
    if (plan === undefined) continue;
    // A client that pulls says itself how many it takes.
    const isTooMany = event.batch > plan.batchMax || event.running > plan.concurrency;
    if (isTooMany && !pulls.has(event.queue)) {
      say("batches", event.atMs, `${key} has ${event.batch} at once, ${event.running} times`);
    }
    if (plan.perSecond === Infinity) continue;
    const times = given.get(key) ?? [];
    given.set(key, times);
    times.push(event.atMs);
    for (let i = Math.max(0, times.length - 200); i < times.length; i++) {
      const most = plan.perSecond * (event.atMs - (times[i] ?? 0) + FILL_MS) / 1_000;
      if (times.length - i > Math.max(most, 1) + 1) {
        say("rate", event.atMs, `${key} was given ${times.length - i} in ${event.atMs - (times[i] ?? 0)} ms`);
        times.length = 0;
      }
    }
  }
}

function checkPoison({ told, ordered, settings }: History, say: Say): void {
  const kills = new Map<string, number>(), queueOf = new Map(ordered.map((one) => [one.message, one.queue]));
  for (const event of told) {
    if (event.kind !== "killed") continue;
    const plan: QueueSettings | undefined = settings.get(queueOf.get(event.message) ?? "");
    const times = 1 + (kills.get(event.message) ?? 0);
    kills.set(event.message, times);
    // Each of its owners may not have heard what another one has written down.
    if (plan !== undefined && times === plan.maxAttempts * (plan.f + 1) + 2) {
      say("poison", event.atMs, `${event.message} has taken ${times} sites with it`);
    }
  }
}
