/**
 * `deno task test [--only STEP,…] [--skip STEP,…] [--list] [-v]`: the gate.
 *
 * Runs the steps one after another, all of them even when one fails, shows the output of those that failed, and
 * ends with the line `N passed, N failed`. Exit 0 only when nothing failed.
 *
 * It exists so that "is it whole?" has one answer: the same here, on a laptop and in CI.
 */
import { stripVTControlCharacters } from "node:util";
import { type Counts, type Step, STEPS } from "./steps.ts";

interface Outcome extends Counts {
  readonly step: Step;
  readonly ok: boolean;
  readonly ms: number;
  /** What it wrote: standard output, then standard error, where most tools say what went wrong. */
  readonly output: readonly string[];
}

/** What is shown of each output of a failed step: the end, where the failures are. */
const SHOWN_CHARS = 15_000;
/** A long step says that it lives, for readers of CI logs. */
const HEARTBEAT_MS = 30_000;

async function runStep(step: Step, isVerbose: boolean): Promise<Outcome> {
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
  const heartbeat = setInterval(() => console.log(`         … ${step.name}, ${seconds()}`), HEARTBEAT_MS);
  const collect = async (stream: ReadableStream<Uint8Array>): Promise<string> => {
    const parts: string[] = [];
    for await (
      const text of stream.pipeThrough(new TextDecoderStream() as TransformStream<Uint8Array, string>)
    ) {
      parts.push(text);
      if (isVerbose) Deno.stdout.writeSync(new TextEncoder().encode(text));
    }
    return stripVTControlCharacters(parts.join(""));
  };
  const [status, ...output] = await Promise.all([
    child.status,
    collect(child.stdout),
    collect(child.stderr),
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

function line(outcome: Outcome): string {
  const { step, ok, passed, failed, ms } = outcome;
  const counts = step.counts === undefined ? "" : `  ${passed} passed, ${failed} failed`;
  const time = `${(ms / 1000).toFixed(1)} s`.padStart(8);
  return `${ok ? "ok    " : "FAILED"} ${step.name.padEnd(9)} ${time}  ${step.says}${counts}`;
}

const USAGE = "deno task test [--only STEP,…] [--skip STEP,…] [--list] [-v]";
const FLAGS: ReadonlySet<string> = new Set(["--list", "-v", "--help", "-h"]);
const VALUED: ReadonlySet<string> = new Set(["--only", "--skip"]);

function chosen(args: readonly string[]): readonly Step[] | string {
  const stray = args.find((arg, at) =>
    !FLAGS.has(arg) && !VALUED.has(arg) && !VALUED.has(args[at - 1] ?? "")
  );
  if (stray !== undefined) return `${JSON.stringify(stray)} is not known here: ${USAGE}`;
  const names = (flag: string): string[] | null => {
    const at = args.indexOf(flag);
    return at < 0 ? null : (args[at + 1] ?? "").split(",");
  };
  const known = STEPS.map((step) => step.name);
  const [only, skip] = [names("--only"), names("--skip")];
  const strange = [...only ?? [], ...skip ?? []].find((name) => !known.includes(name));
  if (strange !== undefined) {
    return `there is no step ${JSON.stringify(strange)}: there are ${known.join(", ")}`;
  }
  return STEPS.filter((step) => (only?.includes(step.name) ?? true) && !skip?.includes(step.name));
}

/** Runs the gate; returns its exit code. */
export async function main(args: readonly string[]): Promise<number> {
  const steps = chosen(args);
  if (typeof steps === "string") {
    console.error(steps);
    return 2;
  }
  if (args.includes("--help") || args.includes("-h")) {
    console.log(`${USAGE}\n\nSteps: ${STEPS.map(({ name }) => name).join(", ")}`);
    return 0;
  }
  if (args.includes("--list")) {
    for (const step of steps) console.log(`${step.name.padEnd(9)} deno ${step.args.join(" ")}`);
    return 0;
  }
  const outcomes: Outcome[] = [];
  for (const step of steps) {
    const outcome = await runStep(step, args.includes("-v"));
    outcomes.push(outcome);
    console.log(line(outcome));
    if (outcome.ok) continue;
    for (const output of outcome.output) console.log(indent(output.slice(-SHOWN_CHARS)));
  }
  const sum = (pick: (outcome: Outcome) => number) => outcomes.reduce((total, each) => total + pick(each), 0);
  const failedSteps = outcomes.filter((outcome) => !outcome.ok).map((outcome) => outcome.step.name);
  console.log(`\n${steps.length} steps in ${(sum((outcome) => outcome.ms) / 1000).toFixed(0)} s`);
  if (failedSteps.length > 0) console.log(`failed steps: ${failedSteps.join(", ")}`);
  console.log(`${sum((outcome) => outcome.passed)} passed, ${sum((outcome) => outcome.failed)} failed`);
  return failedSteps.length === 0 ? 0 : 1;
}

const indent = (text: string): string => text.trimEnd().split("\n").map((each) => `    ${each}`).join("\n");

if (import.meta.main) Deno.exit(await main(Deno.args));
