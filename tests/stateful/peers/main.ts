/** Many seeds: `deno run -A tests/stateful/peers/main.ts --seeds 10000 [--first N] [--seed NAME]`. */
import { parseArgs } from "node:util";
import { inMacrotask } from "../../functions/sessions/turn/run.ts";
import { runSeed } from "./run.ts";

const { values } = parseArgs({
  options: {
    seeds: { type: "string", default: "1000" },
    first: { type: "string", default: "0" },
    seed: { type: "string" },
  },
});
const seeds = values.seed === undefined
  ? Array.from({ length: Number(values.seeds) }, (_, i) => `${Number(values.first) + i}`)
  : [values.seed];
const probes: Record<string, number> = {};
let wrong = 0;
const beginMs = performance.now();
for (const seed of seeds) {
  const outcome = await inMacrotask(() => runSeed(seed));
  for (const [name, count] of Object.entries(outcome.probes)) probes[name] = (probes[name] ?? 0) + count;
  if (outcome.wrong.length === 0) continue;
  wrong++;
  console.log(`seed ${seed}: ${outcome.wrong.slice(0, 3).join("; ")}`);
}
console.log(
  JSON.stringify({ seeds: seeds.length, wrong, probes, ms: Math.round(performance.now() - beginMs) }),
);
if (wrong > 0) Deno.exit(1);
