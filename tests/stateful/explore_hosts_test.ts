/** The rules of hosts that hold a log, on small state spaces: seen whole, and missed one by one. */
import { strict as assert } from "node:assert";
import { BROKEN, WHOLE } from "./explore/host_spaces.ts";
import { type BrokenHosts, exploreHosts } from "./explore/hosts.ts";

for (const { name, what } of WHOLE) {
  Deno.test(`hosts and others are told one history in every state: ${name}`, () => {
    const { states, isWhole, violation } = exploreHosts(what);
    assert.deepEqual(violation, null);
    assert.ok(isWhole && states > 150_000, `${states} states`);
  });
}

for (const [rule, what] of Object.entries(BROKEN)) {
  Deno.test(`a state is found in which hosts are contradicted where a rule is missing: ${rule}`, () => {
    const { violation } = exploreHosts({ ...what, broken: rule as BrokenHosts });
    assert.notEqual(violation, null);
  });
}
