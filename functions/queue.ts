/**
 * Queues, as far as an app declares them. Sending to one is not built yet: it throws `not_available`.
 */
import type { InputOf, OutputOf, StandardSchema } from "./schema.ts";

/** A declared queue. */
export interface QueueDefinition<S extends StandardSchema = StandardSchema> {
  readonly kind: "queue";
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
  send(message: InputOf<S>, options?: { readonly id?: string; readonly delayMs?: number }): Promise<void>;
}

/** One message delivered to the app's `queue` handler. */
export interface QueueMessage<T = unknown> {
  readonly id: string;
  readonly body: T;
  readonly attempts: number;
  ack(): void;
  retry(options?: { readonly delayMs?: number }): void;
}

/** Messages of one queue, delivered together. */
export interface QueueBatch<T = unknown> {
  readonly queue: string;
  readonly messages: readonly QueueMessage<T>[];
}

/** The type of a queue's messages. */
export type MessageOf<Q> = Q extends QueueDefinition<infer S> ? OutputOf<S> : never;
