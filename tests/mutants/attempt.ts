/**
 * Mutants, tried: made in the scratch tree, run against trials until one finds something, and taken out again.
 *
 * AT1  A mutant is caught by what a test or a checker says of it, or by a fault that ends its test; never by time: one
 *      that hangs is caught only where another trial says so, or the simulator's own limit of virtual time.
 * AT2  A trial has ten times what it takes when nothing is broken, and some seconds, of the processor's time.
 * AT3  Simulators try many mutants in one process (switched.ts). After some of them each simulator tries what is not
 *      broken. Only then do their results count: where it finds something, one of them has left something behind, and
 *      they are tried again, each in a process of its own.
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

/** A mutant with the trials of simulators that it is worth. */
export interface Planned {
  readonly mutant: Mutant;
  readonly trials: readonly Surveyed[];
}

/** AT2 */
const SLACK_MS = 4_000;
/** Until the first trial begins: after a change of the tree all of it may have to be compiled. */
const LOAD_MS = 40_000;
const TIMES = 10;
/** After so many trials of a mutant that hang the rest is not tried: each costs seconds, and they are mostly alike. */
const HANGS_MAX = 2;
/** Mutants of one process: what they leave in its memory is not to grow. */
const JOBS_MAX = 60;
const BETWEEN_CONTROLS = 12;
const SAYS_CHARS = 300;

const NOTHING: Attempt = { outcome: "survived", by: null, says: "", tried: 0, cpuMs: 0 };

/** Tries mutants of one file on simulators; calls `done` as each is decided. */
export async function trySimulators(
  planned: readonly Planned[],
  scratch: Scratch,
  done: (mutant: Mutant, attempt: Attempt) => Promise<void>,
): Promise<void> {
  const [first] = planned;
  if (first === undefined) return;
  const { file } = first.mutant, text = scratch.text(file), parsed = parse(file, text);
  const changes = new Map(changesOf(parsed).map((change) => [keyOf(change), change]));
  const numbered = new Map<Mutant, Numbered>();
  const alone: Planned[] = [];
  for (const each of planned) {
    const change = changes.get(keyOf(each.mutant));
    if (change === undefined) throw new Error(`${file} is not the file that its mutants were made of`);
    if (isSwitchable(change)) numbered.set(each.mutant, { number: numbered.size + 1, change });
    else alone.push(each);
  }
  const together = planned.filter(({ mutant }) => numbered.has(mutant));
  const address = new URL(`file://${scratch.root}tests/mutants/switch.ts`).href;
  const numberOf = (mutant: Mutant) => numbered.get(mutant)?.number ?? 0;
  try {
    await scratch.write(file, switched(parsed, [...numbered.values()], address));
    for (let from = 0; from < together.length; from += JOBS_MAX) {
      const part = together.slice(from, from + JOBS_MAX);
      const { attempts, spoiled } = await inOneProcess(part, numberOf, scratch);
      for (const each of part) {
        if (spoiled.has(each.mutant)) alone.push(each);
        else await done(each.mutant, attempts.get(each.mutant) ?? NOTHING);
      }
    }
    for (const each of alone) await done(each.mutant, await byItself(each, scratch));
  } finally {
    await scratch.restore(file);
  }
}

const keyOf = ({ start, end, becomes }: Pick<Mutant, "start" | "end" | "becomes">): string =>
  `${start} ${end} ${becomes}`;

/** A mutant in a process that knows no other. */
async function byItself(planned: Planned, scratch: Scratch): Promise<Attempt> {
  const { mutant } = planned;
  await scratch.write(mutant.file, mutated(scratch.text(mutant.file), mutant));
  const { attempts } = await inOneProcess([planned], () => 0, scratch);
  return attempts.get(mutant) ?? NOTHING;
}

interface Together {
  readonly attempts: ReadonlyMap<Mutant, Attempt>;
  /** Mutants whose results don't count, since one of them has left something behind (AT3). */
  readonly spoiled: ReadonlySet<Mutant>;
}

/** One job of a process. */
type Entry =
  | { readonly kind: "mutant"; readonly planned: Planned }
  | { readonly kind: "control"; readonly trial: Surveyed };

