/**
 * Runs seeds by hand: `deno run -A tests/stateful/sim/main.ts SEEDS [FIRST]`; exit 1 where something is wrong, or too
 * much was let pass (excuses.ts).
 */
import { excusedTooOften } from "../../sim/excuses.ts";
import { HOMES_EXCUSES } from "./excuses.ts";
import { simulateStateful } from "./simulation.ts";

const [seeds = 100, first = 0] = Deno.args.map(Number);
const probes: Record<string, number> = {};
let violations = 0, events = 0;
for (let seed = first; seed < first + seeds; seed++) {
  const run = await simulateStateful(seed);
  events += run.events;
  for (const [name, count] of Object.entries(run.probes)) probes[name] = (probes[name] ?? 0) + count;
  for (const { checker, message } of run.violations.slice(0, 3)) {
    violations++;
    console.log(`seed ${seed}: ${checker}: ${message}`);
  }
}
const excused = excusedTooOften(HOMES_EXCUSES, probes, seeds);
console.log(JSON.stringify({ seeds, violations, excused, events, probes }, null, 1));
Deno.exit(violations + excused.length > 0 ? 1 : 0);
