/** Settings of a queue: what its app declares and an operator may override. */

/** Pauses before a message that was not acknowledged is delivered again. */
export type RetrySchedule =
  /** Pauses that double each time, from the least to the longest. */
  | { readonly minMs: number; readonly maxMs: number }
  /** Pauses one after the other; the last of them is repeated from there on. */
  | { readonly eachMs: readonly number[] };

export interface QueueSettings {
  /** Number of other sites that hold a message before its producer is told that it is stored. */
  readonly f: number;
  /** Time for which an id that a producer gives is stored once, counted from when the message was sent. */
  readonly dedupeMs: number;
  /** Deliveries before a message is given up. */
  readonly maxAttempts: number;
  /** Time for which a consumer has a message to itself. */
  readonly leaseMs: number;
  readonly retry: RetrySchedule;
  /** Messages of the queue that a site is responsible for, dead ones too, before producers there are refused. */
  readonly messagesMax: number;
  readonly bytesMax: number;
  /** Messages that a handler is given at once. (`batchWaitMs` is how long the first of them waits for the others.) */
  readonly batchMax: number;
  readonly batchWaitMs: number;
  /** Batches that handlers at one site have at one time. */
  readonly concurrency: number;
  /** Messages that the consumers at one site are given a second; Infinity: as many as they take. */
  readonly perSecond: number;
  /** True while no messages are given out. */
  readonly isPaused: boolean;
  /** Time before which all messages sent are removed; 0: none are. */
  readonly purgedBeforeMs: number;
  /**
   * Treatment of messages that are given up: they stay, for an operator, or are handed over to the app and then
   * removed, where there is anything that it wants with them.
   */
  readonly whenDead: "keep" | "hand over";
}

/** Settings that hold where an app declares nothing. */
export const QUEUE_DEFAULTS: QueueSettings = {
  f: 1,
  dedupeMs: 300_000,
  maxAttempts: 5,
  leaseMs: 30_000,
  retry: { minMs: 1_000, maxMs: 300_000 },
  messagesMax: 1_000_000,
  bytesMax: 4 * 1_024 ** 3,
  batchMax: 10,
  batchWaitMs: 0,
  concurrency: 10,
  perSecond: Infinity,
  isPaused: false,
  purgedBeforeMs: 0,
  whenDead: "keep",
};

/** Part of a pause that is drawn at random, so that what failed together does not come again together. */
const JITTER = 0.5;

/**
 * Returns the pause after a delivery that failed, in milliseconds.
 *
 * @param attempt number of the delivery; the first one is 1.
 * @param own the message's own schedule; null: its queue's.
 * @param unit drawn evenly from 0 to 1.
 */
export function pauseMs(
  retry: RetrySchedule,
  { attempt, own, unit }: {
    readonly attempt: number;
    readonly own: readonly number[] | null;
    readonly unit: number;
  },
): number {
  if (own !== null) return own[Math.min(attempt, own.length) - 1] ?? 0;
  if ("eachMs" in retry) return retry.eachMs[Math.min(attempt, retry.eachMs.length) - 1] ?? 0;
  const wholeMs = Math.min(retry.maxMs, retry.minMs * 2 ** Math.min(attempt - 1, 40));
  return wholeMs * (1 - JITTER * unit);
}

/**
 * Returns how many deliveries of a message there are before it is given up: where the message has a schedule of its
 * own, one more than that has pauses.
 */
export const attemptsMax = (
  { maxAttempts }: Pick<QueueSettings, "maxAttempts">,
  own: readonly number[] | null,
): number => own === null ? maxAttempts : own.length + 1;
