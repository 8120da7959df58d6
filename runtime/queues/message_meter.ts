/** Meter of what is done with the messages of queues at one site, for its metrics. */

/** Operation of a client of a queue: an app's function, or a program outside. */
export type QueueOperation = "send" | "receive" | "ack" | "retry" | "reject" | "extend" | "release";

/** Takes measures; a topic is `APP/QUEUE`. */
export interface MessageMeter {
  /**
   * Takes how long an operation took.
   *
   * @param error code of the problem that it ended with; null: none.
   */
  operated(topic: string, operation: QueueOperation, sinceMs: number, error: string | null): void;
  /** Takes how long an app's handler had a batch, or an endpoint a message; `error`: all of it failed with one. */
  handled(topic: string, sinceMs: number, error: string | null): void;
}
