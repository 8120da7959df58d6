/**
 * The process in which trials run, one after the other, over the tree that this file lies in:
 * `deno run -A tests/mutants/run_trials.ts JOBS`, JOBS being a file of JSON. A job is a mutant, by the number that puts
 * it in force (switched.ts), or 0 for the tree as it is, with its trials; it ends with the first that finds something.
 *
 * RT1  It says on stdout, a line each, what it begins and what came of it: whoever started it knows, when it hangs or
 *      dies, of which trial.
 * RT2  What a mutant leaves behind is not the next one's: promises that are rejected in its last moments are its own,
 *      and nothing of it is in force when the next one begins.
 *
 * With `--all` a job goes on after a finding, and says which probes each trial has passed (probes.ts); `--list` says the
 * names of all trials.
 */
import process from "node:process";
import { takePasses } from "./probes.ts";
import { loadSimulator, SIMULATORS } from "./simulators/mod.ts";
import type { Finding } from "./simulators/simulator.ts";
import { activate } from "./switch.ts";

/** Before each line of ours: what the code under test prints is not meant. */
export const MARK = "@@";

/** One mutant, and what it is tried on: simulators with their trials. */
export interface Job {
  readonly number: number;
  readonly trials: readonly (readonly [string, string])[];
}

/** What this process says (RT1); `job` and `at` count from 0. */
export type Said =
  | { readonly kind: "listed"; readonly trials: readonly (readonly [string, string])[] }
  | { readonly kind: "begins"; readonly job: number; readonly at: number }
  | {
    readonly kind: "ended";
    readonly job: number;
    readonly at: number;
    readonly finding: Finding | null;
    /** Of the processor. */
    readonly cpuMs: number;
    readonly passes: Readonly<Record<string, readonly number[]>>;
  };

const say = (said: Said) => console.log(MARK + JSON.stringify(said));

/** Rejected promises that nobody awaits. */
const strays: Finding[] = [];

async function list(): Promise<void> {
  const trials: [string, string][] = [];
  for (const name of Object.keys(SIMULATORS)) {
    for (const trial of (await loadSimulator(name)).trials) trials.push([name, trial]);
  }
  say({ kind: "listed", trials });
}

async function run(jobs: readonly Job[], isAll: boolean): Promise<void> {
  for (const name of new Set(jobs.flatMap(({ trials }) => trials.map(([simulator]) => simulator)))) {
    await loadSimulator(name);
  }
  for (const [job, { number, trials }] of jobs.entries()) {
    for (const [at, [name, trial]] of trials.entries()) {
      const simulator = await loadSimulator(name);
      say({ kind: "begins", job, at });
      takePasses();
      const before = process.cpuUsage();
      activate(number);
      const finding = await found(() => simulator.run(trial));
      activate(0);
      const { user, system } = process.cpuUsage(before);
      const cpuMs = Math.round((user + system) / 1_000);
      say({ kind: "ended", job, at, finding, cpuMs, passes: isAll ? takePasses() : {} });
      if (finding !== null && !isAll) break;
    }
  }
}

/** What a run throws is found, too, and what it leaves to be rejected (RT2). */
async function found(run: () => Promise<Finding | null>): Promise<Finding | null> {
  strays.length = 0;
  const finding = await run().catch((error): Finding => ({ checker: "thrown", message: textOf(error) }));
  // Rejections are told after a macrotask.
  for (let turn = 0; turn < 2; turn++) await new Promise((resolve) => setTimeout(resolve, 0));
  return finding ?? strays[0] ?? null;
}

const textOf = (error: unknown): string =>
  error instanceof Error ? error.stack ?? error.message : String(error);

if (import.meta.main) {
  globalThis.addEventListener("unhandledrejection", (event) => {
    event.preventDefault();
    strays.push({ checker: "unhandled", message: textOf(event.reason) });
  });
  const [file = "", ...flags] = Deno.args;
  try {
    if (file === "--list") await list();
    else await run(JSON.parse(await Deno.readTextFile(file)) as Job[], flags.includes("--all"));
  } catch (error) {
    console.error(textOf(error));
    Deno.exit(1);
  }
  // Timers that the code under test has left behind keep nobody waiting.
  Deno.exit(0);
}
