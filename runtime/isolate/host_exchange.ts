/**
 * An attempt of a call in one isolate, on the site's side: the counterpart of inside/exchange.ts.
 *
 * Life cycle: request frame sent → store calls, logs → response (or upgrade, or failed) → body → settled.
 *
 * H1  Nothing of the app leaves before `gate()` has resolved: head, chunk and message each wait for it.
 * H2  After `ended` the isolate's frames for this id are ignored, and its store calls are refused; its store calls
 *     also once it said that it has settled, though the rest of a body may still be on its way.
 */
import type { SessionTarget } from "../../functions/calls/stub.ts";
import { formatTraceparent } from "../telemetry/mod.ts";
import type { QueueHold } from "./app_queues.ts";
import { APP_SPAN_BYTES_MAX, takeAppSpan } from "./app_span.ts";
import { BodyReceiver, BodySender, BodyTooLarge, messageOf } from "./bodies.ts";
import { type AnswerBody, ResponseAnswer, wholeBody } from "./answer.ts";
import type { PendingCall } from "./call.ts";
import { readMessage, readWord } from "./frame_fields.ts";
import type { Payload } from "./frame_reader.ts";
import type { FrameWriter } from "./frame_writer.ts";
import { FrameError, ISOLATE_FRAME } from "./frames.ts";
import { BODY, readAppHead, readProtocol, type ResponseHead, writeRequestHead } from "./heads.ts";
import { HostSocket } from "./host_socket.ts";
import { readSaid, writeBatch } from "./queue_frames.ts";
import { SendsOfRequest } from "./queue_sends.ts";
import { CallsOfRequest } from "./session_calls.ts";
import { StoreCalls } from "./store_calls.ts";
import { readAppError } from "./store_frames.ts";

/** Bytes of the length before the characters of a text. */
const TEXT_LENGTH_BYTES = 4;

/** An attempt of a call. */
export class HostExchange {
  readonly id: number;
  readonly pending: PendingCall;
  /** Time at which its response head, and after the body what it left to `waitUntil`, is due at the latest. */
  #dueMs: number;
  readonly #writer: FrameWriter;
  readonly #closed: (exchange: HostExchange) => void;
  /** Hold of its isolate, among the queues of its app. */
  readonly #hold: QueueHold;
  #calls: StoreCalls | undefined;
  #sessions: CallsOfRequest | undefined;
  #sends: SendsOfRequest | undefined;
  #settled: PromiseWithResolvers<void> | undefined;
  #sender: BodySender | undefined;
  #receiver: BodyReceiver | undefined;
  #socket: HostSocket | undefined;
  #headSeen = false;
  /** True while the site's share of the body, or of the socket, is not over. */
  #open = false;
  /** True once the request uses the store no more: only bytes of its body are to come. */
  #quiet = false;
  #insideSettled = false;
  #ended = false;
  /** Milliseconds of CPU time charged to the call, where they could be told apart. */
  cpuMs = 0;

  constructor(
    writer: FrameWriter,
    id: number,
    pending: PendingCall,
    options: { dueMs: number; closed: (exchange: HostExchange) => void; hold: QueueHold },
  ) {
    this.#writer = writer;
    this.id = id;
    this.pending = pending;
    this.#dueMs = options.dueMs;
    this.#closed = options.closed;
    this.#hold = options.hold;
  }

  /** Sends the request. */
  begin(): void {
    const { call, inlineBody, bodyKind } = this.pending;
    const { request, context, scheduled, batch } = call;
    if (batch !== undefined) {
      const { sessionId: session, site, version } = context, writer = this.#writer;
      const head = { queue: batch.queue, context: { session, site, version } };
      writeBatch(writer.begin(ISOLATE_FRAME.queueBatch, this.id), head, batch.messages);
      return writer.end();
    }
    if (scheduled !== undefined) {
      const { name, cron, scheduledTime } = scheduled;
      const { sessionId: session, site, version } = context;
      const text = JSON.stringify({
        event: { name, cron, scheduledTime },
        context: { session, site, version },
        ...(call.span === undefined ? {} : { traceparent: formatTraceparent(call.span) }),
      });
      return this.#writer.begin(ISOLATE_FRAME.scheduled, this.id).text(text).end();
    }
    const writer = this.#writer.begin(ISOLATE_FRAME.request, this.id);
    const own = [context.sessionId, context.site, context.version, context.remoteAddr ?? ""];
    writeRequestHead(writer, own, request, bodyKind);
    if (inlineBody !== null) writer.rest(inlineBody);
    writer.end();
    if (call.signal?.aborted) this.#clientGone();
    else call.signal?.addEventListener("abort", this.#clientGone, { once: true });
    if (bodyKind === BODY.stream && request.body !== null) this.#sendBody(request.body);
  }

  #clientGone = (): void => {
    this.#writer.begin(ISOLATE_FRAME.stop, this.id).text("the client has gone").end();
  };

