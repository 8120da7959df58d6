/**
 * Mutants, tried: made in the scratch tree, run against trials until one finds something, and taken out again.
 *
 * AT1  A mutant is caught by what a test or a checker says of it, or by a fault that ends its test. Where a trial hangs
 *      the others are made: only where none of them says a thing the mutant is one that hangs.
 * AT2  A trial has ten times what it takes when nothing is broken, and some seconds, of the processor's time.
 * AT3  Many mutants are tried in one process (switched.ts). One of which that process can't be sure (run_trials.ts RT3),
 *      or that ends it, is tried again in a process of its own.
 */
import { runChild } from "./child.ts";
import { type Mutant, mutated } from "./mutant.ts";
import { changesOf } from "./operators.ts";
import { type Job, MARK, type Said } from "./run_trials.ts";
import type { Scratch } from "./scratch.ts";
import type { Surveyed } from "./survey.ts";
import { isSwitchable, type Numbered, switched } from "./switched.ts";
import { parse } from "./syntax.ts";

/** What came of a mutant. */
export interface Attempt {
  readonly outcome: "caught" | "survived" | "hung";
  readonly by: Surveyed | null;
  readonly says: string;
  readonly tried: number;
  readonly cpuMs: number;
}

/** A mutant with the trials that it is worth of those that many make in one process. */
export interface Planned {
  readonly mutant: Mutant;
  readonly trials: readonly Surveyed[];
}

/** AT2 */
const SLACK_MS = 2_500;
/** Until the first trial begins: after a change of the tree all of it may have to be compiled. */
const LOAD_MS = 40_000;
const TIMES = 10;
/** After so many suites in which a mutant hangs the rest is not tried: each costs seconds. Those of one are mostly alike. */
const HANGS_MAX = 3;
/** Mutants of one process: what they leave in its memory is not to grow. */
const JOBS_MAX = 100;
const SAYS_CHARS = 300;

const NOTHING: Attempt = { outcome: "survived", by: null, says: "", tried: 0, cpuMs: 0 };

/** Tries mutants of one file on what many share a process for; calls `done` as each is decided. */
export async function tryShared(
  planned: readonly Planned[],
  scratch: Scratch,
  done: (mutant: Mutant, attempt: Attempt) => Promise<void>,
): Promise<void> {
  const [first] = planned;
  if (first === undefined) return;
  const { file } = first.mutant, text = scratch.text(file), parsed = parse(file, text);
  const changes = new Map(changesOf(parsed).map((change) => [keyOf(change), change]));
  const numbered = new Map<Mutant, Numbered>();
  const alone: Planned[] = [], together: Planned[] = [];
  for (const each of planned) {
    const change = changes.get(keyOf(each.mutant));
    if (change === undefined) throw new Error(`${file} is not the file that its mutants were made of`);
    if (!isSwitchable(change)) alone.push(each);
    else {
      numbered.set(each.mutant, { number: numbered.size + 1, change });
      together.push(each);
    }
  }
  const address = new URL(`file://${scratch.root}tests/mutants/switch.ts`).href;
  try {
    await scratch.write(file, switched(parsed, [...numbered.values()], address));
    for (let from = 0; from < together.length; from += JOBS_MAX) {
      const part = together.slice(from, from + JOBS_MAX);
      const decided = new Set<Mutant>();
      await inOneProcess(
        part,
        (mutant) => numbered.get(mutant)?.number ?? 0,
        scratch,
        async (mutant, attempt) => {
          decided.add(mutant);
          await done(mutant, attempt);
        },
      );
      alone.push(...part.filter(({ mutant }) => !decided.has(mutant)));
    }
    for (const each of alone) {
      await scratch.write(file, mutated(text, each.mutant));
      await byItself(each, scratch, done);
    }
  } finally {
    await scratch.restore(file);
  }
}

const keyOf = ({ start, end, becomes }: Pick<Mutant, "start" | "end" | "becomes">): string =>
  `${start} ${end} ${becomes}`;

type Done = (mutant: Mutant, attempt: Attempt) => Promise<void>;

