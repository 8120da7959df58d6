/** What a site owes: rows that are still to be written under versions that were drawn before (store/core/owed.ts). */
import assert from "node:assert/strict";
import { MemoryStorage } from "../../../runtime/storage/memory.ts";
import { Core } from "../../../store/core/core.ts";
import { WAIT_MS_MAX } from "../../../store/model/limits.ts";
import { CLOCK_TICKS_PER_MS } from "../../../store/model/row.ts";

function setUp(parent: string | null, owed: () => number = () => Infinity) {
  const timers = new Set<() => void>();
  const core = new Core(
    { site: "c", parent, tier: "core", url: "", linkAddress: "", capacityBytes: 1e9 },
    {
      clock: {
        nowMs: () => 1,
        steadyMs: () => 1,
        after: (ms, run) => {
          assert.equal(ms, WAIT_MS_MAX);
          timers.add(run);
          return () => void timers.delete(run);
        },
        turn: () => Promise.resolve(),
      },
      random: { bytes: (length) => new Uint8Array(length) },
      storage: new MemoryStorage(),
      network: { send: () => Promise.resolve() },
      fatal: (error) => {
        throw error;
      },
      note: () => {},
      owed,
    },
  );
  core.replica = 4;
  core.setPath(parent === null ? [] : [parent]);
  return { core, timers };
}

Deno.test("the floor that a site says stays below what its host owes, and below what is held until it is let go (OW1)", () => {
  let ofHost = Infinity;
  const { core } = setUp("root", () => ofHost);
  assert.equal(core.owed.least, Infinity);
  core.clock.merge(core.horizonMs * CLOCK_TICKS_PER_MS + 1_000); // The horizon alone has the floor at 1,000.
  assert.equal(core.floor, 1_000);
  const letGo = [core.owed.hold(7), core.owed.hold(5), core.owed.hold(5)];
  assert.deepEqual([core.owed.least, core.floor], [5, 4]);
  letGo[1]?.();
  assert.equal(core.owed.least, 5, "the other hold of the same version stands");
  letGo[2]?.();
  assert.deepEqual([core.owed.least, core.floor], [7, 6]);
  ofHost = 6;
  assert.deepEqual([core.owed.least, core.floor], [6, 5]);
  ofHost = Infinity;
  letGo[0]?.();
  assert.deepEqual([core.owed.least, core.floor], [Infinity, 1_000]);
});

Deno.test("what is pinned has been heard by the root, or is not (OW2)", async () => {
  const { core, timers } = setUp("root");
  const pinned = core.owed.pinned();
  let isDone = false;
  pinned.then(() => isDone = true, () => isDone = true);
  await new Promise((resolve) => setTimeout(resolve, 0));
  assert.deepEqual([isDone, core.rows.head, timers.size], [false, 1, 1]);
  core.advanced();
  await new Promise((resolve) => setTimeout(resolve, 0));
  assert.equal(isDone, false, "something has advanced, but the root has not heard of it");
  for (const fire of timers) fire();
  await assert.rejects(pinned, { code: "store_unreachable" });
});

Deno.test("at the root nothing is written, nor waited for, before an old row is (OW2)", async () => {
  const { core, timers } = setUp(null);
  await core.owed.pinned();
  await core.owed.atRoot({ position: 100, replica: 4 });
  assert.deepEqual([core.rows.head, timers.size], [0, 0]);
});
