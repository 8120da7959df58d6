/**
 * A run of an app that no client has asked for: a cron job, messages of a queue. It has a session of its own.
 *
 * OWR1  It has ended well only when what it wrote or read is on disk here (the output gate).
 * OWR2  What it prints or throws leaves without the values of the app's secrets.
 * OWR3  Its session has seen what it is told, where a site can still tell; else it has seen nothing, and it runs.
 */
import { type AttachedSession, StoreUnavailable, type TokenState } from "../../store/api/api.ts";
import { sessionIdOf } from "../../store/session/token.ts";
import type { LiveVersion } from "../deploy/app_table.ts";
import type { CallRequest, IsolateCall } from "../isolate/call.ts";
import { formatTraceparent, newTraceId, type Span, withContext } from "../telemetry/mod.ts";
import { outboxOf, type Prepared, type RunnerServices, safe, sendsOf } from "./app_runner.ts";
import { endInvoke, gateTraced } from "./request_spans.ts";
import { RequestStore, type StoreUse } from "./session_store.ts";
import { StatefulCalls } from "./stateful_calls.ts";
import { storeTraced } from "./store_spans.ts";

/** Services of the site that a run needs. */
export type OwnRunServices = Pick<
  RunnerServices,
  | "site"
  | "replica"
  | "isolates"
  | "limits"
  | "appLog"
  | "redact"
  | "nowMs"
  | "mapStack"
  | "metrics"
  | "stateful"
  | "queues"
  | "outbox"
>;

/** Why a run came to nothing. */
export interface RunFailure {
  readonly code: string;
  readonly message: string;
  /** True where no isolate was given the run. */
  readonly neverBegan: boolean;
}

/** Request of a run, which has none. It is no GET: a run that has begun is not run a second time in silence. */
const NO_REQUEST: CallRequest = {
  method: "POST",
  url: "http://localhost/",
  headers: [],
  body: null,
  bytes: () => Promise.resolve(new Uint8Array()),
};

/** One run without a request. */
export class OwnRun implements StoreUse {
  readonly #services: OwnRunServices;
  readonly #prepared: Prepared;
  readonly #version: LiveVersion;
  readonly #session: AttachedSession;
  readonly #span: Span | undefined;
  readonly #traceId: string;
  readonly #begunMs = performance.now();
  storeMs = 0;

  private constructor(
    services: OwnRunServices,
    prepared: Prepared,
    { version, session, span }: { version: LiveVersion; session: AttachedSession; span: Span | undefined },
  ) {
    this.#services = services;
    this.#prepared = prepared;
    this.#version = version;
    this.#session = session;
    this.#span = span;
    this.#traceId = span?.traceId ?? newTraceId();
  }

  /** @throws StoreUnavailable where no session can be had. */
  static async begin(
    services: OwnRunServices,
    prepared: Prepared,
    version: LiveVersion,
    { seen = null, spanOf }: {
      readonly seen?: TokenState | null;
      readonly spanOf?: () => Span | undefined;
    } = {},
  ): Promise<OwnRun> {
    const session = await attached(services, seen);
    session.lane = prepared.lane();
    const span = spanOf?.();
    if (span !== undefined) session.trace = formatTraceparent(span);
    return new OwnRun(services, prepared, { version, session, span });
  }

  step(): void {
    this.#prepared.highest = Math.max(this.#prepared.highest, this.#session.highest);
  }

  /** Calls the handler. @returns why it came to nothing; null where it has ended well. */
  async end(
    what: Pick<IsolateCall, "scheduled" | "batch">,
    trigger: "timer" | "pubsub",
  ): Promise<RunFailure | null> {
    const { isolates, metrics, redact, mapStack } = this.#services, { app, version } = this.#version;
    const answer = await isolates.call(this.#prepared.app, this.#call(what));
    endInvoke(this.#span, answer);
    const failure = answer.kind === "error" ? answer.code : undefined;
    metrics.invoked(this.#version, performance.now() - this.#begunMs, failure, trigger);
    if (answer.kind === "response") return null;
    if (answer.kind !== "error") throw new Error("a run without a request upgrades nothing");
    const { code, message, neverBegan = false } = answer;
    const stack = redact(app, answer.stack || message); // OWR2
    // Messages that nobody has room for come again in a moment.
    const isBusy = neverBegan && what.batch !== undefined && code === "overloaded";
    if (!isBusy) this.#log("error", await mapStack?.(version, stack) ?? stack);
    return { code, message: redact(app, message), neverBegan };
  }

  /** Resolves when all that the run has touched is on disk here (OWR1). */
  gate(): Promise<void> {
    this.step();
    return gateTraced(this.#span, safe(this.#session, this.#services.replica, this.#prepared.highest));
  }

  #call(what: Pick<IsolateCall, "scheduled" | "batch">): IsolateCall {
    const { site, limits, nowMs } = this.#services;
    const { app, version } = this.#version;
    const span = this.#span;
    return {
      request: span === undefined ? NO_REQUEST : { ...NO_REQUEST, headers: withContext([], span) },
      ...what,
      store: storeTraced(
        new RequestStore(this.#session, {
          space: this.#prepared.space,
          limits,
          nowMs,
          use: this,
          writes: this.#prepared.writes,
          outbox: outboxOf(this.#services, this.#version, this.#session),
        }),
        span,
      ),
      sessions: this.#sessions(),
      queues: sendsOf(this.#services, this.#version, span),
      ...(span === undefined ? {} : { span }),
      context: { sessionId: sessionIdOf(this.#session.id, app), site, version },
      gate: () => this.gate(),
      strayLog: this.#prepared.strayLog,
      redact: (text: string) => this.#services.redact(this.#version.app, text),
      log: (line: { level: string; text: string }) => this.#log(line.level, line.text),
    };
  }

  #sessions(): StatefulCalls | undefined {
    const { stateful: caller } = this.#services;
    if (caller === undefined) return undefined;
    return new StatefulCalls({
      ...{ caller, version: this.#version, session: this.#session, once: null },
      seen: () => this.step(),
    });
  }

  #log(level: string, text: string): void {
    const { app, version } = this.#version;
    this.#services.appLog({
      app,
      version,
      level,
      text: this.#services.redact(app, text),
      traceId: this.#traceId,
      ...(this.#span === undefined ? {} : { spanId: this.#span.spanId }),
    });
  }
}

/** Attaches a session that has seen so much, or else one that has seen nothing (OWR3). */
async function attached(
  { replica }: Pick<OwnRunServices, "replica">,
  seen: TokenState | null,
): Promise<AttachedSession> {
  if (seen === null) return await replica.attach(null);
  try {
    return await replica.attach(seen);
  } catch (error) {
    if (!(error instanceof StoreUnavailable)) throw error;
    return await replica.attach(null);
  }
}
