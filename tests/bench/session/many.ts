/**
 * 10,000 stateful sessions on one site that nobody asks anything: what each weighs, open, and after it has left memory.
 * Told twice: what the site's process holds without its garbage, and by how much its pages have grown, which V8 gives
 * back later, or keeps for what is allocated next.
 */
import type { TestCluster } from "../../e2e/cluster.ts";
import type { BenchContext } from "../bench.ts";
import { type BenchRecord, record } from "../record.ts";
import { atSites, childrenOf, connect, liveOf, memoryOf } from "./real_sites.ts";

/** Sessions leave memory after so long: later than the last of them is opened. */
const IDLE_MS = 60_000;
/** What was allocated on the way has been collected by then. */
const SETTLE_MS = 1_500;
/** TARGETS: an idle session, without its state, wherever it is. */
const TARGET = { of: "median", op: "<=", value: 6 * 1024 } as const;

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
    const isolates = memoryOf(childrenOf(pid)), site = memoryOf([pid]);
    return { live: await liveOf(pid, context.folder), site, isolates };
  };
  const askers = await Promise.all(Array.from({ length: 32 }, () => connect(cluster, "edge-1")));
  for (const asker of askers) await asker.insist("/count?s=first");
  const before = await weigh();
  let next = 0;
  await Promise.all(askers.map(async (asker) => {
    while (next < sessions) await asker.insist(`/count?s=idle-${next++}`);
  }));
  const [opened, counted] = [await weigh(), await open()];
  for (const asker of askers) asker.close();
  context.say(`${counted} of ${sessions} sessions were open when they were weighed`);
  const of = { bench: "session", unit: "bytes", comparable: !context.quick };
  const each = (what: string, bytes: number) => ({
    ...of,
    case: `${sessions} idle stateful sessions on one site, each: ${what}`,
    samples: [Math.max(0, bytes) / sessions],
  });
  const records = [
    record({ ...each("open, held by the site's process", opened.live - before.live), target: TARGET }),
    record(each("open, resident in the site's process", opened.site - before.site)),
    record(each("open, resident in its isolates", opened.isolates - before.isolates)),
  ];
  if (context.quick) return records;
  while (await open() > 0) await new Promise((resolve) => setTimeout(resolve, 100));
  const closed = await weigh();
  return [
    ...records,
    record({
      ...each("out of memory, held by the site's process", closed.live - before.live),
      target: TARGET,
    }),
    record(each("out of memory, resident in the site's process", closed.site - before.site)),
  ];
}
