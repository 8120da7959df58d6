/** All that stateful sessions are made of, together, in virtual time (tests/stateful/whole). */
import { strict as assert } from "node:assert";
import { VARIANTS } from "./whole/broken.ts";
import { survey } from "./whole/crash_points.ts";
import { simulateWhole } from "./whole/simulation.ts";

/** The seeds of every test run: a few seconds. */
const SEEDS = 30;

Deno.test("sessions, standbys, clients, origins and moves together lose nothing and contradict nothing, on a fixed set of seeds", async () => {
  const probes: Record<string, number> = {};
  for (let seed = 0; seed < SEEDS; seed++) {
    const run = await simulateWhole(seed);
    assert.deepEqual(run.violations, [], `seed ${seed}`);
    for (const [name, count] of Object.entries(run.probes)) probes[name] = (probes[name] ?? 0) + count;
  }
  const wanted = [
    ...["recovered", "moved", "standby promoted", "followed", "mended", "undone", "posted", "swapped"],
    ...["rejected message", "rejected timer", "rejected request", "socket resumed", "fault: kill"],
    ...["fault: stop", "fault: partition", "device lost: moved", "asked again"],
  ];
  for (const name of wanted) assert.ok((probes[name] ?? 0) > 0, `no seed reached: ${name}`);
});

Deno.test("sessions, standbys, clients, origins and moves together: a seed runs the same twice", async () => {
  assert.equal((await simulateWhole(11)).seen, (await simulateWhole(11)).seen);
});

for (const { name, make, change, passes, caughtBy, seeds } of VARIANTS) {
  Deno.test(`sessions, standbys, clients, origins and moves together, broken on purpose, are caught: ${name}`, async () => {
    for (let seed = 0; seed < seeds; seed++) {
      const options = () => ({ change, ...(passes === undefined ? {} : { passes: passes() }) });
      const { violations } = await simulateWhole(seed, { ...options(), wrongs: make() });
      if (!violations.some(({ checker }) => caughtBy.includes(checker))) continue;
      assert.deepEqual((await simulateWhole(seed, options())).violations, [], `seed ${seed}, unbroken`);
      return;
    }
    assert.fail(`no checker saw it in ${seeds} seeds`);
  });
}

Deno.test("sessions, standbys, clients, origins and moves together outlive a fault wherever they take a step", async () => {
  for (const [seed, first] of [[0, 1], [1, 3]] as const) {
    const { points, recovered, violations } = await survey(seed, { every: 5, first });
    assert.deepEqual(violations, []);
    assert.ok(points > 200 && recovered > 10, `${points} points, ${recovered} recoveries`);
  }
});