/** Mutants in one process after the other: a new one begins where the last has hung or died. */
async function inOneProcess(
  planned: readonly Planned[],
  numberOf: (mutant: Mutant) => number,
  scratch: Scratch,
): Promise<Together> {
  const attempts = new Map<Mutant, Attempt>(), spoiled = new Set<Mutant>();
  const hung = new Map<Mutant, { readonly attempt: Attempt; readonly count: number }>();
  let open = [...planned];
  while (open.length > 0) {
    const entries = planned.length === 1 ? open.map(entryOf) : controlled(open);
    const run = await runJobs(entries, numberOf, scratch);
    const { last } = run, isWhole = run.how === "exited" && run.code === 0;
    if (planned.length > 1 && !isWhole && last === null && run.ended.length === 0) {
      throw new Error(`a file with its mutants does not load: ${run.how}: ${run.errors}`);
    }
    /** Since the last control that found nothing. */
    let suspects: (readonly [Planned, Attempt])[] = [];
    const decided = new Set<Mutant>();
    const keep = (hasSpoiled: boolean) => {
      for (const [{ mutant }, attempt] of suspects) {
        decided.add(mutant);
        if (hasSpoiled) spoiled.add(mutant);
        else attempts.set(mutant, joined(hung.get(mutant)?.attempt, attempt));
      }
      suspects = [];
    };
    for (const [job, entry] of entries.entries()) {
      const ended = run.ended.filter((each) => each.job === job);
      const found = run.findings.find((each) => each.job === job);
      if (entry.kind === "control") {
        if (found !== undefined) keep(true);
        else if (ended.length > 0 && entries[job + 1]?.kind !== "control") keep(false);
        continue;
      }
      const { trials } = entry.planned, isOver = found !== undefined || ended.length === trials.length;
      if (isOver) suspects.push([entry.planned, attemptOf(trials, ended, found)]);
    }
    if (isWhole) {
      keep(false); // Without a control only where one is alone.
      break;
    }
    const stopped = entries[last?.job ?? (planned.length === 1 ? 0 : entries.length)];
    if (stopped?.kind !== "mutant") {
      // It died between two, or in a control: what was not kept by then is spoiled.
      for (const [{ mutant }] of suspects) spoiled.add(mutant);
      if (suspects.length === 0) throw new Error(`trials end without a word: ${run.how}: ${run.errors}`);
      open = open.filter(({ mutant }) => !decided.has(mutant) && !spoiled.has(mutant));
      continue;
    }
    const { mutant, trials } = stopped.planned, at = last?.at ?? 0;
    const by = trials[at] ?? null, before = hung.get(mutant);
    let rest = trials.slice(at + 1);
    if (run.how === "exited") {
      const says = shortened(`fault: ${lastLine(run.errors)}`);
      attempts.set(
        mutant,
        joined(before?.attempt, { ...NOTHING, outcome: "caught", by, says, tried: at + 1 }),
      );
      rest = [];
    } else {
      const attempt = joined(before?.attempt, {
        ...NOTHING,
        outcome: "hung",
        by,
        says: run.how,
        tried: at + 1,
      });
      const count = (before?.count ?? 0) + 1;
      hung.set(mutant, { attempt, count });
      if (count >= HANGS_MAX) rest = [];
      if (rest.length === 0) attempts.set(mutant, attempt);
    }
    // What was not kept is tried again: nobody knows whether it was spoiled.
    open = open.flatMap((each) => {
      if (each.mutant === mutant) return rest.length > 0 ? [{ mutant, trials: rest }] : [];
      return decided.has(each.mutant) ? [] : [each];
    });
  }
  return { attempts, spoiled };
}

const entryOf = (planned: Planned): Entry => ({ kind: "mutant", planned });

/** AT3: after some mutants a trial of each simulator that they were tried on, with nothing broken. */
function controlled(open: readonly Planned[]): Entry[] {
  const entries: Entry[] = [];
  for (let from = 0; from < open.length; from += BETWEEN_CONTROLS) {
    const part = open.slice(from, from + BETWEEN_CONTROLS);
    const trials = new Map(part.flatMap((each) => each.trials).map((trial) => [trial.suite, trial]));
    entries.push(...part.map(entryOf));
    for (const trial of trials.values()) entries.push({ kind: "control", trial });
  }
  return entries;
}

function attemptOf(
  trials: readonly Surveyed[],
  ended: Run["ended"],
  found: Run["findings"][number] | undefined,
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
  readonly findings: readonly { readonly job: number; readonly at: number; readonly says: string }[];
  /** What it had begun last, and not ended. */
  readonly last: { readonly job: number; readonly at: number } | null;
}

async function runJobs(
  entries: readonly Entry[],
  numberOf: (mutant: Mutant) => number,
  scratch: Scratch,
): Promise<Run> {
  const jobs = entries.map((entry): Job =>
    entry.kind === "control"
      ? { number: 0, trials: [pair(entry.trial)] }
      : { number: numberOf(entry.planned.mutant), trials: entry.planned.trials.map(pair) }
  );
  const costOf = (job: number, at: number): number => {
    const entry = entries[job];
    const trial = entry?.kind === "control" ? entry.trial : entry?.planned.trials[at];
    return trial?.cpuMs ?? 0;
  };
  const file = await scratch.note("jobs.json", JSON.stringify(jobs));
  const ended: Run["ended"][number][] = [], findings: Run["findings"][number][] = [];
  let last: Run["last"] = null;
  const { how, code, errors } = await runChild({
    args: ["run", "-A", "--no-check", `${scratch.root}tests/mutants/run_trials.ts`, file],
    cwd: scratch.root,
    cpuMsMax: LOAD_MS,
    onLine: (line, more) => {
      if (!line.startsWith(MARK)) return;
      const said = JSON.parse(line.slice(MARK.length)) as Said;
      if (said.kind === "begins") {
        last = { job: said.job, at: said.at };
        more(costOf(said.job, said.at) * TIMES + SLACK_MS);
      } else if (said.kind === "ended") {
        last = null;
        const { job, at, cpuMs, finding } = said;
        ended.push({ job, at, cpuMs });
        if (finding !== null) findings.push({ job, at, says: `${finding.checker}: ${finding.message}` });
      }
    },
  });
  return { how, code, errors, ended, findings, last };
}

/** Tries a mutant on test files. */
export async function tryTests(
  mutant: Mutant,
  trials: readonly Surveyed[],
  scratch: Scratch,
): Promise<Attempt> {
  if (trials.length === 0) return NOTHING;
  await scratch.write(mutant.file, mutated(scratch.text(mutant.file), mutant));
  try {
    const expectedMs = trials.reduce((sum, { cpuMs }) => sum + cpuMs, 0);
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
