/** A stateful session whose clients hold its log, on sites in virtual time, and what is found when a rule is broken. */
import { strict as assert } from "node:assert";
import { VARIANTS } from "./hosts_sim/broken.ts";
import { HARD_PLANS } from "./hosts_sim/hard.ts";
import { type HostsRun, simulateHosts } from "./hosts_sim/simulation.ts";

const SEEDS = 25;
/** Of each hard plan: more are for main.ts. */
const HARD_SEEDS = 2;
/** A variant has to be caught by one of these. */
const VARIANT_SEEDS = 60;
/** Paths that some seed has to take, or the others show nothing. */
const WANTED = [
  ...[
    "opened in a later epoch",
    "host asked",
    "host with nothing",
    "from_hosts",
    "superseded",
    "configured",
    "woken",
  ],
  ...[
    "fault: wipe",
    "fault: partition",
    "fault: isolate",
    "moved",
    "deployed v2",
    "stranger",
    "opened by force",
  ],
  ...[
    "client leaves",
    "client is away",
    "client loses its log",
    "client begins again",
    "ended: refused log_forged",
  ],
];

Deno.test("clients that hold the log are never contradicted, and lose nothing, on a fixed set of seeds", async () => {
  const probes: Record<string, number> = {};
  for (let seed = 0; seed < SEEDS; seed++) {
    const run = await simulateHosts(seed);
    assert.deepEqual(run.violations, [], `seed ${seed}`);
    for (const [name, count] of Object.entries(run.probes)) probes[name] = (probes[name] ?? 0) + count;
  }
  for (const name of WANTED) assert.ok((probes[name] ?? 0) > 0, `no seed reached: ${name}`);
});

Deno.test("they are not where rules meet either", async () => {
  const probes: Record<string, number> = {};
  for (const [name, change] of Object.entries(HARD_PLANS)) {
    for (let seed = 0; seed < HARD_SEEDS; seed++) {
      const run = await simulateHosts(seed, { change });
      assert.deepEqual(run.violations, [], `seed ${seed}, ${name}`);
      for (const [name, count] of Object.entries(run.probes)) probes[name] = (probes[name] ?? 0) + count;
    }
  }
  for (const name of ["client relapses", "client is away for long", "f is 1", "fault: clock"]) {
    assert.ok((probes[name] ?? 0) > 0, `no seed reached: ${name}`);
  }
});

for (const { name, wrongs = {}, patch, change, first = 0, caughtBy } of VARIANTS) {
  Deno.test(`it is found in which case ${name}`, async () => {
    const restore = patch?.();
    let found: HostsRun | null = null;
    try {
      for (let seed = first; seed < first + VARIANT_SEEDS && found === null; seed++) {
        const run = await simulateHosts(seed, { wrongs, change });
        if (run.violations.some(({ checker }) => caughtBy.includes(checker))) found = run;
      }
    } finally {
      restore?.();
    }
    assert.ok(found !== null, `${name}: nothing was found in ${VARIANT_SEEDS} seeds`);
    const control = await simulateHosts(found.seed, { change });
    assert.deepEqual(control.violations, [], `seed ${found.seed}, as it is`);
  });
}
