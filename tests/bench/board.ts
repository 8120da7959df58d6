/**
 * Benchmark `board`: the bulletin board after RUBBoS on a dev cluster (three tiers, emulated links), with clients
 * that move between edges, an edge killed under them, and every guarantee checked from the clients' own records.
 */
import { parseArgs } from "node:util";
import type { DataSize } from "../examples/board/generator.ts";
import { startBoard } from "../examples/board/dev_cluster.ts";
import type { Kills } from "../examples/board/kills.ts";
import { failures, handoffs, isAnswered, latencies, latencyTable } from "../examples/board/figures.ts";
import { builtInTransitions, parseTransitions, type Transitions } from "../examples/board/transitions.ts";
import { type Trial, trial } from "../examples/board/trial.ts";
import { LARGE_BYTES, SMALL_BYTES } from "../examples/board/unread.ts";
import { Words } from "../examples/board/words.ts";
import type { Bench, BenchContext } from "./bench.ts";
import { type BenchRecord, quantile, record } from "./record.ts";

/** RUBBoS's tables and words, kept beside the checkout; the project's own small ones where they are absent. */
const RUBBOS = new URL("../../../shared/data/rubbos/", import.meta.url);

const FULL: DataSize = {
  users: 20_000,
  stories: 5_000,
  comments: 100_000,
  commentBytes: 1024,
  attachmentBytes: 0,
  submissions: 200,
  categories: 20,
};
/** Comments of 10 and 100 KB are fewer, so that every variant loads about as many bytes. */
const COMMENTS_BY_KB: Readonly<Record<string, Partial<DataSize>>> = {
  "0": {},
  "10": { comments: 10_000, attachmentBytes: 10 * 1024 },
  "100": { comments: 2_000, attachmentBytes: 100 * 1024 },
};
const QUICK: Partial<DataSize> = { users: 200, stories: 100, comments: 1_000, submissions: 40 };

interface Plan {
  readonly size: DataSize;
  readonly clients: number;
  readonly minutes: number;
  readonly thinkMs: number;
  readonly kills: Kills;
  readonly seed: number;
  readonly label: string;
}

/** Reads the benchmark's own options. @throws Error for one that is not a number or not known. */
export function planOf(args: readonly string[], quick: boolean): Plan {
  const { values } = parseArgs({
    args: [...args],
    strict: true,
    options: {
      minutes: { type: "string" },
      clients: { type: "string" },
      think: { type: "string" },
      attachment: { type: "string" },
      seed: { type: "string" },
      away: { type: "string" },
      kill: { type: "string" },
    },
  });
  const number = (name: "minutes" | "clients" | "think" | "seed" | "away", otherwise: number): number => {
    const value = values[name] === undefined ? otherwise : Number(values[name]);
    if (!Number.isFinite(value) || value <= 0) {
      throw new Error(`--${name} takes a number above 0, not ${values[name]}`);
    }
    return value;
  };
  const kb = values.attachment ?? "0";
  const variant = COMMENTS_BY_KB[kb];
  if (variant === undefined) throw new Error(`--attachment takes 0, 10 or 100 (KB), not ${kb}`);
  const kill = values.kill ?? "edge";
  if (kill !== "edge" && kill !== "storm" && kill !== "none") {
    throw new Error(`--kill takes edge, storm or none, not ${kill}`);
  }
  return {
    size: { ...FULL, ...variant, ...quick ? QUICK : {} },
    clients: number("clients", quick ? 20 : 100),
    minutes: number("minutes", quick ? 1 / 7 : 2),
    thinkMs: number("think", quick ? 150 : 700),
    kills: kill === "edge"
      ? { kind: kill, awayMs: 1000 * number("away", quick ? 1 : 5) }
      : kill === "storm"
      ? { kind: kill, seed: number("seed", 1) }
      : { kind: kill },
    seed: number("seed", 1),
    label: kb === "0" ? "1 KB" : `1 KB + ${kb} KB`,
  };
}

async function run(context: BenchContext): Promise<BenchRecord[]> {
  const plan = planOf(context.args, context.quick);
  const { words, reader, author } = await rubbos(context);
  const cluster = await startBoard();
  try {
    const done = await trial(cluster, {
      data: { ...plan.size, seed: plan.seed, words },
      emulator: {
        clients: plan.clients,
        seed: plan.seed,
        durationMs: plan.minutes * 60_000,
        thinkMs: plan.thinkMs,
        users: plan.size.users,
        reader,
        author,
        words,
        commentBytes: plan.size.commentBytes,
        attachmentBytes: plan.size.attachmentBytes,
        moveShare: 0.1,
        freshShare: 0.3,
      },
      kills: plan.kills,
      say: context.say,
    });
    for (const line of report(done)) context.say(line);
    if (done.verdict.violations.length + done.audit.findings.length > 0) {
      throw new Error("a guarantee was violated, or an acknowledged write was lost: see above");
    }
    return recordsOf(done, plan, context.quick);
  } catch (error) {
    for (const line of cluster.log().split("\n").slice(-40)) context.say(line);
    throw error;
  } finally {
    await cluster.stop();
  }
}

async function rubbos(
  context: BenchContext,
): Promise<{ words: Words; reader: Transitions; author: Transitions }> {
  try {
    const tables = JSON.parse(await Deno.readTextFile(new URL("transitions.json", RUBBOS)));
    return {
      words: Words.parse(await Deno.readTextFile(new URL("words.txt", RUBBOS))),
      reader: parseTransitions(tables, "user_default_transitions"),
      author: parseTransitions(tables, "author_default_transitions"),
    };
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
    context.say(`${RUBBOS.pathname} is absent: built-in words and transitions`);
    return { words: Words.builtIn(), reader: builtInTransitions(), author: builtInTransitions() };
  }
}

