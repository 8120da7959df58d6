/**
 * 2,000 WebSockets to 2,000 stateful sessions that nobody has used before, at one site: how many are opened and answered a
 * second, and what each costs. With an owner elsewhere a session's first entry is there before its answer leaves.
 */
import type { TestCluster } from "../../e2e/cluster.ts";
import type { BenchContext } from "../bench.ts";
import { cpuMs } from "../cpu.ts";
import { type BenchRecord, record } from "../record.ts";
import { atSites } from "./real_sites.ts";

/** Sockets that are being opened at a time: as many browsers come back when a site does. */
const WIDE = 100;
/** A second is asked for; a machine that others use as well is slower by any factor. */
const TARGET = { of: "median", op: ">=", value: 500 } as const;

/** Openings a second, and microseconds of processor each. */
export const openings = async (context: BenchContext, given?: TestCluster): Promise<BenchRecord[]> => {
  const records: BenchRecord[] = [];
  for (const f of [0, 1] as const) {
    records.push(...await atSites(given ?? f, context, (cluster) => opened(cluster, f, context)));
  }
  return records;
};

async function opened(cluster: TestCluster, f: 0 | 1, context: BenchContext): Promise<BenchRecord[]> {
  const sockets = context.quick ? 50 : 2_000, rounds = context.quick ? 1 : 3;
  const sites = ["cloud", "core-1", "edge-1", "edge-2", "edge-3"];
  const pids = await Promise.all(sites.map(async (site) => (await cluster.site(site)).pid));
  const at = sites.indexOf("edge-1");
  await echoed(cluster, `warm-${f}`).then((socket) => socket.close());
  const rates: number[] = [], all: number[] = [], own: number[] = [];
  for (let round = 0; round < rounds; round++) {
    const before = await cpuMs(pids), begun = performance.now();
    const open: WebSocket[] = [];
    let next = 0;
    await Promise.all(Array.from({ length: WIDE }, async () => {
      while (next < sockets) open.push(await echoed(cluster, `of-${f}-${round}-${next++}`));
    }));
    const s = (performance.now() - begun) / 1_000, after = await cpuMs(pids);
    const used = after.map((ms, i) => ms - (before[i] ?? 0));
    rates.push(sockets / s);
    all.push(1_000 * used.reduce((sum, ms) => sum + ms, 0) / sockets);
    own.push(1_000 * (used[at] ?? 0) / sockets);
    await Promise.all(open.map((socket) =>
      new Promise((resolve) => {
        socket.onclose = resolve;
        socket.close();
      })
    ));
  }
  const of = { bench: "session", comparable: !context.quick };
  const what = `${sockets} sockets to as many new stateful sessions, f = ${f}`;
  return [
    record({ ...of, case: `${what}: opened and answered`, unit: "/s", samples: rates, target: TARGET }),
    record({ ...of, case: `${what}: processor of all sites, each`, unit: "µs", samples: all }),
    record({ ...of, case: `${what}: processor of its site, each`, unit: "µs", samples: own }),
  ];
}

/** A socket to a session of its own whose first message was answered. */
function echoed(cluster: TestCluster, id: string): Promise<WebSocket> {
  const socket = new WebSocket(`${cluster.url("edge-1").replace("http", "ws")}/stateful/socket?s=${id}`);
  return new Promise((resolve, reject) => {
    socket.onopen = () => socket.send("hi");
    socket.onmessage = () => resolve(socket);
    socket.onerror = (event) => reject(new Error(`${id}: ${(event as ErrorEvent).message}`));
    socket.onclose = ({ code, reason }) => reject(new Error(`${id} was closed: ${code} ${reason}`));
  });
}
