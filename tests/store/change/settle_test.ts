/** When an incarnation that goes on under another parent is settled (store/change/adoption.ts F3). */
import assert from "node:assert/strict";
import { MemoryStorage } from "../../../runtime/storage/memory.ts";
import { Adoptions } from "../../../store/change/adoption.ts";
import { Child } from "../../../store/core/child.ts";
import { Core } from "../../../store/core/core.ts";
import { Least } from "../../../store/model/least.ts";
import { encodeJson, endedKey, keptKey } from "../../../store/members/topology.ts";

Deno.test("the former incarnation of a child is settled when all that it had has been pushed, and no sooner (F3)", async () => {
  const core = new Core(
    { site: "b", parent: "root", tier: "core", url: "", linkAddress: "", capacityBytes: 1e9 },
    {
      clock: { nowMs: () => 1, steadyMs: () => 1, after: () => () => {}, turn: () => Promise.resolve() },
      random: { bytes: (length) => new Uint8Array(length) },
      storage: new MemoryStorage(),
      network: { send: () => Promise.resolve() },
      fatal: (error) => {
        throw error;
      },
      note: () => {},
    },
  );
  core.replica = 4;
  core.setPath(["root"]);
  const adoptions = new Adoptions(core, { durable: () => Promise.resolve(), ready: () => {} });
  const child = new Child("e", 0, { stables: new Least<Child>(), floors: new Least<Child>() });
  child.replica = 8;
  const { succession } = core.topology;
  const settle = async (stable: number): Promise<boolean> => {
    child.stable = stable;
    await adoptions.settle(child);
    return !succession.isUnsettled(7);
  };
  const gap = 3;
  core.rows.put(core.own(endedKey(7), encodeJson({ stable: 1, next: 8, gap })));
  assert.equal(await settle(1_000), false, "its successor has not said yet what it kept");
  const word = encodeJson({ floor: 0, known: 0, whole: true });
  core.rows.put({ key: keptKey(7), value: word, clock: 2_000, replica: 8, known: 0, expiresAtMs: 0 });
  assert.equal(await settle(1_999), false, "something below the child is still on its way");
  assert.equal(await settle(2_000), true);
  const [row] = await core.rows.lookup([endedKey(7)]);
  const ended = { stable: 2_000, next: 8, settled: true, gap }; // What was lost with the old parent stays lost.
  assert.deepEqual(row?.value, encodeJson(ended));
  const { head } = core.rows;
  assert.equal(await settle(3_000), true);
  assert.equal(core.rows.head, head, "nothing is written again");
});
