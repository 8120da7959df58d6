/** Whole sites with stateful sessions (tests/sites), its hard plans, and those of the broken variants, unbroken. */
import { VARIANTS } from "../../sites/broken.ts";
import { HARD, optionsOf } from "../../sites/hard.ts";
import { simulateSites } from "../../sites/simulation.ts";
import { firstOf, seeded, type Simulator } from "./simulator.ts";

const names = [...Object.keys(HARD), ...VARIANTS.map(({ name }) => name)];
const hard = new Map(names.map((name) => [name, () => optionsOf(name)] as const));

export const simulator: Simulator = seeded({ seeds: 30, hard, hardSeeds: 2 }, async (seed, options) => {
  const { violations } = await simulateSites(seed, options?.() ?? {});
  return firstOf(violations);
});
