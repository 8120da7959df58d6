/**
 * Queues inside the isolate: what a request sends to them, and the messages that a `queue` handler is given.
 *
 * S1  After `end` every send fails, those that are open and those that are made later.
 * S2  Of a message one thing is said: the first.
 * S3  A message that can't be read is no other one's trouble: it throws where it is looked at.
 */
import type { QueueBatch, QueueMessage } from "../../../functions/queue.ts";
import { DELAY_MS_MAX } from "../../../functions/queues/limits.ts";
import { decodeValue } from "../../../functions/values/value.ts";
import type { QueueSender, SentMessage } from "../../../functions/vocabulary/queue_sender.ts";
import type { Payload } from "../frame_reader.ts";
import type { FrameWriter } from "../frame_writer.ts";
import { ISOLATE_FRAME } from "../frames.ts";
import { type BatchMessage, type MessageVerdict, readBatch, writeSaid, writeSend } from "../queue_frames.ts";
import { readError, REPLY } from "../store_frames.ts";
import { SiteError } from "./store.ts";

/** Sender of one request. */
export class RemoteQueues implements QueueSender {
  readonly #writer: FrameWriter;
  readonly #id: number;
  readonly #open = new Map<number, PromiseWithResolvers<void>>();
  #next = 0;
  #ended = false;

  constructor(writer: FrameWriter, id: number) {
    this.#writer = writer;
    this.#id = id;
  }

  send(queue: string, messages: readonly SentMessage[]): Promise<void> {
    if (this.#ended) return Promise.reject(ended());
    const call = this.#next++, open = Promise.withResolvers<void>();
    this.#open.set(call, open);
    writeSend(this.#writer.begin(ISOLATE_FRAME.queueSend, this.#id).u32(call), queue, messages);
    this.#writer.end();
    return open.promise;
  }

  /** Takes an answer from the site. */
  reply(payload: Payload): void {
    const call = payload.u32(), open = this.#open.get(call);
    this.#open.delete(call);
    if (payload.u8() === REPLY.done) return open?.resolve();
    const { code, message, detail } = readError(payload);
    open?.reject(new SiteError(code, message, detail));
  }

  /** Fails all sends, those to come too (S1). */
  end(): void {
    this.#ended = true;
    for (const open of this.#open.values()) open.reject(ended());
    this.#open.clear();
  }
}

const ended = (): SiteError =>
  new SiteError(
    "request_ended",
    "a message was sent after the request had ended; use ctx.waitUntil for such work",
  );

/** Messages for the handler, as the site sends them. */
export interface BatchFrame {
  readonly queue: string;
  readonly context: { readonly session: string; readonly site: string; readonly version: string };
  readonly messages: readonly BatchMessage[];
}

export function readBatchFrame(payload: Payload): BatchFrame {
  const { head, messages } = readBatch(payload);
  return { ...head, messages };
}

/** Batch of messages, as the first argument of the handler. */
export class DeliveredBatch implements QueueBatch {
  readonly queue: string;
  readonly messages: readonly QueueMessage[];

  constructor({ queue, messages }: BatchFrame, writer: FrameWriter, id: number) {
    this.queue = queue;
    this.messages = messages.map((message, place) =>
      new DeliveredMessage(message, (verdict) => {
        writeSaid(writer.begin(ISOLATE_FRAME.queueSaid, id), place, verdict);
        writer.end();
      })
    );
  }
}

class DeliveredMessage implements QueueMessage {
  readonly id: string;
  readonly timestamp: Date;
  readonly attempts: number;
  readonly #message: BatchMessage;
  readonly #say: (verdict: MessageVerdict) => void;
  #body: { readonly value: unknown } | undefined;
  #isSaid = false;

  constructor(message: BatchMessage, say: (verdict: MessageVerdict) => void) {
    this.id = message.id;
    this.timestamp = new Date(message.sentMs);
    this.attempts = message.attempt;
    this.#message = message;
    this.#say = say;
  }

  /** Content of the message, read when it is first asked for (S3). */
  get body(): unknown {
    return (this.#body ??= { value: bodyOf(this.#message) }).value;
  }

  ack(): void {
    this.#said({ kind: "ack" });
  }

  retry({ delayMs }: { readonly delayMs?: number } = {}): void {
    if (delayMs !== undefined && !(typeof delayMs === "number" && delayMs >= 0 && delayMs <= DELAY_MS_MAX)) {
      throw new RangeError(`retry takes a delayMs of 0 to ${DELAY_MS_MAX}, not ${String(delayMs)}`);
    }
    this.#said({ kind: "retry", ...delayMs === undefined ? {} : { delayMs } });
  }

  /** Tells the site what was said first (S2). */
  #said(verdict: MessageVerdict): void {
    if (this.#isSaid) return;
    this.#isSaid = true;
    this.#say(verdict);
  }
}

function bodyOf({ format, body }: BatchMessage): unknown {
  if (format === "value") return decodeValue(body);
  if (format === "bytes") return body;
  const text = new TextDecoder().decode(body);
  return format === "text" ? text : JSON.parse(text);
}
