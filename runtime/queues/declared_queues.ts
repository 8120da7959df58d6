/**
 * The queues that apps declare, as one site sees them: each under its topic, with the settings of the version that
 * serves, and what operators ordered.
 *
 * DQ1 A queue that is declared nowhere any more has no settings: its messages stay, and nobody gets them, until a
 *     version declares it again or its app is gone.
 * DQ2 Each app has a queue for its KV, which is listed where its version that serves listens to it. Where none does, a
 *     message of it waits at one site alone: no other is watched for it.
 */
import { KV_QUEUE, KV_QUEUE_SETTINGS } from "../../functions/queues/kv_queue.ts";
import { QUEUE_DEFAULTS, type QueueSettings } from "../../functions/queues/settings.ts";
import type { AppTable, LiveApp, LiveVersion } from "../deploy/mod.ts";
import { TIMEOUT_MS } from "./webhook_post.ts";

/** Returns the topic of an app's queue. */
export const topicOf = (app: string, queue: string): string => `${app}/${queue}`;

/** Returns the names in a topic; neither apps' names nor queues' have a "/". */
export function namesOf(topic: string): { readonly app: string; readonly queue: string } {
  const at = topic.indexOf("/");
  return { app: topic.slice(0, at), queue: topic.slice(at + 1) };
}

/** What is given the messages of a queue: the handler of the app, its endpoint outside, or whoever pulls. */
export type QueueConsumer = "handler" | "webhook" | "pull";

type StoredQueue = LiveVersion["manifest"]["queues"][string];

/** Queue of an app. */
export interface DeclaredQueue {
  readonly topic: string;
  readonly settings: QueueSettings;
  /** The consumer of the version that serves; "pull" where that one does not declare the queue. */
  readonly consumer: QueueConsumer;
  /** Endpoint that is posted the messages; undefined: no version that serves has one for them. */
  readonly webhook: StoredQueue["webhook"];
  /** True for the queue of the app's KV: no program outside has to do with it. */
  readonly isOfKv: boolean;
}

/** Endpoint of a queue, with the version that declares it. */
export type DeclaredWebhook = NonNullable<StoredQueue["webhook"]> & { readonly version: LiveVersion };

/** Returns the settings that operators have ordered. */
const ordered = (
  { paused = false, purgedBeforeMs = 0 }: NonNullable<LiveApp["record"]["queues"]>[string] = {},
) => ({
  isPaused: paused,
  purgedBeforeMs,
});

/** Time of a lease beside the time that a handler or an endpoint has: for an isolate to be started, and for a busy site. */
const LEASE_MARGIN_MS = 30_000;

/** Queues that apps declare, by topic. */
export class DeclaredQueues {
  readonly #apps: Pick<AppTable, "get" | "list">;
  readonly #wallMs: number;
  readonly #known = new Map<string, DeclaredQueue>();

  /** @param wallMs how long a handler may take at this site. */
  constructor(apps: Pick<AppTable, "get" | "list">, wallMs: number) {
    this.#apps = apps;
    this.#wallMs = wallMs;
    this.refresh();
  }

