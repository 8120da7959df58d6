import assert from "node:assert/strict";
import { inMacrotask, runSeed } from "./run.ts";

Deno.test("sessions do as if nothing had happened when isolates and homes are lost at any moment", async () => {
  const probes = { losses: 0, midHandler: 0, checkpoints: 0 };
  for (let seed = 0; seed < 150; seed++) {
    const { wrong, site } = await inMacrotask(() => runSeed(`${seed}`));
    assert.deepEqual(wrong, [], `seed ${seed}`);
    for (const name of ["losses", "midHandler", "checkpoints"] as const) probes[name] += site.probes[name];
  }
  for (const [name, count] of Object.entries(probes)) {
    assert.ok(count > 50, `${name} happened ${count} times`);
  }
});
