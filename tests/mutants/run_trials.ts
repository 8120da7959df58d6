/**
 * The process in which trials run, one after the other, over the tree that this file lies in:
 * `deno run -A tests/mutants/run_trials.ts JOBS`, JOBS being a file of JSON. A job is a mutant, by the number that puts
 * it in force (switched.ts), or 0 for the tree as it is, with its trials; it ends with the first that finds something.
 *
 * RT1  It says on stdout, a line each, what it begins and what came of it: whoever started it knows, when it hangs or
 *      dies, of which trial.
 * RT2  What a mutant leaves behind is not the next one's: promises that are rejected in its last moments are its own,
 *      and nothing of it is in force when the next one begins.
 * RT3  What is found of a mutant counts where the same trial finds nothing right after it with none in force, and finds
 *      it once more with the mutant. Else an earlier one has left something behind, or the trial finds something now
 *      and then: the process says that it is spoiled, and ends.
 * RT4  A trial that waits while nothing is left that could wake it has found that (`pending`).
 *
 * With `--all` a job goes on after a finding, runs what finds nothing twice, and says which probes each trial has
 * passed (probes.ts); `--alone` leaves out RT3's first half, which a mutant without a number can't have; `--list SUITE…`
 * says the names of all trials.
 */
import process from "node:process";
import { takePasses } from "./probes.ts";
import { isTestFile, loadSuite } from "./simulators/mod.ts";
import type { Finding } from "./simulators/simulator.ts";
import { activate } from "./switch.ts";

/** Before each line of ours: what the code under test prints is not meant. */
export const MARK = "@@";

/** One mutant, and what it is tried on: suites with their trials. */
export interface Job {
  readonly number: number;
  readonly trials: readonly (readonly [string, string])[];
}

/** What this process says (RT1); `job` and `at` count from 0. */
export type Said =
  | { readonly kind: "listed"; readonly suite: string; readonly trials: readonly string[] }
  | { readonly kind: "not loaded"; readonly suite: string; readonly says: string }
  | { readonly kind: "begins"; readonly job: number; readonly at: number }
  | { readonly kind: "spoiled"; readonly job: number }
  | {
    readonly kind: "ended";
    readonly job: number;
    readonly at: number;
    readonly finding: Finding | null;
    /** Of the processor. */
    readonly costMs: number;
    readonly passes: Readonly<Record<string, readonly number[]>>;
  };

const say = (said: Said) => console.log(MARK + JSON.stringify(said));

/** Rejected promises that nobody awaits. */
const strays: Finding[] = [];
/** Ends the trial that is under way: nothing is left that could (RT4). */
let giveUp: (() => void) | null = null;

async function list(suites: readonly string[]): Promise<void> {
  for (const suite of suites) {
    try {
      say({ kind: "listed", suite, trials: (await loadSuite(suite)).trials });
    } catch (error) {
      say({ kind: "not loaded", suite, says: textOf(error) });
    }
  }
}

async function run(jobs: readonly Job[], flags: readonly string[]): Promise<void> {
  const isAll = flags.includes("--all"), isAlone = flags.includes("--alone");
  for (const name of new Set(jobs.flatMap(({ trials }) => trials.map(([suite]) => suite)))) {
    await loadSuite(name);
  }
  for (const [job, { number, trials }] of jobs.entries()) {
    for (const [at, [name, trial]] of trials.entries()) {
      const suite = await loadSuite(name);
      const isTest = isTestFile(name);
      const once = (mutant: number) => found(mutant, () => suite.run(trial));
      say({ kind: "begins", job, at });
      takePasses();
      const before = process.cpuUsage();
      let finding = await once(number);
      const { user, system } = process.cpuUsage(before);
      const costMs = Math.round((user + system) / 1_000);
      const passes = isAll ? takePasses() : {};
      if (isAll && isTest) finding ??= await once(number);
      // RT3; a simulator's seed does the same each time.
      const isSure = finding === null || isAll ||
        ((isAlone || await once(0) === null) && (!isTest || await once(number) !== null));
      if (!isSure) {
        say({ kind: "spoiled", job });
        return;
      }
      say({ kind: "ended", job, at, finding, costMs, passes });
      if (finding !== null && !isAll) break;
    }
  }
}

/** What a run throws is found, too, and what it leaves to be rejected (RT2). */
async function found(mutant: number, run: () => Promise<Finding | null>): Promise<Finding | null> {
  strays.length = 0;
  const pending = new Promise<Finding>((resolve) => {
    giveUp = () => resolve({ checker: "pending", message: "it waits for what never comes" });
  });
  activate(mutant);
  const finding = await Promise.race([
    run().catch((error): Finding => ({ checker: "thrown", message: textOf(error) })),
    pending,
  ]);
  giveUp = null;
  // Rejections are told after a macrotask.
  for (let turn = 0; turn < 2; turn++) await new Promise((resolve) => setTimeout(resolve, 0));
  activate(0);
  return finding ?? strays[0] ?? null;
}

const textOf = (error: unknown): string =>
  error instanceof Error ? error.stack ?? error.message : String(error);

async function main(): Promise<void> {
  const stray = (error: unknown) => strays.push({ checker: "unhandled", message: textOf(error) });
  globalThis.addEventListener("unhandledrejection", (event) => {
    event.preventDefault();
    stray(event.reason);
  });
  globalThis.addEventListener("error", (event) => {
    event.preventDefault();
    stray(event.error);
  });
  globalThis.addEventListener("beforeunload", (event) => {
    if (giveUp === null) return;
    event.preventDefault();
    giveUp();
    giveUp = null;
  });
  const [file = "", ...flags] = Deno.args;
  try {
    if (file === "--list") await list(flags);
    else await run(JSON.parse(await Deno.readTextFile(file)) as Job[], flags);
  } catch (error) {
    console.error(textOf(error));
    Deno.exit(1);
  }
  // Timers that the code under test has left behind keep nobody waiting.
  Deno.exit(0);
}

// Not awaited: what awaits at the top of a module can't be left waiting (RT4).
if (import.meta.main) void main();
