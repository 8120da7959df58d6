/**
 * Calls of one request to stateful sessions, on the site's side: read from frames, carried by the request's port.
 *
 * P1  Every call is answered once, while its request lasts: a failure is an answer too.
 */
import { encodeAnswer } from "../../functions/calls/call.ts";
import type { SessionTarget } from "../../functions/calls/stub.ts";
import type { QueueHold } from "./app_queues.ts";
import { CallSlots } from "./call_slots.ts";
import { messageOf } from "./bodies.ts";
import { readWord } from "./frame_fields.ts";
import type { Payload } from "./frame_reader.ts";
import type { FrameWriter } from "./frame_writer.ts";
import { ISOLATE_FRAME } from "./frames.ts";

/** Carries a call to where its stateful session is, and brings the answer; both as bytes (functions/calls). */
export interface SessionCallPort {
  call(target: SessionTarget, call: Uint8Array): Promise<Uint8Array>;
}

/** The calls of one request. */
export class CallsOfRequest {
  readonly #writer: FrameWriter;
  readonly #id: number;
  readonly #port: SessionCallPort | undefined;
  readonly #slots: CallSlots;
  readonly #hold: QueueHold;
  #ended = false;

  /** @param hold queue of the isolate: calls that wait for those before them, or for their answers. */
  constructor(writer: FrameWriter, id: number, hold: QueueHold, port: SessionCallPort | undefined) {
    this.#writer = writer;
    this.#id = id;
    this.#hold = hold;
    this.#port = port;
    this.#slots = CallSlots.of(writer).sessions;
  }

  /** Starts a call of the isolate. */
  start(payload: Payload): void {
    const bytes = payload.left;
    const number = payload.u32();
    const target = { class: readWord(payload), id: readWord(payload) };
    const call = payload.rest();
    this.#hold.add(bytes);
    const leave = () => {
      this.#hold.add(-bytes);
      this.#slots.leave();
    };
    this.#slots.enter(() => {
      if (this.#ended) return leave();
      this.#carry(target, call).then((answer) => {
        if (this.#ended) return;
        this.#writer.begin(ISOLATE_FRAME.statefulReply, this.#id).u32(number).rest(answer).end();
      }).finally(leave);
    }, bytes);
  }

  end(): void {
    this.#ended = true;
  }

  /** Carries a call; a failure becomes its answer (P1). */
  async #carry(target: SessionTarget, call: Uint8Array): Promise<Uint8Array> {
    try {
      if (this.#port !== undefined) return await this.#port.call(target, call);
      return encodeAnswer({
        kind: "error",
        code: "not_available",
        message: `stateful sessions can't be called here: ${target.class} ${target.id}`,
      });
    } catch (error) {
      const { code } = error as { code?: unknown };
      return encodeAnswer({
        kind: "error",
        code: typeof code === "string" ? code : "internal",
        message: messageOf(error),
      });
    }
  }
}
