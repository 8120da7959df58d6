/** What a change among the sites costs a parent (store/removal.ts). */
import { strict as assert } from "node:assert";
import { MemoryStorage } from "../../runtime/storage/memory.ts";
import { Core } from "../../store/core.ts";
import type { Key } from "../../store/key.ts";
import { Removals } from "../../store/removal.ts";
import { encodeJson, endedKey, replicaKey, siteKey } from "../../store/topology.ts";

Deno.test("a change of one site has its parent look at that child, and at none of the others", async () => {
  const core = new Core(
    { site: "c", parent: "root", tier: "core", url: "", linkAddress: "", capacityBytes: 1e9 },
    {
      clock: { nowMs: () => 1, after: () => () => {}, turn: () => Promise.resolve() },
      random: { bytes: (length) => new Uint8Array(length) },
      storage: new MemoryStorage(),
      network: { send: () => Promise.resolve() },
      fatal: (error) => {
        throw error;
      },
      note: () => {},
    },
  );
  const looked: string[][] = [];
  const removals = new Removals(core, {
    all: () => assert.fail("all children are looked at"),
    among: (sites) => {
      looked.push([...sites]);
      return [];
    },
    dismiss: () => {},
  });
  const write = (key: Key, value: unknown) => core.rows.put(core.own(key, encodeJson(value)));
  write(siteKey("e1"), { id: "e1", parent: "c" });
  await removals.sweep();
  await removals.sweep();
  // Whose end it is comes later.
  write(endedKey(7), { stable: 1 });
  await removals.sweep();
  write(replicaKey(7), { site: "e2", path: ["root", "c", "e2"], parent: 3, from: 0 });
  await removals.sweep();
  assert.deepEqual(looked, [["e1"], ["e2"]]);
});
