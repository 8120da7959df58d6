/**
 * `deno task soak [--rounds 100] [--seed N] [--clients 12] [--minutes 30] [--topology NAME] [--f 0] [--main FILE]
 * [--json]`
 *
 * A dev cluster, clients at all its edges, and a fault a round. Prints `{rounds, seed, faults, sessions, tally,
 * checked, audited, findings, ms}`; progress goes to stderr. Exit 1 when there are findings or fewer rounds than
 * asked for. `--main` takes another program for the sites: with `tests/e2e/no_handoff_main.ts` it has to fail.
 *
 * `deno task soak --games` plays pong and scrabble instead (games.ts), over plain WebSockets or, with
 * `--library`, those of the client library, and kills an edge every 20 seconds; with `--shared` only pong, at tables
 * whose players hold the log, and an edge that is killed loses its disk. Prints
 * `{seed, kills, told, resumed, unanswered, counted, findings, ms}`.
 *
 * `deno task soak --hostile [--minutes 10] [--rate 40] [--attack NAME]` has one app do all that it can to its site, and
 * measures another one there (hostile.ts): so many minutes under attack, each beside a quiet time. Exit 1 also where its
 * p99 is three times that in quiet, in time and in that of the site's thread. Prints `{pairs, quiet, attacked, stretches,
 * ratio, ratioOfPairs, ratioOfSite, made, ends, acknowledged, echoes, siteMib, findings, ms}`. With `--kinds SECONDS` each
 * attack is made by itself for so long, and `{kinds, findings, ms}` is printed.
 */
import { startCluster } from "../e2e/cluster.ts";
import { GAMES, type GamesPlayed, soakGames } from "./games.ts";
import { type Attacked, RATIO_MAX, shown, shownStretches, soakHostile, soakKinds } from "./hostile.ts";
import { soak, SOAK_APP, type Soaked } from "./soak.ts";

const USAGE = "deno task soak [--rounds N] [--seed N] [--clients N] [--minutes N] [--topology NAME] " +
  "[--f N] [--main FILE] [--json]\n" +
  "deno task soak --games [--minutes N] [--every SECONDS] [--tables N] [--seed N] [--f N] [--library | --shared] [--json]\n" +
  "deno task soak --hostile [--minutes N | --kinds SECONDS] [--rate N] [--attack NAME] [--json]";

/** Findings that are printed; the others follow from the first. */
const SHOWN_MAX = 50;
const WRITES_FIRST = 100;
/** Of a pair of times, the quiet one and the one under attack. */
const PAIR_MS = { quietMs: 20_000, attackedMs: 60_000 };
/** An edge with games is started again after so long: later than its tables have found a new home. */
const AWAY_MS = 5_000;

const VALUED = [
  "--rounds",
  "--seed",
  "--clients",
  "--minutes",
  "--topology",
  "--f",
  "--main",
  "--every",
  "--tables",
  "--rate",
  "--attack",
  "--kinds",
];
const SWITCHES = ["--json", "--games", "--library", "--shared", "--hostile"];
/** How long it runs where nothing is said. */
const MINUTES = { rounds: 30, games: 10, hostile: 10 };