  /** Topics of the queues that are declared, and of those of KVs that are listened to (DQ2). */
  get topics(): string[] {
    return [...this.#known.values()].filter(({ isOfKv, consumer }) => !isOfKv || consumer === "handler")
      .map(({ topic }) => topic);
  }

  get(topic: string): DeclaredQueue | undefined {
    return this.#known.get(topic);
  }

  /**
   * Number of other sites that any queue has to do with: those that own its messages with this one, and where messages
   * may be pulled, one at least that could be asked for them.
   */
  get others(): number {
    let most = 0;
    for (const { settings, consumer, isOfKv } of this.#known.values()) {
      most = Math.max(most, settings.f, consumer === "pull" && !isOfKv ? 1 : 0);
    }
    return most;
  }

  /** Returns the version that handles the messages of a queue. */
  handlerOf(topic: string): LiveVersion | undefined {
    return this.get(topic)?.consumer === "handler" ? this.#apps.get(namesOf(topic).app)?.current : undefined;
  }

  /** Returns the endpoint that is posted the messages of a queue. */
  webhookOf(topic: string): DeclaredWebhook | undefined {
    const webhook = this.get(topic)?.webhook, version = this.#apps.get(namesOf(topic).app)?.current;
    return webhook === undefined || version === undefined ? undefined : { ...webhook, version };
  }

  /** Returns whether an app serves here. */
  hasApp(app: string): boolean {
    return this.#apps.get(app) !== undefined;
  }

  /** Looks at the apps anew. @returns the topics of queues that have changed, or are declared no more. */
  refresh(): string[] {
    const now = new Map(this.#apps.list().flatMap((app) => this.#of(app).map((one) => [one.topic, one])));
    const changed = [...new Set([...this.#known.keys(), ...now.keys()])].filter((topic) =>
      JSON.stringify(this.#known.get(topic)) !== JSON.stringify(now.get(topic))
    );
    this.#known.clear();
    for (const [topic, queue] of now) this.#known.set(topic, queue);
    return changed;
  }

  /** Returns the queues of an app, also those of a version that is only about to serve: it may send to them. */
  #of({ name, record, current, rollout, preparing }: LiveApp): DeclaredQueue[] {
    const queues = {
      ...preparing?.manifest.queues,
      ...rollout?.next.manifest.queues,
      ...current.manifest.queues,
    };
    const listens = current.manifest.handlers?.includes("listenQueue") === true;
    const ofKv: DeclaredQueue = {
      topic: topicOf(name, KV_QUEUE),
      settings: {
        ...KV_QUEUE_SETTINGS,
        f: listens ? KV_QUEUE_SETTINGS.f : 0,
        leaseMs: this.#wallMs + LEASE_MARGIN_MS,
        ...ordered(record.queues?.[KV_QUEUE]),
      },
      consumer: listens ? "handler" : "pull",
      webhook: undefined,
      isOfKv: true,
    };
    const declared = Object.entries(queues).map(([queue, declared]) => {
      const consumer = Object.hasOwn(current.manifest.queues, queue)
        ? consumerOf(declared, current.manifest.handlers)
        : "pull";
      return {
        topic: topicOf(name, queue),
        settings: { ...this.#settings(declared), ...ordered(record.queues?.[queue]) },
        consumer,
        webhook: consumer === "webhook" ? declared.webhook : undefined,
        isOfKv: false,
      };
    });
    return [...declared, ofKv];
  }

  #settings(declared: StoredQueue): QueueSettings {
    const { retryMinMs, retryMaxMs, pull: _, webhook, ...others } = declared, { retry } = QUEUE_DEFAULTS;
    const plain = "minMs" in retry ? retry : { minMs: 0, maxMs: 0 };
    const minMs = retryMinMs ?? plain.minMs;
    const pick = <Name extends keyof QueueSettings & keyof typeof others>(name: Name): QueueSettings[Name] =>
      (others[name] ?? QUEUE_DEFAULTS[name]) as QueueSettings[Name];
    return {
      ...QUEUE_DEFAULTS,
      f: pick("f"),
      maxAttempts: pick("maxAttempts"),
      batchMax: pick("batchMax"),
      batchWaitMs: pick("batchWaitMs"),
      concurrency: pick("concurrency"),
      dedupeMs: pick("dedupeMs"),
      perSecond: pick("perSecond"),
      messagesMax: pick("messagesMax"),
      bytesMax: pick("bytesMax"),
      leaseMs: LEASE_MARGIN_MS + (webhook === undefined ? this.#wallMs : webhook.timeoutMs ?? TIMEOUT_MS),
      retry: { minMs, maxMs: Math.max(minMs, retryMaxMs ?? plain.maxMs) },
      ...webhook === undefined ? {} : ONE_BY_ONE,
    };
  }
}

/** Settings of a queue that is posted to an endpoint: a post is one message. */
const ONE_BY_ONE = { batchMax: 1, batchWaitMs: 0 } as const satisfies Partial<QueueSettings>;

function consumerOf({ pull, webhook }: StoredQueue, handlers: readonly string[] = []): QueueConsumer {
  if (webhook !== undefined) return "webhook";
  return pull !== true && handlers.includes("queue") ? "handler" : "pull";
}
