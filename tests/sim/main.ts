/**
 * `deno task sim --seeds N [--seed S] [--variants] [--json] [-v]`
 *
 * Runs seeds S … S+N−1 (0 … N−1 without --seed) and prints as JSON:
 * `{seeds, violations: [{seed, checker, message}], probes, variants: [{name, caught}], ms}`; progress goes to
 * stderr. `--seed S` alone reproduces one run; `-v` prints its history as it happened. Exits non-zero on a
 * violation and on a broken variant that no checker caught.
 */
import { openReplica } from "../../store/replica.ts";
import type { Violation } from "./history.ts";
import { Probes } from "./probes.ts";
import { simulate } from "./simulation.ts";
import { printTrace } from "./trace.ts";
import { hunt, VARIANTS } from "./variants.ts";

interface Options {
  readonly first: number;
  readonly count: number;
  readonly isVerbose: boolean;
  readonly runsVariants: boolean;
  readonly only: string | null;
}

/** The report's violations are for reading: the rest of a run that went wrong follows from the first few. */
const VIOLATIONS_PER_SEED = 5;
/** Seeds that a broken variant gets before it counts as not caught. */
const VARIANT_SEEDS_MAX = 400;
const USAGE = "deno task sim --seeds N [--seed S] [--variants] [--variant NAME] [--json] [-v]";

function parseOptions(args: readonly string[]): Options {
  const flags = new Map<string, string>();
  for (let i = 0; i < args.length; i++) {
    const [name = "", inline] = (args[i] ?? "").split("=");
    if (["--seeds", "--seed", "--variant"].includes(name)) flags.set(name, inline ?? args[++i] ?? "");
    else if (["--variants", "--json", "-v"].includes(name)) flags.set(name, "");
    else throw new Error(`cannot take '${args[i]}': ${USAGE}`);
  }
  const number = (name: string, otherwise: number) => {
    const text = flags.get(name);
    if (text === undefined) return otherwise;
    if (!/^\d{1,9}$/.test(text)) {
      throw new Error(`${name} needs a number below a thousand million, not '${text}'`);
    }
    return Number(text);
  };
  const isSingle = flags.has("--seed") && !flags.has("--seeds");
  return {
    first: number("--seed", 0),
    count: number("--seeds", isSingle ? 1 : flags.has("--variants") || flags.has("--variant") ? 0 : 200),
    isVerbose: flags.has("-v"),
    runsVariants: flags.has("--variants") || flags.has("--variant"),
    only: flags.get("--variant") ?? null,
  };
}

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

async function main(): Promise<number> {
  const options = parseOptions(Deno.args);
  const strays = new Strays();
  const started = performance.now();
  const probes = new Probes();
  const violations: { seed: number; checker: string; message: string }[] = [];
  const say = (text: string) => console.error(text);
  for (let seed = options.first; seed < options.first + options.count; seed++) {
    const result = await simulate({ seed, open: openReplica });
    probes.add(result.probes);
    if (options.isVerbose) printTrace(result, say);
    const found = [...strays.take(), ...result.violations];
    for (const { checker, message } of found.slice(0, VIOLATIONS_PER_SEED)) {
      violations.push({ seed, checker, message });
      say(`seed ${seed}: ${checker}: ${message}`);
    }
    const done = seed - options.first + 1;
    if (done % 200 === 0) {
      const perSecond = done / (performance.now() - started) * 1000;
      say(`${done} of ${options.count} seeds, ${perSecond.toFixed(1)} a second`);
    }
  }
  const variants: { name: string; caught: boolean }[] = [];
  for (const variant of options.runsVariants ? VARIANTS : []) {
    if (options.only !== null && options.only !== variant.name) continue;
    const caught = await hunt(variant, VARIANT_SEEDS_MAX);
    strays.take();
    const how = caught === null ? "NOT CAUGHT" : `seed ${caught.seed}: ${caught.checker}: ${caught.message}`;
    say(`${variant.name}: ${how}`);
    variants.push({ name: variant.name, caught: caught !== null });
  }
  const ms = Math.round(performance.now() - started);
  console.log(JSON.stringify({ seeds: options.count, violations, probes: probes.all(), variants, ms }));
  return violations.length > 0 || variants.some(({ caught }) => !caught) ? 1 : 0;
}

if (import.meta.main) Deno.exit(await main());
