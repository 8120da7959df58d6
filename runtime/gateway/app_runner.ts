/**
 * Runs a request at this site: attaches its session, calls an isolate, and lets the answer out.
 *
 * Stages: attach (nothing, carry, wait) → call → gate → head with token → body.
 *
 * AR1  A token leaves only after all that it names is on disk here.
 * AR2  A failed call still answers with the session's token: what it had written before it failed stays written.
 * AR3  A token is `open` while the function can still write after it left: stream, socket, `waitUntil`.
 * AR4  Output of an isolate waits until all that its version's requests have touched is on disk, not only what its own
 *      request has: a module's variable may hold what another request wrote a moment ago (the output gate).
 * AR5  Lines and errors of an app leave without the values of its secrets; its responses are its own.
 * AR6  A client that came without a session is given one when its request has used it: a row was read or written, a
 *      stateful session called, the session's name asked for. An answer that used no session can be kept by any cache.
 * AR7  A request that the isolates would refuse as overload is refused before anything is made for it, a session
 *      included: its client's token stays what it was, and a refusal costs less than a request that is served.
 */
import type { QueuedMessage, QueueSender, SentMessage } from "../../functions/vocabulary/queue_sender.ts";
import type { StoreClient } from "../../functions/vocabulary/store_client.ts";
import type { AttachedSession, Replica } from "../../store/api/api.ts";
import type { Lane } from "../../store/model/lock.ts";
import type { Position } from "../../store/model/row.ts";
import type { LiveVersion } from "../deploy/app_table.ts";
import type { Traffic } from "../observe/traffic.ts";
import type { Answering, CallRequest, IsolateAnswer, IsolateApp, IsolateCall } from "../isolate/call.ts";
import { type Arrival, type ArrivalContent, type Outcome, respond } from "./arrival.ts";
import type { GoneSignal } from "./departures.ts";
import type { AppWrites, VersionWrites } from "./app_writes.ts";
import { SocketOfIsolate } from "./isolate_socket.ts";
import { formatTraceparent, newTraceId, type Span, traceContextOf, withContext } from "../telemetry/mod.ts";
import { OnceCalls, onceKeyOf } from "./once.ts";
import { problemResponse, repeatedProblem } from "./problem.ts";
import { isProblemCode, type ProblemCode, problemOf } from "../../functions/vocabulary/problem.ts";
import { sessionCookie, setsOurCookie } from "./cookies.ts";
import { type AnswerHeaders, type RequestHead, SESSION_HEADER } from "./request_head.ts";
import type { RequestMetrics } from "./request_metrics.ts";
import { attachSocket } from "./attach_socket.ts";
import { type StatefulCaller, StatefulCalls } from "./stateful_calls.ts";
import { attachTraced, beginInvoke, endInvoke, gateTraced } from "./request_spans.ts";
import {
  type AppSpace,
  appSpace,
  type OutgoingMessages,
  RequestStore,
  type SessionOutbox,
  type StoreLimits,
  type StoreUse,
} from "./session_store.ts";
import { storeTraced } from "./store_spans.ts";
import { type RequestToken, SessionNames, type SessionTokens, wantsCookie } from "./session_tokens.ts";

/** Services of the site that running a request uses. */
export interface RunnerServices {
  readonly site: string;
  readonly replica: Pick<Replica, "attach" | "attachAll" | "durable" | "isDurable">;
  readonly isolates: {
    call(app: IsolateApp, call: IsolateCall): Promise<IsolateAnswer>;
    /** Returns the reason why a call that came now would be refused; null where it would not. */
    refusal?(app: IsolateApp): string | null;
  };
  readonly tokens: SessionTokens;
  /** Clients whose answers say where they come from: all, or those that ask (docs/decisions/41). */
  readonly answerHeaders: AnswerHeaders;
  readonly limits: StoreLimits;
  /** Calls and attaches to stateful sessions. */
  readonly stateful?: StatefulCaller;
  /** Sender of messages to queues. */
  readonly queues?: AppSends;
  /** Outbox of messages that are sent in one step with rows. */
  readonly outbox?: AppOutbox;
  /** Returns an app's lane: its share of turns at the store's one thread. */
  readonly laneOf?: (app: string) => Lane;
  /** Returns an app version with this site's limits. */
  readonly isolateApp: (version: LiveVersion) => IsolateApp;
  /** Index entries that go with what functions write; see {@link AppWrites}. */
  readonly writes?: AppWrites;
  readonly appLog: (line: RunLine) => void;
  /** Replaces the values of an app's secrets in a text: for all that leaves towards logs, errors and operators. */
  readonly redact: (app: string, text: string) => string;
  readonly metrics: RequestMetrics;
  /** Translates a stack of a version's bundle into places in its modules. */
  readonly mapStack?: (version: string, text: string) => Promise<string>;
  readonly nowMs: () => number;
  /** Counters of the requests that are served. */
  readonly traffic?: Pick<Traffic, "arrived" | "answered">;
  /** True where clients are shown an app's errors. */
  readonly dev: boolean;
}

