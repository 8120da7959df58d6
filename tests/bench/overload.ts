/**
 * Ten times what a site can do, from clients that know nothing of each other: how long those wait who are served, how soon
 * the others are sent away, and how much of what can be done is still done. The same with 3,000 clients that ask again as
 * soon as they are answered.
 */
import { join } from "node:path";
import { startCluster } from "../e2e/cluster.ts";
import type { Bench, BenchContext } from "./bench.ts";
import { runFresh } from "./fresh.ts";
import type { OpenLoad, OpenResult } from "./overload/load.ts";
import { type BenchRecord, record } from "./record.ts";

const here = import.meta.dirname ?? ".";
const SCRIPT = new URL("./overload/load.ts", import.meta.url);
const TIMES = 10;
/** As many as few clients that wait for their answers keep a site busy with. */
const CALM = 16;
const CONNECTIONS = 3_000;
/** What somebody who clicked waits for. */
const TARGET = { of: "median", op: "<=", value: 1_000 } as const;

/** By what each request takes. */
const PATHS = {
  "5 ms of a processor": "/work",
  "the same and a write": "/write",
  "a call of one stateful session": "/sell",
} as const;

async function passes(context: BenchContext): Promise<BenchRecord[]> {
  const topology = join(context.folder, "topology.json");
  await Deno.writeTextFile(topology, JSON.stringify({ sites: [{ id: "cloud" }] }));
  await using cluster = await startCluster({ topology, apps: [join(here, "apps", "busy")] });
  const { hostname, port } = new URL(cluster.url("cloud"));
  const runs = context.quick ? 1 : 3, unitMs = context.quick ? 400 : 2_000;
  const records: BenchRecord[] = [];
  for (const [what, path] of Object.entries(PATHS)) {
    const load = async (part: Pick<OpenLoad, "perSecond" | "connections">, parts: number) => {
      const input: OpenLoad = {
        ...{ hostname, port: Number(port), path: `/busy${path}` },
        ...{ ...part, warmMs: unitMs, runMs: parts * unitMs },
      };
      return await runFresh({ name: what, script: SCRIPT, input }) as OpenResult;
    };
    const calm: OpenResult[] = [], ten: OpenResult[] = [], crowd: OpenResult[] = [];
    for (let run = 0; run < runs; run++) {
      const can = await load({ perSecond: null, connections: CALM }, 1);
      calm.push(can);
      const perSecond = TIMES * Math.max(1, can.accepted.perSecond);
      ten.push(await load({ perSecond, connections: CONNECTIONS }, 3));
      crowd.push(await load({ perSecond: null, connections: context.quick ? 300 : CONNECTIONS }, 3));
    }
    const of = { bench: "overload", comparable: !context.quick };
    const told = (results: readonly OpenResult[], how: string) => {
      const times = { ...of, unit: "ms" };
      records.push(
        record({
          ...{ ...times, case: `${what}, ${how}: those who are served waited, p50` },
          ...{ samples: results.map(({ accepted }) => accepted.p50Ms), target: TARGET },
        }),
        record({
          ...{ ...times, case: `${what}, ${how}: those who are sent away, p50` },
          samples: results.map(({ refused }) => refused.p50Ms),
        }),
        record({
          ...{ ...of, unit: "/s", case: `${what}, ${how}: served` },
          samples: results.map(({ accepted }) => accepted.perSecond),
          peer: { name: `${CALM} clients`, samples: calm.map(({ accepted }) => accepted.perSecond) },
        }),
        record({
          ...{ ...of, unit: "", case: `${what}, ${how}: answered otherwise, or not sent` },
          samples: results.map(({ failed, unsent }) => failed + unsent),
        }),
      );
    };
    told(ten, `${TIMES} times as many as can be done`);
    told(crowd, `${context.quick ? 300 : CONNECTIONS} clients that never stop`);
  }
  return records;
}

export const bench: Bench = {
  name: "overload",
  summary: "ten times what a site can do: how long those wait who are served",
  notMeasured: "clients on machines of their own: the load generator takes a part of the same cores",
  byDefault: true,
  run: passes,
};
