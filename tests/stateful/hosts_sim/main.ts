/**
 * Runs seeds by hand: `deno run -A tests/stateful/hosts_sim/main.ts SEEDS [FIRST] [PLAN]`; with LOG in the environment,
 * what happened in them. PLAN: one of the hard ones (hard.ts), or the one in which a broken variant is found
 * (broken.ts), by a part of its name; `hard`: each of these. Nothing is broken. Exit 1 where something is wrong, or too
 * much was let pass (excuses.ts).
 */
import { excusedTooOften } from "../../sim/excuses.ts";
import { VARIANTS } from "./broken.ts";
import { HOSTS_EXCUSES } from "./excuses.ts";
import { HARD_PLANS } from "./hard.ts";
import { type HostsOptions, simulateHosts } from "./simulation.ts";

type Change = NonNullable<HostsOptions["change"]>;

const HARD_PER_HUNDRED = 2_000;

/** Of variants that share a plan the first one's name stands for it. */
function hardPlans(): Map<string, Change> {
  const plans = new Map(Object.entries(HARD_PLANS));
  const seen = new Set<string>(plans.values().map(String));
  for (const { name, change } of VARIANTS) {
    if (!seen.has(String(change))) plans.set(`variant: ${name}`, change);
    seen.add(String(change));
  }
  return plans;
}

async function runSeeds(name: string, seeds: number, first: number, change: Change): Promise<number> {
  const log = Deno.env.has("LOG") ? { log: console.log } : {};
  const probes: Record<string, number> = {};
  let wrong = 0;
  for (let seed = first; seed < first + seeds; seed++) {
    const run = await simulateHosts(seed, { ...log, change });
    for (const [name, count] of Object.entries(run.probes)) probes[name] = (probes[name] ?? 0) + count;
    if (run.violations.length > 0) wrong++;
    for (const { checker, message } of run.violations.slice(0, 3)) {
      console.log(`seed ${seed}, ${name}: ${checker}: ${message}`);
    }
  }
  // Hard plans want more of what is let pass.
  const bound = name === "ordinary"
    ? HOSTS_EXCUSES
    : HOSTS_EXCUSES.map((one) => ({ ...one, perHundred: HARD_PER_HUNDRED }));
  const excused = excusedTooOften(bound, probes, seeds);
  console.log(JSON.stringify({ name, seeds, first, wrong, excused, probes }));
  return wrong + excused.length;
}

const [seeds = 100, first = 0] = Deno.args.slice(0, 2).map(Number), wanted = Deno.args[2];
let found = 0;
if (wanted === undefined) found = await runSeeds("ordinary", seeds, first, (plan) => plan);
else {
  for (const [name, change] of hardPlans()) {
    if (wanted === "hard" || name.includes(wanted)) found += await runSeeds(name, seeds, first, change);
  }
}
Deno.exit(found > 0 ? 1 : 0);
