/** What an owner makes of a ward whose incarnation is over (store/wards/recovery.ts). */
import { strict as assert } from "node:assert";
import { MemoryStorage } from "../../runtime/storage/memory.ts";
import { Core } from "../../store/core.ts";
import { type Key, packKey } from "../../store/key.ts";
import type { Row } from "../../store/row.ts";
import { encodeJson, type Ended, endedKey, replicaKey } from "../../store/topology.ts";
import { wardsKey } from "../../store/wards/configuration.ts";
import { Keeper } from "../../store/wards/keeper.ts";
import type { WardMessage } from "../../store/wards/message.ts";
import { Recovery } from "../../store/wards/recovery.ts";
import { START_MS } from "../sim/world.ts";

const SOURCE = 5, OWNER = 6;
const cause = packKey(["cause"]), effect = packKey(["effect"]);

/** An owner that holds two rows of a source, written at clocks 100 and 200. */
async function holding(ended: Ended | null = { stable: 50 }, bytesMax?: number) {
  const core = new Core(
    { site: "o", parent: "root", tier: "edge", url: "", linkAddress: "", capacityBytes: 1e9 },
    {
      clock: { nowMs: () => START_MS, after: () => () => {}, turn: () => Promise.resolve() },
      random: { bytes: (length) => new Uint8Array(length) },
      storage: new MemoryStorage(),
      network: { send: () => Promise.resolve() },
      fatal: (error) => {
        throw error;
      },
      note: () => {},
    },
  );
  core.replica = OWNER;
  core.setPath(["root"]);
  const write = (key: Key, value: unknown) => core.rows.put(core.own(key, encodeJson(value)));
  write(replicaKey(SOURCE), { site: "s", path: ["root", "s"], parent: 1, from: 0 });
  const keeper = new Keeper(core, () => Promise.resolve(), bytesMax);
  const row = (key: Key, clock: number): Row => ({
    key,
    clock,
    replica: SOURCE,
    known: 1,
    position: clock,
    value: new Uint8Array(1),
    expiresAtMs: 0,
  });
  const ward: WardMessage = {
    kind: "ward",
    replica: SOURCE,
    config: 1,
    settled: true,
    after: 0,
    head: 200,
    clock: 200,
    down: [0],
    reach: [0],
    part: 0,
    more: false,
    rows: [row(cause, 100), row(effect, 200)],
  };
  await keeper.receive("s", ward);
  core.topology.wards.changed = true;
  if (ended !== null) write(endedKey(SOURCE), ended);
  core.stable = [1_000, 1_000];
  return { core, keeper, ward, write, recovery: new Recovery(core, keeper, () => 1_000) };
}

Deno.test("an owner takes a ward into its own journal when its incarnation is over", async () => {
  const { core, recovery } = await holding();
  await recovery.sweep();
  const rows = await core.rows.lookup([cause, effect]);
  assert.deepEqual(rows.map((row) => row?.clock), [100, 200]);
  assert.equal(core.topology.wards.recovered(SOURCE).get("o")?.position, 200);
});

Deno.test("an owner takes nothing of a ward of which a part is too old: no effect comes without its cause", async () => {
  const { core, recovery } = await holding();
  core.watermark = 150;
  await recovery.sweep();
  assert.deepEqual(await core.rows.lookup([cause, effect]), [undefined, undefined]);
  assert.equal(core.topology.wards.recovered(SOURCE).get("o")?.position, 0);
});

Deno.test("an owner leaves a ward alone while its site brings what it has to another parent", async () => {
  const { core, write, recovery } = await holding({ stable: 50, next: 8 });
  await recovery.sweep();
  assert.deepEqual(await core.rows.lookup([cause, effect]), [undefined, undefined]);
  assert.equal(core.topology.wards.recovered(SOURCE).get("o"), undefined);
  write(endedKey(SOURCE), { stable: 300, next: 8, settled: true });
  await recovery.sweep();
  assert.equal(core.topology.wards.recovered(SOURCE).get("o")?.position, 200);
});

Deno.test("an owner that is none any more learns it over the tree, where its source cannot tell", async () => {
  const { core, keeper, write, recovery } = await holding(null);
  const held = () => [...keeper.all()].length;
  // Until the second is in effect, the first holds what was told.
  write(wardsKey(SOURCE), { number: 2, owners: ["p"], previous: ["o"] });
  await recovery.sweep();
  assert.equal(held(), 1);
  write(wardsKey(SOURCE), { number: 3, owners: ["q"], previous: ["p"] });
  await recovery.sweep();
  assert.equal(held(), 0);
  assert.equal(core.topology.wards.recovered(SOURCE).get("o"), undefined);
});

Deno.test("an owner holds no more for all its sources together than it may", async () => {
  const { core, keeper, ward, write } = await holding(null, 100);
  const bytes = keeper.bytes;
  assert.ok(bytes > 50 && bytes <= 100, `${bytes}`);
  write(replicaKey(8), { site: "t", path: ["root", "t"], parent: 1, from: 0 });
  await keeper.receive("t", { ...ward, replica: 8 });
  assert.deepEqual([keeper.bytes, core.counters["ward_refused_full"]], [bytes, 1]);
  // The root has what the first brought: there is room again.
  await keeper.receive("s", { ...ward, after: 200, reach: [200], rows: [] });
  await keeper.receive("t", { ...ward, replica: 8 });
  assert.deepEqual([keeper.bytes, core.counters["ward_refused_full"]], [bytes, 1]);
});
