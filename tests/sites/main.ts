/**
 * Runs seeds, and prints those that are wrong: `deno run -A --no-check tests/sites/main.ts FROM TO [PLAN]`.
 * PLAN is one of hard.ts.
 */
import { optionsOf } from "./hard.ts";
import { simulateSites } from "./simulation.ts";

const [from = 0, to = 100] = Deno.args.slice(0, 2).map(Number), plan = Deno.args[2];
const probes: Record<string, number> = {};
let wrong = 0, events = 0;
const begun = performance.now();
for (let seed = from; seed < to; seed++) {
  const run = await simulateSites(seed, {
    ...(plan === undefined ? {} : optionsOf(plan)),
    ...(Deno.env.has("LOGS") ? { logs: console.log } : {}),
  });
  events += run.events;
  for (const [name, count] of Object.entries(run.probes)) probes[name] = (probes[name] ?? 0) + count;
  if (run.violations.length === 0) continue;
  wrong++;
  console.log(`seed ${seed}:`);
  for (const { checker, message } of run.violations.slice(0, 6)) console.log(`  ${checker}: ${message}`);
}
if (Deno.env.has("PROBES")) console.log(JSON.stringify(probes, null, 1));
const s = (performance.now() - begun) / 1000;
console.log(
  `${to - from} seeds, ${wrong} wrong, ${((to - from) / s).toFixed(1)} seeds/s, ${
    Math.round(events / s)
  } events/s`,
);
