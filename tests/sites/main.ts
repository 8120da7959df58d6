/**
 * Runs seeds, and prints those that are wrong: `deno task sim:sites FROM TO [PLAN]`.
 * PLAN is one of hard.ts, or "drawn". With `--first` it ends with the first of them, as a line of JSON; `null`: there is
 * none. With `--shrink` FROM is made as small as it gets and prints what is left of it, with its history.
 */
import { optionsOf } from "./hard.ts";
import { printTrace } from "../sim/trace.ts";
import { shrinkSites } from "./shrink.ts";
import { simulateSites } from "./simulation.ts";

const isFirst = Deno.args.includes("--first");
const [from = "0", to = "100", plan] = Deno.args.filter((arg) => !arg.startsWith("--"));
if (!(Number.isSafeInteger(Number(from)) && Number.isSafeInteger(Number(to)))) {
  console.error(`FROM and TO are seeds, whole numbers, and not ${from} and ${to}`);
  Deno.exit(2);
}
if (!Deno.args.includes("--shrink") && Number(to) <= Number(from)) {
  console.error(`TO (${to}) is the seed after the last, and lies after FROM (${from})`);
  Deno.exit(2);
}
const chosen = () => plan === undefined || plan === "drawn" ? {} : optionsOf(plan);
if (Deno.args.includes("--shrink")) {
  const say = (text: string) => console.error(text);
  const shrunk = await shrinkSites(Number(from), chosen(), say);
  if (shrunk !== null) {
    const run = await simulateSites(Number(from), { ...chosen(), change: () => shrunk.plan });
    const violations = run.violations.map((one) => ({ atMs: 0, ...one }));
    printTrace({ ...run, plan: run.plan.store, violations }, (line) => console.log(line));
    console.log(JSON.stringify({ ...shrunk.plan, store: { ...shrunk.plan.store, sites: undefined } }));
  } else say(`seed ${from} does not fail`);
  Deno.exit(shrunk === null ? 0 : 1);
}
const probes: Record<string, number> = {};
let wrong = 0, events = 0;
const begun = performance.now();
for (let seed = Number(from); seed < Number(to); seed++) {
  const run = await simulateSites(seed, {
    ...chosen(),
    ...(Deno.env.has("LOGS") ? { logs: console.log } : {}),
  });
  events += run.events;
  for (const [name, count] of Object.entries(run.probes)) probes[name] = (probes[name] ?? 0) + count;
  const [first] = run.violations;
  if (first === undefined) continue;
  wrong++;
  if (isFirst) {
    const checkers = run.violations.map(({ checker }) => checker);
    console.log(JSON.stringify({ seed, checkers, message: first.message }));
    Deno.exit();
  }
  console.log(`seed ${seed}:`);
  for (const { checker, message } of run.violations.slice(0, 6)) console.log(`  ${checker}: ${message}`);
}
if (isFirst) console.log("null");
else {
  if (Deno.env.has("PROBES")) console.log(JSON.stringify(probes, null, 1));
  const seeds = Number(to) - Number(from), s = (performance.now() - begun) / 1000;
  console.log(
    `${seeds} seeds, ${wrong} wrong, ${(seeds / s).toFixed(1)} a second, ${Math.round(events / s)} events`,
  );
}
