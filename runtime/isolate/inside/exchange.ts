/**
 * A request inside the isolate.
 *
 * Stages: request frame → handler (in its async context) → response head, body → `waitUntil` work → settled.
 *
 * X1  Exactly one of response, upgrade and failed leaves for a request, and then exactly one settled (a response
 *     that carries its whole body and left no `waitUntil` work says so in its own frame).
 * X2  A fault of the app (it threw, it returned no Response) is a `failed` frame, never an uncaught error.
 */
import { BodyReceiver, BodySender, WINDOW_BYTES } from "../bodies.ts";
import type { Payload } from "../frame_reader.ts";
import type { FrameWriter } from "../frame_writer.ts";
import { ISOLATE_FRAME } from "../frames.ts";
import { assertHead, BODY, readRequestHead, SESSION_NAMED, SETTLED, writeResponseHead } from "../heads.ts";
import { wireError, writeError } from "../store_frames.ts";
import { incomingRequest, type RequestSource } from "./incoming_request.ts";
import { type Attachment, attachmentOf, inlineBody, plainBody, webSocketOf } from "./response.ts";
import { ScheduledController, type ScheduledFrame, WaitUntilWork } from "./scheduled.ts";
import { stackOf } from "./stack.ts";
import { IsolateSocket } from "./sockets.ts";
import { type BatchFrame, DeliveredBatch, RemoteQueues } from "./queues.ts";
import { RemoteSessions } from "./sessions.ts";
import { RemoteStore } from "./store.ts";

/** Index of the first header in a request head's fields. */
const HEADERS_AT = 6;

/** The fetch handler of an app, and the environment it is called with. */
export interface LoadedApp {
  fetch(request: Request, env: unknown, ctx: unknown): unknown;
  scheduled(event: unknown, env: unknown, ctx: unknown): unknown;
  queue(batch: unknown, env: unknown, ctx: unknown): unknown;
  env(exchange: IsolateExchange): Record<string, unknown>;
  readonly waitUntilMs: number;
}

/** The facts that the site sends about a request besides the request itself. */
interface RequestContext {
  readonly session: string;
  readonly site: string;
  readonly version: string;
}

/** `ctx`, the third argument of a handler. */
export class HandlerContext {
  readonly #exchange: IsolateExchange;
  readonly props: Record<string, never> = {};
  readonly #session: { readonly id: string };
  readonly site: string;
  readonly version: string;

  constructor(exchange: IsolateExchange, context: RequestContext) {
    this.#exchange = exchange;
    this.#session = { id: context.session };
    this.site = context.site;
    this.version = context.version;
  }

  /** The client's session. A handler that looks at it may keep its name: the client is to keep it, too. */
  get session(): { readonly id: string } {
    this.#exchange.isSessionNamed = true;
    return this.#session;
  }

  /** Keeps the request's store and session usable until the promise settles, after the response too. */
  waitUntil(promise: Promise<unknown>): void {
    this.#exchange.waitUntil(promise);
  }

  /** Accepted for compatibility; there is no origin to pass through to. */
  passThroughOnException(): void {}
}

/** A request inside the isolate. */
export class IsolateExchange {
  readonly id: number;
  readonly store: RemoteStore;
  #sessions: RemoteSessions | undefined;
  #queues: RemoteQueues | undefined;
  readonly #app: LoadedApp;
  #env: Record<string, unknown> | undefined;
  ctx: HandlerContext | undefined;
  remoteAddr = "";
  /** True once the app has looked at the name of its session. */
  isSessionNamed = false;
  readonly #writer: FrameWriter;
  readonly #closed: (exchange: IsolateExchange) => void;
  #requestBody: BodyReceiver | undefined;
  /** Fields of the request's head; its headers begin at HEADERS_AT. */
  #headFields: readonly string[] = [];
  #trace: string | null = null;
  #sender: BodySender | undefined;
  #socket: IsolateSocket | undefined;
  #abort: AbortController | undefined;
  #cancelled = false;
  #pending = 0;
  /** `waitUntil` work of a scheduled run, whose result it is part of. */
  #waits: WaitUntilWork | undefined;
  #responded = false;
  #bodyOpen = false;
  #ended = false;
  #completed: PromiseWithResolvers<void> | undefined;

  constructor(app: LoadedApp, writer: FrameWriter, id: number, closed: (exchange: IsolateExchange) => void) {
    this.#app = app;
    this.#writer = writer;
    this.id = id;
    this.#closed = closed;
    this.store = new RemoteStore(writer, id);
  }

  /** The app's declarations, bound to this request. */
  get env(): Record<string, unknown> {
    return this.#env ??= this.#app.env(this);
  }

