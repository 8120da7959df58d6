/** Queues over 1 to 6 sites in virtual time, and what the checkers make of them when they are broken. */
import { strict as assert } from "node:assert";
import { excusedTooOften } from "../sim/excuses.ts";
import { VARIANTS } from "./sim/broken.ts";
import { QUEUES_EXCUSES } from "./sim/excuses.ts";
import { type QueuesRun, simulateQueues } from "./sim/simulation.ts";

/** The seeds of every test run: some seconds. */
const SEEDS = 15;

Deno.test("queues lose nothing and keep what they say, on a fixed set of seeds", async () => {
  const probes: Record<string, number> = {};
  for (let seed = 0; seed < SEEDS; seed++) {
    const run = await simulateQueues(seed);
    assert.deepEqual(run.violations, [], `seed ${seed}`);
    for (const [name, count] of Object.entries(run.probes)) probes[name] = (probes[name] ?? 0) + count;
  }
  for (
    const name of [
      "acknowledged",
      "adopted",
      "timed_out",
      "dead: attempts",
      "dead: expired",
      "dead: rejected",
      "redriven",
      "a pause",
      "fault: crash",
      "fault: planned stop",
    ]
  ) {
    assert.ok((probes[name] ?? 0) > 0, `no seed reached: ${name}`);
  }
  assert.deepEqual(excusedTooOften(QUEUES_EXCUSES, probes, SEEDS), []);
});

Deno.test("queues: a seed runs the same twice", async () => {
  const shown = ({ history: { told }, probes }: QueuesRun) => JSON.stringify({ told, probes });
  assert.equal(shown(await simulateQueues(3)), shown(await simulateQueues(3)));
});

Deno.test("queues without faults and with good consumers deliver each message once", async () => {
  for (let seed = 0; seed < 5; seed++) {
    const calm = { crashes: 0, wipes: 0, leaves: 0, partitions: 0, lossChance: 0 };
    const { violations, probes } = await simulateQueues(seed, {
      change: (plan) => ({
        ...plan,
        ...calm,
        queues: plan.queues.map((queue) => ({
          ...queue,
          ...{ failChance: 0, killChance: 0, slowMs: 0 },
        })),
      }),
    });
    const excused = Object.keys(probes).filter((name) => name.startsWith("excused "));
    assert.deepEqual([violations, excused], [[], []], `seed ${seed}`);
    assert.equal(probes["redelivered"] ?? 0, 0);
  }
});

for (const { name, wrongs, change, caughtBy, seeds } of VARIANTS) {
  Deno.test(`queues broken on purpose are caught: ${name}`, async () => {
    for (let seed = 0; seed < seeds; seed++) {
      const { violations } = await simulateQueues(seed, { wrongs: wrongs(), change });
      if (violations.some(({ checker }) => caughtBy.includes(checker))) return;
    }
    assert.fail(`no checker saw it in ${seeds} seeds`);
  });
}
