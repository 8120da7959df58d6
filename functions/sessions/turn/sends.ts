/**
 * Messages that a stateful session sends to queues. They are part of their turn's effect, as writes to the store are,
 * and leave with their handler's commit; a replay makes the same messages in the same places.
 *
 * TS1  A handler sends so many messages, of so many bytes, and no more: all of them leave in one frame, are stored
 *      before its answer leaves, and are in checkpoints until then.
 */
import { SEND_BYTES_MAX, SEND_MESSAGES_MAX } from "../../queues/limits.ts";
import { AppError } from "../../vocabulary/errors.ts";
import type { SentMessage } from "../../vocabulary/queue_sender.ts";
import type { Effect, EffectSend } from "./commit.ts";

/** Messages of one handler: four calls of `sendBatch`. */
export const HANDLER_SENDS_MAX = 4 * SEND_MESSAGES_MAX;
/**
 * Bytes of the bodies of one handler's messages: a sixth of the frame in which they leave, half of which is for what it
 * sends to clients (peers.ts).
 */
export const HANDLER_SEND_BYTES_MAX = 2 * SEND_BYTES_MAX;

/** Messages that a handler has sent so far. */
export interface Sent {
  readonly messages: number;
  readonly bytes: number;
}

export const NOTHING_SENT: Sent = { messages: 0, bytes: 0 };

/** Counts messages to those before them. @throws AppError `limit_message` (TS1) */
export function sentWith(before: Sent, queue: string, sent: readonly SentMessage[]): Sent {
  const messages = before.messages + sent.length;
  const bytes = sent.reduce((sum, { body }) => sum + body.length, before.bytes);
  if (messages <= HANDLER_SENDS_MAX && bytes <= HANDLER_SEND_BYTES_MAX) return { messages, bytes };
  throw new AppError(
    "limit_message",
    `cannot send to the queue ${queue}: it would be ${messages} messages of ${bytes} bytes in one handler of a ` +
      `stateful session, which sends up to ${HANDLER_SENDS_MAX}, of ${HANDLER_SEND_BYTES_MAX} bytes`,
    { queue },
  );
}

/** Reports whether the effects of one handler send more than it may (TS1). */
export function sendsTooMuch(effects: readonly Effect[]): boolean {
  const sends = effects.flatMap(({ sends = [] }) => sends);
  const bytes = sends.reduce((sum, { body }) => sum + body.length, 0);
  return sends.length > HANDLER_SENDS_MAX || bytes > HANDLER_SEND_BYTES_MAX;
}

/** A message to a queue with all of its options: "" for no id, 0 for no delay or time to live. */
export type FullSend = Required<EffectSend>;

/** Returns a message without the options that say nothing: each has one form. */
export const effectSend = ({ queue, body, id, delayMs, ttlMs }: FullSend): EffectSend => ({
  queue,
  body,
  ...id === "" ? {} : { id },
  ...delayMs === 0 ? {} : { delayMs },
  ...ttlMs === 0 ? {} : { ttlMs },
});
