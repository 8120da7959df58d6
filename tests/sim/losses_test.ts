import { deepStrictEqual, ok } from "node:assert/strict";
import { openReplica } from "../../store/replica.ts";
import { alone } from "./broken/hooks.ts";
import { wandering } from "./broken/resync.ts";
import { STORE_EXCUSES } from "./excuses.ts";
import { Scene } from "./scene.ts";
import { simulate } from "./simulation.ts";
import { NO_FAULTS, type Plan } from "./topology.ts";

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
  const known = STORE_EXCUSES.map(({ name }) => `excused ${name}`);
  deepStrictEqual(excusesOf(all).filter((name) => !known.includes(name)), []);
  return all;
}

const excusesOf = (probes: Readonly<Record<string, number>>): string[] =>
  Object.keys(probes).filter((name) => name.startsWith("excused "));

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

Deno.test("nobody is refused, nor told of a loss, where nothing fails", async () => {
  const probes = await holds(6_000, (plan) => ({
    ...alone(plan),
    faults: NO_FAULTS,
    valueBytes: 0,
    pendingBytesMax: 1 << 20,
    sites: alone(plan).sites.map((site) => ({
      ...site,
      linkMs: [1, 5] as const,
      linkLoss: 0,
      linkBytesPerMs: Infinity,
    })),
  }));
  deepStrictEqual(excusesOf(probes), []);
  ok((probes["request: ok"] ?? 0) > 500);
});

Deno.test("a session is told of no loss where its site's disk, or one above, is lost long after", async () => {
  for (const lost of ["e1", "c"]) {
    const scene = new Scene({
      root: { parent: null, linkMs: 1 },
      c: { parent: "root", linkMs: 5 },
      e1: { parent: "c", linkMs: 5 },
      e2: { parent: "root", linkMs: 5 },
    });
    await scene.start();
    const session = await scene.attach("e1");
    await scene.write(session, 0, 1);
    const token = session.token(false);
    // Marks go up and down four times a second where nothing happens.
    await scene.pass(1_500);
    scene.site(lost).wipe();
    await scene.pass(100);
    await scene.site(lost).start();
    const next = await scene.attach("e2", token);
    deepStrictEqual(await scene.read(next, 0), 1, lost);
    deepStrictEqual(await scene.read(await scene.attach("e1", token), 0), 1, lost);
  }
});
