/**
 * Sends spans and metrics to a collector, in batches, over OTLP/HTTP.
 *
 * Life: constructed (one timer) → spans are queued as they end → a batch leaves when it is full or due, metrics
 * when they are due → `close` sends what is left, within a bound.
 *
 * E1  A request never waits for the exporter: what does not fit the queue is dropped and counted.
 * E2  A collector that is away or busy is asked again later; one that refuses a batch is not asked again with it.
 * E3  The headers, which hold a key more often than not, appear in no line of the log.
 * E4  What can't be read or encoded is dropped and counted: nobody's request, and no site, ends by its telemetry.
 */
import type { Family } from "./instruments.ts";
import { encodeMetrics, encodeSpans, type Resource } from "./otlp.ts";
import type { Span, SpanSink } from "./span.ts";

/** The address that spans or metrics are sent to, with its headers. */
export interface Destination {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** Options of an exporter. */
export interface ExportOptions {
  /** Destination of spans; null where they are not exported. The same goes for metrics. */
  readonly traces: Destination | null;
  readonly metrics: Destination | null;
  readonly timeoutMs: number;
  /** Milliseconds that a span waits for its batch at most. */
  readonly delayMs: number;
  readonly batchSpansMax: number;
  readonly queueSpansMax: number;
  readonly metricsEveryMs: number;
}

/** The services that the exporter needs of its site. */
export interface ExportServices {
  readonly resource: Resource;
  readonly families: () => readonly Family[];
  readonly note: (event: string, fields: Record<string, unknown>) => void;
  readonly fetch?: typeof fetch;
}

/** Statuses after which OTLP/HTTP says that the same batch may be sent again. */
const AGAIN: ReadonlySet<number> = new Set([429, 502, 503, 504]);
/** Milliseconds that a stopping site spends on its last batches. */
const CLOSE_MS_MAX = 2_000;
/** Milliseconds by which the system's clock has to be set for the clock of spans to follow it. */
const DRIFT_MS_MAX = 5;

/** Exports spans and metrics; also the sink of a tracer's spans. */
export class Exporter implements SpanSink {
  readonly #options: ExportOptions;
  readonly #services: ExportServices;
  readonly #beganMs = Date.now();
  readonly #timer: ReturnType<typeof setInterval>;
  #queue: Span[] = [];
  #sending: Promise<void> | null = null;
  #metricsDueMs: number;
  #epochMs = epochMs();
  #failing = false;
  /** Numbers of spans that were sent or dropped, and of batches of either kind that failed. */
  readonly counts = { spansSent: 0, spansDropped: 0, batchesFailed: 0 };

  constructor(options: ExportOptions, services: ExportServices) {
    this.#options = options;
    this.#services = services;
    this.#metricsDueMs = performance.now() + options.metricsEveryMs;
    this.#timer = setInterval(() => this.#tick(), Math.min(options.delayMs, options.metricsEveryMs));
    Deno.unrefTimer(this.#timer);
  }

  nowMs(): number {
    return this.#epochMs + performance.now();
  }

  ended(span: Span): void {
    if (this.#options.traces === null) return;
    if (this.#queue.length >= this.#options.queueSpansMax) { // E1
      this.counts.spansDropped++;
      return;
    }
    this.#queue.push(span);
    if (this.#queue.length === this.#options.batchSpansMax) void this.flush();
  }

  /** Sends what is due now; resolves when the collector has answered. */
  flush(): Promise<void> {
    return this.#sending ??= this.#send().finally(() => this.#sending = null);
  }

  /** Sends what is left, and stops. */
  async close(): Promise<void> {
    clearInterval(this.#timer);
    this.#metricsDueMs = 0;
    const last = (async () => {
      await this.#sending;
      await this.flush();
    })();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const bound = new Promise<void>((resolve) => timer = setTimeout(resolve, CLOSE_MS_MAX));
    await Promise.race([last, bound]);
    clearTimeout(timer);
  }

  #tick(): void {
    const epoch = epochMs();
    if (Math.abs(epoch - this.#epochMs) > DRIFT_MS_MAX) this.#epochMs = epoch;
    void this.flush();
  }

  /** Sends what is due; an error is counted, and never passed on (E4). */
  async #send(): Promise<void> {
    try {
      await this.#sendDue();
    } catch (error) {
      this.counts.batchesFailed++;
      this.counts.spansDropped += this.#queue.splice(0, this.#options.batchSpansMax).length;
      this.#services.note("otel_export_invalid", {
        error: error instanceof Error ? error.stack : String(error),
      });
    }
  }

  async #sendDue(): Promise<void> {
    const { traces, metrics, batchSpansMax, metricsEveryMs } = this.#options;
    const { resource, families } = this.#services;
    while (traces !== null && this.#queue.length > 0) {
      const batch = this.#queue.slice(0, batchSpansMax);
      const outcome = await this.#post(traces, encodeSpans(resource, batch));
      if (outcome === "later") break; // E2: they stay
      this.#queue.splice(0, batch.length);
      if (outcome === "sent") this.counts.spansSent += batch.length;
      else this.counts.spansDropped += batch.length;
    }
    if (metrics === null || performance.now() < this.#metricsDueMs) return;
    this.#metricsDueMs = performance.now() + metricsEveryMs;
    const period = { beganMs: this.#beganMs, nowMs: Date.now() };
    await this.#post(metrics, encodeMetrics(resource, families(), period));
  }

  async #post({ url, headers }: Destination, body: string): Promise<"sent" | "later" | "refused"> {
    const send = this.#services.fetch ?? fetch;
    try {
      const answer = await send(url, {
        method: "POST",
        headers: { ...headers, "content-type": "application/json" },
        body,
        redirect: "error", // a key goes to the host that it is for
        signal: AbortSignal.timeout(this.#options.timeoutMs),
      });
      await answer.body?.cancel();
      if (answer.ok) return this.#recovered();
      this.#failed(url, `status ${answer.status}`);
      return AGAIN.has(answer.status) ? "later" : "refused";
    } catch (error) {
      this.#failed(url, error instanceof Error ? error.name : "error");
      return "later";
    }
  }

  #recovered(): "sent" {
    if (this.#failing) this.#services.note("otel_export_recovered", {});
    this.#failing = false;
    return "sent";
  }

  #failed(url: string, why: string): void {
    this.counts.batchesFailed++;
    if (this.#failing) return;
    this.#failing = true;
    this.#services.note("otel_export_failed", { to: new URL(url).origin, why });
  }
}

/** Returns the time at which `performance.now()` was 0. */
const epochMs = (): number => Date.now() - performance.now();
