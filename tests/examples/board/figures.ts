/** The clients' samples as figures: latencies by interaction, throughput, handoffs by kind, failures by code. */
import { quantile } from "../../bench/record.ts";
import type { Sample } from "./client.ts";

/** Latencies of one interaction. */
export interface Latency {
  readonly interaction: string;
  readonly count: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

/** Requests that were answered, by interaction, most frequent first; `all` is the last one. */
export function latencies(samples: readonly Sample[]): Latency[] {
  const answered = samples.filter(isAnswered);
  const byInteraction = Map.groupBy(answered, (sample) => sample.interaction);
  const lines = [...byInteraction].map(([interaction, some]) => latency(interaction, some));
  return [...lines.sort((a, b) => b.count - a.count), latency("all", answered)];
}

/** Answered by the app: its refusals too, the platform's errors not. */
export const isAnswered = (sample: Sample): boolean =>
  sample.status >= 200 && sample.status < 500 && sample.code === "";

function latency(interaction: string, samples: readonly Sample[]): Latency {
  const tookMs = samples.map((sample) => sample.tookMs);
  return { interaction, count: samples.length, p50Ms: quantile(tookMs, 0.5), p99Ms: quantile(tookMs, 0.99) };
}

/** How often something was the case, most frequent first. */
export function countBy(samples: readonly Sample[], of: (sample: Sample) => string): [string, number][] {
  const counts = new Map<string, number>();
  for (const sample of samples) counts.set(of(sample), (counts.get(of(sample)) ?? 0) + 1);
  return [...counts].sort((a, b) => b[1] - a[1]);
}

/** Handoffs of one kind. */
export interface Handoffs {
  readonly kind: string;
  readonly count: number;
  /** What the destination spent before the function ran. */
  readonly p50Ms: number;
  readonly p99Ms: number;
}

/** Handoffs by kind, most frequent first: of requests that were the first ones at another edge than the token's. */
export function handoffs(samples: readonly Sample[]): Handoffs[] {
  // A client that was turned away and came back, or that has no session yet, has moved none.
  const arrived = samples.filter((sample) =>
    sample.moved && sample.handoff !== "same" && sample.handoff !== "new" && isAnswered(sample)
  );
  const kinds = [...Map.groupBy(arrived, (sample) => sample.handoff || "unknown")];
  return kinds.map(([kind, some]) => {
    const tookMs = some.map((sample) => sample.handoffMs);
    return { kind, count: some.length, p50Ms: quantile(tookMs, 0.5), p99Ms: quantile(tookMs, 0.99) };
  }).sort((a, b) => b.count - a.count);
}

/** What failed where, by code of the platform or by status. */
export const failures = (samples: readonly Sample[]): [string, number][] =>
  countBy(
    samples.filter((sample) => !isAnswered(sample)),
    (sample) => `${sample.code || sample.status} at ${sample.site}`,
  );

/** A table of latencies for people. */
export function latencyTable(lines: readonly Latency[]): string {
  const head = `${"interaction".padEnd(26)}${"requests".padStart(9)}${"p50 ms".padStart(9)}${
    "p99 ms".padStart(9)
  }`;
  return [
    head,
    ...lines.map((line) =>
      line.interaction.padEnd(26) + String(line.count).padStart(9) +
      line.p50Ms.toFixed(1).padStart(9) + line.p99Ms.toFixed(1).padStart(9)
    ),
  ].join("\n");
}
