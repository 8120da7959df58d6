/**
 * A call of an app, from the gateway's request to its answer, whichever isolates it runs in.
 *
 * Life cycle: `prepareCall` (limits, small bodies read) → one attempt, or two (C2) → answered → settled.
 *
 * C1  A call is answered exactly once.
 * C2  A call runs a second time only if it never started, or if it is a GET or HEAD without a body that wrote nothing
 *     and sent nothing; and then only once more.
 */
import type { OutgoingRequest, OutgoingResponse } from "./outgoing_http.ts";
import type { QueueSender } from "../../functions/vocabulary/queue_sender.ts";
import type { StoreClient } from "../../functions/vocabulary/store_client.ts";
import type { Span } from "../telemetry/mod.ts";
import type { IsolateAnswer } from "./answer.ts";
import { BODY, INLINE_BYTES_MAX } from "./heads.ts";
import type { BatchMessage, MessageVerdict } from "./queue_frames.ts";
import type { SessionCallPort } from "./session_calls.ts";
import type { IsolateLimits } from "./limits.ts";

export type { IsolateAnswer };

/** An app version, as the site knows it. */
export interface IsolateApp {
  readonly app: string;
  /** 64 hexadecimal digits. */
  readonly version: string;
  readonly bundle: () => Promise<Uint8Array>;
  readonly limits: IsolateLimits;
  readonly vars: Record<string, string>;
  /** Returns the values of the app's secrets here, as they are now. */
  readonly secrets?: () => Readonly<Record<string, string>>;
  /** True where this site is the root. */
  readonly atRoot?: boolean;
  /** Hosts that the app declared for its outgoing fetches: patterns of egress_rules.ts. */
  readonly fetchHosts: readonly string[];
  /** Answers `env.ASSETS.fetch`; absent where the version has no static files. */
  readonly assets?: (request: OutgoingRequest) => Promise<OutgoingResponse>;
}

/** A request as the app is to see it. A `Request` is one; a gateway that only passes it on need not make one. */
export interface CallRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: Iterable<[string, string]>;
  readonly body: ReadableStream<Uint8Array<ArrayBuffer>> | null;
  /** Reads the whole body, instead of reading `body`. */
  bytes(): Promise<Uint8Array>;
}

/** The signal that a client has gone; an `AbortSignal` is one. */
export interface ClientSignal {
  readonly aborted: boolean;
  addEventListener(type: "abort", listener: () => void, options?: { once?: boolean }): void;
  removeEventListener(type: "abort", listener: () => void): void;
}

/** A cron job that is due, instead of a request. */
export interface ScheduledCall {
  readonly name: string;
  readonly cron: string;
  /** Milliseconds since 1970 at which it was due. */
  readonly scheduledTime: number;
  /** Called by the handler when it wants no other try. */
  noRetry(): void;
  /** Limits that stand in place of those of a request. */
  readonly limits: { readonly wallMs: number; readonly cpuMs: number };
}

/** Messages of a queue that are to be handled, instead of a request. */
export interface BatchCall {
  readonly queue: string;
  readonly messages: readonly BatchMessage[];
  /**
   * Takes what the handler says of the message in a place, as soon as it does. The call's gate has yet to be passed.
   */
  said(place: number, verdict: MessageVerdict): void;
}

/** State of an app's answer as its head leaves. */
export interface Answering {
  /** True where the call goes on after its head. */
  readonly open: boolean;
  /** True where the app has asked for the name of its session. */
  readonly named: boolean;
}

/** A request of an app, with the services that the gateway makes for it. */
export interface IsolateCall {
  readonly request: CallRequest;
  /**
   * The cron job whose `scheduled` handler is to run; the request is not used then. The answer is an empty response.
   */
  readonly scheduled?: ScheduledCall;
  /** Messages with which the `queue` handler runs, in the same way. */
  readonly batch?: BatchCall;
  readonly store: StoreClient;
  /** Reaches stateful sessions; absent where the app declares none. */
  readonly sessions?: SessionCallPort | undefined;
  /** Sender of messages to queues; absent where nothing can be sent. */
  readonly queues?: QueueSender | undefined;
  readonly context: {
    readonly sessionId: string;
    readonly site: string;
    readonly version: string;
    readonly remoteAddr?: string | undefined;
  };
  /** Awaited before anything leaves: a response head, a chunk, a message, an outgoing fetch. */
  gate(): Promise<void> | void;
  /** Adds the site's headers to a response's, after the gate. */
  head?(headers: [string, string][], how: Answering): Promise<void> | void;
  /** Aborted when the client goes; the app's `request.signal` follows it. */
  readonly signal?: ClientSignal | undefined;
  /** Span of the request where it is recorded: those of what happens in the isolate go below it. */
  readonly span?: Span | undefined;
  /** Takes the values of the app's secrets out of a text that leaves the site. */
  redact?(text: string): string;
  /** Takes a line of the app's console. */
  log(entry: { level: string; text: string }): void;
  /**
   * Takes a line that the app prints while none of its requests runs. Kept by the isolate: one for all calls of a
   * version.
   */
  readonly strayLog?: (entry: { level: string; text: string }) => void;
}

