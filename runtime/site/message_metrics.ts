/**
 * Metrics of messages in the queues of apps, by the semantic conventions of messaging where these have a name for it:
 * what was sent and taken at this site, how long that took, and what waits of what this site owns.
 */
import type { QueueEvent, QueueStatus } from "../../functions/queues/broker.ts";
import type { MessageMeter, QueueOperation } from "../queues/message_meter.ts";
import {
  type Family,
  Histogram,
  type Labels,
  type NumberSeries,
  observed,
  SECONDS,
} from "../telemetry/mod.ts";

type Operation = QueueOperation | "process";

/** Kinds of operations, as the conventions divide them. */
const TYPES: Readonly<Record<Operation, string>> = {
  ...{ send: "send", receive: "receive", process: "process" },
  ...{ ack: "settle", retry: "settle", reject: "settle", extend: "settle", release: "settle" },
};

/** Counts and measures messages. */
export class MessageMetrics implements MessageMeter {
  readonly #operations = new Histogram({
    name: "messaging.client.operation.duration",
    unit: "s",
    description:
      "Operations of functions and programs outside on queues: send, receive (a pull that got something), settle.",
  }, SECONDS);
  readonly #processing = new Histogram({
    name: "messaging.process.duration",
    unit: "s",
    description: "Calls of apps' handlers with a batch of messages, and posts of messages to webhooks.",
  }, SECONDS);
  #status: () => readonly QueueStatus[] = () => [];

  /** Families of all metrics of messages. */
  get families(): Family[] {
    return [
      observed("counter", {
        name: "messaging.client.sent.messages",
        unit: "{message}",
        description: "Messages that were sent to this site.",
      }, () =>
        this.#each(({ queue, counters: { sent = 0, refused = 0 } }) => [
          { labels: labelsOf(queue, "send"), value: sent },
          { labels: labelsOf(queue, "send", "queue_full"), value: refused },
        ])),
      observed("counter", {
        name: "messaging.client.consumed.messages",
        unit: "{message}",
        description: "Messages of this site that consumers were given, each time.",
      }, () =>
        this.#each(({ queue, counters: { delivered = 0, redelivered = 0 } }) => [
          { labels: labelsOf(queue, "receive"), value: delivered + redelivered },
        ])),
      this.#operations,
      this.#processing,
      observed(
        "gauge",
        {
          name: "queue.messages",
          unit: "{message}",
          description: "Messages that this site is responsible for, by what they wait for.",
        },
        () =>
          this.#each(({ queue, ready, delayed, lent, dead }) =>
            Object.entries({ ready, delayed, lent, dead }).map(([state, value]) => ({
              labels: [...placeOf(queue), ["state", state] as const],
              value,
            }))
          ),
      ),
      observed("gauge", {
        name: "queue.size",
        unit: "By",
        description: "Bytes of the messages that this site is responsible for.",
      }, () => this.#each(({ queue, bytes }) => [{ labels: placeOf(queue), value: bytes }])),
      observed("gauge", {
        name: "queue.oldest",
        unit: "s",
        description: "Time for which the message that has been ready longest has been so; 0 where none is.",
      }, () =>
        this.#each(({ queue, oldestMs }) => [
          { labels: placeOf(queue), value: (oldestMs ?? 0) / 1000 },
        ])),
      observed(
        "counter",
        {
          name: "queue.events",
          unit: "{event}",
          description: "What happened to messages that this site is responsible for.",
        },
        () =>
          this.#each(({ queue, counters }) =>
            (Object.entries(counters) as [QueueEvent, number][]).map(([event, value]) => ({
              labels: [...placeOf(queue), ["event", event] as const],
              value,
            }))
          ),
      ),
    ];
  }

  /** Sets where the state of this site's messages is read. */
  watch(status: () => readonly QueueStatus[]): void {
    this.#status = status;
  }

  operated(topic: string, operation: QueueOperation, sinceMs: number, error: string | null): void {
    this.#operations.of(labelsOf(topic, operation, error)).observe((performance.now() - sinceMs) / 1000);
  }

  handled(topic: string, sinceMs: number, error: string | null): void {
    this.#processing.of(labelsOf(topic, "process", error)).observe((performance.now() - sinceMs) / 1000);
  }

  #each(read: (status: QueueStatus) => readonly NumberSeries[]): NumberSeries[] {
    return this.#status().flatMap(read);
  }
}

const placeOf = (topic: string): Labels => [
  ["messaging.system", "sojourn"],
  ["messaging.destination.name", topic],
];

function labelsOf(topic: string, operation: Operation, error: string | null = null): Labels {
  return [
    ...placeOf(topic),
    ["messaging.operation.name", operation],
    ["messaging.operation.type", TYPES[operation]],
    ...error === null ? [] : [["error.type", error] as const],
  ];
}
