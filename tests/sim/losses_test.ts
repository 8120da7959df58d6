import { deepStrictEqual, ok } from "node:assert/strict";
import { openReplica } from "../../store/replica.ts";
import { wandering } from "./broken/resync.ts";
import { simulate } from "./simulation.ts";
import type { Plan } from "./topology.ts";

const SEEDS = 20;

/** Runs seeds with a changed plan; the sum of their probes. */
async function holds(
  first: number,
  change: (plan: Plan) => Plan,
  seeds = SEEDS,
): Promise<Record<string, number>> {
  const all: Record<string, number> = {};
  for (let seed = first; seed < first + seeds; seed++) {
    const { violations, probes } = await simulate({ seed, open: openReplica, change });
    deepStrictEqual(violations, [], `seed ${seed}`);
    for (const [name, count] of Object.entries(probes)) all[name] = (all[name] ?? 0) + count;
  }
  return all;
}

Deno.test("store keeps its guarantees when inner sites lose their disks, several at once", async () => {
  const probes = await holds(
    1_000,
    // Such losses and moves together: see topology.ts `moving`.
    (plan) => ({ ...plan, faults: { ...plan.faults, wipeInner: 4, wipe: 2, move: 0, adopt: 0 } }),
  );
  ok((probes["request: source_lost"] ?? 0) > 0, "nobody was told of a loss");
});

Deno.test("store keeps its guarantees when deletions are collected all the time", async () => {
  const probes = await holds(2_000, (plan) => ({
    ...plan,
    horizonMs: 100,
    weights: { ...plan.weights, delete: 3 },
    faults: { ...plan.faults, wipe: 3, partition: 5 },
  }));
  ok((probes["collected"] ?? 0) > 0, "nothing was collected");
});

Deno.test("store refuses writes and loses none where little may wait for the way up", async () => {
  const probes = await holds(3_000, (plan) => ({
    ...plan,
    pendingBytesMax: 2_500,
    faults: { ...plan.faults, partition: 6 },
  }));
  ok((probes["request: pending_full"] ?? 0) > 0, "nothing was refused");
});

Deno.test("a child that covers everything is shown every change", async () => {
  const probes = await holds(4_000, (plan) => {
    const leaf = plan.sites.findLast((site) => site.tier === "edge");
    return {
      ...plan,
      groups: 1,
      keysPerGroup: 8,
      watch: leaf === undefined ? null : { site: leaf.id, group: 0 },
    };
  });
  ok((probes["request: ok"] ?? 0) > 0);
});

Deno.test("store keeps its guarantees when sites move all the time with the rows that they had", async () => {
  const probes = await holds(5_000, wandering, 6);
  ok((probes["same_rows"] ?? 0) > 100, `${probes["same_rows"]} rows were the same`);
  ok((probes["compared_parts"] ?? 0) > 50, `${probes["compared_parts"]} answers by parts`);
});
