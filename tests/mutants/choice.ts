/**
 * Which trials are made of a mutant, and in which order: of those that pass its place, what is likely to notice it first
 * for what it costs.
 *
 * CO1  What caught it before comes first; then tests that name a rule of the mutant's, and those of files that import
 *      its file, the cheap before the dear; then tests of its folder, other tests, simulators; last what needs a process
 *      of its own.
 * CO2  What is left when the time that one mutant is worth has gone is not tried, for each of these by itself; but of
 *      each simulator at least one trial is made, and of tests at least two, however dear.
 * CO3  A simulator's trials are those of middling cost first: in the cheapest little happens.
 */
import type { Surveyed } from "./survey.ts";

/** Trials of a mutant, in the order in which they are made. */
export interface Choice {
  /** Tests and seeds, which many mutants make in one process. */
  readonly shared: readonly Surveyed[];
  /** Whole test files, a process for each mutant. */
  readonly files: readonly Surveyed[];
}

/** Of the processor, for each group. */
const EACH_MS = 3_000;
const TESTS_MIN = 2;
const SEEDS_MIN = 1;

/** How much a test has to do with a mutant. */
export type Kinship = "near" | "folder" | "far";

/**
 * @param kinshipOf of a test or test file
 * @param isFirst whether a trial caught it before
 * @param effort times what a mutant is worth otherwise
 */
export function choiceOf(
  passing: readonly Surveyed[],
  kinshipOf: (trial: Surveyed) => Kinship,
  isFirst: (trial: Surveyed) => boolean,
  effort = 1,
): Choice {
  const budgetMs = EACH_MS * effort;
  const groups = Map.groupBy(passing, (trial) => trial.kind === "simulator" ? trial.kind : kinshipOf(trial));
  const cheapFirst = (kind: Surveyed["kind"], kinship: Kinship) =>
    (groups.get(kinship) ?? []).filter((trial) => trial.kind === kind).sort((a, b) => a.costMs - b.costMs);
  const tests = (["near", "folder", "far"] as const).map((kinship) => cheapFirst("test", kinship));
  const files = (["near", "folder", "far"] as const).flatMap((kinship) => cheapFirst("file", kinship));
  const shared = [
    ...passing.filter((trial) => trial.kind !== "file" && isFirst(trial)),
    ...tests.flatMap((each) => upTo(each, budgetMs)),
    ...simulatorsFirst(groups.get("simulator") ?? [], budgetMs),
  ];
  return { shared: [...new Set(shared)], files: upTo(files, budgetMs) };
}

/** Whether a text names one of these rules. */
export const namesRule = (text: string, rules: readonly string[]): boolean =>
  rules.some((rule) => new RegExp(`\\b${rule.split(" ")[1]}\\b`).test(text));

function upTo(trials: readonly Surveyed[], budgetMs: number): Surveyed[] {
  const chosen: Surveyed[] = [];
  let sum = 0;
  for (const trial of trials) {
    if (chosen.length >= TESTS_MIN && sum + trial.costMs > budgetMs) continue;
    sum += trial.costMs;
    chosen.push(trial);
  }
  return chosen;
}

/** Simulators take turns, the cheapest first. */
function simulatorsFirst(trials: readonly Surveyed[], budgetMs: number): Surveyed[] {
  const queues = [...Map.groupBy(trials, ({ suite }) => suite).values()]
    .map((each) => middleFirst(each.toSorted((a, b) => a.costMs - b.costMs)))
    .sort((a, b) => mean(a) - mean(b));
  const chosen: Surveyed[] = [];
  let sum = 0;
  for (let round = 0; queues.some((queue) => queue.length > round); round++) {
    for (const queue of queues) {
      const trial = queue[round];
      if (trial === undefined || (round >= SEEDS_MIN && sum + trial.costMs > budgetMs)) continue;
      sum += trial.costMs;
      chosen.push(trial);
    }
  }
  return chosen;
}

const mean = (trials: readonly Surveyed[]): number =>
  trials.reduce((sum, { costMs }) => sum + costMs, 0) / Math.max(1, trials.length);

/** CO3: the middle of a list, then the middles of its halves, and so on. */
function middleFirst<T>(sorted: readonly T[]): T[] {
  const out: T[] = [], ranges: (readonly [number, number])[] = [[0, sorted.length]];
  for (const [from, to] of ranges) {
    if (from >= to) continue;
    const middle = (from + to) >> 1;
    out.push(...sorted.slice(middle, middle + 1));
    ranges.push([middle + 1, to], [from, middle]);
  }
  return out;
}
