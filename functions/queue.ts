/** The queues, as far as an app declares them. Sending to one is not built yet: it throws `not_available`. */
import type { InputOf, OutputOf, StandardSchema } from "./schema.ts";

/** Declared queue. */
export interface QueueDefinition<S extends StandardSchema = StandardSchema> {
  /** Mark of a queue's definition. */
  readonly kind: "queue";
  /** Schema that a message must match. */
  readonly schema: S;
  /** Number of sites beside the receiving one that hold a message before `send` resolves. */
  readonly f: number;
  /** Number of deliveries before a message is given up. */
  readonly maxAttempts: number;
}

/** Declares a queue for `defineApp({ queues })`. */
export function queue<S extends StandardSchema>(
  options: { readonly schema: S; readonly f?: number; readonly maxAttempts?: number },
): QueueDefinition<S> {
  return { kind: "queue", schema: options.schema, f: options.f ?? 1, maxAttempts: options.maxAttempts ?? 5 };
}

/** Queue as an app uses it. */
export interface Queue<S extends StandardSchema> {
  /**
   * Stores a message, to be delivered after `delayMs`; `id` makes sending it again harmless.
   *
   * @throws AppError `not_available` in this version.
   */
  send(message: InputOf<S>, options?: { readonly id?: string; readonly delayMs?: number }): Promise<void>;
}

/** Message delivered to the app's `queue` handler. */
export interface QueueMessage<T = unknown> {
  /** Id given by the sender, or drawn. */
  readonly id: string;
  /** Content of the message. */
  readonly body: T;
  /** Number of deliveries, this one included. */
  readonly attempts: number;
  /** Acknowledges the message: it is done. */
  ack(): void;
  /** Has the message come again, after `delayMs`. */
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
