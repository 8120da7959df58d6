/**
 * Runs a request at this site: attaches its session, calls an isolate, and lets the answer out.
 *
 * Stages: attach (nothing, carry, wait) → call → gate → head with token → body.
 *
 * R1  A token leaves only after all that it names is on disk here.
 * R2  A failed call still answers with the session's token: what it had written before it failed stays written.
 * R3  A token is `open` while the function can still write after it left: stream, socket, `waitUntil`.
 * R4  What leaves an isolate waits for all that its version's requests have touched, not only for its own: a
 *     module's variable may hold what another request wrote a moment ago (the output gate).
 * R5  What an app prints or throws leaves without the values of its secrets; its responses are its own.
 */
import { type AttachedSession, type Replica, StoreUnavailable } from "../../store/api.ts";
import { byteString } from "../../store/key.ts";
import { sessionIdOf } from "../../store/token.ts";
import type { Position } from "../../store/row.ts";
import type { LiveVersion } from "../deploy/app_table.ts";
import type { Traffic } from "../observe/traffic.ts";
import type { IsolateAnswer, IsolateApp, IsolateCall } from "../isolate/call.ts";
import { type Arrival, type Outcome, respond } from "./arrival.ts";
import { IsolateEnd } from "./isolate_socket.ts";
import { contextOf, newTraceId, type Span, withContext } from "../telemetry/mod.ts";
import { isProblemCode, Problem, type ProblemCode, problemResponse } from "./problem.ts";
import { type RequestHead, SESSION_COOKIE, SESSION_HEADER } from "./request_head.ts";
import type { RequestMetrics } from "./request_metrics.ts";
import { attachTraced, beginInvoke, endInvoke, gateTraced } from "./request_spans.ts";
import { type AppSpace, appSpace, SessionStore, type StoreLimits, type StoreUse } from "./session_store.ts";
import { storeTraced } from "./store_spans.ts";
import { type OpenedToken, sessionCookie, type SessionTokens, wantsCookie } from "./session_tokens.ts";

/** What running needs of its site. */
export interface RunnerServices {
  readonly site: string;
  readonly replica: Pick<Replica, "attach" | "attachAll" | "durable">;
  readonly isolates: { call(app: IsolateApp, call: IsolateCall): Promise<IsolateAnswer> };
  readonly tokens: SessionTokens;
  readonly limits: StoreLimits;
  /** An app version with this site's limits. */
  readonly isolateApp: (version: LiveVersion) => IsolateApp;
  readonly appLog: (line: RunLine) => void;
  /** An app's text without the values of its secrets: for all that leaves towards logs, errors and operators. */
  readonly redact: (app: string, text: string) => string;
  readonly metrics: RequestMetrics;
  /** A stack of a version's bundle, told as places in its modules. */
  readonly mapStack?: (version: string, text: string) => Promise<string>;
  readonly nowMs: () => number;
  /** Counts what is served. */
  readonly traffic?: Pick<Traffic, "arrived" | "answered">;
  /** Show an app's errors to its clients. */
  readonly dev: boolean;
}

/** A line that a function printed. */
export interface RunLine {
  readonly app: string;
  readonly version: string;
  readonly level: string;
  readonly text: string;
  /** Of the request: its caller's, where it sent one. */
  readonly traceId: string;
  /** Where the request is recorded. */
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
    "limit_key",
    "limit_value",
    "limit_atomic",
    "row_invalid",
    "check_failed",
    "not_available",
    "store_unreachable",
    "source_unreachable",
    "source_lost",
    "disk_failed",
  ] satisfies ProblemCode[],
);

/** What an app's log says beside its own lines: its author is to know, whoever the client was. */
const FAULTS: ReadonlySet<ProblemCode> = new Set(["app_error", "isolate_killed", "wall_time"]);

/** Sessions that are active within seconds fit; 100 bytes each. */
const SESSION_IDS_MAX = 8_192;

interface Prepared {
  readonly app: IsolateApp;
  readonly space: AppSpace;
  /** The highest position that any request of this version wrote or read: its isolates may remember it (R4). */
  highest: Position;
}

