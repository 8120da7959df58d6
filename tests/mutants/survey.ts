/**
 * What each trial passes of the files that mutants are made of, and what it costs: found once for a tree, by files
 * with probes (instrument.ts) and nothing broken.
 *
 * SU1  A trial that finds something where nothing is broken, or takes too long, is tried on no mutant. A test file of
 *      which a test does so in a process with others is tried as a whole, in processes of its own.
 * SU2  Of a file that has changed since, a trial passes everything or nothing, as it did.
 * SU3  A test file that the survey has not seen, or that has changed since, is looked at before it is needed: with
 *      nothing broken, and without probes, so that its tests are tried on whatever the file imports itself.
 */
import { runChild } from "./child.ts";
import { instrument, type Instrumented } from "./instrument.ts";
import { type Job, MARK, type Said } from "./run_trials.ts";
import type { Scope } from "./scope.ts";
import type { Scratch } from "./scratch.ts";
import { SIMULATORS } from "./simulators/mod.ts";
import { bareText, digest, parse } from "./syntax.ts";
import { PASSES_FOLDER } from "./probes.ts";

/** One thing to try on a mutant: a trial of a simulator, a test of a file, or a test file as a whole. */
export interface Trial {
  readonly kind: "simulator" | "test" | "file";
  /** The simulator, or the test file. */
  readonly suite: string;
  /** The seed, or the test; empty of a whole file. */
  readonly name: string;
}

/** A trial with what it was seen to do. */
export interface Surveyed extends Trial {
  /** Of the processor. */
  readonly costMs: number;
  /** By file, with its digest as it was seen (`passesKey`): a set of bits, one for each probe, in Base64. */
  readonly passes: Readonly<Record<string, string>>;
}

/** What is kept of a survey. */
export interface Kept {
  /** Test files that were looked at: digests of their texts, without comments. */
  readonly suites: Readonly<Record<string, string>>;
  readonly trials: readonly Surveyed[];
  /** SU1, with what they found. */
  readonly wrong: readonly (Trial & { readonly says: string })[];
}

/** What a survey leaves out: the more, the sooner it is done, and the fewer trials there are for a mutant. */
export interface SurveyPart {
  /** Of each simulator one trial in so many. */
  readonly oneIn: number;
  /** Only test files that begin with one of these are looked at, and of all else it stays what it was; none: all. */
  readonly tests: readonly string[];
}

/** Above this a test is not tried on mutants: simulators are, by single seeds. */
const TEST_MS_MAX = 4_000;
/** A file as a whole, in a process of its own. */
const FILE_CPU_MS_MAX = 8_000;
const TRIAL_CPU_MS_MAX = 20_000;
/** Until a process has loaded what it runs. */
const LOAD_CPU_MS_MAX = 60_000;
/** Trials of one process: what one leaves behind is not to slow down hundreds. */
const CHUNK = 40;
/** Test files whose tests one process runs. */
const FILES = 8;

/** Runs all trials, or some. @param before what is kept of the last survey. */
export async function survey(
  scope: Scope,
  scratch: Scratch,
  part: SurveyPart,
  before: Kept | null,
  say: (text: string) => void,
): Promise<Kept> {
  const files = new Map<string, string>();
  const probes = new URL(`file://${scratch.root}tests/mutants/probes.ts`).href;
  try {
    for (const file of scope.files) {
      const text = scratch.text(file);
      files.set(file, await bareDigest(file, text));
      await scratch.write(file, instrument(parse(file, text), probes).text);
    }
    const found: Found = { trials: [], wrong: [], files };
    const wanted = suitesOf(scope, part), isPart = part.tests.length > 0 && before !== null;
    const suites: Record<string, string> = {};
    for (const suite of wanted) suites[suite] = await bareDigest(suite, scratch.text(suite));
    await surveyTests(wanted, scratch, found, say);
    if (!isPart) {
      await surveySimulators(scratch, part.oneIn, found, say);
      return { suites, trials: found.trials, wrong: found.wrong };
    }
    const isOther = ({ suite }: Trial) => suites[suite] === undefined;
    return {
      suites: { ...before.suites, ...suites },
      trials: [...before.trials.filter(isOther), ...found.trials],
      wrong: [...before.wrong.filter(isOther), ...found.wrong],
    };
  } finally {
    for (const file of scope.files) await scratch.restore(file);
  }
}

interface Found {
  readonly trials: Surveyed[];
  readonly wrong: (Trial & { says: string })[];
  /** Digests of files with probes. */
  readonly files: ReadonlyMap<string, string>;
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
  const all = (await listed(Object.keys(SIMULATORS), scratch, found.wrong)).map((trial): Trial => ({
    kind: "simulator",
    ...trial,
  }));
  if (all.length === 0) throw new Error("no simulator says what it can try");
  for (const [suite, trials] of Map.groupBy(all.filter((_, at) => at % oneIn === 0), ({ suite }) => suite)) {
    for (let from = 0; from < trials.length; from += CHUNK) {
      await runAll(trials.slice(from, from + CHUNK), scratch, found, TRIAL_CPU_MS_MAX);
      say(`${suite}: ${Math.min(from + CHUNK, trials.length)} of ${trials.length} trials`);
    }
  }
}

