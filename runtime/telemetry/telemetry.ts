/**
 * A site's telemetry: one tracer, which is inert unless the operator turned it on, and the families of metrics,
 * which are always counted: a scraper may read them whether or not anything is exported.
 */
import { Exporter } from "./exporter.ts";
import { type Family, observed } from "./instruments.ts";
import type { Resource } from "./otlp.ts";
import { prometheusText } from "./prometheus.ts";
import type { OtelSettings } from "./settings.ts";
import { INERT, SamplingTracer, type Tracer } from "./tracer.ts";

/** The services that telemetry needs of its site. */
export interface TelemetryOptions {
  readonly settings: OtelSettings | null;
  /** Attributes of this site; those in the operator's variables replace them. */
  readonly resource: Resource;
  readonly note: (event: string, fields: Record<string, unknown>) => void;
}

/** Traces and metrics of one site. */
export class Telemetry {
  readonly tracer: Tracer;
  readonly #families: Family[] = [];
  readonly #exporter: Exporter | null = null;

  constructor({ settings, resource, note }: TelemetryOptions) {
    if (settings === null) {
      this.tracer = INERT;
      return;
    }
    const exporter = new Exporter(settings.export, {
      resource: { ...resource, ...settings.resource },
      families: () => this.#families,
      note,
    });
    const tracer = new SamplingTracer(exporter, settings.sampling);
    this.#exporter = exporter;
    this.tracer = tracer;
    this.add(...ownFamilies(exporter, tracer));
  }

  /** Adds families of metrics. */
  add(...families: readonly Family[]): void {
    this.#families.push(...families);
  }

  /** Returns the metrics for a scraper. */
  prometheus(): string {
    return prometheusText(this.#families);
  }

  /** Sends what is left. */
  async close(): Promise<void> {
    await this.#exporter?.close();
  }
}

/** Returns metrics of the telemetry itself, so that nobody takes a gap for quiet. */
function ownFamilies({ counts }: Exporter, tracer: SamplingTracer): Family[] {
  const spans = (outcome: string, value: number) => ({ labels: [["outcome", outcome]] as const, value });
  return [
    observed("counter", {
      name: "telemetry.spans",
      unit: "{span}",
      description: "Spans that ended here: sent to the collector, or dropped because it did not take them.",
    }, () => [spans("sent", counts.spansSent), spans("dropped", counts.spansDropped)]),
    observed("counter", {
      name: "telemetry.export.failures",
      unit: "{batch}",
      description: "Batches that the collector did not take.",
    }, () => counts.batchesFailed),
    observed("counter", {
      name: "telemetry.traces.limited",
      unit: "{trace}",
      description: "Traces that were chosen and not recorded, because too many began in one second.",
    }, () => tracer.limited),
  ];
}
