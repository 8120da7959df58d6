/**
 * The queue of an app's KV: what `enqueue` sends, and `listenQueue` listens to. Each app has one, which it does not
 * declare. Its messages are ordinary ones; what Deno's options say of a message is written before its value, and read
 * where the message is stored in its queue, since an app's own code makes the bytes. Bytes: docs/protocol/queues.md.
 *
 * KQ1  No queue that an app declares has this name: it has a character that theirs have not.
 * KQ2  What is read is what is written: a value that a row may have, pauses and keys that `enqueue` accepts.
 */
import { CodecError, Reader, Writer } from "../../store/model/codec.ts";
import { type Key, KeyError, unpackKey } from "../../store/model/key.ts";
import { isPlainValue, VALUE_TAG } from "../../store/model/value.ts";
import { KEY_BYTES_MAX } from "../vocabulary/limits.ts";
import { QUEUE_MESSAGE_BYTES_MAX } from "./limits.ts";
import { QUEUE_DEFAULTS, type QueueSettings } from "./settings.ts";

/** Name of the queue (KQ1). */
export const KV_QUEUE = "kv.queue";

/** Pauses before a value comes again where its sender gives none: Deno's. */
const BACKOFF_MS = [100, 1_000, 5_000, 30_000, 60_000];
/** Calls of the listeners that run at one site at one time: Deno has no bound, and an isolate has room for 256. */
const CONCURRENCY = 100;

/** Settings of the queue, at each app. */
export const KV_QUEUE_SETTINGS: QueueSettings = {
  ...QUEUE_DEFAULTS,
  maxAttempts: BACKOFF_MS.length + 1,
  retry: { eachMs: BACKOFF_MS },
  batchMax: 1, // each value is handled in an invocation of its own
  concurrency: CONCURRENCY,
  whenDead: "hand over",
};

/** Pauses that a value may have of its own, and the longest of them: Deno's limits. */
export const BACKOFF_PAUSES_MAX = 5, BACKOFF_PAUSE_MS_MAX = 3_600_000;
/** Bytes of the keys at which an undelivered value is stored: they are in its message's envelope. */
export const UNDELIVERED_KEYS_BYTES_MAX = 12_288;
/** Bytes of a value that is sent, without its tag: what else its message has takes less than this leaves. */
export const ENQUEUED_BYTES_MAX = QUEUE_MESSAGE_BYTES_MAX - 16_384;

/** Value on its way to the listeners, with what its sender said of it. */
export interface KvMessage {
  /** A value as rows have it (functions/values). */
  readonly value: Uint8Array;
  /** Pauses before it comes again; null: the queue's. */
  readonly backoffMs: readonly number[] | null;
  /** Keys at which it is stored where it could not be delivered, without the space of the KV. */
  readonly keys: readonly Key[];
}

/** Version byte of the format, the only one so far. */
const FORM = 1;

/** Returns the body of a message: bytes, as a row may have them. */
export function encodeKvMessage({ value, backoffMs, keys }: KvMessage): Uint8Array<ArrayBuffer> {
  const writer = new Writer(value.length + 64).byte(VALUE_TAG.bytes).byte(FORM).flag(backoffMs !== null);
  if (backoffMs !== null) writer.list(backoffMs, (ms) => writer.uint(ms));
  return writer.bytes(encodeKeys(keys)).bytes(value).done();
}

/** Reads the body of a message. @throws CodecError (KQ2) */
export function decodeKvMessage(body: Uint8Array): KvMessage & { readonly undelivered: Uint8Array } {
  const reader = new Reader(body);
  if (reader.byte() !== VALUE_TAG.bytes || reader.byte() !== FORM) {
    throw new CodecError("what is sent to the queue of a KV is of no known form");
  }
  const backoffMs = reader.flag() ? reader.list(() => reader.uint(), BACKOFF_PAUSES_MAX) : null;
  const undelivered = reader.bytes(), value = reader.bytes();
  reader.end();
  if (backoffMs?.some((ms) => ms > BACKOFF_PAUSE_MS_MAX) || undelivered.length > UNDELIVERED_KEYS_BYTES_MAX) {
    throw new CodecError("what is sent to the queue of a KV has pauses or keys beyond its limits");
  }
  if (value.length === 0 || !isPlainValue(value)) {
    throw new CodecError("what is sent to the queue of a KV is no value");
  }
  return { value, backoffMs, keys: undelivered.length === 0 ? [] : decodeKeys(undelivered), undelivered };
}

/** What goes with a value to who handles it, or deals with it once it is given up: an envelope's bytes for these. */
export interface KvDelivery {
  /** Token of what its sender had seen; "": there is none. */
  readonly seen: string;
  /** Keys as `enqueue` wrote them. */
  readonly undelivered: Uint8Array;
}

/** Returns what goes with a value; nothing for nothing. */
export const encodeKvDelivery = ({ seen, undelivered }: KvDelivery): Uint8Array<ArrayBuffer> =>
  seen === "" && undelivered.length === 0
    ? new Uint8Array(0)
    : new Writer(undelivered.length + seen.length + 8).text(seen).bytes(undelivered).done();

/** Reads what goes with a value. @throws CodecError */
export function decodeKvDelivery(
  bytes: Uint8Array,
): { readonly seen: string; readonly keys: readonly Key[] } {
  if (bytes.length === 0) return { seen: "", keys: [] };
  const reader = new Reader(bytes), seen = reader.text(), undelivered = reader.bytes();
  reader.end();
  return { seen, keys: undelivered.length === 0 ? [] : decodeKeys(undelivered) };
}

/** Returns keys as a message has them; nothing for none. */
export function encodeKeys(keys: readonly Key[]): Uint8Array<ArrayBuffer> {
  if (keys.length === 0) return new Uint8Array(0);
  const writer = new Writer();
  return writer.list(keys, (key) => writer.key(key)).done();
}

/** Reads the keys of a message. @throws CodecError (KQ2) */
function decodeKeys(bytes: Uint8Array): Key[] {
  const reader = new Reader(bytes), keys = reader.list(() => reader.key());
  reader.end();
  for (const key of keys) {
    if (key.length === 0 || key.length > KEY_BYTES_MAX) throw new CodecError(`a key of ${key.length} bytes`);
    try {
      unpackKey(key);
    } catch (error) {
      throw error instanceof KeyError ? new CodecError(error.message) : error;
    }
  }
  return keys;
}
