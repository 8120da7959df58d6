/** Trees of replicas (tests/sim), with the plans of the broken variants and nothing broken, and the scenes of crashes. */
import { openReplica } from "../../../store/replica.ts";
import { crashAt } from "../../sim/crash_survey.ts";
import { SCENARIOS } from "../../sim/scenarios.ts";
import { simulate } from "../../sim/simulation.ts";
import type { Plan } from "../../sim/topology.ts";
import { VARIANTS } from "../../sim/variants.ts";
import { firstOf, seeded, type Simulator } from "./simulator.ts";

type Change = (plan: Plan) => Plan;

const hard = new Map<string, Change>();
for (const { name, change } of VARIANTS) {
  if (change !== undefined && ![...hard.values()].some((each) => String(each) === String(change))) {
    hard.set(name, change);
  }
}
const seeds = seeded<Change>({ seeds: 60, hard, hardSeeds: 2 }, async (seed, change) => {
  const { violations } = await simulate({ seed, open: openReplica, ...(change === null ? {} : { change }) });
  return firstOf(violations);
});

/** Crossings of each scenario at which a site crashes, from all over it. */
const CROSSINGS = [15, 60, 120, 240, 480];
const scenes = new Map(
  SCENARIOS.flatMap((scenario) =>
    CROSSINGS.map((crossing) => [`${scenario.name}/${crossing}`, { scenario, crossing }])
  ),
);

export const simulator: Simulator = {
  trials: [...seeds.trials, ...scenes.keys()],
  run: async (trial) => {
    const scene = scenes.get(trial);
    if (scene === undefined) return await seeds.run(trial);
    return firstOf(await crashAt(scene.scenario, scene.crossing, openReplica));
  },
};
