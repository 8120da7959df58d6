/** What a change among the sites costs a parent (store/removal.ts). */
import { strict as assert } from "node:assert";
import { MemoryStorage } from "../../runtime/storage/memory.ts";
import { Core } from "../../store/core.ts";
import type { Key } from "../../store/key.ts";
import { QUIET_MS } from "../../store/limits.ts";
import { Removals } from "../../store/removal.ts";
import { encodeJson, endedKey, removedKey, replicaKey, siteKey } from "../../store/topology.ts";

/** A site below the root, whose time and notes are the caller's. */
function coreOf(
  now: { ms: number } = { ms: 1 },
  note: (detail?: Record<string, unknown>) => void = () => {},
): Core {
  return new Core(
    { site: "c", parent: "root", tier: "core", url: "", linkAddress: "", capacityBytes: 1e9 },
    {
      clock: { nowMs: () => now.ms, after: () => () => {}, turn: () => Promise.resolve() },
      random: { bytes: (length) => new Uint8Array(length) },
      storage: new MemoryStorage(),
      network: { send: () => Promise.resolve() },
      fatal: (error) => {
        throw error;
      },
      note: (_, detail) => note(detail),
    },
  );
}

Deno.test("a change of one site has its parent look at that child, and at none of the others", async () => {
  const core = coreOf();
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

Deno.test("a removed site that dials again and again is told to the host each time, and to the log once a minute", () => {
  const now = { ms: 1 }, told: unknown[] = [];
  const core = coreOf(now, (detail) => told.push([detail?.child, detail?.why, detail?.before]));
  const removals = new Removals(core, { all: () => [], among: () => [], dismiss: () => {} });
  for (const site of ["e1", "e2"]) core.rows.put(core.own(removedKey(site), encodeJson({ atMs: 1 })));
  const dial = (site: string) => assert.ok(removals.refuses(site, { replica: 0 }));
  for (const site of ["e1", "e1", "e2", "e1"]) dial(site);
  now.ms += QUIET_MS;
  dial("e1");
  assert.deepEqual(told, [
    ["e1", "removed", 0],
    ["e1", "removed", null],
    ["e2", "removed", 0],
    ["e1", "removed", null],
    ["e1", "removed", 2],
  ]);
  assert.equal(core.counters["child_removed"], 5);
});
