/**
 * Which trials are made of a mutant, and in which order: of those that pass its place, what is likely to notice it first
 * for what it costs.
 *
 * CO1  Simulators first, since hundreds of mutants share a process there and a seed costs a tenth of a test file; then
 *      test files, those that import the mutant's file before the others, the cheap before the dear.
 * CO2  What is left when the time that one mutant is worth has gone is not tried; but of each simulator at least two
 *      trials are made, and at least two test files, however dear.
 * CO3  A simulator's trials are those of middling cost first: in the cheapest little happens.
 */
import type { Surveyed } from "./survey.ts";

/** Trials of a mutant, in the order in which they are made. */
export interface Choice {
  readonly simulators: readonly Surveyed[];
  readonly tests: readonly Surveyed[];
}

/** Of the processor, for each of both. */
const EACH_MS = 3_000;
const EACH_MIN = 2;

/**
 * @param isNear whether a test file imports the mutant's file
 * @param effort times what a mutant is worth otherwise
 */
export function choiceOf(
  passing: readonly Surveyed[],
  isNear: (test: string) => boolean,
  effort = 1,
): Choice {
  const tests = passing.filter(({ kind }) => kind === "test")
    .sort((a, b) => Number(isNear(b.suite)) - Number(isNear(a.suite)) || a.cpuMs - b.cpuMs);
  const simulated = passing.filter(({ kind }) => kind === "simulator");
  return { simulators: simulatorsFirst(simulated, EACH_MS * effort), tests: upTo(tests, EACH_MS * effort) };
}

function upTo(trials: readonly Surveyed[], cpuMs: number): Surveyed[] {
  const chosen: Surveyed[] = [];
  let sum = 0;
  for (const trial of trials) {
    if (chosen.length >= EACH_MIN && sum + trial.cpuMs > cpuMs) continue;
    sum += trial.cpuMs;
    chosen.push(trial);
  }
  return chosen;
}

/** Simulators take turns, the cheapest first. */
function simulatorsFirst(trials: readonly Surveyed[], cpuMsMax: number): Surveyed[] {
  const queues = [...Map.groupBy(trials, ({ suite }) => suite).values()]
    .map((each) => middleFirst(each.toSorted((a, b) => a.cpuMs - b.cpuMs)))
    .sort((a, b) => mean(a) - mean(b));
  const chosen: Surveyed[] = [];
  let sum = 0;
  for (let round = 0; queues.some((queue) => queue.length > round); round++) {
    for (const queue of queues) {
      const trial = queue[round];
      if (trial === undefined || (round >= EACH_MIN && sum + trial.cpuMs > cpuMsMax)) continue;
      sum += trial.cpuMs;
      chosen.push(trial);
    }
  }
  return chosen;
}

const mean = (trials: readonly Surveyed[]): number =>
  trials.reduce((sum, { cpuMs }) => sum + cpuMs, 0) / Math.max(1, trials.length);

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
