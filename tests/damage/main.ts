/**
 * `deno task damage [--damages 1000] [--seed N] [--at N] [--minutes N] [-v] [--json]`
 *
 * Files of sites, damaged at drawn places (suite.ts). Prints `{damages, seed, answers, refusals, findings: [{at, says,
 * wrong}], ms}`. Exit 1 when there are findings, or fewer damages than asked for (`--minutes` bounds them). `--at N` repeats
 * the one that a finding names.
 */
import { type Suite, suite } from "./suite.ts";

const USAGE = "deno task damage [--damages N] [--seed N] [--at N] [--minutes N] [-v] [--json]";
const VALUED: ReadonlySet<string> = new Set(["--damages", "--seed", "--at", "--minutes"]);

function parseOptions(args: readonly string[]) {
  const flags = new Map<string, string>();
  for (let i = 0; i < args.length; i++) {
    const [name = "", inline] = (args[i] ?? "").split("=");
    if (VALUED.has(name)) flags.set(name, inline ?? args[++i] ?? "");
    else if (name === "--json" || name === "-v") flags.set(name, "");
    else throw new Error(`cannot take '${args[i]}': ${USAGE}`);
  }
  const number = (name: string, otherwise: number) => {
    const text = flags.get(name) ?? String(otherwise);
    if (!/^\d{1,9}$/.test(text)) throw new Error(`${name} needs a whole number, not '${text}'`);
    return Number(text);
  };
  return {
    damages: flags.has("--at") ? 1 : number("--damages", 1_000),
    from: number("--at", 0),
    seed: number("--seed", 1),
    msMax: flags.has("--minutes") ? number("--minutes", 0) * 60_000 : Infinity,
    isVerbose: flags.has("-v"),
    json: flags.has("--json"),
  };
}

function text({ damages, answers, refusals, findings, ms }: Suite): string {
  const counts = (found: Readonly<Record<string, number>>) =>
    Object.entries(found).sort(([a], [b]) => a < b ? -1 : 1).map(([name, count]) => `  ${count} × ${name}`);
  return [
    `${damages} damages in ${(ms / 1000).toFixed(0)} s`,
    "answers:",
    ...counts(answers),
    "sites that did not start, or stopped:",
    ...counts(refusals),
    findings.length === 0 ? "no findings" : `${findings.length} findings:`,
    ...findings.flatMap((
      { at, says, wrong },
    ) => [`  --at ${at}: ${says}`, ...wrong.map((each) => `    ${each}`)]),
  ].join("\n");
}

async function main(args: readonly string[]): Promise<number> {
  const { json, isVerbose, seed, ...options } = parseOptions(args);
  const done = await suite({
    ...options,
    seed,
    ...(isVerbose ? { say: (line) => console.error(line) } : {}),
  });
  console.log(json ? JSON.stringify({ seed, ...done }) : text(done));
  return done.findings.length === 0 && done.damages === options.damages ? 0 : 1;
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
