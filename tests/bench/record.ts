/**
 * Results of benchmarks, in the shape that `deno task bench --json` prints (an array of records).
 *
 * N1  median, min and max are taken over `runs` independent samples; a figure taken once says `runs: 1`.
 * N2  A record with a peer compares pair by pair: `ratio` is the median over runs of ours ÷ the peer's.
 * N3  `met` is null where a target exists but this run can't be compared with it (smoke sizes, another machine
 *     class); absent where there is no target.
 */

/** A bound that a figure should keep. */
export interface Target {
  readonly of: "median" | "ratio";
  readonly op: "<=" | ">=";
  readonly value: number;
}

/** One line of results. */
export interface BenchRecord {
  readonly bench: string;
  readonly case: string;
  readonly unit: string;
  readonly median: number;
  readonly min: number;
  readonly max: number;
  readonly runs: number;
  readonly peer?: string;
  readonly ratio?: number;
  readonly target?: Target;
  readonly met?: boolean | null;
}

/** What a record is made of. */
export interface Figure {
  readonly bench: string;
  readonly case: string;
  readonly unit: string;
  /** One number a run, in the order of the runs. */
  readonly samples: readonly number[];
  /** The peer's numbers of the same runs. */
  readonly peer?: { readonly name: string; readonly samples: readonly number[] };
  readonly target?: Target;
  /** Whether this run is fit to be held against the target (default); false gives `met: null`. */
  readonly comparable?: boolean;
}

/** Six significant digits are more than any of these measurements carry. */
const rounded = (value: number): number => Number(value.toPrecision(6));

/**
 * The median of some numbers; the mean of the middle two where their count is even.
 *
 * @throws RangeError for no numbers.
 */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const high = sorted[sorted.length >> 1];
  const low = sorted[(sorted.length - 1) >> 1];
  if (high === undefined || low === undefined) throw new RangeError("there is no median of no numbers");
  return (high + low) / 2;
}

/** The value below which a share (0 … 1) of the numbers lies, nearest rank; NaN for no numbers. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.max(0, Math.ceil(share * sorted.length) - 1))] ?? NaN;
}

/**
 * Makes a record.
 *
 * @throws RangeError where there is no sample, or the peer ran another number of times.
 */
export function record(figure: Figure): BenchRecord {
  const { samples, peer, target } = figure;
  const middle = median(samples);
  const ratio = peer === undefined ? undefined : median(ratios(samples, peer));
  const measured = target?.of === "ratio" ? ratio : middle;
  const met = target === undefined
    ? undefined
    : figure.comparable === false || measured === undefined
    ? null
    : target.op === "<="
    ? measured <= target.value
    : measured >= target.value;
  return {
    bench: figure.bench,
    case: figure.case,
    unit: figure.unit,
    median: rounded(middle),
    min: rounded(Math.min(...samples)),
    max: rounded(Math.max(...samples)),
    runs: samples.length,
    ...(peer === undefined || ratio === undefined ? {} : { peer: peer.name, ratio: rounded(ratio) }),
    ...(target === undefined ? {} : { target }),
    ...(met === undefined ? {} : { met }),
  };
}

function ratios(samples: readonly number[], peer: { name: string; samples: readonly number[] }): number[] {
  if (peer.samples.length !== samples.length) {
    throw new RangeError(`${peer.name} ran ${peer.samples.length} times beside ${samples.length} of ours`);
  }
  return samples.map((sample, run) => sample / (peer.samples[run] ?? NaN));
}

/** The records as a table for people. */
export function table(records: readonly BenchRecord[]): string {
  const rows = records.map((r) => [
    r.bench,
    r.case,
    number(r.median),
    r.runs > 1 ? `${number(r.min)} – ${number(r.max)}` : "",
    r.unit,
    r.peer === undefined ? "" : `${number(r.ratio ?? NaN)} × ${r.peer}`,
    r.target === undefined ? "" : `${r.target.of} ${r.target.op} ${r.target.value}`,
    r.met === undefined ? "" : r.met === null ? "not comparable" : r.met ? "met" : "MISSED",
  ]);
  const all = [["bench", "case", "median", "min – max", "unit", "against", "target", ""], ...rows];
  const widths = (all[0] ?? []).map((_, column) => Math.max(...all.map((row) => (row[column] ?? "").length)));
  const line = (row: string[]) =>
    row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join("  ").trimEnd();
  return all.map(line).join("\n");
}

const number = (value: number): string =>
  Math.abs(value) >= 1000 ? Math.round(value).toLocaleString("en-US") : String(Number(value.toPrecision(4)));
