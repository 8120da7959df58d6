/**
 * `deno task fuzz [--mutations 1000000] [--target NAME] [--seed N] [--at N] [--minutes N] [--json]`
 *
 * Changed inputs for everything that reads outside data. Prints an array of `{target, says, mutations, outcomes,
 * slowestMs, findings: [{at, message}], ms}`. Exit 1 when there are findings, or fewer mutations than asked for
 * (`--minutes` bounds each target). `--at N` repeats the one mutation that a finding names.
 */
import { fuzz, type Fuzzed, TARGETS } from "./run.ts";

const USAGE = "deno task fuzz [--mutations N] [--target NAME] [--seed N] [--at N] [--minutes N] [--json]";

function parseOptions(args: readonly string[]) {
  const flags = new Map<string, string>();
  for (let i = 0; i < args.length; i++) {
    const [name = "", inline] = (args[i] ?? "").split("=");
    if (["--mutations", "--target", "--seed", "--at", "--minutes"].includes(name)) {
      flags.set(name, inline ?? args[++i] ?? "");
    } else if (name === "--json") flags.set(name, "");
    else throw new Error(`cannot take '${args[i]}': ${USAGE}`);
  }
  const number = (name: string, otherwise: number) => {
    const text = flags.get(name) ?? String(otherwise);
    if (!/^\d{1,9}$/.test(text)) throw new Error(`${name} needs a whole number, not '${text}'`);
    return Number(text);
  };
  const wanted = flags.get("--target");
  const targets = wanted === undefined ? TARGETS : TARGETS.filter(({ name }) => name === wanted);
  if (targets.length === 0) {
    throw new Error(
      `there is no target '${wanted}': there are ${TARGETS.map(({ name }) => name).join(", ")}`,
    );
  }
  const minutes = flags.has("--minutes") ? number("--minutes", 0) : Infinity;
  return {
    targets,
    mutations: flags.has("--at") ? 1 : number("--mutations", 1_000_000),
    from: number("--at", 0),
    seed: number("--seed", 1),
    msMax: minutes * 60_000,
    json: flags.has("--json"),
  };
}

function line({ target, says, mutations, outcomes, slowestMs, findings, ms }: Fuzzed): string {
  const counts = Object.entries(outcomes).map(([label, count]) => `${label} ${count}`).join(", ");
  const head = `${target} (${says}): ${mutations} mutations in ${(ms / 1000).toFixed(1)} s, slowest ` +
    `${slowestMs.toFixed(1)} ms: ${counts}`;
  return [head, ...findings.map(({ at, message }) => `  --at ${at}: ${message}`)].join("\n");
}

async function main(args: readonly string[]): Promise<number> {
  const { targets, json, ...options } = parseOptions(args);
  const all: Fuzzed[] = [];
  for (const target of targets) {
    const fuzzed = await fuzz(target, options);
    all.push(fuzzed);
    (json ? console.error : console.log)(line(fuzzed));
  }
  if (json) console.log(JSON.stringify(all));
  return all.every(({ findings, mutations }) => findings.length === 0 && mutations === options.mutations)
    ? 0
    : 1;
}

if (import.meta.main) {
  try {
    if (Deno.args.includes("--help")) console.log(USAGE);
    else Deno.exit(await main(Deno.args));
  } catch (error) {
    console.error(error instanceof Error ? error.message : error);
    Deno.exit(2);
  }
}
