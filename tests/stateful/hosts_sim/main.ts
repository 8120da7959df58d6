/** Runs seeds by hand: `deno run -A tests/stateful/hosts_sim/main.ts SEEDS [FIRST]`. */
import { simulateHosts } from "./simulation.ts";

const [seeds = 100, first = 0] = Deno.args.map(Number);
const probes: Record<string, number> = {};
let violations = 0;
for (let seed = first; seed < first + seeds; seed++) {
  const run = await simulateHosts(seed);
  for (const [name, count] of Object.entries(run.probes)) probes[name] = (probes[name] ?? 0) + count;
  for (const { checker, message } of run.violations.slice(0, 3)) {
    violations++;
    console.log(`seed ${seed}: ${checker}: ${message}`);
  }
}
console.log(JSON.stringify({ seeds, violations, probes }, null, 1));
