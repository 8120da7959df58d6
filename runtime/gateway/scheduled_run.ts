/**
 * Runs a cron job of an app at this site: a call of its `scheduled` handler, with a session of its own.
 *
 * Y1  A run has ended well only when what it wrote or read is on disk here (the output gate).
 * Y2  Lines and errors of a run leave without the values of the app's secrets.
 */
import { type AttachedSession, StoreUnavailable } from "../../store/api/api.ts";
import { sessionIdOf } from "../../store/session/token.ts";
import type { RunOutcome } from "../cron/job.ts";
import type { DueEvent } from "../cron/scheduler.ts";
import type { LiveVersion } from "../deploy/app_table.ts";
import type { CallRequest, IsolateAnswer, ScheduledCall } from "../isolate/call.ts";
import { formatTraceparent, newTraceId, type Span, withContext } from "../telemetry/mod.ts";
import { type Prepared, type RunnerServices, safe } from "./app_runner.ts";
import { endInvoke, gateTraced } from "./request_spans.ts";
import type { RequestTelemetry } from "./request_telemetry.ts";
import { RequestStore, type StoreUse } from "./session_store.ts";
import { StatefulCalls } from "./stateful_calls.ts";
import { storeTraced } from "./store_spans.ts";

/** Services that a run uses beside those that requests use. */
export interface ScheduledServices extends
  Pick<
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
  > {
  /** Recorder of runs: every one is recorded where telemetry is on, as there are few. */
  readonly telemetry: Pick<RequestTelemetry, "timed">;
  readonly scheduledLimits: ScheduledCall["limits"];
}

/**
 * Request that stands for a run, as none is behind it. Not a GET: a run that has begun is not run a second time in
 * silence.
 */
const NO_REQUEST: CallRequest = {
  method: "POST",
  url: "http://localhost/",
  headers: [],
  body: null,
  bytes: () => Promise.resolve(new Uint8Array()),
};

/** Runs a job once. */
export async function runScheduled(
  services: ScheduledServices,
  prepared: Prepared,
  version: LiveVersion,
  event: DueEvent,
): Promise<RunOutcome> {
  let session: AttachedSession;
  try {
    session = await services.replica.attach(null);
  } catch (error) {
    if (!(error instanceof StoreUnavailable)) throw error;
    return { ok: false, code: error.code, message: error.message, retry: true };
  }
  session.lane = prepared.lane();
  const begunMs = performance.now();
  const span = services.telemetry.timed(version, event);
  if (span !== undefined) session.trace = formatTraceparent(span);
  const run = new ScheduledRun(services, prepared, { version, session, span });
  const answer = await services.isolates.call(prepared.app, run.call(event));
  endInvoke(span, answer);
  const failure = answer.kind === "error" ? answer.code : undefined;
  services.metrics.invoked(version, performance.now() - begunMs, failure, "timer");
  return await run.outcome(answer);
}

/** State of one run. */
class ScheduledRun implements StoreUse {
  readonly #services: ScheduledServices;
  readonly #prepared: Prepared;
  readonly #version: LiveVersion;
  readonly #session: AttachedSession;
  readonly #span: Span | undefined;
  readonly #traceId: string;
  #retry = true;
  storeMs = 0;

  constructor(
    services: ScheduledServices,
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

  step(): void {
    this.#prepared.highest = Math.max(this.#prepared.highest, this.#session.highest);
  }

  call(event: DueEvent) {
    const { site, limits, nowMs, scheduledLimits } = this.#services;
    const { app, version } = this.#version;
    const span = this.#span;
    return {
      request: span === undefined ? NO_REQUEST : { ...NO_REQUEST, headers: withContext([], span) },
      scheduled: { ...event, limits: scheduledLimits, noRetry: () => void (this.#retry = false) },
      store: storeTraced(
        new RequestStore(this.#session, {
          space: this.#prepared.space,
          limits,
          nowMs,
          use: this,
          writes: this.#prepared.writes,
        }),
        span,
      ),
      sessions: this.#sessions(),
      ...(span === undefined ? {} : { span }),
      context: { sessionId: sessionIdOf(this.#session.id, app), site, version },
      gate: () => this.#gate(),
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

  /** Resolves when all that the run touched is on disk here (Y1). */
  #gate(): Promise<void> {
    this.step();
    return gateTraced(
      this.#span,
      safe(this.#session, this.#services.replica, this.#prepared.highest),
    );
  }

  async outcome(answer: IsolateAnswer): Promise<RunOutcome> {
    const { redact, mapStack } = this.#services;
    const { app, version } = this.#version;
    if (answer.kind === "response") return { ok: true };
    if (answer.kind === "upgrade" || answer.kind === "attach") {
      throw new Error("a scheduled run upgrades nothing"); // it has no request
    }
    const stack = redact(app, answer.stack || answer.message); // Y2
    this.#log("error", await mapStack?.(version, stack) ?? stack);
    return { ok: false, code: answer.code, message: redact(app, answer.message), retry: this.#retry };
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
