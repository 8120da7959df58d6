/**
 * Messages of queues between an isolate and its site, as payloads: what functions send, what a `queue` handler is given,
 * and what it says of that.
 *
 *   send     u32 call · text queue · u32 messages, each: text id ("": none) · f64 delay · f64 time to live (NaN: none) ·
 *            bytes body
 *   reply    u32 call · u8 done or failed · the error (store_frames.ts)
 *   batch    text JSON {@link BatchHead} · u32 messages, each: text id · f64 sent · u32 attempt · u8 format · bytes body
 *   said     u32 place of the message · u8 ack or retry · f64 delay (NaN: none)
 *
 * QF1 One call may send what the app's library lets it send (F5): so many messages, each and all no longer than that.
 */
import {
  DELAY_MS_MAX,
  PRODUCER_ID_BYTES_MAX,
  QUEUE_MESSAGE_BYTES_MAX,
  SEND_BYTES_MAX,
  SEND_MESSAGES_MAX,
} from "../../functions/queues/limits.ts";
import type { BodyFormat } from "../../functions/queues/envelope.ts";
import type { SentMessage } from "../../functions/vocabulary/queue_sender.ts";
import { readEnd, readRowValue, readWord } from "./frame_fields.ts";
import type { Payload } from "./frame_reader.ts";
import type { FrameWriter } from "./frame_writer.ts";
import { FrameError } from "./frames.ts";

/** What a handler says of a message. */
export type MessageVerdict =
  | { readonly kind: "ack" }
  /** The message is to come again after `delayMs`; after its queue's pause where that is left out. */
  | { readonly kind: "retry"; readonly delayMs?: number };

/** Message as a handler gets it. */
export interface BatchMessage {
  readonly id: string;
  readonly sentMs: number;
  readonly attempt: number;
  readonly format: BodyFormat;
  readonly body: Uint8Array;
}

/** What a handler gets beside the messages. */
export interface BatchHead {
  readonly queue: string;
  readonly context: { readonly session: string; readonly site: string; readonly version: string };
}

/** Least bytes of a message that is sent, and of one that a handler gets: their lengths and numbers. */
export const SENT_BYTES_MIN = 24;
const BATCHED_BYTES_MIN = 21;
const VERDICTS = ["ack", "retry"] as const;
const FORMATS: readonly BodyFormat[] = ["bytes", "text", "json", "value"];

export function writeSend(writer: FrameWriter, queue: string, messages: readonly SentMessage[]): void {
  writer.text(queue).u32(messages.length);
  for (const message of messages) writeSent(writer, message);
}

/** Writes one message, as a send and the effects of a stateful session have it. */
export function writeSent(writer: FrameWriter, message: SentMessage): void {
  const { id = "", delayMs = NaN, ttlMs = NaN, body } = message;
  writer.text(id).f64(delayMs).f64(ttlMs).bytes(body);
}

/** @throws FrameError (QF1) */
export function readSend(payload: Payload): { readonly queue: string; readonly messages: SentMessage[] } {
  const queue = readWord(payload);
  let bytes = 0;
  const messages = Array.from(
    { length: payload.count(SEND_MESSAGES_MAX, SENT_BYTES_MIN) },
    (): SentMessage => {
      const message = readSent(payload);
      bytes += message.body.length;
      if (bytes > SEND_BYTES_MAX) throw new FrameError(`${bytes} bytes of messages are sent at once`);
      return message;
    },
  );
  readEnd(payload);
  if (messages.length === 0) throw new FrameError("no message is sent");
  return { queue, messages };
}

/** Reads one message. @throws FrameError (QF1) */
export function readSent(payload: Payload): SentMessage {
  const id = payload.text(PRODUCER_ID_BYTES_MAX);
  const delayMs = readDelay(payload, 0), ttlMs = readDelay(payload, 1), body = readRowValue(payload);
  if (body.length > QUEUE_MESSAGE_BYTES_MAX) {
    throw new FrameError(`a message of ${body.length} bytes`);
  }
  return {
    body,
    ...id === "" ? {} : { id },
    ...delayMs === undefined ? {} : { delayMs },
    ...ttlMs === undefined ? {} : { ttlMs },
  };
}

function readDelay(payload: Payload, leastMs: number): number | undefined {
  const ms = payload.f64();
  if (Number.isNaN(ms)) return undefined;
  if (!(ms >= leastMs && ms <= DELAY_MS_MAX)) throw new FrameError(`${ms} ms are no delay of a message`);
  return ms;
}

export function writeBatch(writer: FrameWriter, head: BatchHead, messages: readonly BatchMessage[]): void {
  writer.text(JSON.stringify(head)).u32(messages.length);
  for (const { id, sentMs, attempt, format, body } of messages) {
    writer.text(id).f64(sentMs).u32(attempt).u8(FORMATS.indexOf(format)).bytes(body);
  }
}

/** Reads a frame of the site, which is trusted. */
export function readBatch(payload: Payload): { readonly head: BatchHead; readonly messages: BatchMessage[] } {
  const head = JSON.parse(payload.text()) as BatchHead;
  const messages = Array.from({ length: payload.count(Infinity, BATCHED_BYTES_MIN) }, (): BatchMessage => {
    const id = payload.text(), sentMs = payload.f64(), attempt = payload.u32();
    const format = FORMATS[payload.u8()];
    if (format === undefined) throw new FrameError("a message's body is of an unknown format");
    return { id, sentMs, attempt, format, body: payload.bytes() };
  });
  return { head, messages };
}

export function writeSaid(writer: FrameWriter, place: number, verdict: MessageVerdict): void {
  const delayMs = verdict.kind === "retry" ? verdict.delayMs ?? NaN : NaN;
  writer.u32(place).u8(VERDICTS.indexOf(verdict.kind)).f64(delayMs);
}

/** @throws FrameError */
export function readSaid(
  payload: Payload,
  messages: number,
): { readonly place: number; readonly verdict: MessageVerdict } {
  const place = payload.u32(), kind = VERDICTS[payload.u8()], delayMs = readDelay(payload, 0);
  readEnd(payload);
  if (place >= messages) throw new FrameError(`${place} is the place of none of ${messages} messages`);
  if (kind === undefined) throw new FrameError("what is said of a message is no verdict");
  if (kind === "ack") return { place, verdict: { kind } };
  return { place, verdict: { kind, ...delayMs === undefined ? {} : { delayMs } } };
}
