/** All that stateful sessions are made of, together, in virtual time (tests/stateful/whole). */
import { strict as assert } from "node:assert";
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
