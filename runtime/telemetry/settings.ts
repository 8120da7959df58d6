/**
 * The settings of telemetry, checked: those of the site file's `otel` and of the standard `OTEL_*` variables, as one
 * set.
 *
 * Order: the site file (and `SOJOURN_OTEL_…` over it) → `OTEL_*` variables → defaults. Off, unless the site file
 * says `true` or has fields, or Deno's own switch `OTEL_DENO=true` is set; `OTEL_SDK_DISABLED=true` is off.
 *
 * O1  A variable that cannot be read stops the start, and the message names it; the value of a header is not shown.
 */
import { z } from "zod";
import type { Destination, ExportOptions } from "./exporter.ts";
import type { Resource } from "./otlp.ts";
import type { SamplingOptions } from "./tracer.ts";

const httpUrl = z.url({ protocol: /^https?$/, error: "expected an http:// or https:// address" });

/** Schema of the site file's `otel`. */
export const otelSchema = z.union([
  z.boolean(),
  z.strictObject({
    /** Address of the collector; /v1/traces and /v1/metrics are put behind it. */
    endpoint: httpUrl.optional(),
    /** Share of the traces beginning here that are recorded. */
    ratio: z.number().min(0).max(1).optional(),
    /** Name of the variable that holds headers for the collector: `name=value,name=value`. */
    headersFrom: z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/, "expected the name of a variable").optional(),
    followCallers: z.boolean().optional(),
    tracesPerSecondMax: z.number().int().min(1).optional(),
  }),
], "expected true, false, or fields of endpoint, ratio, headersFrom, followCallers, tracesPerSecondMax");

/** The value of `otel` that {@link otelSchema} accepts. */
export type OtelField = z.infer<typeof otelSchema>;

/** The settings that a site's telemetry is made from. */
export interface OtelSettings {
  readonly export: ExportOptions;
  readonly sampling: SamplingOptions;
  readonly resource: Resource;
}

/** The error for variables that cannot be used (O1). */
export class OtelSettingsError extends Error {
  override readonly name = "OtelSettingsError";
}

/**
 * Share of traces that are recorded by default: one request in a hundred takes about 1 % of what recording all of them
 * costs (docs/telemetry.md).
 */
const RATIO_DEFAULT = 0.01;
/** Number of traces recorded in a second by default: so many cost a core less than 2 %. */
const TRACES_PER_SECOND_DEFAULT = 200;
const ENDPOINT_DEFAULT = "http://localhost:4318";

type Env = Readonly<Record<string, string>>;

/** Returns the settings, or null where telemetry is off. @throws OtelSettingsError. */
export function otelSettings(field: OtelField | undefined, env: Env): OtelSettings | null {
  const wanted = field ?? env.OTEL_DENO === "true";
  if (wanted === false || env.OTEL_SDK_DISABLED?.toLowerCase() === "true") return null;
  const file = wanted === true ? {} : wanted;
  const protocol = env.OTEL_EXPORTER_OTLP_PROTOCOL;
  oneOf("OTEL_EXPORTER_OTLP_PROTOCOL", protocol, ["http/json"]);
  const base = file.endpoint ?? url("OTEL_EXPORTER_OTLP_ENDPOINT", env) ?? ENDPOINT_DEFAULT;
  const headers = headersOf(file.headersFrom ?? "OTEL_EXPORTER_OTLP_HEADERS", env);
  if (file.headersFrom !== undefined && env[file.headersFrom] === undefined) {
    throw new OtelSettingsError(`otel.headersFrom: the variable ${file.headersFrom} is not set`);
  }
  return {
    export: {
      traces: destination("TRACES", env, base, headers),
      metrics: destination("METRICS", env, base, headers),
      timeoutMs: ms("OTEL_EXPORTER_OTLP_TIMEOUT", env, 10_000),
      delayMs: ms("OTEL_BSP_SCHEDULE_DELAY", env, 5_000),
      batchSpansMax: ms("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", env, 512),
      queueSpansMax: ms("OTEL_BSP_MAX_QUEUE_SIZE", env, 2_048),
      metricsEveryMs: ms("OTEL_METRIC_EXPORT_INTERVAL", env, 60_000),
    },
    sampling: sampling(file, env),
    resource: resourceOf(env),
  };
}

