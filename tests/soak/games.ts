/**
 * A soak of games: tables of pong and scrabble at real rates, players at all edges, and an edge killed every so often.
 *
 * Life: tables are opened, all play → an edge is killed, all play again, it is back, and so on → all stop → judged.
 *
 * G1  What players were told is all that is judged: two who were told of the same moment were told the same, points and
 *     moves never go back, what was told never vanishes (tests/examples/games/*_witness.ts).
 * G2  A player who is not told anything new within a minute of a kill is a finding, too.
 */
import { join } from "node:path";
import type { TestCluster } from "../e2e/cluster.ts";
import { quantile } from "../bench/record.ts";
import { playPong, playScrabble, type Sockets, type Watched } from "../examples/games/players.ts";
import { Draws } from "../sim/random.ts";

/** What to run. */
export interface GamesOptions {
  readonly edges: readonly string[];
  readonly sockets: Sockets;
  /** Only pong, at tables whose players hold the log: an edge that is killed loses its disk, too. */
  readonly isShared?: boolean;
  /** Of each kind. */
  readonly tables: number;
  readonly seed: string;
  /** No edge is killed after this long. */
  readonly msMax: number;
  readonly everyMs: number;
  /** Until an edge that was killed is started again. */
  readonly awayMs: number;
  /** So many kills at most. */
  readonly killsMax: number;
  readonly say: (line: string) => void;
}

/** Times until players were told something new again, in milliseconds. */
export interface Resumed {
  readonly count: number;
  readonly p50: number;
  readonly p99: number;
  readonly max: number;
}

/** What came of it. */
export interface GamesPlayed {
  readonly kills: number;
  /** Frames and views that were told. */
  readonly told: Readonly<Record<Watched["kind"], number>>;
  readonly resumed: Readonly<Record<Watched["kind"], Resumed>>;
  /** Moves of paddles that left over a connection that broke, and never counted. */
  readonly unanswered: number;
  /** Moves of paddles that counted. */
  readonly counted: number;
  readonly findings: readonly string[];
  readonly ms: number;
}

/** The apps that a cluster has to serve. */
export const GAMES = ["pong", "scrabble"] as const;
const RESUME_MS_MAX = 60_000;
const LOOK_MS = 10;

/** Plays. */
export async function soakGames(cluster: TestCluster, options: GamesOptions): Promise<GamesPlayed> {
  const begunMs = performance.now();
  const draws = new Draws(options.seed);
  const urls = options.edges.map((edge) => cluster.url(edge));
  const tables = Array.from({ length: options.tables }, (_, i) => {
    const sites = [...urls.slice(i % urls.length), ...urls.slice(0, i % urls.length)];
    if (options.isShared === true) {
      return [playPong(`shared-soak-${i}`, sites, draws.fork(`p${i}`), "library")];
    }
    return [
      playPong(`soak-${i}`, sites, draws.fork(`p${i}`), options.sockets),
      playScrabble(`soak-${i}`, sites, draws.fork(`s${i}`), options.sockets),
    ];
  }).flat();
  const took: Record<Watched["kind"], number[]> = { pong: [], scrabble: [] };
  const findings: string[] = [];
  let kills = 0;
  try {
    findings.push(...await resumed(tables, null, options.say));
    while (findings.length === 0 && kills < options.killsMax && performance.now() - begunMs < options.msMax) {
      const roundMs = performance.now();
      // The first is the edge where the first tables were opened: their home.
      const edge = options.edges[kills === 0 ? 0 : draws.integer(0, options.edges.length - 1)] ?? "";
      kills++;
      await cluster.control("kill", edge);
      if (options.isShared === true) {
        await Deno.remove(join(cluster.data, "sites", edge, "data"), { recursive: true });
      }
      findings.push(...await resumed(tables, took, (line) => options.say(`kill ${kills}, ${edge}: ${line}`)));
      await pause(Math.max(0, options.awayMs - (performance.now() - roundMs)));
      await cluster.control("start", edge);
      await cluster.ready(edge);
      if (kills < options.killsMax) await pause(Math.max(0, options.everyMs - (performance.now() - roundMs)));
    }
  } finally {
    await Promise.all(tables.map((table) => table.stop()));
  }
  const sum = (kind: Watched["kind"]) =>
    tables.reduce((all, table) => all + (table.kind === kind ? table.told : 0), 0);
  return {
    ...{ kills, told: { pong: sum("pong"), scrabble: sum("scrabble") } },
    resumed: { pong: figures(took.pong), scrabble: figures(took.scrabble) },
    unanswered: tables.reduce((all, table) => all + table.unanswered, 0),
    counted: tables.reduce((all, table) => all + table.counted, 0),
    findings: [...findings, ...tables.flatMap((table) => table.judge())],
    ms: performance.now() - begunMs,
  };
}

/** Waits until each player has been told something new; how long that took. Findings name those who were not. */
async function resumed(
  tables: readonly Watched[],
  took: Record<Watched["kind"], number[]> | null,
  say: (line: string) => void,
): Promise<string[]> {
  const fromMs = performance.now();
  const waiting = new Set(
    tables.flatMap((table) =>
      table.players.map((player, i) => ({ table, player, i, before: player.progress }))
    ),
  );
  const mostMs = { pong: 0, scrabble: 0 };
  while (waiting.size > 0 && performance.now() - fromMs < RESUME_MS_MAX) {
    await pause(LOOK_MS);
    for (const each of waiting) {
      // What was on its way when the site was killed is nothing new.
      if (each.player.progress <= each.before + 1 || each.player.progressMs < fromMs + 2 * LOOK_MS) continue;
      waiting.delete(each);
      const ms = each.player.progressMs - fromMs;
      took?.[each.table.kind].push(ms);
      mostMs[each.table.kind] = Math.max(mostMs[each.table.kind], ms);
    }
  }
  say(
    `all play again, pong after ${mostMs.pong.toFixed(0)} ms, scrabble after ${
      mostMs.scrabble.toFixed(0)
    } ms`,
  );
  return [...waiting].map(({ table, i }) =>
    `${table.kind} ${table.name}: player ${i} was told nothing new for a minute`
  );
}

function figures(ms: readonly number[]): Resumed {
  const of = (share: number) => Math.round(quantile(ms, share));
  return { count: ms.length, p50: of(0.5), p99: of(0.99), max: Math.round(Math.max(0, ...ms)) };
}

const pause = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));