/** Mutants in one process after the other: a new one begins where the last has hung, died or is spoiled (AT3). */
async function inOneProcess(
  planned: readonly Planned[],
  numberOf: (mutant: Mutant) => number,
  scratch: Scratch,
  done: Done,
): Promise<void> {
  const hangs = new Hangs();
  let open = [...planned];
  while (open.length > 0) {
    const run = await runJobs(open, numberOf, scratch, []);
    if (run.how === "exited" && run.code !== 0 && run.last === null && run.ended.length === 0) {
      throw new Error(`a file with its mutants does not load: ${run.errors}`);
    }
    const rest: Planned[] = [];
    for (const [job, each] of open.entries()) {
      const attempt = run.attemptOf(job);
      if (job === run.spoiledBy) continue;
      if (attempt !== null) await done(each.mutant, hangs.joined(each.mutant, attempt));
      else if (job !== run.last?.job) rest.push(each);
      else if (run.how !== "exited") { // One that ends the process is tried alone.
        const again = hangs.add(each, run.last.at, run.how);
        if (again === null) await done(each.mutant, hangs.joined(each.mutant, null));
        else rest.unshift(again);
      }
    }
    if (rest.length === open.length && run.last === null && run.spoiledBy === null) {
      throw new Error(`trials end without a word: ${run.how}: ${run.errors}`);
    }
    open = rest;
  }
}

/** A mutant in a process that knows no other: its text is in the tree. */
async function byItself(planned: Planned, scratch: Scratch, done: Done): Promise<void> {
  const { mutant } = planned, hangs = new Hangs();
  let open: Planned | null = planned;
  while (open !== null) {
    const { trials }: Planned = open;
    const run = await runJobs([open], () => 0, scratch, ["--alone"]), attempt = run.attemptOf(0);
    if (attempt !== null) return await done(mutant, hangs.joined(mutant, attempt));
    // A test that finds something now and then counts for nothing, the others do.
    const at = run.last?.at ?? 0;
    if (run.spoiledBy !== null) open = { mutant, trials: trials.slice(at + 1) };
    else if (run.how === "exited") {
      const says = shortened(`fault: ${lastLine(run.errors)}`);
      const by = trials[at] ?? null;
      return await done(
        mutant,
        hangs.joined(mutant, { ...NOTHING, outcome: "caught", by, says, tried: at + 1 }),
      );
    } else open = hangs.add(open, at, run.how);
    if (open === null || open.trials.length === 0) return await done(mutant, hangs.joined(mutant, null));
  }
}

/** What came of trials of mutants that hung. */
class Hangs {
  readonly #known = new Map<Mutant, { readonly attempt: Attempt; readonly count: number }>();

  /** The trials that are left after one has hung; null: no more are made (HANGS_MAX). */
  add({ mutant, trials }: Planned, at: number, says: string): Planned | null {
    const known = this.#known.get(mutant), by = trials[at] ?? null;
    const attempt: Attempt = { ...NOTHING, outcome: "hung", by, says, tried: at + 1 };
    const count = (known?.count ?? 0) + 1;
    this.#known.set(mutant, {
      attempt: known === undefined ? attempt : joined(known.attempt, attempt),
      count,
    });
    const rest = trials.slice(at + 1).filter(({ suite }) => suite !== by?.suite);
    return count >= HANGS_MAX || rest.length === 0 ? null : { mutant, trials: rest };
  }

  /** With what came of the trials after them. */
  joined(mutant: Mutant, after: Attempt | null): Attempt {
    const known = this.#known.get(mutant)?.attempt;
    if (after === null) return known ?? NOTHING;
    return known === undefined ? after : joined(known, after);
  }
}

function attemptOf(
  trials: readonly Surveyed[],
  ended: Run["ended"],
  found: { readonly at: number; readonly says: string } | undefined,
): Attempt {
  const base = { tried: ended.length, cpuMs: ended.reduce((sum, { cpuMs }) => sum + cpuMs, 0) };
  if (found === undefined) return { ...NOTHING, ...base };
  return { outcome: "caught", by: trials[found.at] ?? null, says: shortened(found.says), ...base };
}

/** What came of the first trials of a mutant, of which one has hung, and of the others. */
function joined(before: Attempt | undefined, after: Attempt): Attempt {
  if (before === undefined) return after;
  const decides = after.outcome === "caught" ? after : before;
  return { ...decides, tried: before.tried + after.tried, cpuMs: before.cpuMs + after.cpuMs };
}

const pair = ({ suite, name }: Surveyed): readonly [string, string] => [suite, name];

