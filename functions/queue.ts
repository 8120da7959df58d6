/**
 * The queues, as an app declares and uses them. This is part of each app's bundle; the trusted side sends
 * (request_queue.ts).
 */
import type { InputOf, OutputOf, StandardSchema } from "./schema.ts";

/** Endpoint outside that a queue's messages are posted to, as Standard Webhooks has it. */
export interface WebhookOptions {
  /** Address, `https:` or `http:`. It need not be in `fetchHosts`; the operator has to permit it as those. */
  readonly url: string;
  /** Name of the declared secret with the key that signs: `whsec_` and 24 to 64 bytes in base64. */
  readonly secret: string;
  /** Time in which the endpoint answers; 15 s by default. */
  readonly timeoutMs?: number;
  /** Headers beside the post's own. They can be read in the manifest: no place for a secret. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** How a queue is worked off. */
export interface QueueOptions {
  /** Number of sites beside the receiving one that hold a message before `send` resolves; 1 by default. */
  readonly f?: number;
  /** Number of deliveries before a message is given up; 5 by default. */
  readonly maxAttempts?: number;
  /** True where programs outside pull the messages over HTTP, and the app's `queue` handler is given none. */
  readonly pull?: boolean;
  /** Endpoint that is posted the messages, one at a time; the app's `queue` handler is given none. */
  readonly webhook?: WebhookOptions;
  /** Number of messages that the handler is given at once; 10 by default. */
  readonly batchMax?: number;
  /** Time that the first message of a batch waits for others; 0 by default. */
  readonly batchWaitMs?: number;
  /** Number of calls of the handler, or posts to the endpoint, at one site at one time; 10 by default. */
  readonly concurrency?: number;
  /** Pause before a message comes again for the first time, twice as long each time; 1 s by default. */
  readonly retryMinMs?: number;
  /** Longest pause before a message comes again; 5 minutes by default. */
  readonly retryMaxMs?: number;
  /** Time for which an `id` is stored once; 5 minutes by default. */
  readonly dedupeMs?: number;
  /** Number of messages that the consumers of one site are given a second; unbounded by default. */
  readonly perSecond?: number;
  /** Number of messages that one site is responsible for before it refuses more; 1,000,000 by default. */
  readonly messagesMax?: number;
  /** Bytes of messages that one site is responsible for before it refuses more; 4 GiB by default. */
  readonly bytesMax?: number;
}

/** Declared queue. */
export interface QueueDefinition<S extends StandardSchema = StandardSchema> extends QueueOptions {
  /** Mark of a queue's definition. */
  readonly kind: "queue";
  /** Schema that a message must match. */
  readonly schema: S;
  /** Number of sites beside the receiving one that hold a message before `send` resolves. */
  readonly f: number;
  /** Number of deliveries before a message is given up. */
  readonly maxAttempts: number;
}

/**
 * Declares a queue for `defineApp({ queues })`.
 *
 * ```ts
 * import { queue } from "sojourn";
 * import * as z from "zod";
 * const sms = queue({ schema: z.object({ to: z.string(), text: z.string() }), f: 1, maxAttempts: 5 });
 * ```
 */
export function queue<S extends StandardSchema>(
  options: QueueOptions & { readonly schema: S },
): QueueDefinition<S> {
  return { ...options, kind: "queue", f: options.f ?? 1, maxAttempts: options.maxAttempts ?? 5 };
}

/** How a message is sent. */
export interface SendOptions {
  /** Id of the message: another one with the same id is not stored for `dedupeMs`, so sending again is harmless. */
  readonly id?: string;
  /** Time before which the message is not delivered; up to 30 days. */
  readonly delayMs?: number;
  /** Time after which the message is worth nothing, and is given up; up to 30 days. */
  readonly ttlMs?: number;
}

/** One of several messages that are sent together. */
export interface MessageToSend<T = unknown> extends SendOptions {
  /** Content of the message. */
  readonly body: T;
}

/** Queue as an app uses it. */
export interface Queue<S extends StandardSchema> {
  /**
   * Stores a message. Resolves when this site and `f` others have it on disk; in a stateful session when it is part of
   * the turn: it is stored with the handler's commit, before the handler's answer leaves, or never.
   *
   * @throws AppError `message_invalid` for a message that does not match the schema, `limit_message` for one that is
   *     too long; an error of the site: `queue_full`, `owners_too_few` where there are not so many sites, and
   *     `owners_unreachable` where they can't be reached: then the message may have been stored.
   */
  send(message: InputOf<S>, options?: SendOptions): Promise<void>;
  /**
   * Stores up to 500 messages together.
   *
   * @throws AppError as `send` does. Where the site refused some, their places are in the error's `detail.failed`, and
   *     all others are stored. In a stateful session no site refuses any: those that it has no room for wait.
   */
  sendBatch(messages: Iterable<MessageToSend<InputOf<S>>>): Promise<void>;
}

/** Message delivered to the app's `queue` handler. */
export interface QueueMessage<T = unknown> {
  /** Id given by the sender, or drawn. */
  readonly id: string;
  /** Time at which the message was sent. */
  readonly timestamp: Date;
  /** Content of the message. */
  readonly body: T;
  /** Number of deliveries, this one included. */
  readonly attempts: number;
  /** Acknowledges the message: it is done. The first call of `ack` or `retry` counts. */
  ack(): void;
  /** Has the message come again, after `delayMs` or its queue's pause. The first call of `ack` or `retry` counts. */
  retry(options?: { readonly delayMs?: number }): void;
}

/** Messages of one queue, delivered together. */
export interface QueueBatch<T = unknown> {
  /** Name of the queue. */
  readonly queue: string;
  /** The messages to work off. */
  readonly messages: readonly QueueMessage<T>[];
}

/** Type of a queue's messages. */
export type MessageOf<Q> = Q extends QueueDefinition<infer S> ? OutputOf<S> : never;