/**
 * Number of isolates to which a call that never starts is sent before it fails: the calls before it end them faster
 * than it can be reached, and each costs the site a process.
 */
const PLACEMENTS_MAX = 5;

/** A call that has not been answered yet, and how often it was tried. */
export class PendingCall {
  readonly app: IsolateApp;
  readonly call: IsolateCall;
  readonly answer: Promise<IsolateAnswer>;
  /** Body that travels with the head; null where there is none, or where it is a stream. */
  readonly inlineBody: Uint8Array | null;
  readonly bodyKind: number;
  /** Number of isolates that the call was sent to, and of those that ended after it had begun there (`cutShort`). */
  placements = 0;
  cutShort = 0;
  /** True once something of the call is in the store, or has left the site. */
  hasEffects = false;
  answered = false;
  #resolve: (answer: IsolateAnswer) => void;

  constructor(app: IsolateApp, call: IsolateCall, inlineBody: Uint8Array | null) {
    this.app = app;
    this.call = call;
    this.inlineBody = inlineBody;
    this.bodyKind = bodyKindOf(call.request, inlineBody);
    const { promise, resolve } = Promise.withResolvers<IsolateAnswer>();
    this.answer = promise;
    this.#resolve = resolve;
  }

  /** Reports whether the call may run once more, when the isolate it was sent to has ended (C2). */
  mayRunAgain(hadStarted: boolean): boolean {
    if (this.answered || this.hasEffects) return false;
    if (!hadStarted) return this.placements < PLACEMENTS_MAX;
    const { method } = this.call.request;
    return ++this.cutShort < 2 && this.bodyKind === BODY.none && (method === "GET" || method === "HEAD");
  }

  /** True for a handler that gives no response, but ends. */
  get isOwn(): boolean {
    return this.call.scheduled !== undefined || this.call.batch !== undefined;
  }

  /** Milliseconds that the call may take until its response head. */
  get wallMs(): number {
    return this.call.scheduled?.limits.wallMs ?? this.app.limits.wallMs;
  }

  /** Milliseconds of CPU time for the whole call; it holds the event loop for a request's share at most. */
  get cpuMs(): number {
    return this.call.scheduled?.limits.cpuMs ?? this.app.limits.cpuMs;
  }

  settle(answer: IsolateAnswer): void {
    if (this.answered) return;
    this.answered = true;
    this.#resolve(answer);
  }

  fail(code: string, message: string, stack?: string): void {
    this.settle({
      kind: "error",
      ...{ code, message },
      ...(stack === undefined ? {} : { stack }),
      ...(this.placements === 0 ? { neverBegan: true } : {}),
    });
  }
}

function bodyKindOf(request: CallRequest, inlineBody: Uint8Array | null): number {
  if (inlineBody !== null) return BODY.inline;
  if (request.method === "GET" || request.method === "HEAD") return BODY.none;
  return request.body === null ? BODY.none : BODY.stream;
}

/** Checks the declared length of the body, and reads a small one so that it travels with the head. */
export function prepareCall(app: IsolateApp, call: IsolateCall): PendingCall | Promise<PendingCall> {
  const { request } = call;
  // The standard's Request has no body then, whatever the client sent.
  if (request.method === "GET" || request.method === "HEAD") return new PendingCall(app, call, null);
  const length = declaredBytes(request.headers);
  if (length > app.limits.bodyBytesMax) {
    const pending = new PendingCall(app, call, null);
    pending.fail("limit_body", `the body has ${length} bytes; ${app.limits.bodyBytesMax} are accepted`);
    request.body?.cancel().catch(() => {});
    return pending;
  }
  // `body` is not touched where the length is known: making a stream of it costs more than reading it.
  if (!(length <= INLINE_BYTES_MAX)) return new PendingCall(app, call, null);
  return wholeBody(request, app.limits.wallMs).then((bytes) => {
    const pending = new PendingCall(app, call, bytes);
    if (bytes === null) {
      pending.fail("body_late", `the ${length} bytes of the body had not come after ${app.limits.wallMs} ms`);
    }
    return pending;
  });
}

/** Reads a whole body; null where it takes longer than the request it belongs to may. */
async function wholeBody(request: CallRequest, lateMs: number): Promise<Uint8Array | null> {
  const whole = request.bytes();
  whole.catch(() => {}); // after it is late, nobody asks
  let timer: ReturnType<typeof setTimeout> | undefined;
  try {
    return await Promise.race([
      whole,
      new Promise<null>((resolve) => timer = setTimeout(() => resolve(null), lateMs)),
    ]);
  } finally {
    clearTimeout(timer);
  }
}

/** Returns the length that a request declares; NaN where it declares none. */
function declaredBytes(headers: CallRequest["headers"]): number {
  if (headers instanceof Headers) return Number(headers.get("content-length") ?? NaN);
  for (const [name, value] of headers) if (name === "content-length") return Number(value);
  return NaN;
}
