/**
 * The examples, walked as their READMEs tell it: over sites that work, and over sites without handoffs, where each
 * walk has to fail, or it would show nothing.
 */
import { strict as assert } from "node:assert";
import { join } from "node:path";
import { walkAccess } from "./access_walk.ts";
import { startCluster } from "./cluster.ts";

const NO_HANDOFF = join(import.meta.dirname ?? "", "no_handoff_main.ts");

Deno.test("the examples keep their promises over several sites, one of them killed", async (t) => {
  await using cluster = await startCluster({ apps: ["access"] });
  await t.step("access: login and logout hold everywhere at once", () => walkAccess(cluster));
});

Deno.test("the examples break their promises where sites hand nothing over", async (t) => {
  await using cluster = await startCluster({ apps: ["access"], main: NO_HANDOFF });
  await t.step("access", () => assert.rejects(walkAccess(cluster), /after the logout, edge-1 refuses/));
});