/** Runs requests of apps at this site. */
export class AppRunner {
  readonly #services: RunnerServices;
  readonly #prepared = new WeakMap<LiveVersion, Prepared>();
  readonly #sessionIds = new Map<string, string>();

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
    presented: readonly OpenedToken[],
    fromClient: boolean,
  ): Promise<Outcome> {
    const { replica, isolates, site } = this.#services;
    const begunMs = performance.now();
    const { metrics, traffic } = this.#services;
    const unattached = () => traffic?.answered(version.app, begunMs, true);
    const session = await attachTraced(
      arrival.span,
      (trace) => attach(replica, presented, unattached, trace),
    );
    traffic?.arrived(session.how, presented[0]?.state.replica);
    metrics.attached(session.how, performance.now() - begunMs);
    const span = beginInvoke(arrival.span, version);
    const prepared = this.#prepare(version);
    const { app, space } = prepared;
    const run = new Run(this.#services, prepared, {
      session,
      presented,
      head,
      version,
      fromClient,
      begunMs,
      span,
    });
    const called = await isolates.call(app, {
      request: {
        method: head.method,
        url: head.url,
        headers: span === undefined ? head.headers : withContext(head.headers, span),
        get body() {
          return arrival.content.body;
        },
        bytes: () => arrival.content.bytes(),
      },
      store: storeTraced(
        new SessionStore(session, {
          space,
          limits: this.#services.limits,
          nowMs: this.#services.nowMs,
          use: run,
        }),
        span,
      ),
      context: {
        sessionId: this.#sessionId(session.id, version.app),
        site,
        version: version.version,
        ...(arrival.remote === undefined ? {} : { remoteAddr: arrival.remote }),
      },
      ...(arrival.signal === undefined ? {} : { signal: arrival.signal }),
      gate: () => run.gate(),
      head: (headers, open) => run.finishHead(headers, open),
      log: (entry) => this.#services.appLog(run.line(entry)),
      ...(span === undefined ? {} : { span }),
    });
    const answer = redacted(called, (text) => this.#services.redact(version.app, text));
    metrics.invoked(version, run.ranMs(), answer.kind === "error" ? answer.code : undefined);
    endInvoke(span, answer);
    traffic?.answered(version.app, begunMs, hasFailed(answer));
    if (answer.kind === "response") return respond(answer.response);
    const headers: [string, string][] = [];
    await run.finishHead(headers, answer.kind === "upgrade");
    if (answer.kind === "upgrade") {
      return {
        kind: "socket",
        socket: new IsolateEnd(answer.socket),
        protocol: answer.socket.protocol,
        headers,
      };
    }
    const response = await this.#failure(version.version, answer, run);
    for (const [name, value] of headers) response.headers.append(name, value);
    return respond(response);
  }

  /** A session that has seen nothing, as a client would present it. */
  async newSession(): Promise<OpenedToken> {
    const { replica, tokens, nowMs } = this.#services;
    const session = await replica.attach(null).catch((error) => {
      throw storeProblem(error);
    });
    const state = session.token(false);
    return { text: tokens.seal(state, []).text, state, issuedMs: nowMs() };
  }

  /** An app's name of a session; remembered, since deriving it costs as much as opening a token. */
  #sessionId(session: Uint8Array, app: string): string {
    const key = app + byteString(session);
    const known = this.#sessionIds.get(key);
    if (known !== undefined) return known;
    const id = sessionIdOf(session, app);
    if (this.#sessionIds.size >= SESSION_IDS_MAX) this.#sessionIds.clear();
    this.#sessionIds.set(key, id);
    return id;
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
    const hidden = code === "app_error" && !this.#services.dev;
    return problemResponse(code, hidden ? "the app failed; its log says why" : answer.message, more);
  }

  #prepare(version: LiveVersion): Prepared {
    const known = this.#prepared.get(version);
    if (known !== undefined) return known;
    const prepared = { app: this.#services.isolateApp(version), space: appSpace(version.app), highest: 0 };
    this.#prepared.set(version, prepared);
    return prepared;
  }
}

interface RunCall {
  readonly session: AttachedSession;
  readonly presented: readonly OpenedToken[];
  readonly head: RequestHead;
  readonly version: LiveVersion;
  readonly fromClient: boolean;
  readonly begunMs: number;
  /** Of the isolate's call. */
  readonly span: Span | undefined;
}

/** What one run holds: its session, what the function used of it, and the head that answers. */
class Run implements StoreUse {
  readonly #services: RunnerServices;
  readonly #call: RunCall;
  readonly #attachedMs = performance.now();
  readonly #prepared: Prepared;
  storeMs = 0;
  #traceId: string | undefined;
  #steps = 0;
  #stepsAtGate = 0;

  constructor(services: RunnerServices, prepared: Prepared, call: RunCall) {
    this.#services = services;
    this.#prepared = prepared;
    this.#call = call;
  }

