/**
 * Benchmark `telemetry`: what a request costs in CPU time with telemetry off, with one trace in a hundred, and with
 * every one recorded (docs/telemetry.md). Three sites run side by side and are asked in turn, in short rounds, so
 * that a machine that is busy with something else is so for all; the collector is this process, and not counted.
 */
import { join } from "node:path";
import { startCluster } from "../e2e/cluster.ts";
import type { Bench, BenchContext } from "./bench.ts";
import { cpuMs } from "./cpu.ts";
import { runFresh } from "./fresh.ts";
import type { LoadInput, LoadResult } from "./http/load.ts";
import { type BenchRecord, record } from "./record.ts";

const LOAD = new URL("./http/load.ts", import.meta.url);
const CASES = [
  { name: "stateless function", path: "/load/hello" },
  { name: "durable counter per session", path: "/load/count" },
];
const RATIOS = { off: null, "1 %": 0.01, "100 %": 1 } as const;
type Setting = keyof typeof RATIOS;

interface Site {
  readonly setting: Setting;
  readonly port: number;
  readonly pid: number;
}

/** CPU µs of the site and its isolates for each request of one round. */
async function round(site: Site, path: string, quick: boolean): Promise<number> {
  const input: LoadInput = {
    hostname: "127.0.0.1",
    port: site.port,
    path,
    connections: 16,
    sessions: 200,
    warmMs: 0,
    runMs: quick ? 300 : 2_000,
  };
  const [before = 0] = await cpuMs([site.pid]);
  const result = await runFresh({ name: site.setting, script: LOAD, input }) as LoadResult;
  const [after = 0] = await cpuMs([site.pid]);
  if (result.errors > 0) throw new Error(`${site.setting}: ${result.errors} of ${result.requests} failed`);
  return (after - before) * 1000 / result.requests;
}

async function start(setting: Setting, collector: string): Promise<Site & { stop(): Promise<void> }> {
  const ratio = RATIOS[setting];
  const otel = { endpoint: collector, ratio, tracesPerSecondMax: 1_000_000 };
  const cluster = await startCluster({
    topology: "single",
    apps: [join(import.meta.dirname ?? ".", "apps", "load")],
    env: {
      SOJOURN_OTEL: JSON.stringify(ratio === null ? false : otel),
      OTEL_BSP_SCHEDULE_DELAY: "200",
      OTEL_BSP_MAX_QUEUE_SIZE: "100000",
    },
  });
  const { pid } = await cluster.site("cloud");
  return { setting, port: Number(new URL(cluster.url("cloud")).port), pid, stop: () => cluster.stop() };
}

async function measure(sites: readonly Site[], { quick, say }: BenchContext): Promise<BenchRecord[]> {
  const records: BenchRecord[] = [];
  for (const { name, path } of CASES) {
    const samples = new Map<Setting, number[]>(sites.map(({ setting }) => [setting, []]));
    const rounds = quick ? 1 : 7;
    if (!quick) { for (const site of sites) await round(site, path, quick); // compiled
     }
    for (let i = 0; i < rounds; i++) {
      for (const site of i % 2 === 0 ? sites : sites.toReversed()) {
        const micros = await round(site, path, quick);
        samples.get(site.setting)?.push(micros);
        say(`${name}, ${site.setting}: ${micros.toFixed(1)} µs CPU a request`);
      }
    }
    const off = samples.get("off") ?? [];
    for (const { setting } of sites) {
      const own = samples.get(setting) ?? [];
      const base = { bench: "telemetry", case: `${name}, ${setting}`, unit: "CPU µs/request", samples: own };
      records.push(
        setting === "off"
          ? record(base)
          : record({ ...base, peer: { name: "off", samples: off }, comparable: !quick }),
      );
    }
  }
  return records;
}

async function run(context: BenchContext): Promise<BenchRecord[]> {
  let bytes = 0;
  const collector = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen: () => {} }, async (request) => {
    bytes += (await request.arrayBuffer()).byteLength;
    return Response.json({});
  });
  const settings: Setting[] = context.quick ? ["off", "100 %"] : ["off", "1 %", "100 %"];
  const url = `http://127.0.0.1:${collector.addr.port}`;
  const sites = await Promise.all(settings.map((setting) => start(setting, url)));
  try {
    return await measure(sites, context);
  } finally {
    context.say(`the collector was sent ${(bytes / 1024 / 1024).toFixed(1)} MiB`);
    await Promise.all(sites.map((site) => site.stop()));
    await collector.shutdown();
  }
}

/** See the file header. */
export const bench: Bench = {
  name: "telemetry",
  summary: "CPU time of a request with telemetry off, at 1 % and at 100 %",
  notMeasured: "the collector; latency, which on a busy machine says more of the machine",
  byDefault: true,
  run,
};