interface Run {
  readonly how: "exited" | "hung" | "out of memory";
  readonly code: number;
  readonly errors: string;
  readonly ended: readonly { readonly job: number; readonly at: number; readonly cpuMs: number }[];
  /** What came of a job; null: it did not come to its end. */
  readonly attemptOf: (job: number) => Attempt | null;
  /** What it had begun last, and not ended. */
  readonly last: { readonly job: number; readonly at: number } | null;
  /** The job of which it is not sure, whereupon it ended. */
  readonly spoiledBy: number | null;
}

async function runJobs(
  planned: readonly Planned[],
  numberOf: (mutant: Mutant) => number,
  scratch: Scratch,
  flags: readonly string[],
): Promise<Run> {
  const jobs = planned.map(({ mutant, trials }): Job => ({
    number: numberOf(mutant),
    trials: trials.map(pair),
  }));
  const costOf = (job: number, at: number): number => planned[job]?.trials[at]?.costMs ?? 0;
  const file = await scratch.note("jobs.json", JSON.stringify(jobs));
  const ended: Run["ended"][number][] = [];
  const findings: { readonly job: number; readonly at: number; readonly says: string }[] = [];
  let last: Run["last"] = null, spoiledBy: number | null = null;
  const { how, code, errors } = await runChild({
    args: ["run", "-A", "--no-check", `${scratch.root}tests/mutants/run_trials.ts`, file, ...flags],
    cwd: scratch.root,
    cpuMsMax: LOAD_MS,
    onLine: (line, more) => {
      if (!line.startsWith(MARK)) return;
      const said = JSON.parse(line.slice(MARK.length)) as Said;
      if (said.kind === "begins") {
        last = { job: said.job, at: said.at };
        more(costOf(said.job, said.at) * TIMES + SLACK_MS);
      } else if (said.kind === "spoiled") spoiledBy = said.job;
      else if (said.kind === "ended") {
        last = null;
        const { job, at, costMs, finding } = said;
        ended.push({ job, at, cpuMs: costMs });
        if (finding !== null) findings.push({ job, at, says: `${finding.checker}: ${finding.message}` });
      }
    },
  });
  const attempt = (job: number): Attempt | null => {
    const own = ended.filter((each) => each.job === job), found = findings.find((each) => each.job === job);
    const trials = planned[job]?.trials ?? [];
    return found === undefined && own.length < trials.length ? null : attemptOf(trials, own, found);
  };
  return { how, code, errors, ended, last, spoiledBy, attemptOf: attempt };
}

/** Tries a mutant on test files as a whole. */
export async function tryFiles(
  mutant: Mutant,
  trials: readonly Surveyed[],
  scratch: Scratch,
): Promise<Attempt> {
  if (trials.length === 0) return NOTHING;
  await scratch.write(mutant.file, mutated(scratch.text(mutant.file), mutant));
  try {
    const expectedMs = trials.reduce((sum, { costMs }) => sum + costMs, 0);
    let failed = "", suite = "";
    const ended = await runChild({
      args: [
        "test",
        "-A",
        "--no-check",
        "--fail-fast",
        "--reporter=tap",
        ...trials.map(({ suite }) => suite),
      ],
      cwd: scratch.root,
      cpuMsMax: expectedMs * TIMES + LOAD_MS / 4,
      onLine: (line) => {
        if (failed !== "") return;
        suite = /^# \.\/(\S+)/.exec(line)?.[1] ?? suite;
        if (/^\s*not ok/.test(line)) failed = line.trim();
      },
    });
    const base = { tried: trials.length, cpuMs: ended.cpuMs };
    if (failed === "" && ended.how !== "exited") {
      return { outcome: "hung", by: trials[0] ?? null, says: ended.how, ...base };
    }
    if (failed === "" && ended.code === 0) return { ...NOTHING, ...base };
    const name = failed.replace(/^not ok \d+ - /, "").replace(/ # .*$/, "");
    const by = trials.find((trial) => trial.suite === suite) ?? trials[0] ?? null;
    return { outcome: "caught", by, says: shortened(name || lastLine(ended.errors)), ...base };
  } finally {
    await scratch.restore(mutant.file);
  }
}

const shortened = (text: string): string => text.replaceAll(/\s+/g, " ").slice(0, SAYS_CHARS);

/** Of what a process wrote as it died, what names the error. */
function lastLine(errors: string): string {
  const lines = errors.split("\n").filter((line) => line.trim() !== "");
  return lines.find((line) => /^(?:error|Uncaught|\w*Error)/.test(line)) ?? lines.at(-1) ?? "";
}