/** Sender of apps' messages to their queues (runtime/queues). */
export interface AppSends {
  /** Resolves when all messages are stored. @param trace the sender's traceparent; "": none. */
  send(version: LiveVersion, queue: string, messages: readonly SentMessage[], trace: string): Promise<void>;
}

/** Outbox of apps' messages that are sent in one step with rows (runtime/queues/outbox.ts). */
export interface AppOutbox {
  /** Makes rows of messages. @param durable resolves when what the session has written is on disk. */
  outgoing(app: string, messages: readonly QueuedMessage[], durable: () => Promise<void>): OutgoingMessages;
}

/** A line that a function printed. */
export interface RunLine {
  readonly app: string;
  readonly version: string;
  readonly level: string;
  readonly text: string;
  /** Trace id of the request: its caller's, where it sent one. */
  readonly traceId: string;
  /** Id of the request's span, where the request is recorded. */
  readonly spanId?: string;
}

/** Errors of an app's own doing that a client is told by code; any other is `app_error`. */
const APP_CODES: ReadonlySet<string> = new Set(
  [
    "isolate_killed",
    "app_error",
    "wall_time",
    "overloaded",
    "limit_body",
    "body_late",
    "limit_key",
    "limit_value",
    "limit_atomic",
    "row_invalid",
    "check_failed",
    "not_available",
    "store_unreachable",
    "source_unreachable",
    "source_lost",
    "owners_unreachable",
    "owners_too_few",
    "queue_full",
    "queue_unknown",
    "message_invalid",
    "limit_message",
    "session_id_invalid",
    "limit_stateful",
    "stateful_unreachable",
    "stateful_parked",
    "superseded",
    "cycle",
    "pending_full",
    "disk_failed",
    "row_damaged",
  ] satisfies ProblemCode[],
);

/**
 * Problems that are written to the app's log beside its own lines: its author is to know of them, whoever the client
 * was.
 */
const FAULTS: ReadonlySet<ProblemCode> = new Set([
  "app_error",
  "isolate_killed",
  "wall_time",
  "not_available",
  "limit_stateful",
]);
/**
 * Problems whose message is told to the app's author and its operator only, outside dev: it may name a secret that has
 * no value.
 */
const HIDDEN: ReadonlySet<ProblemCode> = new Set(["app_error", "not_available"]);

/** An app version and what all its runs share. */
export interface Prepared {
  readonly app: IsolateApp;
  readonly space: AppSpace;
  /** Returns the lane that the version's app has now. */
  readonly lane: () => Lane | null;
  readonly writes: VersionWrites | undefined;
  readonly strayLog: (entry: { level: string; text: string }) => void;
  /** The highest position that any request of this version wrote or read: its isolates may remember it (AR4). */
  highest: Position;
  /** The last refusal and its reason, ready to be told again. */
  refusal?: { readonly why: string; readonly answer: () => Response };
}

/** Runs requests of apps at this site. */
export class AppRunner {
  readonly #services: RunnerServices;
  readonly #prepared = new WeakMap<LiveVersion, Prepared>();

  constructor(services: RunnerServices) {
    this.#services = services;
  }

