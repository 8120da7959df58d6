/**
 * Benchmark `http`: a stateless function, one covered read, one durable write, against bare `Deno.serve`, Hono,
 * workerd and `Deno.openKv`; and what a cold isolate costs (TARGETS, "Functions and sessions").
 */
import type { Bench, BenchContext } from "./bench.ts";
import { cpuMs } from "./cpu.ts";
import { runFresh } from "./fresh.ts";
import { probeFsync } from "./machine.ts";
import { type BenchRecord, record } from "./record.ts";
import type { LoadInput, LoadResult } from "./http/load.ts";
import { installWorkerd, type Server, startPeer, startSojourn, startWorkerd } from "./http/server.ts";

const LOAD = new URL("./http/load.ts", import.meta.url);
const SESSIONS = 1_000;

interface Contender {
  readonly name: string;
  start(): Promise<Server>;
  /** Path with `{session}`; Sojourn's own sessions travel in their tokens. */
  readonly path: string;
}

interface Sample extends LoadResult {
  readonly cpuMicros: number;
}

interface Case {
  readonly name: string;
  readonly connections: number;
  readonly sessions: number;
  readonly ours: Contender;
  readonly peers: readonly (Contender & { readonly target?: number })[];
}

async function sample(contender: Contender, plan: Case, quick: boolean): Promise<Sample> {
  const server = await contender.start();
  try {
    const input: LoadInput = {
      hostname: "127.0.0.1",
      port: server.port,
      path: server.prefix + contender.path,
      connections: plan.connections,
      sessions: plan.sessions,
      warmMs: quick ? 300 : 2_000,
      runMs: quick ? 700 : 6_000,
    };
    const before = await cpuMs(server.pids);
    const result = await runFresh({ name: contender.name, script: LOAD, input }) as LoadResult;
    const after = await cpuMs(server.pids);
    if (result.errors > 0) {
      throw new Error(`${contender.name}: ${result.errors} of ${result.requests} failed`);
    }
    const used = after.reduce((sum, ms, i) => sum + ms - (before[i] ?? 0), 0);
    // The warm-up's CPU time is in the sum, so its requests are too, at the measured rate.
    const all = result.perSecond * (input.warmMs + input.runMs) / 1000;
    return { ...result, cpuMicros: used * 1000 / all };
  } finally {
    await server.stop();
  }
}

async function runCase(plan: Case, context: BenchContext): Promise<BenchRecord[]> {
  const runs = context.quick ? 1 : 5;
  const all = [plan.ours, ...plan.peers];
  const samples = new Map<string, Sample[]>(all.map(({ name }) => [name, []]));
  for (let run = 0; run < runs; run++) {
    for (const contender of run % 2 === 0 ? all : all.toReversed()) {
      const one = await sample(contender, plan, context.quick);
      samples.get(contender.name)?.push(one);
      context.say(
        `${plan.name} ${contender.name}: ${Math.round(one.perSecond)}/s, p50 ${one.p50Ms.toFixed(2)} ms, ` +
          `p99 ${one.p99Ms.toFixed(2)} ms, ${one.cpuMicros.toFixed(1)} µs CPU`,
      );
    }
    const probe = await probeFsync(context.folder);
    context.say(`fsync ${probe.medianMs.toFixed(2)} ms`);
  }
  return figures(plan, samples, !context.quick);
}

function figures(plan: Case, samples: ReadonlyMap<string, Sample[]>, comparable: boolean): BenchRecord[] {
  const of = (name: string, field: keyof Sample) => (samples.get(name) ?? []).map((one) => one[field]);
  const ours = plan.ours.name;
  const base = { bench: "http", case: plan.name };
  const records = [
    record({ ...base, unit: "ms p50", samples: of(ours, "p50Ms") }),
    record({ ...base, unit: "ms p99", samples: of(ours, "p99Ms") }),
    record({ ...base, unit: "CPU µs/request", samples: of(ours, "cpuMicros") }),
  ];
  for (const peer of plan.peers) {
    records.push(record({
      ...base,
      unit: "requests/s",
      samples: of(ours, "perSecond"),
      peer: { name: peer.name, samples: of(peer.name, "perSecond") },
      comparable,
      ...(peer.target === undefined
        ? {}
        : { target: { of: "ratio", op: ">=", value: peer.target } as const }),
    }));
  }
  return records;
}

/** Latency that one covered read adds to a function, at one connection. */
async function readAdds(context: BenchContext): Promise<BenchRecord[]> {
  const runs = context.quick ? 1 : 5;
  const plan = (path: string): Case => ({
    name: "one covered read",
    connections: 1,
    sessions: 1,
    ours: { name: "sojourn", start: startSojourn, path },
    peers: [],
  });
  const added: number[] = [];
  for (let run = 0; run < runs; run++) {
    const without = await sample(plan("/hello").ours, plan("/hello"), context.quick);
    const with_ = await sample(plan("/read").ours, plan("/read"), context.quick);
    added.push((with_.p50Ms - without.p50Ms) * 1000);
    context.say(`one covered read adds ${added.at(-1)?.toFixed(0)} µs at p50`);
  }
  return [record({
    bench: "http",
    case: "one covered read adds",
    unit: "µs p50",
    samples: added,
    target: { of: "median", op: "<=", value: 100 },
    comparable: !context.quick,
  })];
}

async function run(context: BenchContext): Promise<BenchRecord[]> {
  const binary = context.quick ? null : await installWorkerd(context.say);
  const peer = (kind: "bare" | "hono" | "kv") => () => startPeer(kind, context.folder);
  const workerd = (path: string, target: number) =>
    binary === null
      ? []
      : [{ name: "workerd", start: () => startWorkerd(binary, context.folder), path, target }];
  const stateless: Case = {
    name: "stateless function, 64 connections",
    connections: 64,
    sessions: SESSIONS,
    ours: { name: "sojourn", start: startSojourn, path: "/hello" },
    peers: [
      { name: "Deno.serve", start: peer("bare"), path: "/hello", target: 0.5 },
      { name: "Hono", start: peer("hono"), path: "/hello" },
      ...workerd("/hello", 2),
    ],
  };
  const durable: Case = {
    name: "durable counter per session, 64 connections",
    connections: 64,
    sessions: SESSIONS,
    ours: { name: "sojourn", start: startSojourn, path: "/count" },
    peers: [
      { name: "Deno.openKv", start: peer("kv"), path: "/count?s={session}", target: 5 },
      ...workerd("/count?s={session}", 8),
    ],
  };
  return [
    ...await runCase(stateless, context),
    ...await runCase(durable, context),
    ...await readAdds(context),
  ];
}

/** See the file header. */
export const bench: Bench = {
  name: "http",
  summary: "a function, a covered read, a durable write, against Deno.serve, Hono, workerd, Deno.openKv",
  notMeasured: "other machines as clients: the load generator shares the cores with what it measures",
  byDefault: true,
  run,
};
