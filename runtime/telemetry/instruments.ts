/**
 * Counters, gauges and histograms, named as OpenTelemetry names them; read by a scraper and by the exporter alike.
 *
 * Life: a family is made once with the site → series are made when their labels are first seen → read whole.
 *
 * Counting and observing allocate nothing: a part that counts often keeps its series.
 *
 * M2  A family has a bounded number of series. Labels beyond it are counted in one more, which says so
 *     (`otel_metric_overflow`), so that no caller can fill the site's memory with names.
 */

/** Names and values of labels. */
export type Labels = readonly (readonly [name: string, value: string])[];

/** A line of a counter or gauge. */
export interface NumberSeries {
  readonly labels: Labels;
  readonly value: number;
}

/** The counts of a histogram under one set of labels. */
export interface HistogramSeries {
  readonly labels: Labels;
  /** Upper bounds of the buckets, inclusive; the last bucket has none. */
  readonly bounds: readonly number[];
  /** Counts of the buckets, one more than bounds. */
  readonly counts: Float64Array;
  readonly sum: number;
}

/** Series of any kind of family. */
export type MetricSeries = NumberSeries | HistogramSeries;

/** A name, and all that is counted under it. */
export interface Family {
  readonly name: string;
  readonly kind: "counter" | "gauge" | "histogram";
  /** Unit in UCUM: "s", "By", "1", "{request}". */
  readonly unit: string;
  readonly description: string;
  readonly series: readonly MetricSeries[];
}

/** The name, unit and description of a family. */
export interface About {
  readonly name: string;
  readonly unit: string;
  readonly description: string;
}

/** Number of series of a family (M2): ten apps with five versions each, by method and status. */
export const SERIES_MAX = 1_000;
const OVERFLOW: Labels = [["otel_metric_overflow", "true"]];

/** Series by labels, up to a number (M2). */
class SeriesSet<T> {
  readonly all = new Map<string, T>();
  readonly #make: (labels: Labels) => T;

  constructor(make: (labels: Labels) => T) {
    this.#make = make;
  }

  of(labels: Labels): T {
    const name = JSON.stringify(labels);
    const known = this.all.get(name);
    if (known !== undefined) return known;
    if (this.all.size >= SERIES_MAX && labels !== OVERFLOW) return this.of(OVERFLOW);
    const made = this.#make(labels);
    this.all.set(name, made);
    return made;
  }
}

/** A number that only grows. */
export class CounterSeries implements NumberSeries {
  value = 0;
  constructor(readonly labels: Labels) {}
  add(by = 1): void {
    this.value += by;
  }
}

/** Counts by labels. */
export class Counter implements Family {
  readonly kind = "counter";
  readonly name: string;
  readonly unit: string;
  readonly description: string;
  readonly #set = new SeriesSet((labels) => new CounterSeries(labels));

  constructor({ name, unit, description }: About) {
    this.name = name;
    this.unit = unit;
    this.description = description;
  }

  get series(): readonly NumberSeries[] {
    return [...this.#set.all.values()];
  }

  /** Returns the series of these labels; keep it where it is counted often. */
  of(labels: Labels): CounterSeries {
    return this.#set.of(labels);
  }
}

/** Counts in fixed buckets. */
export class HistogramCounts implements HistogramSeries {
  readonly counts: Float64Array;
  sum = 0;

  constructor(readonly labels: Labels, readonly bounds: readonly number[]) {
    this.counts = new Float64Array(bounds.length + 1);
  }

  observe(value: number): void {
    const { bounds, counts } = this;
    let i = 0;
    while (i < bounds.length && value > (bounds[i] ?? Infinity)) i++;
    counts[i] = (counts[i] ?? 0) + 1;
    this.sum += value;
  }
}

/** Distributions by labels. */
export class Histogram implements Family {
  readonly kind = "histogram";
  readonly name: string;
  readonly unit: string;
  readonly description: string;
  readonly #set: SeriesSet<HistogramCounts>;

  constructor({ name, unit, description }: About, bounds: readonly number[]) {
    this.name = name;
    this.unit = unit;
    this.description = description;
    this.#set = new SeriesSet((labels) => new HistogramCounts(labels, bounds));
  }

  get series(): readonly HistogramSeries[] {
    return [...this.#set.all.values()];
  }

  /** Returns the series of these labels; keep it where it is observed often. */
  of(labels: Labels): HistogramCounts {
    return this.#set.of(labels);
  }
}

/** Makes a family whose numbers are kept elsewhere, and read when somebody asks. */
export function observed(
  kind: "counter" | "gauge",
  about: About,
  read: () => number | readonly NumberSeries[],
): Family {
  return {
    kind,
    ...about,
    get series() {
      const value = read();
      return typeof value === "number" ? [{ labels: [], value }] : value;
    },
  };
}

/**
 * Upper bounds of durations in seconds: those that the semantic conventions advise, and finer ones below, where a
 * site's own work lies.
 */
export const SECONDS: readonly number[] = [
  0.0001,
  0.00025,
  0.0005,
  0.001,
  0.0025,
  0.005,
  0.01,
  0.025,
  0.05,
  0.075,
  0.1,
  0.25,
  0.5,
  0.75,
  1,
  2.5,
  5,
  7.5,
  10,
];

/** Upper bounds of counts of rows and the like. */
export const COUNTS: readonly number[] = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 5_000];
