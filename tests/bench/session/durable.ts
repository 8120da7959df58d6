/**
 * One message through real sites, kept on disks before it is answered: the home's own (f = 0), and another's too (f = 1).
 * Beside each: a function's echo over the same connection, and the disk's fsync of the same minute.
 */
import { connect as connectClient } from "../../../functions/client/mod.ts";
import type { BenchContext } from "../bench.ts";
import type { TestCluster } from "../../e2e/cluster.ts";
import { cpuMs } from "../cpu.ts";
import { runFresh } from "../fresh.ts";
import type { LoadInput, LoadResult } from "../http/load.ts";
import { probeFsync } from "../machine.ts";
import { type BenchRecord, median, record } from "../record.ts";
import { atSites, connect, EDGE_RTT_MS } from "./real_sites.ts";

const LOAD = new URL("../http/load.ts", import.meta.url);

interface Pass {
  readonly addedMs: number;
  readonly p50Ms: number;
  /** The same over a plain WebSocket. */
  readonly socketMs: number;
  /** The same for the client library, by where the log is. */
  readonly ownersMs: number;
  readonly hostsMs: number;
  readonly perSecond: number;
  readonly cpuMicros: number;
  readonly fsyncMs: number;
}

async function pass(cluster: TestCluster, context: BenchContext): Promise<Pass> {
  const asker = await connect(cluster, "edge-1");
  const echo: number[] = [], counted: number[] = [];
  for (let i = 0; i < 50; i++) await asker.ask("/count");
  for (let i = 0; i < (context.quick ? 60 : 600); i++) {
    echo.push(await asker.ask("/hello"));
    counted.push(await asker.ask("/count"));
  }
  asker.close();
  const socketMs = median(await overSocket(cluster, context.quick ? 60 : 600));
  const library = await overLibrary(cluster, context.quick ? 60 : 600);
  const { hostname, port } = new URL(cluster.url("edge-1"));
  const input: LoadInput = {
    ...{
      hostname,
      port: Number(port),
      path: "/stateful/count?s={session}",
      connections: 64,
      sessions: 640,
    },
    ...{ warmMs: context.quick ? 300 : 2_000, runMs: context.quick ? 500 : 3_000 },
  };
  const pids = Object.values(cluster.sites).map(({ pid }) => pid);
  const before = await cpuMs(pids);
  const load = await runFresh({ name: "durable", script: LOAD, input }) as LoadResult;
  if (load.errors > 0) throw new Error(`${load.errors} of ${load.total} messages failed`);
  const after = await cpuMs(pids);
  const used = after.reduce((sum, ms, i) => sum + ms - (before[i] ?? 0), 0);
  const { medianMs: fsyncMs } = await probeFsync(context.folder);
  const p50Ms = median(counted);
  return {
    ...{ p50Ms, socketMs, ...library, addedMs: p50Ms - median(echo), fsyncMs },
    ...{ perSecond: load.perSecond, cpuMicros: (used * 1000) / load.total },
  };
}

/**
 * Milliseconds of messages of the client library, each sent when the one before was answered: to a session whose owners
 * keep the log, and to one whose client does, in turn.
 */
async function overLibrary(
  cluster: TestCluster,
  count: number,
): Promise<{ readonly ownersMs: number; readonly hostsMs: number }> {
  const client = await connectClient({ sites: [`${cluster.url("edge-1")}/stateful`] });
  try {
    const [owners, hosts] = ["/socket?s=owners", "/socket?s=hosts&hosts"].map((path) => {
      const socket = new client.WebSocket(path);
      const opened = new Promise<void>((done, failed) => {
        socket.onopen = () => done();
        socket.onclose = ({ code, reason }) => failed(new Error(`${path} was closed: ${code} ${reason}`));
      });
      return { socket, opened, tookMs: [] as number[] };
    });
    if (owners === undefined || hosts === undefined) throw new Error("two were to be there");
    const ask = async ({ socket, opened, tookMs }: typeof owners) => {
      await opened;
      const begun = performance.now();
      await new Promise<void>((done) => {
        socket.onmessage = () => done();
        socket.send("one more");
      });
      tookMs.push(performance.now() - begun);
    };
    for (let i = 0; i < WARM + count; i++) {
      for (const each of i % 2 === 0 ? [owners, hosts] : [hosts, owners]) await ask(each);
    }
    for (const { socket } of [owners, hosts]) socket.onclose = null;
    return { ownersMs: median(owners.tookMs.slice(WARM)), hostsMs: median(hosts.tookMs.slice(WARM)) };
  } finally {
    await client.close();
  }
}

