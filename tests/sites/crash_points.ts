/**
 * A fault at every step of a small run, one run each: the process that takes the step dies, whichever it is (home, owner,
 * standby, gateway, root), or the channel of a client, or of an origin, breaks with that frame. Up to there a run is the
 * run without it.
 */
import { type Fate, simulateSites } from "./simulation.ts";
import { faulty, type SitesPlan, star } from "./plan.ts";

/** Three sites, one session that is followed, two clients, its origin, a few of everything. */
export const small = (plan: SitesPlan): SitesPlan => {
  const changed: SitesPlan = {
    ...plan,
    ...{ classes: ["whole"], devices: 1, plain: 0, callers: 1, messages: 4, requests: 1, callChance: 0.5 },
    ...{ kills: 0, stands: 0, moves: 1, deploys: 0, moveAtOnce: 0, roams: 1, cuts: 0, originBreaks: 0 },
    ...{
      originLeaves: 0,
      deaths: 0,
      closes: 0,
      echoChance: 0,
      mistakes: 0,
      hasStandbys: true,
      idleMs: 60_000,
    },
    ...{ delayMs: 5, breaks: 0, garbles: 0, ops: ["echo", "all", "origin", "post", "put", "set", "get"] },
    store: { ...plan.store, requests: 3, safetyMs: 400, lateChance: 0.5, downMs: [400, 600] },
  };
  return faulty(star(changed, { delaysMs: [1, 5, 2], commitMs: [1, 4], f: 1 }));
};

/** What was looked at, and what was wrong. */
export interface Survey {
  readonly points: number;
  readonly recovered: number;
  readonly violations: readonly string[];
}

/** Timers say nothing to anybody by themselves. */
const isStep = (point: string): boolean => point !== "timer due" && point !== "turn begins";

/** Runs a seed once for each step, or every so manyth of them, with a fault there. */
export async function survey(
  seed: number,
  { every, first = 1 }: { readonly every: number; readonly first?: number },
): Promise<Survey> {
  let points = 0, recovered = 0;
  const violations: string[] = [];
  const count = (point: string): Fate => {
    if (isStep(point)) points++;
    return "goes on";
  };
  await simulateSites(seed, { change: small, passes: (_, point) => count(point) });
  for (let at = first; at <= points; at += every) {
    let passed = 0;
    const run = await simulateSites(seed, {
      change: small,
      passes: (site, point) => {
        if (!isStep(point) || ++passed !== at) return "goes on";
        return site === null ? "breaks" : "crashes";
      },
    });
    recovered += run.probes["recovered"] ?? 0;
    for (const { checker, message } of run.violations) {
      violations.push(`seed ${seed}, at ${at}: ${checker}: ${message}`);
    }
  }
  return { points, recovered, violations };
}
