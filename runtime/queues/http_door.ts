/**
 * The door of queues for programs outside, `/_sojourn/queues/…`, with a token of queues (deploy/roles.ts) or an admin's.
 * All are POST:
 *
 *   APP/NAME           stores the body as a message; headers say how it is sent
 *   APP/NAME/batch     stores several, as JSON
 *   APP/NAME/pull      lends messages to the client, as soon as there are some
 *   APP/NAME/ack       ends leases: the messages are done
 *   APP/NAME/retry     ends leases: the messages come again
 *   APP/NAME/reject    ends leases: the messages are given up
 *   APP/NAME/release   ends leases: nobody tried the messages
 *   APP/NAME/extend    gives leases more time
 *
 * QD1 A token opens its own queues, for sending or for consuming, and tells nothing of others: not whether they exist.
 * QD2 A client has messages only where it can be answered: those that came for one that is gone are given back.
 * QD3 What clients make a site hold for them is bounded: sends that are under way, and pulls that wait.
 */
import { z } from "zod";
import type { Outlet } from "../../functions/queues/outlet.ts";
import type { MessageDelivery } from "../../functions/queues/hand.ts";
import {
  BATCH_MESSAGES_MAX,
  DELAY_MS_MAX,
  LEASE_MS_MAX,
  QUEUE_MESSAGE_BYTES_MAX,
  SEND_BYTES_MAX,
} from "../../functions/queues/limits.ts";
import type { LeaseTicket, SaidResult, VerdictSaid } from "../../functions/queues/verdict_post.ts";
import { Problem } from "../../functions/vocabulary/problem.ts";
import { readLimited } from "../admin/body.ts";
import type { QueueScope } from "../deploy/roles.ts";
import { pause } from "../observe/pause.ts";
import { formatTraceparent, traceContextOf } from "../telemetry/mod.ts";
import { type DeclaredQueues, topicOf } from "./declared_queues.ts";
import { LEASE_CHARS_MAX, type LeaseSeal } from "./lease_seal.ts";
import type { MessageMeter, QueueOperation } from "./message_meter.ts";
import { messageIn, messagesIn, parsed, shownBody, tooLong } from "./outside_message.ts";
import { type QueueSends, SendRefused } from "./sends.ts";

/** What the door needs of its site. */
export interface QueueDoorParts {
  readonly outlet: Pick<Outlet, "pull" | "say">;
  readonly declared: Pick<DeclaredQueues, "get" | "hasApp">;
  readonly sends: Pick<QueueSends, "store">;
  readonly leases: LeaseSeal;
  readonly meter: Pick<MessageMeter, "operated">;
}

/** Requests to send that are under way at a site, each of them with up to 4 MiB. */
export const SENDS_AT_ONCE_MAX = 64;
/** Pulls that wait at a site: a connection each. */
export const PULLS_WAITING_MAX = 10_000;
/** Time of a lease that names none: what most jobs are done in, and soon enough where a client is gone. */
const LEASE_MS = 30_000;
const LEASE_MS_MIN = 1_000;
/** Time that a pull waits where it names none, and at most: proxies close what is silent for a minute. */
const WAIT_MS = 10_000, WAIT_MS_MAX = 30_000;
/** Time that a pull waits at least: the owners of messages are asked, and read them. */
const WAIT_MS_MIN = 200;
const PULLED_MESSAGES = 10;
/** Time that a client waits for an owner to take its word; the word is repeated for longer (verdict_post.ts). */
const SAYING_MS = 10_000;
/** Bytes of a request that is no message: as many leases as there may be. */
const REQUEST_BYTES_MAX = BATCH_MESSAGES_MAX * (LEASE_CHARS_MAX + 4);
const ERROR_CHARS_MAX = 1_000;

const pullSchema = z.strictObject({
  messages: z.int().min(1).max(BATCH_MESSAGES_MAX).default(PULLED_MESSAGES),
  waitMs: z.int().min(0).max(WAIT_MS_MAX).default(WAIT_MS),
  leaseMs: z.int().min(LEASE_MS_MIN).max(LEASE_MS_MAX).default(LEASE_MS),
});
const leases = z.array(z.string().max(LEASE_CHARS_MAX)).min(1).max(BATCH_MESSAGES_MAX);
const error = z.string().max(ERROR_CHARS_MAX).default("");
const endedSchema = z.strictObject({ leases });
const retriedSchema = z.strictObject({ leases, delayMs: z.int().min(0).max(DELAY_MS_MAX).optional(), error });
const rejectedSchema = z.strictObject({ leases, error });
const extendedSchema = z.strictObject({
  leases,
  leaseMs: z.int().min(LEASE_MS_MIN).max(LEASE_MS_MAX).default(LEASE_MS),
});

