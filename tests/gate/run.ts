/**
 * Runs steps: each one child process or several, its parts, a few at a time where they allow it.
 *
 * R1  A part that has not ended at its step's limit is killed, and its step has failed.
 * R2  Steps that are not `beside` others run alone, first, and in order. The parts of the others follow, some at a
 *     time: the next one begins when any has ended. Which one that is: of the parts whose step does not have as many
 *     at work as it may, the longest.
 * R3  Where what steps write is shown as it comes their parts run one after another, so that it can be read.
 * R4  A step has passed when all its parts have; its counts are the sums of theirs.
 */
import { stripVTControlCharacters } from "node:util";
import { cpuOfChildren } from "./cpu.ts";
import type { Counts, Part, Step } from "./steps.ts";

/** What became of a step. */
export interface Outcome extends Counts {
  readonly step: Step;
  readonly ok: boolean;
  /** From the beginning of its first part to the end of its last one. */
  readonly ms: number;
  /** What its parts wrote: of each standard output, then standard error, where most tools say what went wrong. */
  readonly output: readonly string[];
  /** That of each part that failed. */
  readonly wrong: readonly (readonly string[])[];
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
/**
 * One more than the two cores that the gate is sized for: a cluster of processes waits half of its time, for disks and
 * for each other, and that time is the third part's.
 */
const LANES = 3;

/** CPU seconds of children that have ended and were told of. */
let toldCpuS = 0;

/** What became of a part. */
interface PartOutcome extends Counts {
  readonly ok: boolean;
  readonly output: readonly string[];
}

/** A step of which parts may have run already. */
class OpenStep {
  readonly #waiting: Part[];
  readonly #outcomes = new Map<Part, PartOutcome>();
  #beganMs: number | null = null;
  #atWork = 0;

  constructor(readonly step: Step) {
    this.#waiting = step.parts.toSorted((one, other) => (other.seconds ?? 0) - (one.seconds ?? 0));
  }

  /** The part that would begin next; undefined while none may (R2). */
  get next(): Part | undefined {
    return this.#atWork < (this.step.partsMax ?? Infinity) ? this.#waiting[0] : undefined;
  }

  /** Runs the next part; true where it was the last of all to end. */
  async run(runs: Runs): Promise<boolean> {
    const part = this.#waiting.shift();
    if (part === undefined) return false;
    this.#beganMs ??= performance.now();
    this.#atWork++;
    this.#outcomes.set(part, await runPart(this.step, part, runs));
    this.#atWork--;
    // Asked at once: when the caller goes on another part may have ended, too, and both would be the last.
    return this.#outcomes.size === this.step.parts.length;
  }

  /** R4 */
  outcome(): Outcome {
    const outcomes = this.step.parts.flatMap((part) => this.#outcomes.get(part) ?? []);
    const sum = (pick: (outcome: PartOutcome) => number) =>
      outcomes.reduce((total, each) => total + pick(each), 0);
    const ok = outcomes.every((outcome) => outcome.ok);
    const isCounted = this.step.counts !== undefined;
    return {
      step: this.step,
      ok,
      ms: performance.now() - (this.#beganMs ?? performance.now()),
      passed: isCounted ? sum(({ passed }) => passed) : ok ? 1 : 0,
      failed: isCounted ? sum(({ failed }) => failed) : ok ? 0 : 1,
      output: outcomes.flatMap(({ output }) => output),
      wrong: outcomes.flatMap((outcome) => outcome.ok ? [] : [outcome.output]),
    };
  }
}

/** Runs steps, all of them even when one fails; their outcomes in the order of the steps. */
export async function runSteps(steps: readonly Step[], runs: Runs): Promise<Outcome[]> {
  const outcomes = new Map<Step, Outcome>();
  const open = async (some: readonly Step[], lanes: number): Promise<void> => {
    const all = some.map((step) => new OpenStep(step));
    const running = new Set<Promise<void>>();
    for (;;) {
      while (running.size < lanes) {
        const next = longest(all);
        if (next === undefined) break;
        const run = next.run(runs).then((isLast) => {
          running.delete(run);
          if (!isLast) return;
          const outcome = next.outcome();
          outcomes.set(next.step, outcome);
          runs.ended(outcome);
        });
        running.add(run);
      }
      if (running.size === 0) return;
      await Promise.race(running);
    }
  };
  for (const step of steps) if (!step.isBeside) await open([step], 1);
  await open(steps.filter((step) => step.isBeside), runs.isVerbose ? 1 : LANES);
  return steps.flatMap((step) => outcomes.get(step) ?? []);
}

/** The step whose next part is the longest; of equals the first (R2). */
function longest(steps: readonly OpenStep[]): OpenStep | undefined {
  let found: OpenStep | undefined, seconds = -1;
  for (const step of steps) {
    const part = step.next;
    if (part === undefined || (part.seconds ?? 0) <= seconds) continue;
    [found, seconds] = [step, part.seconds ?? 0];
  }
  return found;
}

async function runPart(step: Step, part: Part, runs: Runs): Promise<PartOutcome> {
  const begun = performance.now();
  const name = part.name === undefined ? step.name : `${step.name} ${part.name}`;
  const child = new Deno.Command(Deno.execPath(), {
    args: [...part.args],
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
  const heartbeat = setInterval(() => runs.say(`         … ${name}, ${seconds()}`), HEARTBEAT_MS);
  const [status, ...output] = await Promise.all([
    child.status,
    collect(child.stdout, runs.isVerbose),
    collect(child.stderr, runs.isVerbose),
  ]);
  clearTimeout(limit);
  clearInterval(heartbeat);
  const cpu = cpuSaid();
  if (part.name !== undefined) runs.say(`         ${name} ended after ${seconds()}${cpu}`);
  if (isLate) output.push(`stopped after its limit of ${step.limitS} s`);
  const counted = step.counts?.(output.join("\n")) ?? null;
  const passed = counted?.passed ?? (status.success ? 1 : 0);
  // A run that failed without a failed test (a leak, a crash, a limit) has failed all the same.
  const failed = status.success ? counted?.failed ?? 0 : Math.max(1, counted?.failed ?? 1);
  return { ok: status.success, passed, failed, output };
}

/** What the processes of a part that has just ended took of the cores; nothing where the system does not tell. */
function cpuSaid(): string {
  const cpuS = cpuOfChildren();
  if (cpuS === null) return "";
  const partS = cpuS - toldCpuS;
  toldCpuS = cpuS;
  return `, ${partS.toFixed(0)} s of CPU`;
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
