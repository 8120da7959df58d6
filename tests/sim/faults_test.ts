/** A fault is over when the faults have ended: nobody goes down later, while runs wait for peace or are judged. */
import { deepStrictEqual, ok } from "node:assert/strict";
import { openReplica } from "../../store/replica.ts";
import { Cluster } from "./cluster.ts";
import { SCENARIOS } from "./scenarios.ts";
import { HEAL_MS_MAX } from "./simulation.ts";
import { type FaultPlan, NO_FAULTS, type Plan } from "./topology.ts";

const RUNS = 20;
const SAFETY_MS = 400;
/** Near enough to join in time, and so far that a site which is drained waits for the root's word. */
const LINK_MS = [40, 40] as const;
/** A drain takes 1.5 s at most, and an idle site writes to its disk within this. */
const LATER_MS = 10_000;

const BASE = SCENARIOS.find(({ name }) => name === "planned stop")?.plan;

/** Which sites that were up started again as the faults ended, and what is said of sites later. */
async function endOf(name: string, faults: Partial<FaultPlan>) {
  ok(BASE !== undefined);
  const plan: Plan = {
    ...BASE,
    requests: 0,
    systemWrites: 0,
    safetyMs: SAFETY_MS,
    sites: BASE.sites.map((site) => ({ ...site, linkMs: LINK_MS })),
    faults: { ...NO_FAULTS, ...faults },
  };
  const cluster = new Cluster(plan, { name, open: openReplica });
  const saidFrom = (index: number) =>
    cluster.events.slice(index).flatMap((event) => event.kind === "fault" ? [event.text] : []);
  cluster.schedule();
  await cluster.world.run(plan.safetyMs);
  const up = [...cluster.sites.values()].filter(({ process }) => process !== null);
  const atEnd = cluster.events.length;
  let hasEnded = false;
  void cluster.faults.end().then(() => hasEnded = true);
  await cluster.peace("faults end", () => hasEnded, HEAL_MS_MAX);
  const started = saidFrom(atEnd).filter((text) => up.some(({ plan }) => text === `${plan.id} starts`));
  const { length } = cluster.events;
  await cluster.world.run(cluster.world.nowMs + LATER_MS);
  return { started, later: saidFrom(length) };
}

for (const [fault, what] of [["stop", "is being stopped"], ["diskFull", "has a full disk"]] as const) {
  Deno.test(`faults have ended when a site that ${what} is up again`, async () => {
    let started = 0;
    for (let run = 0; run < RUNS; run++) {
      const end = await endOf(`${fault} ${run}`, { [fault]: 2 });
      deepStrictEqual(end.later, [], `run ${run}`);
      started += end.started.length;
    }
    ok(started > 0);
  });
}