  /**
   * Runs a request.
   *
   * @param fromClient whether the answer goes straight to the client, which may keep its token as a cookie.
   * @throws Problem where the session cannot be attached.
   */
  async run(
    arrival: Arrival,
    head: RequestHead,
    version: LiveVersion,
    presented: readonly RequestToken[],
    fromClient: boolean,
  ): Promise<Outcome> {
    const { replica, isolates, metrics, traffic } = this.#services;
    const begunMs = performance.now();
    const onceKey = onceKeyOf(head.headers, version); // a bad one is refused before anything runs
    const prepared = this.prepared(version);
    const refusal = isolates.refusal?.(prepared.app) ?? null;
    if (refusal !== null) {
      arrival.isSentAway = true;
      metrics.invoked(version, performance.now() - begunMs, "overloaded");
      traffic?.answered(version, begunMs, true);
      return respond(refusalOf(prepared, refusal)); // AR7
    }
    const attaching = attachTraced(
      arrival.span,
      (trace) => attach(replica, presented, () => traffic?.answered(version, begunMs, true), trace),
    );
    const session = attaching instanceof Promise ? await attaching : attaching;
    traffic?.arrived(session.how, presented[0]?.state.replica);
    const span = beginInvoke(arrival.span, version);
    if (span !== undefined) session.trace = formatTraceparent(span);
    session.lane = prepared.lane();
    const run = new Run(this.#services, prepared, {
      arrival,
      session,
      presented,
      head,
      version,
      fromClient,
      begunMs,
      span,
      onceKey,
    });
    metrics.attached(session.how, run.attachedMs - begunMs);
    const answer = this.#redacted(await isolates.call(prepared.app, run), version.app);
    metrics.invoked(version, run.ranMs(), answer.kind === "error" ? answer.code : undefined);
    endInvoke(span, answer);
    traffic?.answered(version, begunMs, hasFailed(answer));
    if (answer.kind === "response") {
      arrival.isStreamed = answer.body instanceof ReadableStream;
      return respond(answer.response);
    }
    const headers: [string, string][] = [];
    // AR4: a write that is on no disk may be seen by nobody.
    const isTold = answer.kind !== "error" || answer.code !== "disk_failed";
    arrival.isSentAway = answer.kind === "error" && answer.code === "overloaded";
    const hasBegun = answer.kind !== "error" || answer.neverBegan !== true;
    await run.head(headers, { open: answer.kind === "upgrade", named: hasBegun }, isTold);
    if (answer.kind === "upgrade") {
      return {
        kind: "socket",
        socket: new SocketOfIsolate(answer.socket),
        protocol: answer.socket.protocol,
        headers,
      };
    }
    if (answer.kind === "attach") return await attachSocket(answer.target, run.sessions, head, headers);
    const response = await this.#failure(version.version, answer, run);
    for (const [name, value] of headers) response.headers.append(name, value);
    return respond(response);
  }

  /**
   * Returns a session's token as a client would present it: the presented ones merged, or that of a new session that
   * has seen nothing (AR1).
   */
  async session(presented: readonly RequestToken[]): Promise<RequestToken> {
    const { replica, tokens, nowMs } = this.#services;
    const session = await attach(replica, presented, () => {}, "");
    const state = session.token(false);
    await session.durable();
    const names = presented[0]?.names ?? new SessionNames(session.id);
    return { text: tokens.seal(state, presented, names).text, state, issuedMs: nowMs(), names };
  }

  /** Returns an answer without the values of the app's secrets (AR5). */
  #redacted(answer: IsolateAnswer, app: string): IsolateAnswer {
    if (answer.kind !== "error") return answer;
    const { redact } = this.#services;
    const { stack, ...rest } = { ...answer, message: redact(app, answer.message) };
    return stack === undefined ? rest : { ...rest, stack: redact(app, stack) };
  }

  async #failure(
    version: string,
    answer: Extract<IsolateAnswer, { kind: "error" }>,
    run: Run,
  ): Promise<Response> {
    const { dev, mapStack } = this.#services;
    const code = isProblemCode(answer.code) && APP_CODES.has(answer.code) ? answer.code : "app_error";
    if (FAULTS.has(code)) {
      this.#services.appLog(run.line({ level: "error", text: answer.stack || answer.message }));
    }
    const stack = dev ? answer.stack : undefined;
    const more = stack === undefined ? {} : { stack: await mapStack?.(version, stack) ?? stack };
    const hidden = HIDDEN.has(code) && !dev;
    return problemResponse(code, hidden ? "the app failed; its log says why" : answer.message, more);
  }

  /** Returns what all runs of a version share, requests and others. */
  prepared(version: LiveVersion): Prepared {
    const known = this.#prepared.get(version);
    if (known !== undefined) return known;
    const { appLog, redact, isolateApp, laneOf } = this.#services;
    const { app, version: id } = version;
    const prepared: Prepared = {
      app: isolateApp(version),
      space: appSpace(app),
      lane: () => laneOf?.(app) ?? null,
      writes: this.#services.writes?.of(version),
      strayLog: ({ level, text }) =>
        appLog({ app, version: id, level, text: redact(app, text), traceId: newTraceId() }),
      highest: 0,
    };
    this.#prepared.set(version, prepared);
    return prepared;
  }
}

