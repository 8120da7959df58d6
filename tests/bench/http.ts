/**
 * Benchmark `http`: a stateless function, one covered read, one durable write, against bare `Deno.serve`, Hono,
 * workerd, `Deno.openKv`, Restate and Redis; what a cold isolate costs; what a site holds in memory, and how long
 * its beginnings take (TARGETS, "Functions and sessions").
 */
import type { Bench, BenchContext } from "./bench.ts";
import { type Contender, runCase } from "./http/compare.ts";
import { runFresh } from "./fresh.ts";
import type { ReadInput } from "./http/read.ts";
import { cluster, coldIsolates } from "./http/footprint.ts";
import { installPeer, type PeerName } from "./http/peers.ts";
import { hasRedis, startRedis } from "./http/redis.ts";
import { startRestate } from "./http/restate.ts";
import { type Server, startPeer, startSojourn } from "./http/server.ts";
import { startWorkerd } from "./http/workerd.ts";
import { type BenchRecord, record } from "./record.ts";

const SESSIONS = 1_000;
const READ = new URL("./http/read.ts", import.meta.url);

type Peer = Contender & { readonly target?: number };

/** A peer from npm, where it can be had. */
async function fromNpm(
  context: BenchContext,
  name: PeerName,
  start: (modules: string, folder: string) => Promise<Server>,
  peer: { readonly name: string; readonly path: string; readonly target?: number },
): Promise<Peer[]> {
  const modules = context.quick ? null : await installPeer(name, context.say);
  return modules === null ? [] : [{ ...peer, start: () => start(modules, context.folder) }];
}

async function stateless(context: BenchContext): Promise<BenchRecord[]> {
  const peer = (kind: "bare" | "hono") => () => startPeer(kind, context.folder);
  return await runCase({
    name: "stateless function, 64 connections",
    connections: 64,
    sessions: SESSIONS,
    ours: { name: "sojourn", start: startSojourn, path: "/hello" },
    peers: [
      { name: "Deno.serve", start: peer("bare"), path: "/hello", target: 0.5 },
      { name: "Hono", start: peer("hono"), path: "/hello" },
      ...await fromNpm(context, "workerd", startWorkerd, { name: "workerd", path: "/hello", target: 2 }),
    ],
  }, context);
}

async function durable(context: BenchContext): Promise<BenchRecord[]> {
  const path = "/count?s={session}";
  const redis = !context.quick && await hasRedis(context.say)
    ? await fromNpm(context, "ioredis", startRedis, { name: "Redis cluster of 3", path, target: 1 })
    : [];
  return await runCase({
    name: "durable counter per session, 64 connections",
    connections: 64,
    sessions: SESSIONS,
    ours: { name: "sojourn", start: startSojourn, path: "/count" },
    peers: [
      { name: "Deno.openKv", start: () => startPeer("kv", context.folder), path, target: 5 },
      ...await fromNpm(context, "workerd", startWorkerd, { name: "workerd Durable Object", path, target: 8 }),
      ...redis,
      ...await fromNpm(context, "restate", startRestate, {
        name: "Restate virtual object",
        path: "/counter/{session}/add",
        target: 20,
      }),
    ],
  }, context);
}

/** Latency that one covered read adds to a function, at one connection. */
async function readAdds(context: BenchContext): Promise<BenchRecord[]> {
  const added: number[] = [];
  const server = await startSojourn();
  try {
    for (let run = 0; run < (context.quick ? 1 : 5); run++) {
      const input: ReadInput = {
        hostname: "127.0.0.1",
        port: server.port,
        without: `${server.prefix}/hello`,
        with: `${server.prefix}/read`,
        warmMs: context.quick ? 300 : 2_000,
        runMs: context.quick ? 700 : 6_000,
      };
      added.push(await runFresh({ name: "one covered read", script: READ, input }) as number);
      context.say(`one covered read adds ${added.at(-1)?.toFixed(0)} µs at p50`);
    }
  } finally {
    await server.stop();
  }
  return [record({
    bench: "http",
    case: "one covered read adds, 1 connection",
    unit: "µs p50",
    samples: added,
    target: { of: "median", op: "<=", value: 100 },
    comparable: !context.quick,
  })];
}

/** In this order; those of the gate's quick run say so. */
const CASES: Readonly<Record<string, { run: typeof stateless; quick: boolean }>> = {
  stateless: { run: stateless, quick: true },
  durable: { run: durable, quick: true },
  read: { run: readAdds, quick: true },
  cold: { run: coldIsolates, quick: true },
  cluster: { run: cluster, quick: false },
};

/** The cases that `--cases a,b` names. @throws TypeError for others. */
function wanted(context: BenchContext): string[] {
  const [option = "", value = ""] = context.args;
  const text = option.startsWith("--cases=") ? option.slice("--cases=".length) : value;
  if (option === "") return Object.keys(CASES).filter((name) => !context.quick || CASES[name]?.quick);
  const names = text.split(",");
  const isKnown = option.startsWith("--cases") && names.every((name) => Object.hasOwn(CASES, name));
  if (!isKnown) {
    const known = Object.keys(CASES).join(",");
    throw new TypeError(`http takes --cases with some of ${known}, not ${context.args.join(" ")}`);
  }
  return names;
}

async function run(context: BenchContext): Promise<BenchRecord[]> {
  const records: BenchRecord[] = [];
  for (const name of wanted(context)) records.push(...await CASES[name]?.run(context) ?? []);
  return records;
}

/** See the file header. */
export const bench: Bench = {
  name: "http",
  summary: "a function, a read, a durable write, against what else there is; cold isolates, memory, start",
  options: ["--cases stateless,durable,read,cold,cluster   some of its cases"],
  notMeasured: "other machines as clients: the load generator shares the cores with what it measures",
  byDefault: true,
  run,
};
