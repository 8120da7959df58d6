/**
 * What one request sends to queues, on the site's side: read from frames, stored by the request's port.
 *
 * QS1 Every send is answered once, while its request lasts: a failure is an answer too.
 * QS2 Messages count for what their app may commit over a while (app_turns.ts, AT4): they are written here and at their
 *     other owners. No frame waits for those that are not stored yet (AT3): owners that are silent take seconds.
 */
import type { QueueSender } from "../../functions/vocabulary/queue_sender.ts";
import { AppError } from "../../functions/vocabulary/errors.ts";
import type { QueueHold } from "./app_queues.ts";
import { CallSlots } from "./call_slots.ts";
import type { Payload } from "./frame_reader.ts";
import type { FrameWriter } from "./frame_writer.ts";
import { ISOLATE_FRAME } from "./frames.ts";
import { readSend } from "./queue_frames.ts";
import { COMMITTED_ROW_BYTES } from "./store_calls.ts";
import { REPLY, wireError, writeError } from "./store_frames.ts";

/** Sends of one request to queues. */
export class SendsOfRequest {
  readonly #writer: FrameWriter;
  readonly #id: number;
  readonly #port: QueueSender | undefined;
  readonly #slots: CallSlots;
  readonly #hold: QueueHold;
  #ended = false;

  /** @param hold of the isolate: counts sends that wait for those before them, or to be stored. */
  constructor(writer: FrameWriter, id: number, hold: QueueHold, port: QueueSender | undefined) {
    this.#writer = writer;
    this.#id = id;
    this.#hold = hold;
    this.#port = port;
    this.#slots = CallSlots.of(writer).sends;
  }

  /** Begins a send of the isolate. */
  start(payload: Payload): void {
    const bytes = payload.left;
    const call = payload.u32(), { queue, messages } = readSend(payload);
    this.#hold.add(bytes);
    const { turns } = this.#hold.queues, weight = bytes + messages.length * COMMITTED_ROW_BYTES;
    turns.commitBegins(weight);
    turns.commitEnds(weight); // QS2
    const leave = () => {
      this.#hold.add(-bytes);
      this.#slots.leave();
    };
    const begin = () => {
      if (this.#ended) return leave();
      this.#send(queue, messages).then(
        () => this.#reply(call, REPLY.done)?.end(),
        (error) => {
          const reply = this.#reply(call, REPLY.failed);
          if (reply === null) return;
          writeError(reply, wireError(error, "internal"));
          reply.end();
        },
      ).finally(leave);
    };
    try {
      this.#slots.enter(begin, bytes);
    } catch (error) {
      this.#hold.add(-bytes);
      throw error;
    }
  }

  end(): void {
    this.#ended = true;
  }

  async #send(...sent: Parameters<QueueSender["send"]>): Promise<void> {
    if (this.#port !== undefined) return await this.#port.send(...sent);
    throw new AppError("not_available", `nothing can be sent to the queue ${sent[0]} here`);
  }

  /** Begins the answer to a send; null where the request has ended (QS1). */
  #reply(call: number, status: number): FrameWriter | null {
    if (this.#ended) return null;
    return this.#writer.begin(ISOLATE_FRAME.queueReply, this.#id).u32(call).u8(status);
  }
}
