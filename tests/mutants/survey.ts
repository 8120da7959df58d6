/**
 * What each trial passes of the files that mutants are made of, and what it costs: found once for a tree, by files
 * with probes (instrument.ts) and nothing broken.
 *
 * SU1  A trial that finds something where nothing is broken, or takes too long, is tried on no mutant.
 * SU2  Of a file that has changed since, a trial passes everything or nothing, as it did.
 * SU3  A test file that the survey has not seen, be it newer or left out of a part, is tried on what it imports itself,
 *      once it has been run with nothing broken.
 */
import { runChild } from "./child.ts";
import { instrument, type Instrumented } from "./instrument.ts";
import { type Job, MARK, type Said } from "./run_trials.ts";
import type { Scope } from "./scope.ts";
import type { Scratch } from "./scratch.ts";
import { digest, parse } from "./syntax.ts";
import { PASSES_FOLDER } from "./probes.ts";

/** One thing to try on a mutant: a test file, or a trial of a simulator. */
export interface Trial {
  readonly kind: "test" | "simulator";
  /** The file, or the simulator. */
  readonly suite: string;
  /** Of a simulator. */
  readonly name: string;
}

/** A trial with what it was seen to do. */
export interface Surveyed extends Trial {
  readonly cpuMs: number;
  /** By file a set of bits, one for each probe, in Base64. */
  readonly passes: Readonly<Record<string, string>>;
}

/** What is kept of a survey. */
export interface Kept {
  /** Digests of the texts of files. */
  readonly files: Readonly<Record<string, string>>;
  readonly trials: readonly Surveyed[];
  /** SU1, with what they found. */
  readonly wrong: readonly (Trial & { readonly says: string })[];
}

/** What a survey leaves out: the more, the sooner it is done, and the fewer trials there are for a mutant. */
export interface SurveyPart {
  /** Of each simulator one trial in so many. */
  readonly oneIn: number;
  /** Test files begin with one of these; none: all. */
  readonly tests: readonly string[];
}

/** Above this a test file is not tried on mutants: its simulators are, by single seeds. */
const TEST_CPU_MS_MAX = 8_000;
const TRIAL_CPU_MS_MAX = 20_000;
/** Trials of one process: what one leaves behind is not to slow down hundreds. */
const CHUNK = 40;

/** Runs all trials. */
export async function survey(
  scope: Scope,
  scratch: Scratch,
  part: SurveyPart,
  say: (text: string) => void,
): Promise<Kept> {
  const files: Record<string, string> = {};
  const probes = new URL(`file://${scratch.root}tests/mutants/probes.ts`).href;
  try {
    for (const file of scope.files) {
      const text = scratch.text(file);
      files[file] = await digest(text);
      await scratch.write(file, instrument(parse(file, text), probes).text);
    }
    const found = { trials: [] as Surveyed[], wrong: [] as (Trial & { says: string })[] };
    await surveySimulators(scratch, part.oneIn, found, say);
    await surveyTests(suitesOf(scope, part), scratch, found, say);
    return { files, ...found };
  } finally {
    for (const file of scope.files) await scratch.restore(file);
  }
}

interface Found {
  readonly trials: Surveyed[];
  readonly wrong: (Trial & { says: string })[];
}

const suitesOf = (scope: Scope, { tests }: SurveyPart): string[] =>
  [...scope.tests.keys()].filter((suite) =>
    tests.length === 0 || tests.some((prefix) => suite.startsWith(prefix))
  );

async function surveySimulators(
  scratch: Scratch,
  oneIn: number,
  found: Found,
  say: (text: string) => void,
): Promise<void> {
  const listed = (await runTrials(scratch, ["--list"], TRIAL_CPU_MS_MAX, 0)).said;
  const all = listed.flatMap((each) => each.kind === "listed" ? each.trials : []);
  const trials = all.filter((_, at) => at % oneIn === 0);
  if (trials.length === 0) throw new Error("no simulator says what it can try");
  let rest = [...trials];
  while (rest.length > 0) {
    const [simulator = ""] = rest[0] ?? [];
    const other = rest.findIndex(([name]) => name !== simulator);
    const chunk = rest.slice(0, Math.min(CHUNK, other < 0 ? rest.length : other));
    const jobs: readonly Job[] = [{ number: 0, trials: chunk }];
    const file = await scratch.note("jobs.json", JSON.stringify(jobs));
    const { said, how } = await runTrials(scratch, [file, "--all"], TRIAL_CPU_MS_MAX, TRIAL_CPU_MS_MAX);
    const ended = said.filter((each) => each.kind === "ended");
    for (const { at, finding, cpuMs, passes } of ended) {
      const trial = { kind: "simulator" as const, suite: simulator, name: chunk[at]?.[1] ?? "" };
      if (finding !== null) found.wrong.push({ ...trial, says: `${finding.checker}: ${finding.message}` });
      else found.trials.push({ ...trial, cpuMs, passes: encoded(passes) });
    }
    const [, broken] = chunk[ended.length] ?? [];
    if (broken !== undefined) {
      found.wrong.push({ kind: "simulator", suite: simulator, name: broken, says: how });
    }
    rest = rest.slice(Math.min(chunk.length, ended.length + 1));
    say(`${simulator}: ${trials.length - rest.length} of ${trials.length} trials`);
  }
}

