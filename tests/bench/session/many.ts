/** 10,000 stateful sessions on one site that nobody asks anything: what each weighs, open, and after it has left memory. */
import type { TestCluster } from "../../e2e/cluster.ts";
import type { BenchContext } from "../bench.ts";
import { type BenchRecord, record } from "../record.ts";
import { atSites, childrenOf, connect, memoryOf } from "./real_sites.ts";

/** Sessions leave memory after so long. */
const IDLE_MS = 15_000;
/** What was allocated on the way has been collected by then. */
const SETTLE_MS = 1_500;

/** Memory of a site's process and its isolates, before and after. */
export const many = async (context: BenchContext, given?: TestCluster): Promise<BenchRecord[]> =>
  await atSites(given ?? 0, context, (cluster) => weighed(cluster, context), {
    SOJOURN_LIMITS_STATEFULIDLEMS: `${IDLE_MS}`,
  });

async function weighed(cluster: TestCluster, context: BenchContext): Promise<BenchRecord[]> {
  const sessions = context.quick ? 200 : 10_000;
  const { pid } = await cluster.site("edge-1");
  const open = async () => {
    const headers = { authorization: `Bearer ${cluster.adminToken}` };
    const answer = await fetch(`${cluster.url("edge-1")}/_sojourn/status`, { headers });
    return (await answer.json() as { stateful: { open: number } }).stateful.open;
  };
  const weigh = async () => {
    await new Promise((resolve) => setTimeout(resolve, context.quick ? 0 : SETTLE_MS));
    return { site: memoryOf([pid]), isolates: memoryOf(childrenOf(pid)) };
  };
  const askers = await Promise.all(Array.from({ length: 32 }, () => connect(cluster, "edge-1")));
  for (const asker of askers) await asker.ask("/count?s=first");
  const before = await weigh();
  let next = 0;
  await Promise.all(askers.map(async (asker) => {
    while (next < sessions) await asker.ask(`/count?s=idle-${next++}`);
  }));
  const [opened, counted] = [await weigh(), await open()];
  for (const asker of askers) asker.close();
  const each = (bytes: number) => [Math.max(0, bytes) / sessions];
  const of = { bench: "session", unit: "bytes", comparable: !context.quick };
  const name = `${sessions} idle stateful sessions on one site, each`;
  context.say(`${counted} of ${sessions} sessions were open when they were weighed`);
  const records = [
    record({ ...of, case: `${name}: open, the site's process`, samples: each(opened.site - before.site) }),
    record({ ...of, case: `${name}: open, its isolates`, samples: each(opened.isolates - before.isolates) }),
  ];
  if (context.quick) return records;
  while (await open() > 0) await new Promise((resolve) => setTimeout(resolve, 100));
  const closed = await weigh();
  return [
    ...records,
    record({
      ...of,
      case: `${name}: out of memory, the site's process`,
      samples: each(closed.site - before.site),
    }),
  ];
}