function report(done: Trial): string[] {
  const { emulated, verdict, audit, unread } = done;
  const counts = (pairs: readonly [string, number][]) =>
    pairs.map(([name, n]) => `${name} ${n}`).join(", ") || "none";
  return [
    ...latencyTable(latencies(emulated.samples)).split("\n"),
    ...handoffs(emulated.samples).map(({ kind, count, p50Ms, p99Ms }) =>
      `handoffs by ${kind}: ${count}, p50 ${p50Ms.toFixed(2)} ms, p99 ${p99Ms.toFixed(2)} ms`
    ),
    `failures: ${counts(failures(emulated.samples))}`,
    `sessions ${emulated.history.sessions.length}, reads held against what was known ${verdict.checked}, ` +
    `rows audited ${audit.rows}, counters ${audit.counters}`,
    `cpu, µs a request: ` +
    done.cpu.map(({ site, ms }) => `${site} ${Math.round(1000 * ms / emulated.samples.length)}`).join(", "),
    ...done.shares.map(({ site, bytes, share }) =>
      `${site} holds ${(bytes / 2 ** 20).toFixed(1)} MB, ${(100 * share).toFixed(1)} % of the root's`
    ),
    ...unread === null ? [] : [
      `comments at ${unread.writer} on a story that nobody read at ${unread.site}, on that one's link: ` +
      `${unread.smallRow} bytes a comment of ${SMALL_BYTES} bytes, ${unread.largeRow} of ${LARGE_BYTES} (marks)`,
    ],
    ...verdict.violations.slice(0, 20).map((violation) =>
      `VIOLATION of ${violation.guarantee} in session ${violation.session}, operation ${violation.operation}: ` +
      violation.message
    ),
    ...audit.findings.slice(0, 20).map((finding) => `LOST: ${finding}`),
  ];
}

function recordsOf(done: Trial, plan: Plan, quick: boolean): BenchRecord[] {
  const { emulated, verdict, audit, unread, killed } = done;
  const answered = emulated.samples.filter(isAnswered);
  const seconds = emulated.tookMs / 1000;
  const one = (name: string, unit: string, value: number, target?: { op: "<=" | ">="; value: number }) =>
    record({
      bench: "board",
      case: `${name}, ${plan.label}`,
      unit,
      samples: [value],
      ...target === undefined ? {} : { target: { of: "median", ...target } },
    });
  const took = answered.map((sample) => sample.tookMs);
  const moved = handoffs(emulated.samples);
  const movedCount = moved.reduce((sum, { count }) => sum + count, 0);
  const nothing = moved.find(({ kind }) => kind === "nothing")?.count ?? 0;
  const cpu = done.cpu.reduce((sum, { ms }) => sum + ms, 0);
  const zero = { op: "<=", value: 0 } as const;
  return [
    one("load", "rows/s", (done.loaded.rows + done.loaded.sums) / (done.loaded.tookMs / 1000)),
    one("throughput", "requests/s", answered.length / seconds),
    one("latency p50", "ms", quantile(took, 0.5)),
    one("latency p99", "ms", quantile(took, 0.99)),
    ...latencies(emulated.samples).filter((line) => line.interaction !== "all").flatMap((line) => [
      one(`${line.interaction} p50`, "ms", line.p50Ms),
      one(`${line.interaction} p99`, "ms", line.p99Ms),
    ]),
    ...moved.flatMap(({ kind, count, p50Ms, p99Ms }) => [
      one(`handoffs by ${kind}`, "count", count),
      one(`handoff by ${kind} p50`, "ms", p50Ms),
      one(`handoff by ${kind} p99`, "ms", p99Ms),
    ]),
    ...movedCount === 0 ? [] : [one("handoffs that need nothing", "%", 100 * nothing / movedCount)],
    one("cpu of all sites", "µs/request", 1000 * cpu / Math.max(1, answered.length)),
    one("failed requests", "%", 100 * (1 - answered.length / emulated.samples.length)),
    ...killed.length === 0 ? [] : [
      record({
        bench: "board",
        case: `killed site, from start to ready, ${plan.label}`,
        unit: "ms",
        samples: killed.map(({ readyMs }) => readyMs),
      }),
    ],
    ...done.shares.slice(1).map(({ site, share }) =>
      one(`share of the root's rows at ${site}`, "%", 100 * share)
    ),
    ...unread === null ? [] : [
      one(
        "a row of 10 KB unread at a site, on its link",
        "bytes",
        Math.max(0, unread.largeRow - unread.smallRow),
      ),
    ],
    one("violations of the guarantees", "count", verdict.violations.length, zero),
    one("acknowledged writes lost", "count", audit.findings.length, zero),
  ].filter((line) => !quick || !/ p50,| p99,/.test(line.case) || line.case.startsWith("latency"));
}

export const bench: Bench = {
  name: "board",
  summary: "the bulletin board after RUBBoS: load, emulated clients, kill -9 of an edge, guarantees",
  options: [
    "--minutes M        how long the clients live (2)",
    "--clients N        how many (100); one in ten is an author",
    "--think MS         mean time to think between requests (700; RUBBoS: 7000)",
    "--attachment KB    0 (100,000 comments), 10 (10,000) or 100 (2,000)",
    "--kill WHAT        kill -9 an edge half way (edge), any site all the time (storm), or none",
    "--away S           how long the killed edge is away, in seconds (5)",
    "--seed N           of data and clients (1)",
  ],
  notMeasured: "clients, sites and links share one machine's cores; nothing but loopback lies between them",
  byDefault: true,
  run,
};
