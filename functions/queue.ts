/**
 * Queues, as far as an app declares them. Sending to one is not built yet: it throws `not_available`.
 */
import type { InputOf, OutputOf, StandardSchema } from "./schema.ts";

/** A declared queue. */
export interface QueueDefinition<S extends StandardSchema = StandardSchema> {
  /** Marks what it is. */
  readonly kind: "queue";
  /** What a message must match. */
  readonly schema: S;
  /** Sites beside the receiving one that hold a message before `send` resolves. */
  readonly f: number;
  /** Deliveries before a message is given up. */
  readonly maxAttempts: number;
}

/** Declares a queue for `defineApp({ queues })`. */
export function queue<S extends StandardSchema>(
  options: { readonly schema: S; readonly f?: number; readonly maxAttempts?: number },
): QueueDefinition<S> {
  return { kind: "queue", schema: options.schema, f: options.f ?? 1, maxAttempts: options.maxAttempts ?? 5 };
}

/** A queue as an app uses it. */
export interface Queue<S extends StandardSchema> {
  /** Stores a message; `id` makes sending it again harmless. */
  send(message: InputOf<S>, options?: { readonly id?: string; readonly delayMs?: number }): Promise<void>;
}

/** One message delivered to the app's `queue` handler. */
export interface QueueMessage<T = unknown> {
  /** Given by the sender, or drawn. */
  readonly id: string;
  /** The message. */
  readonly body: T;
  /** How often it was delivered, this time included. */
  readonly attempts: number;
  /** It is done. */
  ack(): void;
  /** It is to come again. */
  retry(options?: { readonly delayMs?: number }): void;
}

/** Messages of one queue, delivered together. */
export interface QueueBatch<T = unknown> {
  /** The queue's name. */
  readonly queue: string;
  /** The messages to work off. */
  readonly messages: readonly QueueMessage<T>[];
}

/** The type of a queue's messages. */
export type MessageOf<Q> = Q extends QueueDefinition<infer S> ? OutputOf<S> : never;
