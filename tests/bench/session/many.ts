/** 10,000 stateful sessions on one site that nobody asks anything: what each weighs, open, and after it has left memory. */
import type { BenchContext } from "../bench.ts";
import { type BenchRecord, record } from "../record.ts";
import { childrenOf, connect, memoryOf, startSites } from "./real_sites.ts";

/** Sessions leave memory after so long. */
const IDLE_MS = { quick: 500, whole: 15_000 };
/** What was allocated on the way has been collected by then. */
const SETTLE_MS = { quick: 100, whole: 1_500 };

/** Memory of a site's process and its isolates, before and after. */
export async function many(context: BenchContext): Promise<BenchRecord[]> {
  const sessions = context.quick ? 200 : 10_000;
  const size = context.quick ? "quick" : "whole";
  const cluster = await startSites(0, context.folder, { SOJOURN_LIMITS_STATEFULIDLEMS: `${IDLE_MS[size]}` });
  try {
    const { pid } = await cluster.site("edge-1");
    const open = async () => {
      const answer = await fetch(`${cluster.url("edge-1")}/_sojourn/status`, {
        headers: { authorization: `Bearer ${cluster.adminToken}` },
      });
      return (await answer.json() as { stateful: { open: number } }).stateful.open;
    };
    const weigh = async () => {
      await new Promise((resolve) => setTimeout(resolve, SETTLE_MS[size]));
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
    while (await open() > 0) await new Promise((resolve) => setTimeout(resolve, 100));
    const closed = await weigh();
    for (const asker of askers) asker.close();
    const each = (bytes: number) => [Math.max(0, bytes) / sessions];
    context.say(
      `${sessions} sessions, ${counted} open: site ${
        Math.round(each(opened.site - before.site)[0] ?? 0)
      }, isolates ` +
        `${Math.round(each(opened.isolates - before.isolates)[0] ?? 0)} bytes each`,
    );
    const of = { bench: "session", unit: "bytes", comparable: !context.quick };
    const name = `${sessions} idle stateful sessions on one site, each`;
    return [
      record({ ...of, case: `${name}: open, the site's process`, samples: each(opened.site - before.site) }),
      record({
        ...of,
        case: `${name}: open, its isolates`,
        samples: each(opened.isolates - before.isolates),
      }),
      record({
        ...of,
        case: `${name}: out of memory, the site's process`,
        samples: each(closed.site - before.site),
      }),
    ];
  } finally {
    await cluster.stop();
  }
}
