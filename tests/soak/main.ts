/**
 * `deno task soak [--rounds 100] [--seed N] [--clients 12] [--minutes 30] [--topology NAME] [--f 0] [--main FILE]
 * [--json]`
 *
 * A dev cluster, clients at all its edges, and a fault a round. Prints `{rounds, seed, faults, sessions, tally,
 * checked, audited, findings, ms}`; progress goes to stderr. Exit 1 when there are findings or fewer rounds than
 * asked for. `--main` takes another program for the sites: with `tests/e2e/no_handoff_main.ts` it has to fail.
 */
import { startCluster } from "../e2e/cluster.ts";
import { soak, SOAK_APP, type Soaked } from "./soak.ts";

const USAGE = "deno task soak [--rounds N] [--seed N] [--clients N] [--minutes N] [--topology NAME] " +
  "[--f N] [--main FILE] [--json]";

/** Findings that are printed; the others follow from the first. */
const SHOWN_MAX = 50;
const WRITES_FIRST = 100;

function parseOptions(args: readonly string[]) {
  const flags = new Map<string, string>();
  for (let i = 0; i < args.length; i++) {
    const [name = "", inline] = (args[i] ?? "").split("=");
    if (["--rounds", "--seed", "--clients", "--minutes", "--topology", "--f", "--main"].includes(name)) {
      flags.set(name, inline ?? args[++i] ?? "");
    } else if (name === "--json") flags.set(name, "");
    else throw new Error(`cannot take '${args[i]}': ${USAGE}`);
  }
  const number = (name: string, otherwise: number) => {
    const text = flags.get(name) ?? String(otherwise);
    if (!/^\d{1,9}$/.test(text)) throw new Error(`${name} needs a whole number, not '${text}'`);
    return Number(text);
  };
  return {
    rounds: number("--rounds", 100),
    seed: number("--seed", Math.floor(Math.random() * 1e6)),
    clients: number("--clients", 12),
    msMax: number("--minutes", 30) * 60_000,
    topology: flags.get("--topology"),
    f: number("--f", 0),
    main: flags.get("--main"),
    json: flags.has("--json"),
  };
}

function text(soaked: Omit<Soaked, "history">): string {
  const { rounds, seed, tally, sessions, checked, audited, findings, ms } = soaked;
  return [
    `${rounds} rounds (seed ${seed}) in ${(ms / 1000).toFixed(0)} s: ${JSON.stringify(soaked.faults)}`,
    `${sessions} sessions, ${tally.requests} requests, ${tally.moves} moves`,
    `answers: ${JSON.stringify(tally.answers)}`,
    `${tally.acknowledgedWrites} writes acknowledged, ${tally.unknownWrites} without an answer`,
    `${checked} reads checked; ${audited.rows} rows and ${audited.counters} sums audited at the root`,
    findings.length === 0 ? "no findings" : `${findings.length} findings:`,
    ...findings.slice(0, SHOWN_MAX).map((finding) => `  ${finding}`),
  ].join("\n");
}

async function main(args: readonly string[]): Promise<number> {
  const { json, topology, f, main: program, ...options } = parseOptions(args);
  await using cluster = await startCluster({
    apps: [SOAK_APP],
    f,
    ...topology === undefined ? {} : { topology },
    ...program === undefined ? {} : { main: program },
  });
  const { history: _, ...soaked } = await soak(cluster, {
    ...options,
    writesFirst: WRITES_FIRST,
    say: (line) => console.error(line),
  });
  console.log(json ? JSON.stringify(soaked) : text(soaked));
  return soaked.findings.length === 0 && soaked.rounds === options.rounds ? 0 : 1;
}

if (import.meta.main) {
  try {
    Deno.exit(await main(Deno.args));
  } catch (error) {
    console.error(error instanceof Error ? error.message : error);
    Deno.exit(2);
  }
}