async function runTrials(scratch: Scratch, args: readonly string[], firstMs: number, eachMs: number) {
  const said: Said[] = [];
  const { how, errors } = await runChild({
    args: ["run", "-A", "--no-check", `${scratch.root}tests/mutants/run_trials.ts`, ...args],
    cwd: scratch.root,
    cpuMsMax: firstMs,
    onLine: (line, more) => {
      if (!line.startsWith(MARK)) return;
      said.push(JSON.parse(line.slice(MARK.length)) as Said);
      if (eachMs > 0) more(eachMs);
    },
  });
  return { said, how: how === "exited" ? errors.slice(-500) : how };
}

async function surveyTests(
  suites: readonly string[],
  scratch: Scratch,
  found: Found,
  say: (text: string) => void,
): Promise<void> {
  const folder = await Deno.makeTempDir();
  let done = 0;
  try {
    for (const suite of suites) {
      const trial = { kind: "test" as const, suite, name: "" };
      const lines: string[] = [];
      const { how, code, cpuMs } = await runChild({
        args: ["test", "-A", "--no-check", "--reporter=tap", suite],
        cwd: scratch.root,
        env: { [PASSES_FOLDER]: folder },
        cpuMsMax: TEST_CPU_MS_MAX,
        onLine: (line) => lines.push(line),
      });
      const passes = await takeWritten(folder);
      if (how !== "exited" || code !== 0) {
        const says = lines.find((line) => line.startsWith("not ok")) ?? how;
        found.wrong.push({ ...trial, says });
      } else if (Object.keys(passes).length > 0) {
        found.trials.push({ ...trial, cpuMs, passes: encoded(passes) });
      }
      if (++done % 20 === 0) say(`${done} of ${suites.length} test files`);
    }
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

/** What processes have written of what they passed: a test may have several. */
async function takeWritten(folder: string): Promise<Record<string, number[]>> {
  const all: Record<string, Set<number>> = {};
  for await (const { name } of Deno.readDir(folder)) {
    const path = `${folder}/${name}`;
    const passes = JSON.parse(await Deno.readTextFile(path)) as Record<string, number[]>;
    for (const [file, probes] of Object.entries(passes)) {
      const known = all[file] ??= new Set();
      for (const probe of probes) known.add(probe);
    }
    await Deno.remove(path);
  }
  return Object.fromEntries(Object.entries(all).map(([file, probes]) => [file, [...probes]]));
}

function encoded(passes: Readonly<Record<string, readonly number[]>>): Record<string, string> {
  const out: Record<string, string> = {};
  for (const [file, probes] of Object.entries(passes)) {
    const bits = new Uint8Array((Math.max(...probes) >> 3) + 1);
    for (const probe of probes) bits[probe >> 3] = (bits[probe >> 3] ?? 0) | (1 << (probe & 7));
    out[file] = bits.toBase64();
  }
  return out;
}

/** Runs a test file that no survey has seen, with nothing broken; null where it fails, or takes too long (SU3, SU1). */
export async function surveyTest(suite: string, scratch: Scratch): Promise<Surveyed | null> {
  const { how, code, cpuMs } = await runChild({
    args: ["test", "-A", "--no-check", "--reporter=tap", suite],
    cwd: scratch.root,
    cpuMsMax: TEST_CPU_MS_MAX,
    onLine: () => {},
  });
  return how === "exited" && code === 0 ? { kind: "test", suite, name: "", cpuMs, passes: {} } : null;
}

/** A survey that can be asked who passes a place. */
export class Reach {
  readonly #kept: Kept;
  readonly #bits = new Map<Surveyed, Map<string, Uint8Array>>();
  /** By file, as it is now; null: it has changed since. */
  readonly #probes = new Map<string, Instrumented | null>();

  constructor(kept: Kept) {
    this.#kept = kept;
  }

  /** Whether the survey has looked at a test file, whatever came of it. */
  hasSeen(suite: string): boolean {
    return [...this.#kept.trials, ...this.#kept.wrong].some((trial) => trial.suite === suite);
  }

  /** Trials that pass a place of a file. */
  async passing(file: string, text: string, position: number): Promise<Surveyed[]> {
    if (!this.#probes.has(file)) {
      const isSame = this.#kept.files[file] === await digest(text);
      this.#probes.set(file, isSame ? instrument(parse(file, text), "") : null); // SU2
    }
    const probe = this.#probes.get(file)?.probeAt(position) ?? null;
    return this.#kept.trials.filter((trial) => {
      const bits = this.#bitsOf(trial, file);
      if (bits === null || probe === null) return bits !== null;
      return ((bits[probe >> 3] ?? 0) & (1 << (probe & 7))) !== 0;
    });
  }

  #bitsOf(trial: Surveyed, file: string): Uint8Array | null {
    const text = trial.passes[file];
    if (text === undefined) return null;
    const files = this.#bits.get(trial) ?? new Map<string, Uint8Array>();
    this.#bits.set(trial, files);
    const bits = files.get(file) ?? Uint8Array.fromBase64(text);
    files.set(file, bits);
    return bits;
  }
}