  /** A store call of the function begins or ends. */
  step(): void {
    this.#steps++;
    this.#note();
  }

  #note(): void {
    this.#prepared.highest = Math.max(this.#prepared.highest, this.#call.session.highest);
  }

  /** Resolves when all that the function's isolate has touched so far is on disk here (R4). */
  gate(): Promise<void> {
    this.#note();
    this.#stepsAtGate = this.#steps;
    const durable = this.#services.replica.durable(this.#prepared.highest);
    return this.#call.span === undefined ? durable : gateTraced(this.#call.span, durable);
  }

  /** Since its session was attached. */
  ranMs(): number {
    return performance.now() - this.#attachedMs;
  }

  /** A line of the function's console, with what tells which request it belongs to. */
  line(entry: { level: string; text: string }): RunLine {
    const { span, head, version } = this.#call;
    this.#traceId ??= span?.traceId ?? contextOf(head.headers)?.traceId ?? newTraceId();
    const { app, version: id } = version;
    const text = this.#services.redact(app, entry.text);
    return {
      app,
      version: id,
      level: entry.level,
      text,
      traceId: this.#traceId,
      ...(span && { spanId: span.spanId }),
    };
  }

  /** Adds the site's headers to an answer's, its token among them (R1, R3). */
  finishHead(headers: [string, string][], open: boolean): Promise<void> | void {
    const { session, presented, head, version, fromClient, begunMs } = this.#call;
    const ownTiming = takeOver(headers);
    const state = session.token(open);
    const token = this.#services.tokens.seal(state, presented).text;
    const appMs = performance.now() - this.#attachedMs - this.storeMs;
    const handoff = `handoff;desc=${session.how};dur=${ms(this.#attachedMs - begunMs)}`;
    headers.push(
      ["sojourn-site", this.#services.site],
      ["sojourn-version", version.version],
      [SESSION_HEADER, token],
      ["server-timing", `${handoff}, store;dur=${ms(this.storeMs)}, app;dur=${ms(appMs)}${ownTiming}`],
    );
    if (fromClient && wantsCookie(head, token)) {
      headers.push(["set-cookie", sessionCookie(token, head.secure)]);
    }
    // Work that goes on may have touched more since the gate opened, and the token names it.
    if (this.#steps !== this.#stepsAtGate) return this.gate();
  }
}

/** R5 */
function redacted(answer: IsolateAnswer, redact: (text: string) => string): IsolateAnswer {
  if (answer.kind !== "error") return answer;
  const { stack, ...rest } = { ...answer, message: redact(answer.message) };
  return stack === undefined ? rest : { ...rest, stack: redact(stack) };
}

/** Whether the app, or what runs it, is to blame. */
const hasFailed = (answer: IsolateAnswer): boolean =>
  answer.kind === "error" || (answer.kind === "response" && answer.response.status >= 500);

/** Of one connection, which is the platform's and not the app's (RFC 9110, 7.6.1). */
const CONNECTION_HEADERS: ReadonlySet<string> = new Set(
  ["connection", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade"],
);

/**
 * An app does not speak for the platform: what it says under the platform's names is dropped. Its `Server-Timing`
 * is returned, to follow the platform's.
 */
function takeOver(headers: [string, string][]): string {
  let timing = "";
  for (let i = headers.length - 1; i >= 0; i--) {
    const [name, value] = headers[i] ?? ["", ""];
    const platform = name.startsWith("sojourn-") || CONNECTION_HEADERS.has(name) ||
      (name === "set-cookie" && value.startsWith(SESSION_COOKIE + "="));
    if (name === "server-timing") timing = `, ${value}${timing}`;
    if (platform || name === "server-timing") headers.splice(i, 1);
  }
  return timing;
}

async function attach(
  replica: Pick<Replica, "attach" | "attachAll">,
  presented: readonly OpenedToken[],
  failed: () => void,
  trace: string,
): Promise<AttachedSession> {
  try {
    const [first] = presented;
    if (presented.length > 1) return await replica.attachAll(presented.map((token) => token.state), trace);
    return await replica.attach(first === undefined ? null : first.state, trace);
  } catch (error) {
    failed();
    throw storeProblem(error);
  }
}

/** A store failure as the problem that a client is told; anything else as it is. */
export function storeProblem(error: unknown): unknown {
  if (!(error instanceof StoreUnavailable)) return error;
  const code = isProblemCode(error.code) ? error.code : "overloaded";
  return new Problem(code, error.message, error.detail);
}

const ms = (value: number): string => value < 0 ? "0" : value.toFixed(2);