  /** The request's caller of stateful sessions. */
  get sessions(): RemoteSessions {
    this.#sessions ??= new RemoteSessions(this.#writer, this.id, this.ctx?.site ?? "");
    if (this.#ended) this.#sessions.end();
    return this.#sessions;
  }

  /** Sender of messages to queues. */
  get queues(): RemoteQueues {
    this.#queues ??= new RemoteQueues(this.#writer, this.id);
    if (this.#ended) this.#queues.end();
    return this.#queues;
  }

  /** The request's abort signal, made when it is first asked for. */
  get signal(): AbortSignal {
    this.#abort ??= new AbortController();
    if (this.#cancelled) this.#abort.abort();
    return this.#abort.signal;
  }

  /** Resolves when the response has been sent (`deno serve` handlers ask for it). */
  get completed(): Promise<void> {
    this.#completed ??= Promise.withResolvers<void>();
    if (this.#ended) this.#completed.resolve();
    return this.#completed.promise;
  }

  /** `traceparent` that the request came with. */
  get traceparent(): string | null {
    for (let i = HEADERS_AT; i + 1 < this.#headFields.length; i += 2) {
      if (this.#headFields[i] === "traceparent") return this.#headFields[i + 1] ?? null;
    }
    return this.#trace;
  }

  /** Reads the request frame; null where no Request can be made of it, and it has been answered. */
  open(payload: Payload): Request | null {
    try {
      return this.#request(payload);
    } catch (error) {
      this.#fail(error);
      return null;
    }
  }

  #request(payload: Payload): Request {
    const { fields, body } = readRequestHead(payload);
    const [session = "", site = "", version = "", remoteAddr = "", method = "", url = ""] = fields;
    this.remoteAddr = remoteAddr;
    this.ctx = new HandlerContext(this, { session, site, version });
    this.#headFields = fields;
    return incomingRequest({
      url,
      method,
      fields,
      headersAt: HEADERS_AT,
      body: this.#body(body, payload),
      exchange: this,
    });
  }

  #body(kind: number, payload: Payload): RequestSource["body"] {
    if (kind === BODY.none) return null;
    if (kind === BODY.inline) return payload.restForRequest();
    this.#requestBody = new BodyReceiver(this.#writer, this.id, { granted: false });
    return this.#requestBody.stream;
  }

  /** Runs the handler until its response has left. */
  async run(request: Request): Promise<void> {
    try {
      const answer = this.#app.fetch(request, this.env, this.ctx);
      await this.#respond(answer instanceof Response ? answer : await answer);
    } catch (error) {
      this.#fail(error);
    }
  }

  /** Runs the scheduled handler. */
  async runScheduled({ event, context, traceparent }: ScheduledFrame): Promise<void> {
    this.#trace = traceparent ?? null;
    const noRetry = () => this.#writer.signal(ISOLATE_FRAME.noRetry, this.id);
    await this.#runOwn(context, () => {
      return this.#app.scheduled(new ScheduledController(event, noRetry), this.env, this.ctx);
    });
  }

  /** Runs the queue handler with messages. */
  async runBatch(frame: BatchFrame): Promise<void> {
    await this.#runOwn(frame.context, () => {
      return this.#app.queue(new DeliveredBatch(frame, this.#writer, this.id), this.env, this.ctx);
    });
  }

  /** Runs a handler that has no request until its promise and all that it gave to `waitUntil` have ended. */
  async #runOwn(context: RequestContext, run: () => unknown): Promise<void> {
    const waits = this.#waits = new WaitUntilWork();
    try {
      this.ctx = new HandlerContext(this, context);
      await run();
      await waits.ended();
      if (!this.#responded) this.#whole(new Response(null, { status: 204 }), null);
    } catch (error) {
      this.#fail(error);
    }
  }

  waitUntil(promise: Promise<unknown>): void {
    this.#waits?.add(promise);
    this.#pending++;
    const settle = () => {
      this.#pending--;
      this.#settle();
    };
    Promise.resolve(promise).then(settle, (error) => {
      console.error("waitUntil:", error);
      settle();
    });
  }

  /** Ends the request: the client has gone, or its time is over. */
  cancel(): void {
    this.#cancelled = true;
    this.#abort?.abort();
    this.#sender?.stop("the client has gone");
    this.#socket?.remoteClose(1006, "", false);
    this.#pending = 0;
    this.#bodyOpen = false;
    this.#responded = true;
    this.#settle();
  }

  /** Handles a frame on this request's channel. */
  receive(type: number, payload: Payload): void {
    switch (type) {
      case ISOLATE_FRAME.storeReply:
        return this.store.reply(payload);
      case ISOLATE_FRAME.statefulReply:
        return this.#sessions?.reply(payload);
      case ISOLATE_FRAME.queueReply:
        return this.#queues?.reply(payload);
      case ISOLATE_FRAME.data:
        this.#requestBody?.data(payload.rest());
        return;
      case ISOLATE_FRAME.end:
        return this.#requestBody?.end();
      case ISOLATE_FRAME.abort:
        return this.#requestBody?.fail(new Error(payload.text()));
      case ISOLATE_FRAME.credit:
        return this.#sender?.credit(payload.u32());
      case ISOLATE_FRAME.stop:
        this.#cancelled = true;
        this.#abort?.abort();
        return this.#sender?.stop(payload.text());
      case ISOLATE_FRAME.socketText:
        return this.#socket?.remoteMessage(payload.text());
      case ISOLATE_FRAME.socketBytes:
        return this.#socket?.remoteMessage(payload.rest());
      case ISOLATE_FRAME.socketTaken:
        return this.#socket?.taken(payload.u32(), payload.u32());
      case ISOLATE_FRAME.socketClose:
        return this.#socket?.remoteClose(payload.u16(), payload.text(), true);
      case ISOLATE_FRAME.cancel:
        return this.cancel();
    }
  }

  async #respond(response: unknown): Promise<void> {
    if (!(response instanceof Response)) {
      throw new TypeError(`fetch() answers a Response, not ${response === null ? "null" : typeof response}`);
    }
    if (this.#responded) return;
    const attachment = attachmentOf(response);
    if (attachment !== undefined) return this.#attach(attachment);
    const socket = webSocketOf(response);
    if (socket !== undefined) return this.#upgrade(response, socket);
    const plain = plainBody(response);
    const body = inlineBody(plain);
    if (body !== undefined) return this.#whole(response, body);
    const stream = response.body;
    if (stream === null) return this.#whole(response, null);
    if (response.bodyUsed || stream.locked) {
      throw new TypeError("the body of the response has already been read");
    }
    // All of a plain body is here: the handler is over as it is with an inline one, only its bytes take a while.
    const settles = plain !== undefined && this.#pending === 0;
    if (settles) this.#endCalls();
    this.#head(response, BODY.stream | (settles ? SETTLED : 0));
    this.#writer.end();
    this.#bodyOpen = true;
    this.#sender = new BodySender(this.#writer, this.id, { credit: WINDOW_BYTES });
    await this.#sender.send(stream);
    this.#bodyOpen = false;
    this.#settle();
  }

  /** Sends a response that needs no stream; usually the last frame of its request. */
  #whole(response: Response, body: string | Uint8Array | null): void {
    const settles = this.#pending === 0;
    this.#head(response, (body === null ? BODY.none : BODY.inline) | (settles ? SETTLED : 0));
    if (typeof body === "string") this.#writer.restText(body);
    else if (body !== null) this.#writer.rest(body);
    this.#writer.end();
    if (settles) this.#end();
  }

  #head(response: Response, body: number): void {
    this.#writer.begin(ISOLATE_FRAME.response, this.id);
    const kind = body | (this.isSessionNamed ? SESSION_NAMED : 0);
    writeResponseHead(this.#writer, response.status, response.statusText, response.headers, kind);
    assertHead(this.#writer);
    this.#responded = true;
  }

  #upgrade(response: Response, socket: object): void {
    const own = IsolateSocket.ofUpgrade(socket);
    this.#responded = true;
    this.#bodyOpen = true;
    this.#socket = own;
    this.#writer.begin(ISOLATE_FRAME.upgrade, this.id).text(
      response.headers.get("sec-websocket-protocol") ?? "",
    )
      .end();
    own.connect(this.#writer, this.id, () => {
      this.#bodyOpen = false;
      this.#settle();
    });
  }

  /** Hands the socket to the site, which takes it from here. */
  #attach(target: Attachment): void {
    this.#responded = true;
    this.#writer.begin(ISOLATE_FRAME.attach, this.id).text(target.class).text(target.id).end();
    this.#settle();
  }

  #fail(error: unknown): void {
    if (this.#responded) {
      console.error(error);
      return;
    }
    this.#responded = true;
    this.#writer.begin(ISOLATE_FRAME.failed, this.id);
    writeError(this.#writer, wireError(error, "app_error"));
    this.#writer.text(stackOf(error)).end();
    this.#settle();
  }

  #settle(): void {
    if (this.#ended || !this.#responded || this.#bodyOpen || this.#pending > 0) return;
    this.#writer.signal(ISOLATE_FRAME.settled, this.id);
    this.#end();
  }

  #endCalls(): void {
    this.store.end();
    this.#sessions?.end();
    this.#queues?.end();
  }

  #end(): void {
    this.#ended = true;
    this.#endCalls();
    this.#completed?.resolve();
    this.#requestBody?.fail(new Error("the request has ended"));
    this.#closed(this);
  }
}
