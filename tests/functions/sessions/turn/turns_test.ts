import assert from "node:assert/strict";
import { inMacrotask, runSeed } from "./run.ts";
import { type Variant, variants } from "./variants.ts";

Deno.test("sessions do as if nothing had happened when isolates and homes are lost at any moment", async () => {
  const probes = { losses: 0, midHandler: 0, checkpoints: 0, rejected: 0, killed: 0 };
  for (let seed = 0; seed < 150; seed++) {
    const { wrong, site } = await inMacrotask(() => runSeed(`${seed}`));
    assert.deepEqual(wrong, [], `seed ${seed}`);
    for (const name of ["losses", "midHandler", "checkpoints", "rejected", "killed"] as const) {
      probes[name] += site.probes[name];
    }
  }
  for (const [name, count] of Object.entries(probes)) {
    assert.ok(count > 50, `${name} happened ${count} times`);
  }
});

/** Seeds after which a variant counts as not caught; most are in the first ten. */
const VARIANT_SEEDS = 120;

for (const variant of variants) {
  Deno.test(`the checker catches: ${variant.name}`, async () => {
    for (let seed = 0; seed < VARIANT_SEEDS; seed++) {
      const wrong = await inMacrotask(() => runBroken(`${seed}`, variant));
      if (wrong) return;
    }
    assert.fail(`nothing was wrong in ${VARIANT_SEEDS} runs`);
  });
}

/** Whether anything was wrong; a site that can't go on with what it is given is wrong too. */
function runBroken(seed: string, variant: Variant): boolean {
  try {
    return runSeed(seed, variant.make(), variant.bias).wrong.length > 0;
  } catch {
    return true;
  }
}
