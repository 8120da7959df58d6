/**
 * Every crash point of join, fetch, feed, push and handoff, one by one: whoever passes a point for the n-th time
 * crashes there, on a small tree with much pending at its core.
 */
import { deepStrictEqual, ok } from "node:assert/strict";
import { openReplica } from "../../store/replica.ts";
import { deep } from "./broken/hooks.ts";
import { POINTS } from "./crash_points.ts";
import { simulate } from "./simulation.ts";
import type { Plan } from "./topology.ts";

/** Joining takes the first few of each kind; what follows repeats itself. */
const NTH = [1, 2, 3, 5, 8, 13, 30];
const SEED = 4;

const calm = (point: string, nth: number) => (plan: Plan): Plan => ({
  ...deep(plan),
  sites: deep(plan).sites.filter((site) => site.id !== "c1").map((site) =>
    site.parent === "c1" ? { ...site, parent: "root", linkMs: [3, 30] as const } : site
  ),
  requests: 60,
  safetyMs: 700,
  faults: {
    crash: 0,
    stop: 0,
    wipe: 0,
    wipeInner: 0,
    partition: 0,
    stall: 0,
    evict: 6,
    nap: 0,
    diskFull: 0,
    leap: 0,
    jump: 0,
    oneWay: 0,
    slowLinks: 0,
    slowDisk: 0,
    point: 0,
    remove: 0,
  },
  crashes: [{ point, nth }],
});

for (const point of POINTS) {
  Deno.test(`store keeps its guarantees when a site crashes: ${point}`, async () => {
    let reached = 0;
    for (const nth of NTH) {
      const { violations, probes } = await simulate({
        seed: SEED,
        open: openReplica,
        change: calm(point, nth),
      });
      deepStrictEqual(violations, [], `the ${nth}. time`);
      reached += probes[`crash point: ${point}`] ?? 0;
    }
    ok(reached > 0, "the point is never reached");
  });
}