  async #sendBody(body: ReadableStream<Uint8Array>): Promise<void> {
    this.#sender = new BodySender(this.#writer, this.id, { credit: 0, turns: this.#hold.queues.turns });
    try {
      await this.#sender.send(body, this.pending.app.limits.bodyBytesMax);
    } catch (error) {
      if (error instanceof BodyTooLarge) this.pending.fail(error.code, error.message);
    }
  }

  /** Resolves when nothing of the exchange is left: body, socket and `waitUntil` work are over. */
  get settled(): Promise<void> {
    if (this.#ended) return Promise.resolve();
    return (this.#settled ??= Promise.withResolvers<void>()).promise;
  }

  get hasEnded(): boolean {
    return this.#ended;
  }

  /** True once a response head (or its failure) has come. */
  get headSeen(): boolean {
    return this.#headSeen;
  }

  /** Handles a frame on this exchange's channel. */
  receive(type: number, payload: Payload): void {
    if (this.#ended) return;
    switch (type) {
      case ISOLATE_FRAME.response:
        return this.#response(payload);
      case ISOLATE_FRAME.upgrade:
        return this.#upgrade(readProtocol(payload));
      case ISOLATE_FRAME.attach:
        return this.#attach({ class: readWord(payload), id: readWord(payload) });
      case ISOLATE_FRAME.failed:
        return this.#failed(payload);
      case ISOLATE_FRAME.storeCall:
        return this.#storeCall(payload);
      case ISOLATE_FRAME.statefulCall:
        return this.#sessionCall(payload);
      case ISOLATE_FRAME.queueSend:
        return this.#send(payload);
      case ISOLATE_FRAME.queueSaid: {
        const { batch } = this.pending.call;
        const { place, verdict } = readSaid(payload, batch?.messages.length ?? Infinity);
        return batch?.said(place, verdict);
      }
      case ISOLATE_FRAME.storeStop:
        return this.#calls?.stop(payload.u32());
      case ISOLATE_FRAME.data:
        if (this.#receiver?.data(payload.rest()) === false) throw new FrameError("a body ignored its window");
        return;
      case ISOLATE_FRAME.end:
        return this.#receiver?.end();
      case ISOLATE_FRAME.abort:
        return this.#receiver?.fail(new Error(readMessage(payload)));
      case ISOLATE_FRAME.credit:
        return this.#sender?.credit(payload.u32());
      case ISOLATE_FRAME.stop:
        return this.#sender?.stop(readMessage(payload));
      case ISOLATE_FRAME.socketText:
        return this.#fromApp(payload.left - TEXT_LENGTH_BYTES, payload.text());
      case ISOLATE_FRAME.socketBytes:
        return this.#fromApp(payload.left, payload.rest());
      case ISOLATE_FRAME.socketClose:
        return this.#socket?.closeFromApp(payload.u16(), readMessage(payload));
      case ISOLATE_FRAME.noRetry:
        return this.pending.call.scheduled?.noRetry();
      case ISOLATE_FRAME.span:
        return this.#span(payload.textUpTo(APP_SPAN_BYTES_MAX));
      case ISOLATE_FRAME.settled:
        this.#insideSettled = true;
        return this.#finish();
    }
  }

  /** Ends the exchange if it is overdue. A stream or a socket may last. */
  expireAt(nowMs: number): void {
    if (nowMs < this.#dueMs || this.#open) return;
    const { waitUntilMs } = this.pending.app.limits;
    if (!this.#headSeen) {
      const missing = this.pending.isOwn ? "did not end" : "gave no response";
      this.pending.fail("wall_time", `the handler ${missing} in ${this.pending.wallMs} ms`);
    } else {
      this.pending.call.log({ level: "warn", text: `waitUntil work was cut off after ${waitUntilMs} ms` });
    }
    this.#writer.signal(ISOLATE_FRAME.cancel, this.id);
    this.end("the request's time is over");
  }

  /** Ends what is left of the exchange: the isolate has gone, or the request is given up. */
  end(why: string): void {
    if (this.#ended) return;
    this.#ended = true;
    this.pending.call.signal?.removeEventListener("abort", this.#clientGone);
    this.#calls?.end();
    this.#sessions?.end();
    this.#sends?.end();
    this.#sender?.stop(why);
    this.#receiver?.fail(new Error(why));
    this.#socket?.closeFromApp(1011, why.slice(0, 100));
    this.#settled?.resolve();
    this.#closed(this);
  }

  #fromApp(bytes: number, data: string | Uint8Array<ArrayBuffer>): void {
    this.#socket?.fromApp(data, bytes);
  }

  #span({ text, cutBytes }: ReturnType<Payload["textUpTo"]>): void {
    const { call } = this.pending;
    if (call.span !== undefined && cutBytes === null) {
      takeAppSpan(call.span, text, (told) => call.redact?.(told) ?? told);
    }
  }

  #storeCall(payload: Payload): void {
    if (this.#quiet) return;
    const { pending } = this;
    this.#calls ??= new StoreCalls(
      this.#writer,
      this.id,
      pending.call.store,
      () => pending.hasEffects = true,
      this.#hold,
    );
    this.#calls.start(payload);
  }

  /** Starts a call of a stateful session: it leaves the isolate, hence waits for the gate (H1). */
  #sessionCall(payload: Payload): void {
    if (this.#quiet) return;
    const { pending } = this;
    pending.hasEffects = true;
    const port = pending.call.sessions;
    this.#sessions ??= new CallsOfRequest(
      this.#writer,
      this.id,
      this.#hold,
      port && {
        call: async (target, call) => {
          await pending.call.gate();
          return await port.call(target, call);
        },
      },
    );
    this.#sessions.start(payload);
  }

  /** Sends messages to a queue: they leave the isolate, hence wait for the gate (H1). */
  #send(payload: Payload): void {
    if (this.#quiet) return;
    const { pending } = this;
    pending.hasEffects = true;
    const port = pending.call.queues;
    this.#sends ??= new SendsOfRequest(
      this.#writer,
      this.id,
      this.#hold,
      port && {
        send: async (queue, messages) => {
          await pending.call.gate();
          await port.send(queue, messages);
        },
      },
    );
    this.#sends.start(payload);
  }

  #response(payload: Payload): void {
    const { head, body, settles, named } = readAppHead(payload);
    if (this.#headSeen) return;
    this.#headSeen = true;
    if (head.status < 200 || head.status > 599) { // Response.error() has status 0
      this.#insideSettled = true;
      this.pending.fail("app_error", `the handler answered with status ${head.status}, which is no answer`);
      return this.#finish();
    }
    if (body !== BODY.stream) {
      const whole = body === BODY.inline ? wholeBody(head, payload) : null;
      this.#insideSettled = settles;
      this.#finish();
      return this.#answer(head, whole, named);
    }
    this.#open = true;
    if (settles) {
      this.#quiet = true;
      this.#calls?.end();
      this.#sessions?.end();
      this.#sends?.end();
    }
    this.#receiver = new BodyReceiver(this.#writer, this.id, {
      granted: true,
      waits: { queues: this.#hold.queues, queue: "response body" },
      before: async () => await this.pending.call.gate(),
      closed: () => {
        this.#open = false;
        this.#finish();
      },
    });
    this.#answer(head, this.#receiver.stream, named);
  }

  #answer(head: ResponseHead, body: AnswerBody, named: boolean): void {
    this.pending.hasEffects = true;
    const answer = new ResponseAnswer(head, body, this);
    let out: Promise<void> | void;
    try {
      out = this.#letOut(head, named);
    } catch (error) {
      return this.#gateFailed(error);
    }
    if (out === undefined) return this.pending.settle(answer);
    out.then(() => this.pending.settle(answer), (error) => this.#gateFailed(error));
  }

  /** Waits for the gate, where there is something to wait for, and lets the gateway add its headers. */
  #letOut(head: ResponseHead, named: boolean): Promise<void> | void {
    const gate = this.pending.call.gate();
    return gate === undefined
      ? this.#addHeaders(head, named)
      : gate.then(() => this.#addHeaders(head, named));
  }

  #addHeaders(head: ResponseHead, named: boolean): Promise<void> | void {
    return this.pending.call.head?.(head.headers, { open: !this.#ended && !this.#quiet, named });
  }

  #upgrade(protocol: string): void {
    if (this.#headSeen) return;
    this.#headSeen = true;
    this.#open = true;
    const gate = async () => await this.pending.call.gate();
    const socket = this.#socket = new HostSocket(this.#writer, this.id, {
      protocol,
      gate,
      queues: this.#hold.queues,
      closed: () => {
        this.#open = false;
        this.#finish();
      },
    });
    this.pending.hasEffects = true;
    gate().then(
      () => this.pending.settle({ kind: "upgrade", socket, settled: this.settled }),
      (error) => this.#gateFailed(error),
    );
  }

  /** Hands the request's WebSocket to a stateful session: the isolate has nothing more to do with it. */
  #attach(target: SessionTarget): void {
    if (this.#headSeen) return;
    this.#headSeen = true;
    this.pending.hasEffects = true;
    this.#finish();
    Promise.try(() => this.pending.call.gate()).then(
      () => this.pending.settle({ kind: "attach", target }),
      (error) => this.#gateFailed(error),
    );
  }

  #failed(payload: Payload): void {
    const { code, message, stack } = readAppError(payload);
    if (this.#headSeen) return;
    this.#headSeen = true;
    this.#finish();
    Promise.try(() => this.pending.call.gate()).then(
      () => this.pending.fail(code, message, stack),
      (reason) => this.#gateFailed(reason),
    );
  }

  #gateFailed(error: unknown): void {
    const code = (error as { code?: unknown } | null)?.code;
    this.pending.fail(typeof code === "string" ? code : "store_unreachable", messageOf(error));
    this.#receiver?.fail(new Error(messageOf(error)));
  }

  #finish(): void {
    if (this.#open) return;
    if (this.#insideSettled) this.end("the request has ended");
    else this.#dueMs = performance.now() + this.pending.app.limits.waitUntilMs;
  }
}
