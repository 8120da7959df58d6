/**
 * The consumers at one site that are the platform's own: what its outlet has for a queue is worked off in isolates of
 * the version that serves, or posted to the queue's endpoint (webhooks.ts).
 *
 * CN1 Nothing is begun once they stop; what runs is waited for, for a while, so that what is done is known to be.
 * CN2 Who handles a value of an app's KV has seen what its sender had (OX6), where a site can still tell.
 */
import type { DeliveryOutcome, MessageDelivery } from "../../functions/queues/hand.ts";
import type { Outlet } from "../../functions/queues/outlet.ts";
import { decodeKvDelivery } from "../../functions/queues/kv_queue.ts";
import type { TokenState } from "../../store/api/api.ts";
import type { LiveVersion } from "../deploy/mod.ts";
import type { Prepared } from "../gateway/app_runner.ts";
import type { OwnRunServices } from "../gateway/own_run.ts";
import { type MessageOutcome, runQueue } from "../gateway/queue_run.ts";
import { pause } from "../observe/pause.ts";
import { type DeclaredQueues, namesOf } from "./declared_queues.ts";
import type { MessageMeter } from "./message_meter.ts";
import type { Webhooks } from "./webhooks.ts";

/** What the consumers need of their site. */
export interface ConsumersParts {
  readonly outlet: Pick<Outlet, "serve" | "unsettled">;
  readonly declared: Pick<DeclaredQueues, "get" | "handlerOf">;
  readonly running: OwnRunServices;
  readonly prepared: (version: LiveVersion) => Prepared;
  readonly meter: Pick<MessageMeter, "handled">;
  readonly webhooks: Pick<Webhooks, "serves" | "handle" | "close">;
  /** Opens a token of a session; null for one that says nothing any more. */
  readonly opened: (token: string) => TokenState | null;
}

const LOOK_MS = 10;

/** Consumers of queues at one site. */
export class Consumers {
  readonly #parts: ConsumersParts;
  /** By topic, what works its messages off here. */
  readonly #served = new Map<string, "handler" | "webhook">();
  #running = 0;
  #isStopping = false;

  constructor(parts: ConsumersParts) {
    this.#parts = parts;
  }

  /** Serves a queue, or serves it no more, as it is declared now and can be worked off here. */
  configured(topic: string): void {
    const { outlet } = this.#parts, by = this.#isStopping ? undefined : this.#consumerOf(topic);
    if (by === this.#served.get(topic)) return;
    if (by === undefined) {
      this.#served.delete(topic);
      return outlet.serve(topic, null);
    }
    this.#served.set(topic, by);
    outlet.serve(
      topic,
      by === "handler"
        ? (messages, say) => this.#handle(topic, messages, say)
        : (messages) => this.#posted(topic, messages),
    );
  }

  /** Ends all consumers, and waits up to `waitMs` for those that run (CN1). */
  async stop(waitMs: number): Promise<void> {
    this.#isStopping = true;
    for (const topic of [...this.#served.keys()]) this.configured(topic);
    const untilMs = performance.now() + waitMs, never = new AbortController();
    while (this.#isBusy() && performance.now() < untilMs) await pause(LOOK_MS, never.signal);
    this.#parts.webhooks.close();
    if (this.#running > 0) await pause(LOOK_MS, never.signal); // what is given up goes back
  }

  #consumerOf(topic: string): "handler" | "webhook" | undefined {
    const consumer = this.#parts.declared.get(topic)?.consumer;
    if (consumer === "webhook") return this.#parts.webhooks.serves(topic) ? "webhook" : undefined;
    return consumer === "handler" ? "handler" : undefined;
  }

  #isBusy(): boolean {
    return this.#running > 0 || this.#parts.outlet.unsettled > 0;
  }

  async #posted(
    topic: string,
    messages: readonly MessageDelivery[],
  ): Promise<readonly DeliveryOutcome[]> {
    this.#running++;
    try {
      return await this.#parts.webhooks.handle(topic, messages);
    } finally {
      this.#running--;
    }
  }

  async #handle(
    topic: string,
    messages: readonly MessageDelivery[],
    say: (place: number, outcome: DeliveryOutcome) => void,
  ): Promise<readonly DeliveryOutcome[]> {
    const { declared, running, prepared, meter } = this.#parts, version = declared.handlerOf(topic);
    if (version === undefined || this.#isStopping) return messages.map(() => RELEASED);
    this.#running++;
    const sinceMs = performance.now();
    try {
      const outcomes = await runQueue(running, prepared(version), version, {
        queue: namesOf(topic).queue,
        messages: messages.map(({ ticket, attempt, envelope }) => ({
          id: envelope.id || ticket.id,
          ...{ sentMs: envelope.sentMs, attempt, format: envelope.format, body: envelope.body },
        })),
        said: (place, outcome) => say(place, deliveryOf(outcome)),
        seen: this.#seenBy(topic, messages),
      });
      const isFailed = outcomes.length > 0 && outcomes.every(({ kind }) => kind === "failed");
      meter.handled(topic, sinceMs, isFailed ? "app_error" : null);
      return outcomes.map(deliveryOf);
    } finally {
      this.#running--;
    }
  }

  /** Returns what the sender of a KV's value had seen (CN2); null for any other queue, and where nothing is known. */
  #seenBy(topic: string, [first]: readonly MessageDelivery[]): TokenState | null {
    const { declared, opened } = this.#parts;
    if (first === undefined || declared.get(topic)?.isOfKv !== true) return null;
    const { seen } = decodeKvDelivery(first.envelope.undelivered);
    return seen === "" ? null : opened(seen);
  }
}

const RELEASED: DeliveryOutcome = { kind: "release", ms: null, error: "" };

function deliveryOf(outcome: MessageOutcome): DeliveryOutcome {
  if (outcome.kind === "failed") return { kind: "retry", ms: null, error: outcome.error };
  if (outcome.kind === "retry") return { kind: "retry", ms: outcome.delayMs ?? null, error: "" };
  return { kind: outcome.kind, ms: null, error: "" };
}
