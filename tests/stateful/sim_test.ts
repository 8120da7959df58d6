/** Stateful sessions on 2 to 5 sites in virtual time, and what the checker makes of them when they are broken. */
import { strict as assert } from "node:assert";
import { excusedTooOften } from "../sim/excuses.ts";
import { VARIANTS } from "./sim/broken.ts";
import { STATE_VARIANTS } from "./sim/broken_states.ts";
import { surveyCrashes } from "./sim/crash_points.ts";
import { HOMES_EXCUSES } from "./sim/excuses.ts";
import { simulateStateful, type StatefulPlan, type StatefulRun } from "./sim/simulation.ts";

/** The seeds of every test run: a few seconds. */
const SEEDS = 60;
/**
 * Beside them: a session rests, or moves, while commits, checkpoints and timers of it are under way; a site has no room
 * for more answers; clients come back to a session that nobody had asked for before; a home that has just ended is to
 * move.
 */
const MORE_SEEDS = [777200782, 777400830, 82, 90000689, 99962890, 99996062, 100000624];

Deno.test("stateful sessions keep what was answered and contradict nothing, on a fixed set of seeds", async () => {
  const probes: Record<string, number> = {};
  for (const seed of [...Array(SEEDS).keys(), ...MORE_SEEDS]) {
    const run = await simulateStateful(seed);
    assert.deepEqual(run.violations, [], `seed ${seed}`);
    for (const [name, count] of Object.entries(run.probes)) probes[name] = (probes[name] ?? 0) + count;
  }
  const wanted = [
    "recovered",
    "configured",
    "superseded",
    "woken",
    "moves",
    "moves in time",
    "moves refused",
    "completed",
    "checkpoints",
    "whole",
    "increment",
    "loaded",
    "replayed",
  ];
  for (
    const name of [
      ...wanted,
      "asked again",
      "asks_again",
      "due",
      "fault: wipe",
      "told past",
      "told overloaded",
    ]
  ) {
    assert.ok((probes[name] ?? 0) > 0, `no seed reached: ${name}`);
  }
  assert.deepEqual(excusedTooOften(HOMES_EXCUSES, probes, SEEDS), []);
});

Deno.test("stateful sessions: a seed runs the same twice", async () => {
  const shown = ({ history, probes }: StatefulRun) => JSON.stringify({ heard: history.heard, probes });
  assert.equal(shown(await simulateStateful(7)), shown(await simulateStateful(7)));
});

/** Nothing goes wrong but that the root goes away in the end. */
const seated = (plan: StatefulPlan): StatefulPlan => {
  const n = Math.max(4, plan.n), f = Math.max(1, Math.min(n - 2, plan.f));
  const delaysMs = Array.from({ length: n }, (_, i) => plan.delaysMs[i] ?? 1);
  const none = { crashes: 0, wipes: 0, partitions: 0, jumps: 0, mistakes: 0, echoChance: 0, slow: false };
  return { ...plan, ...none, n, f, delaysMs, born: 0, host: { ...plan.host, timerMs: 0 }, seats: true };
};

Deno.test("stateful sessions go on while the root is away, whoever they were asked for at (SE1, SE4)", async () => {
  const probes: Record<string, number> = {};
  for (let seed = 0; seed < SEEDS / 2; seed++) {
    const run = await simulateStateful(seed, { change: seated });
    assert.deepEqual(run.violations, [], `seed ${seed}`);
    for (const [name, count] of Object.entries(run.probes)) probes[name] = (probes[name] ?? 0) + count;
  }
  for (const name of ["seated", "served without the root", "moves"]) {
    assert.ok((probes[name] ?? 0) > 0, `no seed reached: ${name}`);
  }
});

Deno.test("stateful sessions that may rest at the root are caught by what asks while it is away", async () => {
  for (let seed = 0; seed < 5; seed++) {
    const { violations } = await simulateStateful(seed, { change: seated, wrongs: { restsAtTheRoot: true } });
    if (violations.some(({ checker }) => checker === "liveness")) return;
  }
  assert.fail("no checker saw it in 5 seeds");
});

for (const variant of [...VARIANTS, ...STATE_VARIANTS]) {
  Deno.test(`stateful sessions broken on purpose are caught: ${variant.name}`, async () => {
    const { first = 0, seeds } = variant;
    for (let seed = first; seed < first + seeds; seed++) {
      const { violations } = await simulateStateful(seed, variant);
      const found = violations.find(({ checker }) => variant.caughtBy.includes(checker));
      if (found !== undefined) return;
    }
    assert.fail(`no checker saw it in ${seeds} seeds from ${first} on`);
  });
}

Deno.test("stateful sessions outlive a crash wherever the code of homes yields", async () => {
  for (const [seed, second, every] of [[0, 0, 1], [2, 17, 2]] as const) {
    const { points, recovered, violations } = await surveyCrashes(seed, { second, every });
    assert.deepEqual(violations, []);
    assert.ok(points > 100 && recovered > points / every / 2, `${points} points, ${recovered} recoveries`);
  }
});