/** Files whose tests don't do in one process what they do alone are looked at as a whole (SU1). */
async function surveyTests(
  suites: readonly string[],
  scratch: Scratch,
  found: Found,
  say: (text: string) => void,
): Promise<void> {
  for (let from = 0; from < suites.length; from += FILES) {
    const part = suites.slice(from, from + FILES);
    const wrong: Found["wrong"] = [], trials: Surveyed[] = [];
    const tests = (await listed(part, scratch, wrong)).map((trial): Trial => ({
      kind: "test",
      ...trial,
    }));
    await runAll(tests, scratch, { ...found, trials, wrong }, 2 * TEST_MS_MAX);
    const broken = brokenOf(wrong);
    found.trials.push(
      ...trials.filter(({ suite, costMs, passes }) =>
        !broken.has(suite) && costMs <= TEST_MS_MAX && Object.keys(passes).length > 0
      ),
    );
    found.wrong.push(
      ...wrong.filter(({ suite }) => !broken.has(suite)),
      ...trials.filter(({ costMs }) => costMs > TEST_MS_MAX).map(({ suite, name, costMs }) => ({
        ...{ kind: "test" as const, suite, name, says: `takes ${costMs} ms` },
      })),
    );
    for (const suite of broken) {
      const whole = await surveyFile(suite, scratch, found.files);
      if (whole.trial !== null) found.trials.push(whole.trial);
      else {
        const says = `${whole.says}; ${wrong.find((each) => each.suite === suite)?.says}`;
        found.wrong.push({ kind: "file", suite, name: "", says });
      }
    }
    say(`${Math.min(from + FILES, suites.length)} of ${suites.length} test files`);
  }
}

/** Suites of which something fails in a process with others; what takes too long says nothing of the rest. */
const brokenOf = (wrong: Found["wrong"]): Set<string> =>
  new Set(wrong.filter(({ says }) => says !== "hung").map(({ suite }) => suite));

/** What there is to try of suites, by name. */
async function listed(
  suites: readonly string[],
  scratch: Scratch,
  wrong: Found["wrong"],
): Promise<Pick<Trial, "suite" | "name">[]> {
  const { said, how } = await runTrials(scratch, ["--list", ...suites], LOAD_CPU_MS_MAX, 0);
  const loaded = said.flatMap((each) => each.kind === "listed" ? [each] : []);
  const known = new Set(loaded.map(({ suite }) => suite));
  for (const suite of suites) {
    const kind = SIMULATORS[suite] === undefined ? "file" : "simulator";
    if (!known.has(suite)) wrong.push({ kind, suite, name: "", says: `is not loaded: ${how}` });
  }
  return loaded.flatMap(({ suite, trials }) => trials.map((name) => ({ suite, name })));
}

