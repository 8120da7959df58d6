/** The clock of a site over its starts, whatever its wall clock says (store/core/state.ts, store/replica.ts Q2). */
import assert from "node:assert/strict";
import { MemoryStorage } from "../../../runtime/storage/memory.ts";
import { openReplica } from "../../../store/replica.ts";
import { packKey } from "../../../store/model/key.ts";
import { CLOCK_RESERVE_MS } from "../../../store/model/limits.ts";
import type { Version } from "../../../store/model/row.ts";
import { World } from "../../sim/world.ts";

/** A root over a disk that outlives it; its wall clock says so at its start. */
async function started(storage: MemoryStorage, wallMs: number) {
  const world = new World();
  const replica = await openReplica({
    site: "root",
    parent: null,
    tier: "root",
    url: "",
    linkAddress: "",
    capacityBytes: 1e9,
  }, {
    clock: {
      nowMs: () => wallMs + world.nowMs,
      steadyMs: () => world.nowMs,
      after: (ms, callback) => world.after(ms, callback),
      turn: () => world.sleep(0),
    },
    random: { bytes: (length) => new Uint8Array(length) },
    storage,
    network: { send: () => Promise.resolve() },
    fatal: (error) => {
      throw error;
    },
    note: () => {},
  });
  const written: Version[] = [];
  const write = async (key: number): Promise<void> => {
    const session = await replica.attach(null);
    const result = await session.write([{ kind: "set", key: packKey(["k", key]), value: Uint8Array.of(1) }]);
    assert.ok(result.ok);
    written.push(result.version);
  };
  return { world, write, written };
}

Deno.test("a site whose wall clock has gone back writes nothing as old as what it wrote before (Q2)", async () => {
  const storage = new MemoryStorage(), wallMs = Date.UTC(2026, 5, 1);
  const before = await started(storage, wallMs);
  for (let key = 0; key < 10; key++) {
    await before.write(key);
    // Longer than the clock is reserved for, and marks without a row between.
    await before.world.run(before.world.nowMs + 0.4 * CLOCK_RESERVE_MS);
  }
  const last = Math.max(...before.written.map(({ clock }) => clock));
  const after = await started(storage, wallMs - 3_600_000);
  await after.write(1);
  const [first] = after.written;
  assert.ok(first !== undefined && first.clock > last, `${first?.clock} and ${last}`);
});