/** What clients say of messages, by the path's last part. */
const VERDICTS: Readonly<
  Record<Verdict, (given: unknown) => { readonly leases: readonly string[]; readonly said: VerdictSaid }>
> = {
  ack: (given) => ({ ...parsed(endedSchema, given), said: { kind: "ack", ms: null, error: "" } }),
  release: (given) => ({ ...parsed(endedSchema, given), said: { kind: "release", ms: null, error: "" } }),
  retry: (given) => {
    const { leases, delayMs = null, error } = parsed(retriedSchema, given);
    return { leases, said: { kind: "retry", ms: delayMs, error } };
  },
  reject: (given) => {
    const { leases, error } = parsed(rejectedSchema, given);
    return { leases, said: { kind: "reject", ms: null, error } };
  },
  extend: (given) => {
    const { leases, leaseMs } = parsed(extendedSchema, given);
    return { leases, said: { kind: "extend", ms: leaseMs, error: "" } };
  },
};

type Verdict = Exclude<QueueOperation, "send" | "receive">;
const isVerdict = (verb: string): verb is Verdict => Object.hasOwn(VERDICTS, verb);

/** Queue that a request is about. */
interface Named {
  readonly app: string;
  readonly queue: string;
  readonly topic: string;
}

/** Answers programs that send to queues and consume from them. */
export class QueueDoor {
  readonly #parts: QueueDoorParts;
  #sending = 0;
  #pulling = 0;
  #isClosed = false;

  constructor(parts: QueueDoorParts) {
    this.#parts = parts;
  }

  /** Answers a request; `path` is what follows `/_sojourn/queues/`. @throws Problem */
  async handle(request: Request, path: string, scope: QueueScope | null): Promise<Response> {
    const [app = "", queue = "", verb = "send", ...more] = path.split("/");
    const may = verb === "send" || verb === "batch" ? "send" : "consume";
    const isKnown = may === "send" || verb === "pull" || isVerdict(verb);
    if (!isKnown || more.length > 0 || (verb === "send" && path.split("/").length > 2)) {
      throw new Problem("not_found", `/_sojourn/queues/${path.slice(0, 200)} is no path of a queue`);
    }
    const named = { app, queue, topic: topicOf(app, queue) };
    permitted(named, may, scope);
    if (request.method !== "POST") {
      throw new Problem("method_not_allowed", `queues take POST, not ${request.method}`);
    }
    if (this.#isClosed) throw new Problem("draining", "this site is stopping: another one takes messages");
    this.#declared(named);
    if (may === "send") return await this.#send(request, named, verb === "batch");
    if (verb === "pull") return await this.#pull(request, named);
    if (isVerdict(verb)) return await this.#say(request, named, verb);
    throw new Error(`${verb} is known, and does nothing`);
  }

  /** Lets nobody in any more. */
  close(): void {
    this.#isClosed = true;
  }

  #declared({ app, queue, topic }: Named): void {
    const { declared } = this.#parts;
    const found = declared.get(topic);
    if (found !== undefined && !found.isOfKv) return;
    if (!declared.hasApp(app)) {
      throw new Problem("app_unknown", `no app is called ${JSON.stringify(app.slice(0, 100))}`);
    }
    throw new Problem("queue_unknown", `${app} has no queue called ${JSON.stringify(queue.slice(0, 100))}`);
  }

  // ── Producers ──

