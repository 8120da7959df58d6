/** Homes and those attached to them (tests/stateful/peers), with what its broken variants are biased to. */
import { type Plan, runSeed } from "../../stateful/peers/run.ts";
import { variants } from "../../stateful/peers/variants.ts";
import { inMacrotask } from "../../functions/sessions/turn/run.ts";
import { firstText, seeded, type Simulator } from "./simulator.ts";

const hard = new Map<string, Partial<Plan>>();
for (const { name, bias } of variants) if (![...hard.values()].includes(bias)) hard.set(name, bias);

export const simulator: Simulator = seeded<Partial<Plan>>(
  { seeds: 100, hard, hardSeeds: 6 },
  async (seed, bias) => {
    const { wrong } = await inMacrotask(() => runSeed(`${seed}`, {}, bias ?? {}));
    return firstText(wrong, "peers");
  },
);
