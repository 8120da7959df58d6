/** Stateful sessions on 2 to 5 sites in virtual time, and what the checker makes of them when they are broken. */
import { strict as assert } from "node:assert";
import { excusedTooOften } from "../sim/excuses.ts";
import { VARIANTS } from "./sim/broken.ts";
import { STATE_VARIANTS } from "./sim/broken_states.ts";
import { surveyCrashes } from "./sim/crash_points.ts";
import { HOMES_EXCUSES } from "./sim/excuses.ts";
import { simulateStateful, type StatefulRun } from "./sim/simulation.ts";

/** The seeds of every test run: a few seconds. */
const SEEDS = 60;
/** Beside them: a session rests, or moves, while commits, checkpoints and timers of it are under way. */
const MORE_SEEDS = [777200782, 777400830];

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

for (const variant of [...VARIANTS, ...STATE_VARIANTS]) {
  Deno.test(`stateful sessions broken on purpose are caught: ${variant.name}`, async () => {
    for (let seed = 0; seed < variant.seeds; seed++) {
      const { violations } = await simulateStateful(seed, variant);
      const found = violations.find(({ checker }) => variant.caughtBy.includes(checker));
      if (found !== undefined) return;
    }
    assert.fail(`no checker saw it in ${variant.seeds} seeds`);
  });
}

Deno.test("stateful sessions outlive a crash wherever the code of homes yields", async () => {
  for (const [seed, second, every] of [[0, 0, 1], [2, 17, 2]] as const) {
    const { points, recovered, violations } = await surveyCrashes(seed, { second, every });
    assert.deepEqual(violations, []);
    assert.ok(points > 100 && recovered > points / every / 2, `${points} points, ${recovered} recoveries`);
  }
});
