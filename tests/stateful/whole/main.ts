/**
 * Runs seeds, and prints those that are wrong: `deno run -A --no-check tests/stateful/whole/main.ts FROM TO [PLAN]`.
 * PLAN is one of hard.ts.
 */
import { optionsOf } from "./hard.ts";
import { simulateWhole } from "./simulation.ts";

const [from = 0, to = 100] = Deno.args.slice(0, 2).map(Number), plan = Deno.args[2];
const probes: Record<string, number> = {};
let wrong = 0;
for (let seed = from; seed < to; seed++) {
  const run = await simulateWhole(seed, {
    ...(plan === undefined ? {} : optionsOf(plan)),
    ...(Deno.env.has("LOGS") ? { logs: console.log } : {}),
  });
  for (const [name, count] of Object.entries(run.probes)) probes[name] = (probes[name] ?? 0) + count;
  if (run.violations.length === 0) continue;
  wrong++;
  console.log(`seed ${seed}:`);
  for (const { checker, message } of run.violations.slice(0, 6)) console.log(`  ${checker}: ${message}`);
}
console.log(JSON.stringify(probes, null, 1));
console.log(`${to - from} seeds, ${wrong} wrong`);
