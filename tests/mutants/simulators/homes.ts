/** Homes of stateful sessions (tests/stateful/sim), with the plans of the broken variants and nothing broken. */
import { VARIANTS } from "../../stateful/sim/broken.ts";
import { STATE_VARIANTS } from "../../stateful/sim/broken_states.ts";
import { simulateStateful, type StatefulPlan } from "../../stateful/sim/simulation.ts";
import { firstOf, seeded, type Simulator } from "./simulator.ts";

type Change = (plan: StatefulPlan) => StatefulPlan;

const hard = new Map<string, Change>();
for (const { name, change } of [...VARIANTS, ...STATE_VARIANTS]) {
  if (change !== undefined && ![...hard.values()].includes(change)) hard.set(name, change);
}

export const simulator: Simulator = seeded<Change>(
  { seeds: 60, hard, hardSeeds: 4 },
  async (seed, change) => {
    const { violations } = await simulateStateful(seed, change === null ? {} : { change });
    return firstOf(violations);
  },
);
