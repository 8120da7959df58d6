/**
 * Traces and metrics (docs/telemetry.md).
 *
 * The rest of the runtime sees a {@link Tracer}, which begins a {@link Span} for a request that is recorded and
 * nothing for any other, and instruments that count. With telemetry off a request costs one call that returns
 * nothing; metrics are counted always, in arrays and maps that exist already.
 */
export { failureCode, Span, SPAN_KIND, type SpanKind } from "./span.ts";
export { INERT, SamplingTracer, type Tracer } from "./tracer.ts";
export {
  formatTraceparent,
  parseTraceparent,
  type TraceContext,
  traceContextOf,
  TRACEPARENT,
  TRACESTATE,
  withContext,
} from "./trace_context.ts";
export { newTraceId } from "./trace_ids.ts";
export {
  Counter,
  COUNTS,
  type Family,
  Histogram,
  HistogramCounts,
  type Labels,
  type NumberSeries,
  observed,
  SECONDS,
} from "./instruments.ts";
export { PROMETHEUS_TYPE, prometheusText } from "./prometheus.ts";
export {
  type OtelField,
  otelSchema,
  type OtelSettings,
  otelSettings,
  OtelSettingsError,
} from "./settings.ts";
export { Telemetry } from "./telemetry.ts";
