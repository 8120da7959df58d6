/**
 * Spans and metrics in OTLP's JSON mapping (opentelemetry-proto 1.x: ids in hexadecimal, 64-bit numbers as text,
 * enums as numbers), which every collector takes at /v1/traces and /v1/metrics.
 */
import type { AttributeValue, Span } from "./span.ts";
import type { Family, HistogramSeries, MetricSeries } from "./instruments.ts";

/** Attributes of the process that all spans and metrics come from. */
export type Resource = Readonly<Record<string, AttributeValue>>;

const SCOPE = { name: "sojourn" };
const STATUS_ERROR = 2;
/** Temporality of sums: since the start of the process, as a scraper sees them too. */
const CUMULATIVE = 2;

function valueOf(value: AttributeValue) {
  if (typeof value === "string") return { stringValue: value };
  if (typeof value === "boolean") return { boolValue: value };
  return Number.isSafeInteger(value) ? { intValue: String(value) } : { doubleValue: value };
}

const keyValue = (key: string, value: AttributeValue) => ({ key, value: valueOf(value) });
const resourceOf = (resource: Resource) => ({
  attributes: Object.entries(resource).map(([key, value]) => keyValue(key, value)),
});

/**
 * Returns nanoseconds as text. Microseconds are all that the clock has; doubles hold them exactly until the year 2255.
 */
const nanos = (ms: number): string => `${Math.round(ms * 1000)}000`;

function spanOf(span: Span) {
  // A name that was set twice has its last value.
  const attributes = new Map<string, AttributeValue>();
  for (let i = 0; i + 1 < span.attributes.length; i += 2) {
    attributes.set(String(span.attributes[i]), span.attributes[i + 1] ?? "");
  }
  return {
    traceId: span.traceId,
    spanId: span.spanId,
    ...(span.parentId === "" ? {} : { parentSpanId: span.parentId }),
    ...(span.state === "" ? {} : { traceState: span.state }),
    name: span.name,
    kind: span.kind,
    startTimeUnixNano: nanos(span.beganMs),
    endTimeUnixNano: nanos(span.endedMs),
    attributes: Array.from(attributes, ([key, value]) => keyValue(key, value)),
    ...(span.failed ? { status: { code: STATUS_ERROR } } : {}),
  };
}

/** Returns the body of a POST to /v1/traces. */
export const encodeSpans = (resource: Resource, spans: readonly Span[]): string =>
  JSON.stringify({
    resourceSpans: [{
      resource: resourceOf(resource),
      scopeSpans: [{ scope: SCOPE, spans: spans.map(spanOf) }],
    }],
  });

interface Period {
  readonly beganMs: number;
  readonly nowMs: number;
}

function pointOf(series: MetricSeries, times: object) {
  const attributes = series.labels.map(([key, value]) => keyValue(key, value));
  if (!("counts" in series)) {
    const { value } = series;
    return {
      attributes,
      ...times,
      ...(Number.isSafeInteger(value) ? { asInt: String(value) } : { asDouble: value }),
    };
  }
  const { counts, sum, bounds } = series as HistogramSeries;
  return {
    attributes,
    ...times,
    count: String(counts.reduce((all, one) => all + one, 0)),
    sum,
    bucketCounts: Array.from(counts, String),
    explicitBounds: bounds,
  };
}

function metricOf(family: Family, { beganMs, nowMs }: Period) {
  const { kind, name, unit, description, series } = family;
  const times = {
    ...(kind === "gauge" ? {} : { startTimeUnixNano: nanos(beganMs) }),
    timeUnixNano: nanos(nowMs),
  };
  const dataPoints = series.map((one) => pointOf(one, times));
  const about = { name, description, unit };
  if (kind === "gauge") return { ...about, gauge: { dataPoints } };
  if (kind === "histogram") {
    return { ...about, histogram: { dataPoints, aggregationTemporality: CUMULATIVE } };
  }
  return { ...about, sum: { dataPoints, aggregationTemporality: CUMULATIVE, isMonotonic: true } };
}

/** Returns the body of a POST to /v1/metrics. */
export const encodeMetrics = (resource: Resource, families: readonly Family[], period: Period): string =>
  JSON.stringify({
    resourceMetrics: [{
      resource: resourceOf(resource),
      scopeMetrics: [{ scope: SCOPE, metrics: families.map((family) => metricOf(family, period)) }],
    }],
  });