function parseOptions(args: readonly string[]) {
  const flags = new Map<string, string>();
  for (let i = 0; i < args.length; i++) {
    const [name = "", inline] = (args[i] ?? "").split("=");
    if (VALUED.includes(name)) {
      flags.set(name, inline ?? args[++i] ?? "");
    } else if (SWITCHES.includes(name)) {
      flags.set(name, "");
    } else throw new Error(`cannot take '${args[i]}': ${USAGE}`);
  }
  const number = (name: string, otherwise: number) => {
    const text = flags.get(name) ?? String(otherwise);
    if (!/^\d{1,9}$/.test(text)) throw new Error(`${name} needs a whole number, not '${text}'`);
    return Number(text);
  };
  const kind = flags.has("--games") ? "games" : flags.has("--hostile") ? "hostile" : "rounds";
  return {
    kind,
    rounds: number("--rounds", 100),
    seed: number("--seed", Math.floor(Math.random() * 1e6)),
    clients: number("--clients", 12),
    msMax: number("--minutes", MINUTES[kind]) * 60_000,
    topology: flags.get("--topology"),
    f: number("--f", flags.has("--games") && !flags.has("--shared") ? 1 : 0),
    main: flags.get("--main"),
    json: flags.has("--json"),
    rate: number("--rate", 40),
    only: flags.get("--attack"),
    kindsMs: number("--kinds", 0) * 1_000,
    sockets: flags.has("--library") ? "library" as const : "plain" as const,
    isShared: flags.has("--shared"),
    everyMs: number("--every", 20) * 1_000,
    tables: number("--tables", 4),
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

function textOfGames({ kills, told, resumed, unanswered, counted, findings, ms }: GamesPlayed): string {
  const line = (kind: "pong" | "scrabble") =>
    `${kind}: told ${told[kind]} times; ${resumed[kind].count} times a player went on after a kill, ` +
    `after ${resumed[kind].p50} ms p50, ${resumed[kind].p99} p99, ${resumed[kind].max} at most`;
  return [
    `${kills} kills in ${(ms / 1000).toFixed(0)} s`,
    ...(["pong", "scrabble"] as const).filter((kind) => told[kind] > 0).map(line),
    `${counted} moves of paddles counted; ${unanswered} were lost with connections that broke`,
    findings.length === 0 ? "no findings" : `${findings.length} findings:`,
    ...findings.slice(0, SHOWN_MAX).map((finding) => `  ${finding}`),
  ].join("\n");
}

async function games({ json, f, seed, ...options }: ReturnType<typeof parseOptions>): Promise<number> {
  await using cluster = await startCluster({ apps: GAMES, f });
  const played = await soakGames(cluster, {
    ...{
      edges: ["edge-1", "edge-2", "edge-3"],
      tables: options.tables,
      sockets: options.sockets,
      isShared: options.isShared,
      seed: `${seed}`,
      killsMax: Infinity,
    },
    ...{
      msMax: options.msMax,
      everyMs: options.everyMs,
      awayMs: AWAY_MS,
      say: (line) => console.error(line),
    },
  });
  console.log(json ? JSON.stringify({ seed, ...played }) : textOfGames(played));
  return played.findings.length === 0 ? 0 : 1;
}

function textOfHostile(
  { pairs, quiet, attacked, ratio, ratioOfPairs, ratioOfSite, findings, ...soaked }: Attacked,
): string {
  return [
    `${pairs} pairs in ${(soaked.ms / 1000).toFixed(0)} s; attacks: ${JSON.stringify(soaked.made)}`,
    `isolates of the app that attacks ended: ${JSON.stringify(soaked.ends)}`,
    ...Object.entries({ quiet, attacked }).map(([when, all]) =>
      `${when}: ${all.count} answers, ${shown(all)}`
    ),
    `the site's thread, quiet: ${shownStretches(soaked.stretches.quiet)}`,
    `the site's thread, attacked: ${shownStretches(soaked.stretches.attacked)}`,
    `p99 under attack: ${ratio.toFixed(2)} times that in quiet, ${
      ratioOfPairs.toFixed(2)
    } in the median pair; ${ratioOfSite.toFixed(2)} times in time of the site's thread`,
    `${soaked.acknowledged} writes acknowledged, ${soaked.echoes} messages echoed; the site held ` +
    `${soaked.siteMib} MiB at most`,
    findings.length === 0 ? "no findings" : `${findings.length} findings:`,
    ...findings.slice(0, SHOWN_MAX).map((finding) => `  ${finding}`),
  ].join("\n");
}

async function hostile(
  { json, rate, only, msMax, kindsMs }: ReturnType<typeof parseOptions>,
): Promise<number> {
  const say = (line: string) => console.error(line);
  if (kindsMs > 0) {
    const came = await soakKinds({ ...PAIR_MS, msAttacked: 0, rate, only, say }, kindsMs);
    if (json) console.log(JSON.stringify(came));
    else for (const finding of came.findings.slice(0, SHOWN_MAX)) console.log(finding);
    return came.findings.length === 0 ? 0 : 1;
  }
  const attacked = await soakHostile({ ...PAIR_MS, msAttacked: msMax, rate, only, say });
  console.log(json ? JSON.stringify(attacked) : textOfHostile(attacked));
  return attacked.findings.length === 0 && Math.min(attacked.ratio, attacked.ratioOfSite) < RATIO_MAX ? 0 : 1;
}

async function main(args: readonly string[]): Promise<number> {
  const parsed = parseOptions(args);
  if (parsed.kind === "games") return await games(parsed);
  if (parsed.kind === "hostile") return await hostile(parsed);
  const { json, topology, f, main: program, ...options } = parsed;
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
    if (Deno.args.includes("--help")) console.log(USAGE);
    else Deno.exit(await main(Deno.args));
  } catch (error) {
    console.error(error instanceof Error ? error.message : error);
    Deno.exit(2);
  }
}