/** Runs trials with nothing broken; after one that ends its process in another. */
async function runAll(
  trials: readonly Trial[],
  scratch: Scratch,
  found: Found,
  eachMs: number,
): Promise<void> {
  let rest = [...trials];
  while (rest.length > 0) {
    const jobs: readonly Job[] = [{ number: 0, trials: rest.map(({ suite, name }) => [suite, name]) }];
    const file = await scratch.note("jobs.json", JSON.stringify(jobs));
    const { said, how } = await runTrials(scratch, [file, "--all"], LOAD_CPU_MS_MAX, eachMs);
    const ended = said.filter((each) => each.kind === "ended");
    for (const { at, finding, costMs, passes } of ended) {
      const trial = rest[at];
      if (trial === undefined) continue;
      if (finding !== null) found.wrong.push({ ...trial, says: `${finding.checker}: ${finding.message}` });
      else found.trials.push({ ...trial, costMs, passes: encoded(passes, found.files) });
    }
    const broken = rest[ended.length];
    if (broken !== undefined) found.wrong.push({ ...broken, says: how });
    rest = rest.slice(ended.length + 1);
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

/** Runs a test file as a whole, in a process of its own. */
async function surveyFile(
  suite: string,
  scratch: Scratch,
  files: ReadonlyMap<string, string>,
): Promise<{ readonly trial: Surveyed | null; readonly says: string }> {
  const folder = await Deno.makeTempDir();
  try {
    const lines: string[] = [];
    const { how, code, cpuMs } = await runChild({
      args: ["test", "-A", "--no-check", "--reporter=tap", suite],
      cwd: scratch.root,
      env: { [PASSES_FOLDER]: folder },
      cpuMsMax: FILE_CPU_MS_MAX,
      onLine: (line) => lines.push(line),
    });
    const passes = encoded(await takeWritten(folder), files);
    if (how === "exited" && code === 0) {
      return { trial: { kind: "file", suite, name: "", costMs: cpuMs, passes }, says: "" };
    }
    return { trial: null, says: lines.find((line) => line.startsWith("not ok")) ?? how };
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

const passesKey = (file: string, digest: string): string => `${file}@${digest}`;

function encoded(
  passes: Readonly<Record<string, readonly number[]>>,
  files: ReadonlyMap<string, string>,
): Record<string, string> {
  const out: Record<string, string> = {};
  for (const [file, probes] of Object.entries(passes)) {
    const bits = new Uint8Array((Math.max(...probes) >> 3) + 1);
    for (const probe of probes) bits[probe >> 3] = (bits[probe >> 3] ?? 0) | (1 << (probe & 7));
    out[passesKey(file, files.get(file) ?? "")] = bits.toBase64();
  }
  return out;
}

/** The tests of files that no survey has seen as they are (SU3). */
export async function surveyUnseen(suites: readonly string[], scratch: Scratch): Promise<Surveyed[]> {
  const found: Found = { trials: [], wrong: [], files: new Map() };
  const tests = (await listed(suites, scratch, found.wrong)).map((trial): Trial => ({
    kind: "test",
    ...trial,
  }));
  await runAll(tests, scratch, found, 2 * TEST_MS_MAX);
  const broken = brokenOf(found.wrong);
  const whole: Surveyed[] = [];
  for (const suite of broken) {
    const { trial } = await surveyFile(suite, scratch, found.files);
    if (trial !== null) whole.push({ ...trial, passes: {} });
  }
  return [
    ...found.trials.filter(({ suite, costMs }) => !broken.has(suite) && costMs <= TEST_MS_MAX),
    ...whole,
  ];
}

/** Comments may change: probes stand where they stood. */
const bareDigest = async (path: string, text: string): Promise<string> => {
  const parsed = parse(path, text);
  return await digest(bareText(parsed, parsed.tree));
};

/** Digests that are asked for again and again. */
class Digests {
  readonly #known = new Map<string, { readonly text: string; readonly digest: Promise<string> }>();

  of(path: string, text: string): Promise<string> {
    const known = this.#known.get(path);
    if (known?.text === text) return known.digest;
    const found = bareDigest(path, text);
    this.#known.set(path, { text, digest: found });
    return found;
  }
}

/** A survey that can be asked who passes a place. */
export class Reach {
  readonly #kept: Kept;
  readonly #digests = new Digests();
  readonly #bits = new Map<Surveyed, Map<string, Uint8Array | "seen otherwise" | null>>();
  /** By file, as it is now. */
  readonly #probes = new Map<string, Instrumented>();

  constructor(kept: Kept) {
    this.#kept = kept;
  }

  /** Whether the survey has looked at a test file with this text, whatever came of it. */
  async hasSeen(suite: string, text: string): Promise<boolean> {
    return this.#kept.suites[suite] === await this.#digests.of(suite, text);
  }

  /** Trials that pass a place of a file; `maybe`: those that were surveyed when the file was another, and pass it (SU2). */
  async passing(
    file: string,
    text: string,
    position: number,
  ): Promise<{ readonly sure: readonly Surveyed[]; readonly maybe: readonly Surveyed[] }> {
    const digest = await this.#digests.of(file, text);
    const probe = this.#probesOf(file, text).probeAt(position);
    const sure: Surveyed[] = [], maybe: Surveyed[] = [];
    for (const trial of this.#kept.trials) {
      const bits = this.#bitsOf(trial, file, digest);
      if (bits === null) continue;
      if (bits === "seen otherwise") maybe.push(trial);
      else if (probe === null || ((bits[probe >> 3] ?? 0) & (1 << (probe & 7))) !== 0) sure.push(trial);
    }
    return { sure, maybe };
  }

  #probesOf(file: string, text: string): Instrumented {
    const known = this.#probes.get(file) ?? instrument(parse(file, text), "");
    this.#probes.set(file, known);
    return known;
  }

  /** null: it passes nothing of the file. */
  #bitsOf(trial: Surveyed, file: string, digest: string): Uint8Array | "seen otherwise" | null {
    const bits = this.#bits.get(trial) ?? new Map<string, Uint8Array | "seen otherwise" | null>();
    this.#bits.set(trial, bits);
    const known = bits.get(file);
    if (known !== undefined) return known;
    const text = trial.passes[passesKey(file, digest)];
    const found = text !== undefined
      ? Uint8Array.fromBase64(text)
      : Object.keys(trial.passes).some((key) => key.startsWith(passesKey(file, "")))
      ? "seen otherwise"
      : null;
    bits.set(file, found);
    return found;
  }
}
