/** The executor of stateful sessions (tests/functions/sessions/turn), with what its broken variants are biased to and nothing broken. */
import { type Bias, inMacrotask, runSeed } from "../../functions/sessions/turn/run.ts";
import { variants } from "../../functions/sessions/turn/variants.ts";
import { firstText, seeded, type Simulator } from "./simulator.ts";

const hard = new Map<string, Bias>();
for (const { name, bias } of variants) {
  if (bias !== undefined && ![...hard.values()].includes(bias)) hard.set(name, bias);
}

export const simulator: Simulator = seeded<Bias>({ seeds: 100, hard, hardSeeds: 6 }, async (seed, bias) => {
  const { wrong } = await inMacrotask(() => runSeed(`${seed}`, {}, bias ?? {}));
  return firstText(wrong, "turns");
});
