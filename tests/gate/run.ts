/**
 * Runs steps: each one child process, two at a time where they allow it.
 *
 * R1  A step that has not ended at its limit is killed, and has failed.
 * R2  Steps that are not `beside` others run alone, first, and in order. The others follow, two at a time: the next
 *     one begins when either has ended.
 * R3  Where what steps write is shown as it comes they run one after another, so that it can be read.
 */
import { stripVTControlCharacters } from "node:util";
import type { Counts, Step } from "./steps.ts";

/** What became of a step. */
export interface Outcome extends Counts {
  readonly step: Step;
  readonly ok: boolean;
  readonly ms: number;
  /** What it wrote: standard output, then standard error, where most tools say what went wrong. */
  readonly output: readonly string[];
}

/** How the steps are run. */
export interface Runs {
  /** Shows what they write as it comes (R3). */
  readonly isVerbose: boolean;
  readonly say: (line: string) => void;
  /** Called as each ends. */
  readonly ended: (outcome: Outcome) => void;
}

/** A long step says that it lives, for readers of CI logs. */
const HEARTBEAT_MS = 30_000;
/** One for each of the two cores that the gate is sized for; more would only wait for each other. */
const LANES = 2;

/** Runs steps, all of them even when one fails; their outcomes in the order of the steps. */
export async function runSteps(steps: readonly Step[], runs: Runs): Promise<Outcome[]> {
  const outcomes = new Map<Step, Outcome>();
  const lane = async (queue: Step[]): Promise<void> => {
    for (let step = queue.shift(); step !== undefined; step = queue.shift()) {
      const outcome = await runStep(step, runs);
      outcomes.set(step, outcome);
      runs.ended(outcome);
    }
  };
  await lane(steps.filter((step) => !step.isBeside));
  const beside = steps.filter((step) => step.isBeside);
  await Promise.all(Array.from({ length: runs.isVerbose ? 1 : LANES }, () => lane(beside)));
  return steps.flatMap((step) => outcomes.get(step) ?? []);
}

async function runStep(step: Step, runs: Runs): Promise<Outcome> {
  const begun = performance.now();
  const child = new Deno.Command(Deno.execPath(), {
    args: [...step.args],
    env: { NO_COLOR: "1" },
    stdin: "null",
    stdout: "piped",
    stderr: "piped",
  }).spawn();
  let isLate = false;
  const limit = setTimeout(() => {
    isLate = true;
    child.kill("SIGKILL");
  }, step.limitS * 1000);
  const seconds = () => `${((performance.now() - begun) / 1000).toFixed(0)} s`;
  const heartbeat = setInterval(() => runs.say(`         … ${step.name}, ${seconds()}`), HEARTBEAT_MS);
  const [status, ...output] = await Promise.all([
    child.status,
    collect(child.stdout, runs.isVerbose),
    collect(child.stderr, runs.isVerbose),
  ]);
  clearTimeout(limit);
  clearInterval(heartbeat);
  if (isLate) output.push(`stopped after its limit of ${step.limitS} s`);
  const counted = step.counts?.(output.join("\n")) ?? null;
  const passed = counted?.passed ?? (status.success ? 1 : 0);
  // A run that failed without a failed test (a leak, a crash, a limit) has failed all the same.
  const failed = status.success ? counted?.failed ?? 0 : Math.max(1, counted?.failed ?? 1);
  return { step, ok: status.success, passed, failed, ms: performance.now() - begun, output };
}

async function collect(stream: ReadableStream<Uint8Array>, isShown: boolean): Promise<string> {
  const parts: string[] = [];
  for await (
    const text of stream.pipeThrough(new TextDecoderStream() as TransformStream<Uint8Array, string>)
  ) {
    parts.push(text);
    if (isShown) Deno.stdout.writeSync(new TextEncoder().encode(text));
  }
  return stripVTControlCharacters(parts.join(""));
}
