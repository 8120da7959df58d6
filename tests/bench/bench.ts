/** What a benchmark is, to the runner (mod.ts). */
import type { BenchRecord } from "./record.ts";

/** What a benchmark is run with. */
export interface BenchContext {
  /** Smoke sizes: seconds instead of minutes, figures not to be quoted. */
  readonly quick: boolean;
  /** The command's arguments that the runner did not take, for the benchmark's own options. */
  readonly args: readonly string[];
  /** An empty folder for this run, removed afterwards. */
  readonly folder: string;
  /** Talk for people (stderr): stdout belongs to the records. */
  say(line: string): void;
}

/** One benchmark. */
export interface Bench {
  readonly name: string;
  /** One line for `--help`. */
  readonly summary: string;
  /** Its own options, a line each, for `--help`. */
  readonly options?: readonly string[];
  /** What its figures do not say, printed with them. */
  readonly notMeasured: string;
  /** Whether it runs when no name is given. */
  readonly byDefault: boolean;
  run(context: BenchContext): Promise<BenchRecord[]>;
}
