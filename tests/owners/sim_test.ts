/** Owners groups of 2 to 7 sites in virtual time, and what the checkers make of them when they are broken. */
import { strict as assert } from "node:assert";
import { VARIANTS } from "./sim/broken.ts";
import { type OwnersRun, simulateOwners } from "./sim/simulation.ts";

/** The seeds of every test run: a few seconds. */
const SEEDS = 25;

Deno.test("owners groups keep what was acknowledged, on a fixed set of seeds", async () => {
  const probes: Record<string, number> = {};
  for (let seed = 0; seed < SEEDS; seed++) {
    const run = await simulateOwners(seed);
    assert.deepEqual(run.violations, [], `seed ${seed}`);
    for (const [name, count] of Object.entries(run.probes)) probes[name] = (probes[name] ?? 0) + count;
  }
  for (const name of ["adopted", "mended", "packets_again", "packets_stale", "fault: wipe", "duplicates"]) {
    assert.ok((probes[name] ?? 0) > 0, `no seed reached: ${name}`);
  }
});

Deno.test("owners groups: a seed runs the same twice", async () => {
  const shown = ({ history, probes }: OwnersRun) => JSON.stringify({ history, probes });
  assert.equal(shown(await simulateOwners(5)), shown(await simulateOwners(5)));
});

Deno.test("owners groups without faults act once on everything", async () => {
  for (let seed = 0; seed < 5; seed++) {
    const calm = { crashes: 0, wipes: 0, partitions: 0, slow: false, lossChance: 0 };
    // Nobody is so far away as to be taken for dead.
    const change = (plan: OwnersRun["plan"]) => ({ ...plan, ...calm, delaysMs: plan.delaysMs.map(() => 1) });
    const { violations, probes } = await simulateOwners(seed, { change });
    assert.deepEqual([violations, probes.duplicates], [[], 0], `seed ${seed}`);
  }
});

for (const variant of VARIANTS) {
  Deno.test(`owners groups broken on purpose are caught: ${variant.name}`, async () => {
    for (let seed = 0; seed < variant.seeds; seed++) {
      const { violations } = await simulateOwners(seed, variant);
      const found = violations.find(({ checker }) => variant.caughtBy.includes(checker));
      if (found !== undefined) return;
    }
    assert.fail(`no checker saw it in ${variant.seeds} seeds`);
  });
}