interface RunCall {
  readonly arrival: Arrival;
  readonly session: AttachedSession;
  readonly presented: readonly RequestToken[];
  readonly head: RequestHead;
  readonly version: LiveVersion;
  readonly fromClient: boolean;
  readonly begunMs: number;
  /** Span of the isolate's call. */
  readonly span: Span | undefined;
  /** Idempotency key with which the client may send the request again; null where it sent none. */
  readonly onceKey: string | null;
}

/**
 * State of one run: its session, what the function used of it, and the head that answers. It is the isolate's call
 * itself: an object and a closure for each of its parts were a tenth of what a short request costs.
 */
class Run implements StoreUse, IsolateCall {
  readonly #services: RunnerServices;
  readonly #call: RunCall;
  readonly #prepared: Prepared;
  readonly #names: SessionNames;
  readonly attachedMs = performance.now();
  readonly request: CallRequest;
  readonly store: StoreClient;
  readonly context: IsolateCall["context"];
  readonly signal: GoneSignal | undefined;
  readonly span: Span | undefined;
  storeMs = 0;
  #traceId: string | undefined;
  #sessions: StatefulCalls | undefined;
  #steps = 0;
  #stepsAtGate = 0;

  constructor(services: RunnerServices, prepared: Prepared, call: RunCall) {
    const { arrival, session, presented, head, version, span } = call;
    this.#services = services;
    this.#prepared = prepared;
    this.#call = call;
    this.#names = presented[0]?.names ?? new SessionNames(session.id);
    this.request = new RunRequest(head, arrival, span);
    const { limits, nowMs, site } = services;
    this.store = storeTraced(
      new RequestStore(session, {
        ...{ space: prepared.space, limits, nowMs, use: this, writes: prepared.writes },
        outbox: outboxOf(services, version, session),
      }),
      span,
    );
    this.context = {
      sessionId: this.#names.of(version.app),
      site,
      version: version.version,
      remoteAddr: arrival.remote,
    };
    this.signal = arrival.signal;
    this.span = span;
  }

