/** Groups of owners (tests/owners/sim), with the plans of the broken variants and nothing broken. */
import { VARIANTS } from "../../owners/sim/broken.ts";
import { type OwnersPlan, simulateOwners } from "../../owners/sim/simulation.ts";
import { firstOf, seeded, type Simulator } from "./simulator.ts";

type Change = (plan: OwnersPlan) => OwnersPlan;

const hard = new Map<string, Change>();
for (const { name, change } of VARIANTS) if (![...hard.values()].includes(change)) hard.set(name, change);

export const simulator: Simulator = seeded<Change>(
  { seeds: 30, hard, hardSeeds: 2 },
  async (seed, change) => {
    const { violations } = await simulateOwners(seed, change === null ? {} : { change });
    return firstOf(violations);
  },
);
