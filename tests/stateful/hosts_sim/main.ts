/**
 * Runs seeds by hand: `deno run -A tests/stateful/hosts_sim/main.ts SEEDS [FIRST]`; with LOG in the environment, what
 * happened in them.
 */
import { simulateHosts } from "./simulation.ts";

const [seeds = 100, first = 0] = Deno.args.map(Number);
const options = Deno.env.has("LOG") ? { log: console.log } : {};
const probes: Record<string, number> = {};
let wrong = 0;
for (let seed = first; seed < first + seeds; seed++) {
  const run = await simulateHosts(seed, options);
  for (const [name, count] of Object.entries(run.probes)) probes[name] = (probes[name] ?? 0) + count;
  if (run.violations.length > 0) wrong++;
  for (const { checker, message } of run.violations.slice(0, 3)) {
    console.log(`seed ${seed}: ${checker}: ${message}`);
  }
}
console.log(JSON.stringify({ seeds, first, wrong, probes }, null, 1));
