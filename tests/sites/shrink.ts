/**
 * Makes a failing run of whole sites small: first what there is of people and of faults of sessions, then the tree, its
 * clients and its faults, as the store's simulator does (tests/sim/shrink.ts). Kept is every change after which a checker
 * of the same name still says something.
 */
import { shrink, type Shrunk } from "../sim/shrink.ts";
import type { Violation } from "./checker.ts";
import type { SitesPlan } from "./plan.ts";
import { simulateSites, type SitesOptions } from "./simulation.ts";

/** What came of it. */
export interface ShrunkSites extends Omit<Shrunk, "plan"> {
  readonly plan: SitesPlan;
}

/** What a run can do without, in the order in which it makes one hard to read. */
const WITHOUT: readonly Partial<SitesPlan>[] = [
  ...[{ devices: 0 }, { plain: 0 }, { callers: 0 }, { callChance: 0 }, { classes: ["whole"] }] as const,
  ...[{ kills: 0 }, { stands: 0 }, { deploys: 0 }, { moves: 0 }, { moveAtOnce: 0 }, { arbiters: 0 }],
  ...[{ roams: 0 }, { cuts: 0 }, { originBreaks: 0 }, { originLeaves: 0 }, { deaths: 0 }, { closes: 0 }],
  ...[{ echoChance: 0 }, { mistakes: 0 }, { hasStandbys: false }, { isAhead: false }, { breaks: 0 }, {
    garbles: 0,
  }],
  ...[{ messages: 10 }, { messages: 5 }, { messages: 2 }, { requests: 2 }, { requests: 1 }, { devices: 1 }],
];

/** Shrinks a failing run; null where it does not fail. */
export async function shrinkSites(
  seed: number,
  options: SitesOptions,
  say: (text: string) => void,
): Promise<ShrunkSites | null> {
  let runs = 0;
  const run = (plan: SitesPlan) => {
    runs++;
    return simulateSites(seed, { ...options, change: () => plan });
  };
  const first = await simulateSites(seed, options);
  const [violation] = first.violations;
  if (violation === undefined) return null;
  const isSame = (violations: readonly Violation[]) =>
    violations.some(({ checker }) => checker === violation.checker);
  let { plan } = first;
  for (const without of WITHOUT) {
    const changed = { ...plan, ...without };
    if (JSON.stringify(changed) === JSON.stringify(plan)) continue;
    if (isSame((await run(changed)).violations)) plan = changed;
  }
  say(`${runs} runs: ${plan.classes.length} sessions, ${plan.devices} devices, ${plan.callers} callers`);
  const shrunk = await shrink({
    plan: plan.store,
    say,
    run: async (store) => {
      const { violations, faults } = await run({ ...plan, store });
      // The shrinker goes by the first.
      const same = violations.filter(({ checker }) => checker === violation.checker);
      return { faults, violations: same.map((one) => ({ atMs: 0, ...one })) };
    },
  });
  if (shrunk === null) return { plan, violation: { atMs: 0, ...violation }, runs };
  return { ...shrunk, plan: { ...plan, store: shrunk.plan }, runs };
}
