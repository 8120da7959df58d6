/**
 * Telemetry of the gateway's requests: a span for those that are recorded, metrics of every one.
 *
 * Life of a request: `arrived` (from a client) or `forwarded` (over a link) → … → `answered`, or `replied` → its head
 * is on its way. A body that streams after the head belongs to no span of the request.
 */
import {
  failureCode,
  type Family,
  formatTraceparent,
  parseTraceparent,
  type Span,
  SPAN_KIND,
  TRACEPARENT,
  type Tracer,
} from "../telemetry/mod.ts";
import type { LiveVersion } from "../deploy/app_table.ts";
import type { Arrival } from "./arrival.ts";
import type { ForwardedRequest } from "./forward.ts";
import { OperatorTelemetry } from "./operator_telemetry.ts";
import { problemOf } from "../../functions/vocabulary/problem.ts";
import { RequestMetrics } from "./request_metrics.ts";
import { describeRequest, endRequest } from "./request_spans.ts";

/** Spans and counts of a site's requests. */
export class RequestTelemetry {
  readonly metrics = new RequestMetrics();
  readonly operator: OperatorTelemetry;
  readonly #site: string;
  readonly #tracer: Tracer;

  constructor(site: string, tracer: Tracer) {
    this.#site = site;
    this.#tracer = tracer;
    this.operator = new OperatorTelemetry(site, tracer);
  }

  /** Families of all metrics of requests. */
  get families(): Family[] {
    return this.metrics.families;
  }

  /** Begins the span of a client's request. */
  arrived(request: Request): Span | undefined {
    if (!this.#tracer.isOn) return undefined;
    const span = this.#tracer.arrived(request.headers);
    describeRequest(span, request, this.#site);
    return span;
  }

  /** Ends the span of an answer that leaves, and counts it; `error` where the platform refused. */
  answered(arrival: Arrival, response: Response, sinceMs: number, error?: unknown): Response {
    const { span } = arrival;
    this.metrics.answered(arrival, response.status, performance.now() - sinceMs);
    if (span === undefined) return response;
    if (response.status !== 101) response.headers.set(TRACEPARENT, formatTraceparent(span));
    endRequest(span, response.status, error === undefined ? null : problemCode(error));
    return response;
  }

  /** Begins the span of a cron job's run: the trace begins with it. */
  timed(
    version: LiveVersion,
    event: { readonly cron: string; readonly scheduledTime: number },
  ): Span | undefined {
    const span = this.#tracer.arrived(NO_HEADERS, 1);
    if (span === undefined) return undefined;
    span.name = `${version.app} scheduled`;
    span.set("sojourn.site", this.#site).set("faas.name", version.app).set("faas.version", version.version);
    span.set("faas.trigger", "timer").set("faas.time", new Date(event.scheduledTime).toISOString());
    return span.set("faas.cron", event.cron);
  }

  /** Begins the span of another site's request. */
  forwarded(request: ForwardedRequest): Span | undefined {
    if (!this.#tracer.isOn) return undefined;
    const span = this.#tracer.forwarded(request.headers);
    describeRequest(span, request, this.#site);
    return span?.set("sojourn.forwarded", true);
  }

  /**
   * Begins the span of what this site is asked for when a session needs it at another; the returned function ends it.
   */
  readonly asked = (trace: string, what: "handoff" | "fetch"): (() => void) | undefined => {
    const name = what === "handoff" ? "session handoff" : "store fetch";
    const span = this.#tracer.continued(parseTraceparent(trace), name, SPAN_KIND.server)
      ?.set("sojourn.site", this.#site);
    return span && (() => span.end());
  };

  /** Begins the span of a request to another site; returns it with the headers that make the trace go on there. */
  forward(
    span: Span | undefined,
    to: string,
    headers: [string, string][],
  ): { readonly step: Span | undefined; readonly headers: [string, string][] } {
    const step = span?.child(`forward ${to}`, SPAN_KIND.client)?.set("server.address", to)
      .set("network.protocol.name", "sojourn-link");
    return { step, headers: this.#tracer.passed(headers, step ?? span) };
  }
}

const NO_HEADERS = { get: () => null };

/** Returns a problem's code; for any other error its kind. */
export const problemCode = (error: unknown): string => problemOf(error)?.code ?? failureCode(error);
