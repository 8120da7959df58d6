/**
 * A crash at every place where the code of homes yields, one run each: three sites, one session, a few requests.
 *
 * A point is passed when a process asks its disk for something or has it, sends or hears a packet, or waits for a turn:
 * between two of them nothing that it does can be seen from outside. Up to its crash a run is the run without it.
 */
import { simulateStateful, type StatefulPlan } from "./simulation.ts";

const SMALL = (plan: StatefulPlan): StatefulPlan => ({
  ...plan,
  n: 3,
  f: 1,
  sessions: 1,
  born: 0,
  clients: 2,
  requests: 4,
  safetyMs: 600,
  crashes: 0,
  wipes: 0,
  partitions: 0,
  jumps: 0,
  slow: false,
  lateChance: 0.5,
  mistakes: 0,
  echoChance: 0,
  commitMs: [1, 4],
  delaysMs: [1, 5, 2],
  batchBytes: 40,
  host: { checkpointEvery: 2, restChance: 0.2, moveChance: 0.2, timerMs: 0 },
});

export interface CrashSurvey {
  readonly points: number;
  readonly violations: readonly string[];
  readonly recovered: number;
}

/** Runs a seed once for each point, with a crash there; every n-th with the loss of the disk as well. */
export async function surveyCrashes(
  seed: number,
  options: { readonly every?: number; readonly wipeEvery?: number; readonly second?: number } = {},
): Promise<CrashSurvey> {
  const { every = 1, wipeEvery = 4, second = 0 } = options;
  let points = 0, recovered = 0;
  await simulateStateful(seed, { change: SMALL, passes: (_, point) => count(point) });
  function count(point: string): "goes on" {
    if (point !== "timer") points++;
    return "goes on";
  }
  const violations: string[] = [];
  for (let at = 1; at <= points; at += every) {
    let passed = 0;
    const fate = at % wipeEvery === 0 ? "loses its disk" : "crashes";
    const run = await simulateStateful(seed, {
      change: SMALL,
      passes: (_, point) => {
        if (point === "timer") return "goes on";
        passed++;
        if (passed === at) return fate;
        return second > 0 && passed === at + second ? "crashes" : "goes on";
      },
    });
    recovered += run.probes.recovered ?? 0;
    for (const { checker, message } of run.violations) {
      violations.push(`seed ${seed}, ${fate} at ${at}: ${checker}: ${message}`);
    }
  }
  return { points, violations, recovered };
}