function sampling(file: Exclude<OtelField, boolean>, env: Env): SamplingOptions {
  const sampler = env.OTEL_TRACES_SAMPLER;
  const kinds = ["always_on", "always_off", "traceidratio"];
  oneOf("OTEL_TRACES_SAMPLER", sampler, [...kinds, ...kinds.map((kind) => `parentbased_${kind}`)]);
  const kind = sampler?.replace("parentbased_", "");
  const standard = kind === "always_on" ? 1 : kind === "always_off" ? 0 : argument(env);
  return {
    ratio: file.ratio ?? standard ?? RATIO_DEFAULT,
    followCallers: file.followCallers ?? (sampler === undefined || sampler.startsWith("parentbased_")),
    tracesPerSecondMax: file.tracesPerSecondMax ?? TRACES_PER_SECOND_DEFAULT,
  };
}

function argument(env: Env): number | undefined {
  const text = env.OTEL_TRACES_SAMPLER_ARG;
  if (text === undefined || text === "") return undefined;
  const ratio = Number(text);
  if (ratio >= 0 && ratio <= 1) return ratio;
  throw new OtelSettingsError(`OTEL_TRACES_SAMPLER_ARG: found ${JSON.stringify(text)}; expected 0 to 1`);
}

function destination(
  signal: "TRACES" | "METRICS",
  env: Env,
  base: string,
  headers: Readonly<Record<string, string>>,
): Destination | null {
  oneOf(`OTEL_${signal}_EXPORTER`, env[`OTEL_${signal}_EXPORTER`], ["otlp", "none"]);
  if (env[`OTEL_${signal}_EXPORTER`] === "none") return null;
  oneOf(`OTEL_EXPORTER_OTLP_${signal}_PROTOCOL`, env[`OTEL_EXPORTER_OTLP_${signal}_PROTOCOL`], ["http/json"]);
  const own = url(`OTEL_EXPORTER_OTLP_${signal}_ENDPOINT`, env);
  return {
    url: own ?? `${base.replace(/(?<!\/)\/+$/, "")}/v1/${signal.toLowerCase()}`,
    headers: { ...headers, ...headersOf(`OTEL_EXPORTER_OTLP_${signal}_HEADERS`, env) },
  };
}

function resourceOf(env: Env): Resource {
  const attributes = Object.fromEntries(pairs("OTEL_RESOURCE_ATTRIBUTES", env));
  const name = env.OTEL_SERVICE_NAME || attributes["service.name"] || "sojourn";
  return { ...attributes, "service.name": name };
}

function url(name: string, env: Env): string | undefined {
  const text = env[name];
  if (text === undefined || text === "") return undefined;
  if (httpUrl.safeParse(text).success) return text;
  throw new OtelSettingsError(`${name}: found ${JSON.stringify(text)}; expected an http(s):// address`);
}

/** Reads a whole number above zero: milliseconds or a count. */
function ms(name: string, env: Env, byDefault: number): number {
  const text = env[name];
  if (text === undefined || text === "") return byDefault;
  const value = Number(text);
  if (Number.isSafeInteger(value) && value > 0) return value;
  throw new OtelSettingsError(`${name}: found ${JSON.stringify(text)}; expected a whole number above 0`);
}

function oneOf(name: string, value: string | undefined, accepted: readonly string[]): void {
  if (value === undefined || value === "" || accepted.includes(value)) return;
  throw new OtelSettingsError(`${name}: found ${JSON.stringify(value)}; expected ${accepted.join(" or ")}`);
}

function headersOf(name: string, env: Env): Record<string, string> {
  const found = pairs(name, env);
  try {
    new Headers(found);
  } catch {
    throw new OtelSettingsError(`${name}: holds what is no header; expected name=value,name=value`);
  }
  return Object.fromEntries(found);
}

/** Reads `name=value,name=value`, values percent-encoded (the format of W3C Baggage, as OpenTelemetry has it). */
function pairs(name: string, env: Env): [string, string][] {
  const text = env[name] ?? "";
  if (text.trim() === "") return [];
  return text.split(",").filter((part) => part.trim() !== "").map((part) => {
    const at = part.indexOf("=");
    if (at <= 0) {
      throw new OtelSettingsError(`${name}: holds a part without "="; expected name=value,name=value`);
    }
    try {
      return [part.slice(0, at).trim(), decodeURIComponent(part.slice(at + 1).trim())];
    } catch {
      throw new OtelSettingsError(
        `${name}: holds a value whose % is no escape; expected name=value,name=value`,
      );
    }
  });
}