/** Messages until a client is on record: until then it waits for what others wait for. */
const WARM = 100;

/** Milliseconds of messages over a plain WebSocket, each sent when the one before was answered. */
async function overSocket(cluster: TestCluster, count: number): Promise<number[]> {
  const socket = new WebSocket(`${cluster.url("edge-1").replace("http", "ws")}/stateful/socket?s=socket`);
  const tookMs: number[] = [];
  await new Promise<void>((done, failed) => {
    let begun = 0;
    const next = () => {
      begun = performance.now();
      socket.send("one more");
    };
    socket.onopen = next;
    socket.onmessage = () => {
      tookMs.push(performance.now() - begun);
      if (tookMs.length < count) next();
      else done();
    };
    socket.onerror = () => failed(new Error("the WebSocket broke"));
  });
  const closed = new Promise((resolve) => socket.onclose = resolve);
  socket.close();
  await closed;
  return tookMs.slice(10);
}

/** The figures of both. */
export async function durable(context: BenchContext, given?: TestCluster): Promise<BenchRecord[]> {
  const records: BenchRecord[] = [];
  const of = { bench: "session", comparable: !context.quick };
  for (const f of context.quick ? [1] as const : [0, 1] as const) {
    const passes: Pass[] = [];
    for (let run = 0; run < (context.quick ? 1 : 3); run++) {
      const one = await atSites(given ?? f, context, (cluster) => pass(cluster, context));
      passes.push(one);
      context.say(
        `f = ${f}: ${one.p50Ms.toFixed(2)} ms, ${one.addedMs.toFixed(2)} beyond an echo, fsync ` +
          `${one.fsyncMs.toFixed(2)} ms; library ${one.ownersMs.toFixed(2)} ms, with the log at its client ` +
          `${one.hostsMs.toFixed(2)} ms; ${Math.round(one.perSecond)}/s, ${one.cpuMicros.toFixed(0)} µs CPU`,
      );
    }
    const name = `figure 2: a plain client's message, durable, f = ${f}`;
    const trips = f === 0 ? 0 : EDGE_RTT_MS;
    records.push(
      record({
        ...of,
        case: `${name}, one at a time`,
        unit: "ms p50",
        samples: passes.map(({ p50Ms }) => p50Ms),
      }),
      record({
        ...of,
        case: `${name}, one at a time, over a plain WebSocket`,
        unit: "ms p50",
        samples: passes.map(({ socketMs }) => socketMs),
      }),
      record({
        ...of,
        case: `a library client's message, one at a time, f = ${f}`,
        unit: "ms p50",
        samples: passes.map(({ ownersMs }) => ownersMs),
      }),
      record({
        ...of,
        case: `a library client's message, one at a time, f = ${f}, its log at the client`,
        unit: "ms p50",
        samples: passes.map(({ hostsMs }) => hostsMs),
      }),
      record({
        ...of,
        case: `${name}, beyond an echo, a probe's fsync${f === 0 ? "" : " and the round trip to the owner"}`,
        unit: "ms p50",
        samples: passes.map(({ addedMs, fsyncMs }) => addedMs - fsyncMs - trips),
        target: { of: "median", op: "<=", value: 0.1 },
      }),
      record({
        ...of,
        case: `${name}: the disk beside it`,
        unit: "ms fsync",
        samples: passes.map(({ fsyncMs }) => fsyncMs),
      }),
      record({
        ...of,
        case: `${name}, 64 under way`,
        unit: "messages/s",
        samples: passes.map((one) => one.perSecond),
      }),
      record({
        ...of,
        case: `${name}, 64 under way, all sites and isolates`,
        unit: "CPU µs/message",
        samples: passes.map(({ cpuMicros }) => cpuMicros),
      }),
    );
  }
  return records;
}