  async #send(request: Request, { app, queue }: Named, isBatch: boolean): Promise<Response> {
    if (this.#sending >= SENDS_AT_ONCE_MAX) {
      throw new Problem("overloaded", `${SENDS_AT_ONCE_MAX} requests to send are under way at this site`);
    }
    this.#sending++;
    try {
      const messages = isBatch
        ? messagesIn(await json(request, SEND_BYTES_MAX))
        : [messageIn(request.headers, await bytesOf(request, QUEUE_MESSAGE_BYTES_MAX))];
      const context = traceContextOf(request.headers);
      const trace = context === null ? "" : formatTraceparent(context);
      const ids = await this.#parts.sends.store(app, queue, messages.map((one) => ({ ...one, trace })));
      return Response.json(isBatch ? { ids } : { id: ids[0] }, { status: 202 });
    } catch (error) {
      throw error instanceof SendRefused ? new Problem(error.code, error.message, error.detail) : error;
    } finally {
      this.#sending--;
    }
  }

  // ── Consumers ──

  async #pull(request: Request, { app, queue, topic }: Named): Promise<Response> {
    const options = parsed(pullSchema, await json(request, REQUEST_BYTES_MAX));
    const consumer = this.#parts.declared.get(topic)?.consumer;
    if (consumer === "handler" || consumer === "webhook") {
      throw new Problem(
        "queue_handled",
        `the ${consumer} of ${app} gets the messages of ${queue}: a queue that is declared with pull: true can be pulled from`,
      );
    }
    if (this.#pulling >= PULLS_WAITING_MAX) {
      throw new Problem("overloaded", `${PULLS_WAITING_MAX} pulls wait at this site`);
    }
    this.#pulling++;
    const sinceMs = performance.now();
    const waitMs = Math.max(options.waitMs, WAIT_MS_MIN);
    const { signal } = request;
    const deliveries = await this.#parts.outlet.pull(topic, { ...options, waitMs }, signal)
      .finally(() => this.#pulling--);
    if (signal.aborted) { // QD2
      for (const { ticket } of deliveries) void this.#parts.outlet.say(ticket, RELEASED);
      throw new Problem("overloaded", "the client is gone");
    }
    if (deliveries.length > 0) this.#parts.meter.operated(topic, "receive", sinceMs, null);
    const messages = deliveries.flatMap((delivery) => this.#shown(topic, delivery) ?? []);
    return Response.json({ leaseMs: options.leaseMs, messages }, { headers: NO_STORE });
  }

  /** Returns a message as clients see it; null for one whose body can't be read: it is given up. */
  #shown(topic: string, { ticket, attempt, envelope }: MessageDelivery): unknown {
    const { id, sentMs, trace } = envelope;
    try {
      return {
        id: id || ticket.id,
        timestamp: new Date(sentMs).toISOString(),
        attempts: attempt,
        ...trace === "" ? {} : { traceparent: trace },
        ...shownBody(envelope),
        lease: this.#parts.leases.seal(topic, ticket),
      };
    } catch {
      void this.#parts.outlet.say(ticket, { kind: "reject", ms: null, error: "its body can't be read" });
      return null;
    }
  }

  async #say(request: Request, { topic }: Named, verb: Verdict): Promise<Response> {
    const { leases, said } = VERDICTS[verb](await json(request, REQUEST_BYTES_MAX));
    const tickets = leases.map((text, place) => this.#opened(topic, text, place));
    const waits = new AbortController(), sinceMs = performance.now();
    const late = pause(SAYING_MS, waits.signal).then((): SaidResult => "unreachable");
    const results = await Promise.all(
      tickets.map((ticket) => Promise.race([this.#parts.outlet.say(ticket, said), late])),
    );
    waits.abort();
    const isHeard = !results.includes("unreachable");
    this.#parts.meter.operated(topic, verb, sinceMs, isHeard ? null : "unreachable");
    // Whether an owner remembers a message that is done, or none does any more, is nothing to a client.
    const told = results.map((result) => result === "unknown" ? "over" : result);
    return Response.json({ results: told }, { headers: NO_STORE });
  }

  #opened(topic: string, text: string, place: number): LeaseTicket {
    const ticket = this.#parts.leases.open(topic, text);
    if (ticket !== null) return ticket;
    throw new Problem("lease_invalid", `leases.${place} is no lease of a message of this queue`);
  }
}

const NO_STORE = { "cache-control": "no-store" };
const RELEASED: VerdictSaid = { kind: "release", ms: null, error: "" };

/** @throws Problem for a token that is for something else (QD1). */
function permitted({ app, queue }: Named, may: "send" | "consume", scope: QueueScope | null): void {
  const isIn = scope === null ||
    (scope.may === may && scope.app === app && (scope.queue === null || scope.queue === queue));
  if (isIn) return;
  const of = scope.queue === null ? scope.app : `${scope.app}/${scope.queue}`;
  throw new Problem("admin_role", `this token is for ${scope.may}:${of}, and for nothing else`);
}

async function bytesOf(request: Request, bytesMax: number): Promise<Uint8Array> {
  const bytes = await readLimited(request.body, bytesMax);
  if (bytes === null) throw tooLong(`the body has more than ${bytesMax} bytes`);
  return bytes;
}

/** Returns the JSON of a request; `{}` where it has no body. @throws Problem */
async function json(request: Request, bytesMax: number): Promise<unknown> {
  const bytes = await readLimited(request.body, bytesMax);
  if (bytes === null) throw new Problem("limit_message", `a request here has up to ${bytesMax} bytes`);
  if (bytes.length === 0) return {};
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch {
    throw new Problem("query_invalid", "the request is no JSON");
  }
}