  /** Calls of the request to stateful sessions; made on first use, as few requests make one. */
  get sessions(): StatefulCalls | undefined {
    const { stateful: caller } = this.#services;
    if (caller === undefined) return undefined;
    const { version, session } = this.#call;
    return this.#sessions ??= new StatefulCalls({
      ...{ caller, version, session, once: this.#once() },
      seen: () => this.step(),
    });
  }

  get queues(): QueueSender | undefined {
    return sendsOf(this.#services, this.#call.version, this.span);
  }

  #once(): OnceCalls | null {
    const { onceKey: key, version: { app }, head, presented, arrival } = this.#call;
    if (key === null) return null;
    const { method, target } = head;
    const authorization = head.headers.find(([name]) => name === "authorization")?.[1] ?? null;
    const session = arrival.isNew === true ? null : presented[0]?.state.session ?? null;
    return new OnceCalls({ app, session, key, method, target, authorization });
  }

  get strayLog(): Prepared["strayLog"] {
    return this.#prepared.strayLog;
  }

  log(entry: { level: string; text: string }): void {
    this.#services.appLog(this.line(entry));
  }

  redact(text: string): string {
    return this.#services.redact(this.#call.version.app, text);
  }

  /** Counts a step: a store call of the function begins or ends, or its session has seen more. */
  step(): void {
    this.#steps++;
    this.#note();
  }

  #note(): void {
    this.#prepared.highest = Math.max(this.#prepared.highest, this.#call.session.highest);
  }

  /**
   * Resolves when all that the function's isolate has touched so far is on disk here (AR4); at once if it is. The
   * function's own session is told where what it saw is lost with a former incarnation of this site
   * (store/session/session.ts, E6).
   */
  gate(): Promise<void> | void {
    this.#note();
    this.#stepsAtGate = this.#steps;
    const { replica } = this.#services, { highest } = this.#prepared, { session } = this.#call;
    if (session.isDurable && replica.isDurable(highest)) return;
    const durable = safe(session, replica, highest);
    return this.#call.span === undefined ? durable : gateTraced(this.#call.span, durable);
  }

  /** Returns the milliseconds since the run's session was attached. */
  ranMs(): number {
    return performance.now() - this.attachedMs;
  }

  /** Returns a line of the function's console, with what tells which request it belongs to. */
  line(entry: { level: string; text: string }): RunLine {
    const { span, head, version } = this.#call;
    this.#traceId ??= span?.traceId ?? traceContextOf(head.headers)?.traceId ?? newTraceId();
    const { app, version: id } = version;
    return {
      app,
      version: id,
      level: entry.level,
      text: this.redact(entry.text),
      traceId: this.#traceId,
      ...(span && { spanId: span.spanId }),
    };
  }

  /**
   * Reports whether the client is to be given a session to go on in (AR6). It is where it came with one or asked for
   * one, and at a page's navigation: what the page loads belongs to one session, and its requests leave at the same
   * time.
   */
  #isSession({ open, named }: Answering): boolean {
    const { tokens, reset, navigation } = this.#call.head;
    return tokens.length > 0 || reset || navigation || open || named || this.#steps > 0;
  }

  /** Adds the site's headers to an answer's; the session's token is among them where `isTold` (AR1, AR3). */
  head(headers: [string, string][], how: Answering, isTold = true): Promise<void> | void {
    const { session, presented, head, version, fromClient } = this.#call;
    const ownTiming = takeOver(headers, head);
    const saysWhere = this.#services.answerHeaders === "always" || head.asksWhere;
    const token = isTold && this.#isSession(how)
      ? this.#services.tokens.seal(session.token(how.open), presented, this.#names).text
      : null;
    if (saysWhere) {
      headers.push(["sojourn-site", this.#services.site], ["sojourn-version", version.version]);
    }
    if (token !== null) headers.push([SESSION_HEADER, token]);
    if (saysWhere) headers.push(["server-timing", [this.#timing(), ...ownTiming].join(", ")]);
    else if (ownTiming.length > 0) headers.push(["server-timing", ownTiming.join(", ")]);
    if (token === null) return;
    if (fromClient && wantsCookie(head, token)) {
      headers.push(["set-cookie", sessionCookie(token, head.secure)]);
    }
    // Work that goes on may have touched more since the gate opened, and the token names it.
    if (this.#steps !== this.#stepsAtGate) return this.gate();
  }

  /** Returns the value of `Server-Timing`: milliseconds of the handoff, the store and the app, up to now. */
  #timing(): string {
    const { session, begunMs } = this.#call;
    const appMs = performance.now() - this.attachedMs - this.storeMs;
    const handoff = `handoff;desc=${session.how};dur=${ms(this.attachedMs - begunMs)}`;
    return `${handoff}, store;dur=${ms(this.storeMs)}, app;dur=${ms(appMs)}`;
  }
}

/** Returns the sender of one run of a version. */
export function sendsOf(
  { queues }: Pick<RunnerServices, "queues">,
  version: LiveVersion,
  span: Span | undefined,
): QueueSender | undefined {
  if (queues === undefined) return undefined;
  const trace = span === undefined ? "" : formatTraceparent(span);
  return { send: (queue, messages) => queues.send(version, queue, messages, trace) };
}

/** Returns the outbox of one run of a version. */
export function outboxOf(
  { outbox }: Pick<RunnerServices, "outbox">,
  { app }: LiveVersion,
  session: Pick<AttachedSession, "durable">,
): SessionOutbox | undefined {
  if (outbox === undefined) return undefined;
  return (messages) => outbox.outgoing(app, messages, () => session.durable());
}

/** The request as the isolate gets it. */
class RunRequest implements CallRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: [string, string][];
  readonly #content: ArrivalContent;

  constructor(head: RequestHead, arrival: Arrival, span: Span | undefined) {
    this.method = head.method;
    this.url = head.url;
    this.headers = span === undefined ? head.headers : withContext(head.headers, span);
    this.#content = arrival.content;
  }

  get body(): CallRequest["body"] {
    return this.#content.body;
  }

  bytes(): Promise<Uint8Array> {
    return this.#content.bytes();
  }
}

/**
 * Returns the answer to a request that is refused; it is kept, as reasons change far more rarely than they are told.
 */
function refusalOf(prepared: Prepared, why: string): Response {
  if (prepared.refusal?.why !== why) {
    prepared.refusal = { why, answer: repeatedProblem("overloaded", why) };
  }
  return prepared.refusal.answer();
}

/** Resolves when what a session touched, and all up to a position, is on disk. @throws StoreUnavailable */
export async function safe(
  session: Pick<AttachedSession, "durable">,
  replica: Pick<Replica, "durable">,
  position: Position,
): Promise<void> {
  await Promise.all([session.durable(), replica.durable(position)]);
}

/** Reports whether the app, or what runs it, is to blame for an answer. */
const hasFailed = (answer: IsolateAnswer): boolean =>
  answer.kind === "error" || (answer.kind === "response" && answer.status >= 500);

/** Headers that concern one connection, which is the platform's and not the app's (RFC 9110, 7.6.1). */
const CONNECTION_HEADERS: ReadonlySet<string> = new Set(
  ["connection", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade"],
);

/**
 * Headers that a browser applies to the whole host, or origin, that sent them. Below a prefix an app is one of many
 * there: it must not clear what the others keep, answer for them (a service worker), have their errors reported to
 * itself, send their clients elsewhere, or to https only, for years.
 */
const HOST_HEADERS: ReadonlySet<string> = new Set([
  "accept-ch",
  "alt-svc",
  "clear-site-data",
  "critical-ch",
  "expect-ct",
  "nel",
  "origin-agent-cluster",
  "public-key-pins",
  "public-key-pins-report-only",
  "report-to",
  "secure-session-registration",
  "service-worker-allowed",
  "set-login",
  "strict-transport-security",
  "use-as-dictionary",
]);

/**
 * Drops the headers that an app sent under the platform's names: an app does not speak for the platform. Returns the
 * values of the app's `Server-Timing`, to follow the platform's.
 */
function takeOver(headers: [string, string][], head: RequestHead): string[] {
  const timing: string[] = [];
  for (let i = headers.length - 1; i >= 0; i--) {
    const [name, value] = headers[i] ?? ["", ""];
    const platform = name.startsWith("sojourn-") || CONNECTION_HEADERS.has(name) ||
      (name === "set-cookie" && setsOurCookie(value));
    if (name === "server-timing") timing.unshift(value);
    const others = HOST_HEADERS.has(name) && isPrefixed(head);
    if (platform || others || name === "server-timing") headers.splice(i, 1);
  }
  return timing;
}

const isPrefixed = (head: RequestHead): boolean =>
  head.headers.some(([name]) => name === "x-forwarded-prefix");

function attach(
  replica: Pick<Replica, "attach" | "attachAll">,
  presented: readonly RequestToken[],
  failed: () => void,
  trace: string,
): AttachedSession | Promise<AttachedSession> {
  const refuse = (error: unknown): never => {
    failed();
    throw problemOf(error) ?? error;
  };
  try {
    const [first] = presented;
    const attached = presented.length > 1
      ? replica.attachAll(presented.map((token) => token.state), trace)
      : replica.attach(first === undefined ? null : first.state, trace);
    return attached instanceof Promise ? attached.catch(refuse) : attached;
  } catch (error) {
    return refuse(error);
  }
}

const ms = (value: number): string => value < 0 ? "0" : value.toFixed(2);
