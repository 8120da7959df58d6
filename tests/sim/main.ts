/**
 * `deno task sim`: see {@link USAGE}; docs/testing.md tells the rest.
 *
 * Runs seeds S … S+N−1 (0 … N−1 without --seed) and prints as JSON:
 * `{seeds, violations: [{seed, checker, message}], probes, missed, excused, variants: [{name, caught}], ms}`; progress goes
 * to stderr. `--seed S` alone reproduces one run; `-v` prints its history as it happened. Exits with 1 on a
 * violation, on a rare path that {@link PROBE_SEEDS} or more seeds never reached, on what checkers let pass too often
 * (excuses.ts), and on a broken variant that no checker caught.
 */
import { openReplica } from "../../store/replica.ts";
import { crashEverywhere } from "./crash_survey.ts";
import { endure } from "./endurance.ts";
import { excusedTooOften, STORE_EXCUSES } from "./excuses.ts";
import { PROBE_SEEDS, silentProbes } from "./expected_probes.ts";
import type { Violation } from "./history.ts";
import { type Options, parseOptions, USAGE } from "./options.ts";
import { Probes } from "./probes.ts";
import { changedPlan, planChanges, shrink } from "./shrink.ts";
import { simulate } from "./simulation.ts";
import { drawPlan, type Plan } from "./topology.ts";
import { printTrace } from "./trace.ts";
import { hunt, VARIANTS } from "./variants.ts";

/** The report's violations are for reading: the rest of a run that went wrong follows from the first few. */
const VIOLATIONS_PER_SEED = 5;
/** Seeds that a broken variant gets before it counts as not caught. */
const VARIANT_SEEDS_MAX = 400;

const say = (text: string) => console.error(text);

/** Errors that no one awaited, in the code under test: they belong to the seed that runs. */
class Strays {
  readonly #caught: Violation[] = [];

  constructor() {
    globalThis.addEventListener("unhandledrejection", (event) => {
      event.preventDefault();
      const { reason } = event;
      const message = reason instanceof Error ? reason.stack ?? reason.message : String(reason);
      this.#caught.push({ checker: "fault", message: `unhandled: ${message}`, atMs: 0 });
    });
  }

  take(): Violation[] {
    return this.#caught.splice(0);
  }
}

/** What a seed's run is made from. */
function planOf(options: Options, seed: number): Plan {
  const drawn = drawPlan(seed, options.sites ?? undefined);
  return options.plan === null ? drawn : changedPlan(drawn, options.plan);
}

async function runSeeds(options: Options, strays: Strays, probes: Probes) {
  const violations: { seed: number; checker: string; message: string }[] = [];
  const started = performance.now();
  let saidMs = started;
  for (let seed = options.first; seed < options.first + options.count; seed++) {
    const result = await simulate({ seed, open: openReplica, change: () => planOf(options, seed) });
    probes.add(result.probes);
    if (options.isVerbose) printTrace(result, say);
    const found = [...strays.take(), ...result.violations];
    for (const { checker, message } of found.slice(0, VIOLATIONS_PER_SEED)) {
      violations.push({ seed, checker, message });
      say(`seed ${seed}: ${checker}: ${message}`);
    }
    if (performance.now() - saidMs < 10_000) continue;
    saidMs = performance.now();
    const done = seed - options.first + 1;
    say(`${done} of ${options.count} seeds, ${(done / (saidMs - started) * 1000).toFixed(1)} a second`);
  }
  return violations;
}

async function runVariants(options: Options, strays: Strays) {
  const variants: { name: string; caught: boolean }[] = [];
  const chosen = VARIANTS.filter(({ name }) => options.variant === null || options.variant === name);
  if (chosen.length === 0) {
    throw new Error(
      `there is no variant '${options.variant}', but ${VARIANTS.map(({ name }) => name).join("; ")}`,
    );
  }
  for (const variant of chosen) {
    const caught = await hunt(variant, VARIANT_SEEDS_MAX);
    strays.take();
    const how = caught === null ? "NOT CAUGHT" : `seed ${caught.seed}: ${caught.checker}: ${caught.message}`;
    say(`${variant.name}: ${how}`);
    variants.push({ name: variant.name, caught: caught !== null });
  }
  return variants;
}

async function runShrink(options: Options): Promise<number> {
  const seed = options.first;
  const variant = VARIANTS.find(({ name }) => name === options.variant);
  if (variant === undefined && options.variant !== null) {
    throw new Error(`there is no variant '${options.variant}'`);
  }
  const drawn = drawPlan(seed, options.sites ?? undefined);
  const plan = planOf(options, seed);
  const run = (plan: Plan) => simulate({ seed, open: variant?.make() ?? openReplica, change: () => plan });
  const shrunk = await shrink({
    run,
    // A plan that was given has what the variant changes in it.
    plan: options.plan === null ? variant?.change?.(plan) ?? plan : plan,
    say,
  });
  if (shrunk === null) {
    say(`seed ${seed} does not fail`);
    return 0;
  }
  const { runs, violation } = shrunk;
  if (options.isVerbose) {
    printTrace(await run(shrunk.plan), say);
  }
  const sites = options.sites === null ? "" : ` --sites ${options.sites}`;
  const how = variant === undefined ? "-v" : `-v --shrink --variant "${variant.name}"`;
  const command = `deno task sim --seed ${seed}${sites} ${how} --plan '${planChanges(drawn, shrunk.plan)}'`;
  console.log(
    JSON.stringify({ seed, checker: violation.checker, message: violation.message, runs, command }),
  );
  say(command);
  return 1;
}

async function main(args: readonly string[]): Promise<number> {
  const options = parseOptions(args);
  const strays = new Strays();
  const started = performance.now();
  if (options.shrinks) return await runShrink(options);
  if (options.hours > 0) return await endure(options.hours, options.first, say);
  if (options.crashPoints !== null) return await crashEverywhere(options.crashPoints, options.isVerbose, say);
  const probes = new Probes();
  const violations = await runSeeds(options, strays, probes);
  const variants = options.runsVariants ? await runVariants(options, strays) : [];
  const { missed, seldom } = silentProbes(probes.all());
  const isFull = options.count >= PROBE_SEEDS && options.plan === null && options.sites === null;
  for (const name of isFull ? missed : []) say(`never reached in ${options.count} seeds: ${name}`);
  const ms = Math.round(performance.now() - started);
  const excused = isFull ? excusedTooOften(STORE_EXCUSES, probes.all(), options.count) : [];
  for (const name of excused) say(`more often than it may be in ${options.count} seeds: ${name}`);
  const silent = isFull ? { missed, seldom, excused } : {};
  console.log(
    JSON.stringify({ seeds: options.count, violations, probes: probes.all(), ...silent, variants, ms }),
  );
  const isBad = violations.length > 0 || (isFull && missed.length > 0) ||
    excused.length > 0 || variants.some(({ caught }) => !caught);
  return isBad ? 1 : 0;
}

if (import.meta.main) {
  try {
    if (Deno.args.includes("--help")) console.log(USAGE);
    else Deno.exit(await main(Deno.args));
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    say(error.message.includes("\n") ? error.message : `${error.message}\n${USAGE}`);
    Deno.exit(2);
  }
}
