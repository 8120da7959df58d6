/** What a site says of a planned stop (store/change/members.ts). */
import assert from "node:assert/strict";
import { openMembers } from "../../../store/change/members.ts";
import { Removals } from "../../../store/change/removal.ts";
import type { Core } from "../../../store/core/core.ts";
import { loneCore } from "../lone_core.ts";

function membersOf(core: Core) {
  const removals = new Removals(core, { all: () => [], among: () => [], dismiss: () => {} });
  const durable: number[] = [];
  const said: (number | undefined)[] = [];
  const members = openMembers(
    core,
    removals,
    (position) => Promise.resolve(void durable.push(position)),
    () => said.push(core.topology.awayUntilMs(core.config.site)),
  );
  return { members, durable, said };
}

/** What follows at once has followed. */
const settled = () => new Promise((resolve) => setTimeout(resolve, 0));

Deno.test("a site that stops as planned has the root know of it first, and the root waits for nobody (A1)", async () => {
  for (const path of [["root"], ["root", "e"]]) {
    const core = loneCore(path, 4), { members, durable, said } = membersOf(core);
    let isOver = false;
    const leaving = members.leave(7_000).then(() => isOver = true);
    await settled();
    assert.deepEqual(said, [undefined], "its owners hear of it before anybody else");
    assert.equal(core.topology.awayUntilMs(core.config.site), 7_000);
    assert.deepEqual(durable, [core.rows.head], "it is on disk here");
    assert.equal(isOver, core.isRoot);
    if (core.isRoot) continue;
    for (const upTo of [core.rows.head - 1, core.rows.head]) {
      core.advanced();
      await settled();
      assert.equal(isOver, false);
      core.reach[0]?.add(upTo, 90 + upTo);
    }
    core.advanced();
    await leaving;
    await members.back();
    assert.equal(core.topology.awayUntilMs("e"), undefined);
  }
});
