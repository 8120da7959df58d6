/**
 * What functions and programs outside send, on its way to the broker of their site: each refusal becomes a code of the
 * platform's.
 *
 * SE1 Of messages that are sent together each is stored or refused by itself; the sender hears the first refusal, and
 *     the places of all that were refused.
 * SE2 A message of a stateful session has the tuple's id that its session's effect and its place there give, or that its
 *     own id gives: sent again at this site, it is the same message.
 * SE3 What an app's `enqueue` sends is read here, and goes on as a message with pauses and keys of its own: bytes that
 *     `enqueue` does not make are refused.
 */
import { decodeKvMessage, encodeKvDelivery, KV_QUEUE } from "../../functions/queues/kv_queue.ts";
import type { Broker, NewMessage } from "../../functions/queues/broker.ts";
import { QueueRefused } from "../../functions/queues/broker.ts";
import type { SessionMessage } from "../../functions/sessions/serve/ports.ts";
import type { SentMessage } from "../../functions/vocabulary/queue_sender.ts";
import type { ProblemCode } from "../../functions/vocabulary/problem.ts";
import { CodecError } from "../../store/model/codec.ts";
import { StoreUnavailable } from "../../store/api/api.ts";
import { TupleRefused } from "../../store/owners/tuples.ts";
import { OwnersError } from "../../store/presence/choose.ts";
import type { LiveVersion } from "../deploy/mod.ts";
import type { AppSends } from "../gateway/app_runner.ts";
import { topicOf } from "./declared_queues.ts";
import type { MessageMeter } from "./message_meter.ts";
import { tupleIdOfSession } from "./tuple_ids.ts";

/** Error of messages that were not sent. */
export class SendRefused extends Error {
  override readonly name = "SendRefused";
  constructor(
    readonly code: ProblemCode,
    message: string,
    /** Places of the messages that may not be stored, as `failed`. */
    readonly detail: { readonly queue: string; readonly failed: readonly number[] },
  ) {
    super(message);
  }
}

/** Sender of all apps at one site. */
export class QueueSends implements AppSends {
  readonly #broker: Pick<Broker, "send">;
  readonly #meter: Pick<MessageMeter, "operated">;

  constructor(broker: Pick<Broker, "send">, meter: Pick<MessageMeter, "operated">) {
    this.#broker = broker;
    this.#meter = meter;
  }

  async send(
    { app }: Pick<LiveVersion, "app">,
    queue: string,
    messages: readonly SentMessage[],
    trace: string,
  ): Promise<void> {
    await this.store(app, queue, messages.map((message) => ({ ...sentBy(queue, message), trace })));
  }

  /** Stores messages. @returns the id of each. @throws SendRefused (SE1) */
  async store(app: string, queue: string, messages: readonly NewMessage[]): Promise<string[]> {
    const topic = topicOf(app, queue), sinceMs = performance.now();
    const sent = await Promise.allSettled(messages.map((message) => this.#broker.send(topic, message)));
    const failed = sent.flatMap(({ status }, place) => status === "rejected" ? [place] : []);
    const [first] = failed;
    if (first === undefined) {
      this.#meter.operated(topic, "send", sinceMs, null);
      return sent.flatMap((one) => one.status === "fulfilled" ? one.value : []);
    }
    const { reason } = sent[first] as PromiseRejectedResult;
    const refusal = refusalOf(reason);
    // Who sends to a queue that there is not may name any: that is no series of its own.
    if (refusal?.code !== "queue_unknown") {
      this.#meter.operated(topic, "send", sinceMs, refusal?.code ?? "internal");
    }
    if (refusal === null) throw reason;
    const others = messages.length === 1 ? "" : ` (${failed.length} of ${messages.length} messages failed)`;
    throw new SendRefused(refusal.code, refusal.message + others, { queue, failed });
  }

  /**
   * Stores a message of a stateful session of an app (SE2).
   *
   * @param seen token of what its sender had seen, for a value of the app's KV; "": none.
   * @throws SendRefused, or the error of a fault.
   */
  async storeOfSession(
    app: string,
    { queue, message, key, place, sentMs }: SessionMessage,
    seen = "",
  ): Promise<void> {
    await this.store(app, queue, [{
      ...sentBy(queue, message, seen),
      ...{ sentMs, isKept: true },
      ...message.id === undefined ? { tuple: tupleIdOfSession(key, place) } : {},
    }]);
  }
}

/** Returns a message of an app, as its queue has it. @throws SendRefused (SE3) */
function sentBy(queue: string, message: SentMessage, seen = ""): NewMessage {
  if (queue !== KV_QUEUE) return { ...message, format: "value" };
  try {
    const { value, backoffMs, undelivered } = decodeKvMessage(message.body);
    const goes = { format: "value", undelivered: encodeKvDelivery({ seen, undelivered }) } as const;
    return { ...message, ...goes, body: value, ...backoffMs === null ? {} : { backoffMs } };
  } catch (error) {
    if (!(error instanceof CodecError)) throw error;
    throw new SendRefused("message_invalid", error.message, { queue, failed: [0] });
  }
}

/** Returns what the sender is told of an error; null for a fault. */
function refusalOf(error: unknown): { readonly code: ProblemCode; readonly message: string } | null {
  const { message } = error as Error;
  if (error instanceof QueueRefused) return { code: error.code, message };
  if (error instanceof OwnersError) return { code: "owners_too_few", message };
  if (error instanceof StoreUnavailable) return { code: "disk_failed", message };
  if (!(error instanceof TupleRefused)) return null;
  return { code: TUPLE_CODES[error.code], message };
}

const TUPLE_CODES = {
  owners_missing: "owners_unreachable",
  tuples_full: "queue_full",
  closed: "overloaded",
  tuple_invalid: "message_invalid",
} as const satisfies Record<TupleRefused["code"], ProblemCode>;
