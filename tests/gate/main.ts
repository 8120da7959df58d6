/**
 * `deno task test [--only STEP,…] [--skip STEP,…] [--list] [-v]`: the gate.
 *
 * Runs all steps, even when one fails, shows the output of those that failed, and ends with the line
 * `N passed, N failed`. Exit 0 only when nothing failed. The parts of the long ones run some at a time; with `-v`,
 * which shows what they write as they write it, one after another.
 *
 * It exists so that "is it whole?" has one answer: the same here, on a laptop and in CI.
 */
import { join } from "node:path";
import { testsFailed } from "./counts.ts";
import { cpuOfChildren } from "./cpu.ts";
import { type Outcome, runSteps } from "./run.ts";
import { type Step, STEPS } from "./steps.ts";

/**
 * What is shown of a failed step: of tests those that failed, of another tool the end of each of its outputs, where it
 * sums up what is wrong. More would push that out of the window that readers of CI logs are shown; the whole of it is in a
 * file.
 */
const SHOWN_CHARS = 3_000;
/** What is said again of it at the very end. */
const SUMMED_CHARS = 1_200;
/** Where the whole output of steps is kept until the next run: what failed, and what took how long. */
const OUTPUT_FOLDER = ".cache/gate";

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
    for (const { name, parts } of steps) {
      for (const { args } of parts) console.log(`${name.padEnd(9)} deno ${args.join(" ")}`);
    }
    return 0;
  }
  const begun = performance.now();
  const outcomes = await runSteps(steps, { isVerbose: args.includes("-v"), say: console.log, ended: show });
  const seconds = ((performance.now() - begun) / 1000).toFixed(0);
  const sum = (pick: (outcome: Outcome) => number) => outcomes.reduce((total, each) => total + pick(each), 0);
  const wrong = outcomes.filter((outcome) => !outcome.ok), failedSteps = wrong.map(({ step }) => step.name);
  const cpuS = cpuOfChildren();
  console.log(
    `\n${steps.length} steps in ${seconds} s${cpuS === null ? "" : `, ${cpuS.toFixed(0)} s of CPU`}`,
  );
  // Once more, where a step that ended an hour of lines ago is not looked for.
  for (const said of wrong.flatMap((each) => each.wrong.flatMap((output) => failures(output) ?? []))) {
    console.log(indent(said.slice(0, SUMMED_CHARS)));
  }
  if (failedSteps.length > 0) console.log(`failed steps: ${failedSteps.join(", ")}`);
  console.log(`${sum((outcome) => outcome.passed)} passed, ${sum((outcome) => outcome.failed)} failed`);
  return failedSteps.length === 0 ? 0 : 1;
}

function show(outcome: Outcome): void {
  console.log(line(outcome));
  const file = join(OUTPUT_FOLDER, `${outcome.step.name}.txt`);
  Deno.mkdirSync(OUTPUT_FOLDER, { recursive: true });
  Deno.writeTextFileSync(file, outcome.output.join("\n"));
  if (outcome.ok) return;
  for (const output of outcome.wrong) {
    const failed = failures(output);
    // What went wrong comes last in both, and standard error says it in fewer words.
    const ends = output.toReversed().map((text) => text.trimEnd().slice(-SHOWN_CHARS));
    const said = failed === null ? ends : [failed.slice(0, SHOWN_CHARS)];
    for (const text of said) if (text.trim() !== "") console.log(indent(text));
  }
  console.log(`    (the whole of it: ${file})`);
}

/** The tests that failed in a part; null where it lists none. */
const failures = (output: readonly string[]): string | null =>
  output.map(testsFailed).find((said) => said !== null) ?? null;

const indent = (text: string): string => text.trimEnd().split("\n").map((each) => `    ${each}`).join("\n");

if (import.meta.main) Deno.exit(await main(Deno.args));
