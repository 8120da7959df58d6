/** The live view of system rows, with passes that the test ends by hand. */
import assert from "node:assert/strict";
import { LiveView } from "../../../runtime/deploy/live_view.ts";
import type { SystemStore } from "../../../runtime/deploy/system_store.ts";

/** A store that only watches, and a view whose passes wait for the test. */
function open() {
  const passes: PromiseWithResolvers<void>[] = [];
  const told: unknown[] = [];
  let changed = () => {};
  let watched = 0;
  const system = {
    watch: (_ranges: unknown, listener: () => void) => {
      watched++;
      changed = listener;
      return () => void watched--;
    },
  } as Partial<SystemStore> as SystemStore;
  const view = new LiveView({
    read: () => {
      const pass = Promise.withResolvers<void>();
      passes.push(pass);
      return pass.promise;
    },
    failed: (error) => told.push(error),
  });
  const turn = () => new Promise((resolve) => setImmediate(resolve));
  return { view, system, passes, told, change: () => changed(), watched: () => watched, turn };
}

Deno.test("a live view reads again after a change, one pass at a time, and once for many (LV1)", async () => {
  const { view, system, passes, change, turn } = open();
  const following = view.follow(system, []);
  for (let i = 0; i < 3; i++) change();
  await turn();
  assert.equal(passes.length, 1, "the first pass runs still");
  passes[0]?.resolve();
  await turn();
  assert.equal(passes.length, 2, "the three changes share a pass");
  passes[1]?.resolve();
  await following;
  await turn();
  assert.equal(passes.length, 2);
});

Deno.test("a live view makes the pass that a change wants when the one before it fails (LV1, LV2)", async () => {
  const { view, system, passes, told, change, turn } = open();
  const following = view.follow(system, []);
  passes[0]?.resolve();
  await following;
  change();
  await turn();
  change(); // while the pass runs that will fail
  passes[1]?.reject(new Error("unreachable"));
  await turn();
  assert.equal(passes.length, 3);
  passes[2]?.reject(new Error("still unreachable"));
  await turn();
  assert.match(String(told[0]), /still unreachable/);
  const refreshed = view.refresh();
  passes[3]?.resolve();
  await refreshed;
});

Deno.test("a closed live view watches nothing and begins no pass", async () => {
  const { view, system, passes, change, watched, turn } = open();
  const following = view.follow(system, []);
  view.close();
  change();
  passes[0]?.resolve();
  await following;
  await view.refresh();
  await turn();
  assert.deepEqual([passes.length, watched(), view.closed], [1, 0, true]);
});
