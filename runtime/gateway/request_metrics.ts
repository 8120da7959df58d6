/**
 * Metrics of every request, recorded or not: how long it took, how its session came here, how long its function ran. A
 * request costs two or three observations, each an entry of an array behind a Map of numbers.
 *
 * RM2  Labels are names of deployed apps, their versions, known methods and statuses: bounded (telemetry RM2).
 */
import type { AttachedSession } from "../../store/api/api.ts";
import type { LiveVersion } from "../deploy/app_table.ts";
import type { Tier } from "../../functions/define.ts";
import {
  Counter,
  type Family,
  Histogram,
  type HistogramCounts,
  type Labels,
  SECONDS,
} from "../telemetry/mod.ts";
import { knownMethod, METHODS } from "./request_spans.ts";

/** Digits of a version in labels: enough to tell versions of an app apart. */
const VERSION_DIGITS = 12;
/** Statuses that are labels as they are; any other is told as the first of its hundred. */
const STATUSES: ReadonlySet<number> = new Set(
  "101 200 201 202 204 206 301 302 303 304 307 308 400 401 403 404 405 406 408 409 410 411 412 413 415 416 417 422 425 428 429 431 500 501 502 503 504"
    .split(" ").map(Number),
);
const TIERS: readonly Tier[] = ["edge", "core", "root"];
const statusOf = (status: number): number => STATUSES.has(status) ? status : Math.floor(status / 100) * 100;

const appLabels = (version: LiveVersion): [string, string][] => [
  ["sojourn.app", version.app],
  ["sojourn.app.version", version.version.slice(0, VERSION_DIGITS)],
];

/** Ways in which sessions come to a site. */
const ARRIVALS: readonly AttachedSession["how"][] = ["new", "same", "nothing", "carry", "wait"];

/** Counts requests of apps at one site. */
export class RequestMetrics {
  readonly #duration = new Histogram({
    name: "http.server.request.duration",
    unit: "s",
    description: "Duration of requests for apps that arrived at this site, until the head of the answer.",
  }, SECONDS);
  readonly #invoke = new Histogram({
    name: "faas.invoke_duration",
    unit: "s",
    description: "Duration of calls of apps' functions at this site, with what they waited for.",
  }, SECONDS);
  readonly #errors = new Counter({
    name: "faas.errors",
    unit: "{error}",
    description: "Calls of apps' functions that failed, by the code of the failure.",
  });
  readonly #handoff = new Histogram({
    name: "session.attach.duration",
    unit: "s",
    description: "Duration of attaching a session, by how it came here (new, same, nothing, carry, wait).",
  }, SECONDS);
  readonly #byVersion = new WeakMap<LiveVersion, Map<number, HistogramCounts>>();
  readonly #invokes = new WeakMap<LiveVersion, HistogramCounts>();
  readonly #handoffs = new Map<string, HistogramCounts>();

  /** Families of all metrics that are counted here. */
  get families(): Family[] {
    return [this.#duration, this.#invoke, this.#errors, this.#handoff];
  }

  /** Counts a request that has its answer. */
  answered(
    request: { readonly method: string; readonly version?: LiveVersion; readonly tier?: Tier },
    status: number,
    ms: number,
  ): void {
    const { method, version, tier = "edge" } = request;
    const told = statusOf(status);
    if (version === undefined) { // no app was found: rare, and one label for all names that clients may try
      return this.#duration.of(requestLabels(knownMethod(method), told, tier)).observe(ms / 1000);
    }
    let known = this.#byVersion.get(version);
    if (known === undefined) this.#byVersion.set(version, known = new Map());
    const name = told * 64 + (METHODS.indexOf(method) + 1) * 4 + TIERS.indexOf(tier);
    let series = known.get(name);
    if (series === undefined) {
      const labels = [...appLabels(version), ...requestLabels(knownMethod(method), told, tier)];
      known.set(name, series = this.#duration.of(labels));
    }
    series.observe(ms / 1000);
  }

  /** Counts a session that was attached. */
  attached(how: AttachedSession["how"], ms: number): void {
    let series = this.#handoffs.get(how);
    if (series === undefined) {
      this.#handoffs.set(how, series = this.#handoff.of([["sojourn.handoff", how]]));
    }
    series.observe(ms / 1000);
  }

  /** Number of attached sessions, by how they came. */
  get arrivals(): Readonly<Record<string, number>> {
    return Object.fromEntries(
      ARRIVALS.map((how) => [how, this.#handoffs.get(how)?.counts.reduce((sum, count) => sum + count) ?? 0]),
    );
  }

  /** Counts a function's call that has answered, or failed with a code. */
  invoked(
    version: LiveVersion,
    ms: number,
    failure?: string,
    trigger: "http" | "timer" | "pubsub" = "http",
  ): void {
    let series = trigger === "http" ? this.#invokes.get(version) : undefined;
    if (series === undefined) {
      series = this.#invoke.of([...appLabels(version), ["faas.trigger", trigger]]);
      if (trigger === "http") this.#invokes.set(version, series);
    }
    series.observe(ms / 1000);
    if (failure !== undefined) this.#errors.of([...appLabels(version), ["error.type", failure]]).add();
  }
}

const requestLabels = (method: string, status: number, tier: Tier): Labels => [
  ["http.request.method", method],
  ["http.response.status_code", String(status)],
  ["sojourn.route.tier", tier],
];
