/** The seam between an app's queues and the site that stores what is sent to them. */

/** A message on its way to a queue. */
export interface SentMessage {
  /** A value as rows have it (functions/values). */
  readonly body: Uint8Array;
  readonly id?: string;
  readonly delayMs?: number;
  readonly ttlMs?: number;
}

/** A message with the queue that it is for. */
export interface QueuedMessage extends SentMessage {
  readonly queue: string;
}

/** Takes messages of one request. */
export interface QueueSender {
  /** Resolves when all of them are stored. */
  send(queue: string, messages: readonly SentMessage[]): Promise<void>;
}
