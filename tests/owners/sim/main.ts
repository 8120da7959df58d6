/**
 * Owners groups in virtual time on seeds of one's own: `deno run -A tests/owners/sim/main.ts [--seeds N] [--seed S]`.
 *
 * One JSON object on standard output; exit 1 where a checker found something, or let too much pass
 * (excuses.ts).
 */
import { parseArgs } from "node:util";
import { excusedTooOften } from "../../sim/excuses.ts";
import { OWNERS_EXCUSES } from "./excuses.ts";
import { simulateOwners } from "./simulation.ts";

const { values } = parseArgs({
  options: { seeds: { type: "string" }, seed: { type: "string" }, help: { type: "boolean" } },
});
if (values.help) {
  console.log("deno run -A tests/owners/sim/main.ts [--seeds N] [--seed S]");
  Deno.exit(0);
}
const first = Number(values.seed ?? 0), count = Number(values.seeds ?? 100);
if (!Number.isSafeInteger(first) || !Number.isSafeInteger(count) || first < 0 || count < 1) {
  console.error("--seeds takes how many, from 1, and --seed the first one, from 0");
  Deno.exit(2);
}
const probes: Record<string, number> = {};
const violations: unknown[] = [];
for (let seed = first; seed < first + count; seed++) {
  const run = await simulateOwners(seed);
  for (const [name, times] of Object.entries(run.probes)) probes[name] = (probes[name] ?? 0) + times;
  if (run.violations.length > 0) violations.push({ seed, plan: run.plan, found: run.violations.slice(0, 5) });
}
const excused = excusedTooOften(OWNERS_EXCUSES, probes, count);
console.log(JSON.stringify({ seed: first, seeds: count, violations, excused, probes }, null, 2));
Deno.exit(violations.length + excused.length > 0 ? 1 : 0);
