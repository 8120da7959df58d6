/**
 * `deno task bench [NAME…] [--quick] [--json] [--out FILE]`: runs benchmarks one after another and prints their
 * records, as a table or as one JSON array. Options that it does not know go to the benchmarks.
 *
 * Exit 0: all ran (a missed target is a figure, not a failure); 1: a benchmark failed; 2: usage.
 */
import type { Bench } from "./bench.ts";
import { machineLine, probeFsync } from "./machine.ts";
import { type BenchRecord, table } from "./record.ts";
import { BENCHES } from "./registry.ts";

interface Command {
  readonly names: readonly string[];
  readonly quick: boolean;
  readonly json: boolean;
  readonly help: boolean;
  readonly out: string | null;
  readonly rest: readonly string[];
}

/** Parses the command line; a string says what is wrong with it. */
export function parseArgs(args: readonly string[], known: readonly string[]): Command | string {
  const names: string[] = [];
  const rest: string[] = [];
  const flags = { quick: false, json: false, help: false };
  let out: string | null = null;
  for (let i = 0; i < args.length; i++) {
    const arg = args[i] ?? "";
    if (arg === "--quick" || arg === "--json" || arg === "--help") {
      flags[arg.slice(2) as keyof typeof flags] = true;
    } else if (arg === "--out") {
      out = args[++i] ?? null;
      if (out === null) return "--out takes the path of a file";
    } else if (arg.startsWith("-")) {
      rest.push(arg);
      const value = args[i + 1];
      // Every option of a benchmark takes one value.
      if (!arg.includes("=") && value !== undefined && !value.startsWith("-")) rest.push(args[++i] ?? "");
    } else if (known.includes(arg)) names.push(arg);
    else return `there is no benchmark ${JSON.stringify(arg)}: there are ${known.join(", ")}`;
  }
  return { names, ...flags, out, rest };
}

async function help(): Promise<string> {
  const lines = [
    "deno task bench [NAME…] [--quick] [--json] [--out FILE] [options of the benchmarks]",
    "",
    "Runs the named benchmarks, or the default ones (marked *).",
    "  --quick      smoke sizes: seconds, figures not to be quoted",
    "  --json       one JSON array of records on stdout and nothing else",
    "  --out FILE   the JSON array into a file",
    "",
  ];
  for (const load of Object.values(BENCHES)) {
    const { bench } = await load();
    lines.push(`${bench.byDefault ? "*" : " "} ${bench.name.padEnd(10)} ${bench.summary}`);
    for (const option of bench.options ?? []) lines.push(`               ${option}`);
  }
  return lines.join("\n");
}

async function runOne(bench: Bench, command: Command): Promise<BenchRecord[]> {
  const folder = await Deno.makeTempDir({ prefix: `sojourn-bench-${bench.name}-` });
  const say = (line: string) => console.error(`[${bench.name}] ${line}`);
  try {
    const probe = await probeFsync(folder);
    const span = `${probe.minMs.toFixed(2)} – ${probe.maxMs.toFixed(2)}`;
    say(`fsync ${probe.medianMs.toFixed(2)} ms (${span}); not measured: ${bench.notMeasured}`);
    return await bench.run({ quick: command.quick, args: command.rest, folder, say });
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

/** Runs the command; returns its exit code. */
export async function main(args: readonly string[]): Promise<number> {
  const command = parseArgs(args, Object.keys(BENCHES));
  if (typeof command === "string") {
    console.error(`${command}\n(deno task bench --help)`);
    return 2;
  }
  if (command.help) {
    console.log(await help());
    return 0;
  }
  console.error(machineLine());
  const records: BenchRecord[] = [];
  const failures: string[] = [];
  for (const [name, load] of Object.entries(BENCHES)) {
    const { bench } = await load();
    if (command.names.length > 0 ? !command.names.includes(name) : !bench.byDefault) continue;
    try {
      records.push(...await runOne(bench, command));
    } catch (error) {
      failures.push(`[${name}] failed: ${Deno.inspect(error)}`);
      console.error(failures.at(-1));
    }
  }
  const json = JSON.stringify(records, null, 1);
  if (command.out !== null) await Deno.writeTextFile(command.out, json + "\n");
  console.log(command.json ? json : table(records));
  // Again, where it is found: the benchmarks after it wrote much.
  for (const failure of failures) console.error(failure);
  return failures.length > 0 ? 1 : 0;
}

if (import.meta.main) Deno.exit(await main(Deno.args));
