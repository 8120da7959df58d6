/** The fencing rules on small state spaces, seen whole, over the production code of keepers and arbiter. */
import { strict as assert } from "node:assert";
import { explore } from "./explore/explore.ts";
import { BROKEN, WHOLE } from "./explore/spaces.ts";
import type { Broken } from "./explore/state.ts";

for (const { name, what } of WHOLE) {
  Deno.test(`homes release one history in every state: ${name}`, async () => {
    const { states, isWhole, violation } = await explore(what);
    assert.deepEqual(violation, null);
    assert.ok(isWhole && states > 800, `${states} states`);
  });
}

for (const [rule, what] of Object.entries(BROKEN)) {
  Deno.test(`a state is found in which histories split where a rule is missing: ${rule}`, async () => {
    const { violation } = await explore({ ...what, broken: rule as Broken });
    assert.notEqual(violation, null);
  });
}
