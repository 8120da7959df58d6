/**
 * What `enqueue` of a KV sends: its value and options are checked, and its errors worded, as Deno's are.
 *
 * EQ1  A call that throws has sent nothing, and added nothing to its atomic operation.
 */
import type { Key } from "../store/model/key.ts";
import { KV_SPACE, packUserKey } from "./key_space.ts";
import type { KvEnqueueOptions, KvKey } from "./kv_interface.ts";
import {
  BACKOFF_PAUSE_MS_MAX,
  BACKOFF_PAUSES_MAX,
  encodeKeys,
  encodeKvMessage,
  ENQUEUED_BYTES_MAX,
  KV_QUEUE,
  UNDELIVERED_KEYS_BYTES_MAX,
} from "./queues/kv_queue.ts";
import { DELAY_MS_MAX } from "./queues/limits.ts";
import { encodeValue } from "./values/value.ts";
import { codeOf, KvTypeError } from "./vocabulary/errors.ts";
import type { QueuedMessage } from "./vocabulary/queue_sender.ts";

const invalid = (message: string): KvTypeError => new KvTypeError("message_invalid", message);

/**
 * Returns a value as a message of the KV's queue.
 *
 * @throws KvTypeError `message_invalid` for an option, `limit_message`; `key_invalid`, `limit_key` for a key;
 *     `value_invalid`.
 */
export function enqueued(value: unknown, options?: KvEnqueueOptions | null): QueuedMessage {
  const { delay, backoffSchedule, keysIfUndelivered } = options ?? {};
  const delayMs = delayOf(delay), backoffMs = backoffOf(backoffSchedule), keys = keysOf(keysIfUndelivered);
  const body = encodeKvMessage({ value: encoded(value), backoffMs, keys });
  return { queue: KV_QUEUE, body, ...delayMs === 0 ? {} : { delayMs } };
}

function delayOf(delay: unknown): number {
  if (delay === undefined || delay === null) return 0;
  if (typeof delay !== "number") throw invalid(`Delay must be a number: received ${typeof delay}`);
  if (Number.isNaN(delay)) throw invalid("Delay cannot be NaN");
  if (delay < 0) throw invalid(`Delay must be >= 0: received ${delay}`);
  if (delay > DELAY_MS_MAX) throw invalid(`Delay cannot be greater than 30 days: received ${delay}`);
  return Math.floor(delay);
}

function backoffOf(schedule: unknown): readonly number[] | null {
  if (schedule === undefined) return null;
  if (!Array.isArray(schedule)) {
    throw invalid("Invalid backoffSchedule, an array of milliseconds is expected");
  }
  if (schedule.length > BACKOFF_PAUSES_MAX) {
    throw invalid(`Invalid backoffSchedule, max ${BACKOFF_PAUSES_MAX} intervals allowed`);
  }
  return Array.from(schedule as readonly unknown[], (ms, i) => {
    if (typeof ms === "number" && ms >= 0 && ms <= BACKOFF_PAUSE_MS_MAX) return Math.floor(ms);
    throw invalid(`Invalid backoffSchedule, interval at index ${i} is invalid`);
  });
}

function keysOf(keys: unknown): readonly Key[] {
  if (keys === undefined || keys === null) return [];
  if (!Array.isArray(keys)) throw invalid("Invalid keysIfUndelivered, an array of keys is expected");
  const packed = (keys as readonly KvKey[]).map((key) => packUserKey(key).slice(KV_SPACE.length) as Key);
  const { length } = encodeKeys(packed);
  if (length <= UNDELIVERED_KEYS_BYTES_MAX) return packed;
  throw new KvTypeError(
    "limit_key",
    `keysIfUndelivered too large (max ${UNDELIVERED_KEYS_BYTES_MAX} bytes, these have ${length})`,
  );
}

function encoded(value: unknown): Uint8Array {
  let bytes: Uint8Array;
  try {
    bytes = encodeValue(value);
  } catch (error) {
    if (codeOf(error) === "limit_value") throw tooLarge();
    throw error;
  }
  if (bytes.length - 1 > ENQUEUED_BYTES_MAX) throw tooLarge();
  return bytes;
}

const tooLarge = (): KvTypeError =>
  new KvTypeError("limit_message", `enqueue payload too large (max ${ENQUEUED_BYTES_MAX} bytes)`);
