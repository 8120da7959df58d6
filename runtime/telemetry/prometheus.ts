/**
 * Metrics as Prometheus text (exposition format 0.0.4): `sojourn_` before each name, dots as underscores, the unit
 * and `_total` behind it, `# HELP` and `# TYPE` before the lines of each family.
 *
 * X1  A family's lines stand together, and no name or label set appears twice.
 */
import type { Family, HistogramSeries, Labels } from "./instruments.ts";

/** Content type of the text. */
export const PROMETHEUS_TYPE = "text/plain; version=0.0.4; charset=utf-8";

/** Names of units that a family's name ends in. Counts of things ("{request}") have none. */
const UNIT_NAMES: Readonly<Record<string, string>> = { s: "seconds", By: "bytes", "1": "ratio" };

const plain = (name: string): string => name.replace(/[^A-Za-z0-9_]/g, "_");

/** Returns the name of a family for Prometheus. */
export function prometheusName({ name, unit, kind }: Pick<Family, "name" | "unit" | "kind">): string {
  let full = plain(name.startsWith("sojourn.") ? name : `sojourn.${name}`);
  const suffix = unit === "1" && kind !== "gauge" ? undefined : UNIT_NAMES[unit];
  if (suffix !== undefined && !full.endsWith(`_${suffix}`)) full += `_${suffix}`;
  return kind === "counter" ? `${full}_total` : full;
}

const escapeHelp = (text: string): string => text.replace(/[\\\n]/g, (c) => c === "\n" ? "\\n" : "\\\\");
const escapeLabel = (text: string): string => text.replace(/[\\"\n]/g, (c) => c === "\n" ? "\\n" : `\\${c}`);

const numberText = (value: number): string =>
  Number.isFinite(value) ? String(value) : Number.isNaN(value) ? "NaN" : value > 0 ? "+Inf" : "-Inf";

function labelText(labels: Labels, le?: string): string {
  const parts = labels.map(([name, value]) => `${plain(name)}="${escapeLabel(value)}"`);
  if (le !== undefined) parts.push(`le="${le}"`);
  return parts.length === 0 ? "" : `{${parts.join(",")}}`;
}

function histogramLines(name: string, { labels, bounds, counts, sum }: HistogramSeries): string {
  let lines = "";
  let below = 0;
  for (let i = 0; i < counts.length; i++) {
    below += counts[i] ?? 0;
    const bound = bounds[i];
    lines += `${name}_bucket${
      labelText(labels, bound === undefined ? "+Inf" : numberText(bound))
    } ${below}\n`;
  }
  return `${lines}${name}_sum${labelText(labels)} ${numberText(sum)}\n${name}_count${
    labelText(labels)
  } ${below}\n`;
}

/** Returns all families as one page (X1). Families without a series are left out. */
export function prometheusText(families: readonly Family[]): string {
  let text = "";
  for (const family of families) {
    const { series, kind, description } = family;
    if (series.length === 0) continue;
    const name = prometheusName(family);
    text += `# HELP ${name} ${escapeHelp(description)}\n# TYPE ${name} ${kind}\n`;
    for (const one of series) {
      text += "counts" in one
        ? histogramLines(name, one)
        : `${name}${labelText(one.labels)} ${numberText(one.value)}\n`;
    }
  }
  return text;
}
