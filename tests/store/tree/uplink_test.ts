/** What a site tells its parent while one of its own children is away (store/tree/uplink.ts). */
import { strict as assert } from "node:assert";
import { MemoryStorage } from "../../../runtime/storage/memory.ts";
import { Core } from "../../../store/core/core.ts";
import { packKey } from "../../../store/model/key.ts";
import { SiteReplica } from "../../../store/replica.ts";
import type { SiteId } from "../../../store/model/ports.ts";
import { type Endpoint, SimNetwork } from "../../sim/network.ts";
import { Draws } from "../../sim/random.ts";
import { ProcessClock, World } from "../../sim/world.ts";

const PARENTS: Readonly<Record<SiteId, SiteId>> = { a: "root", b: "a", x: "a", below: "b" };

/** A root, a below it, b and x below a, and one below b, in virtual time. */
function tree() {
  const world = new World(), draws = new Draws("uplink");
  const network = new SimNetwork({
    world,
    draws: draws.fork("network"),
    parentOf: (site) => PARENTS[site] ?? null,
    quality: () => ({ delayMs: [5, 6], lossChance: 0, bytesPerMs: Infinity }),
    window: 64,
    noticeMs: [0, 10],
    lateChance: 0,
  });
  const start = async (site: SiteId) => {
    const holder: { endpoint: Endpoint | null } = { endpoint: null };
    const parent = PARENTS[site] ?? null;
    const core = new Core({ site, parent, tier: "edge", url: "", linkAddress: "", capacityBytes: 1e9 }, {
      clock: new ProcessClock(world, { skewMs: 0, drift: 0 }),
      random: draws.fork(site),
      storage: new MemoryStorage(),
      network: {
        send: (to, message) =>
          holder.endpoint === null ? Promise.resolve() : network.send(holder.endpoint, site, to, message),
      },
      fatal: (error) => {
        throw error;
      },
      note: () => {},
    });
    const replica = new SiteReplica(core);
    await replica.start();
    holder.endpoint = {
      connected: (other, role) => replica.connected(other, role),
      disconnected: (other) => replica.disconnected(other),
      receive: (from, message) => replica.receive(from, message),
    };
    network.up(site, holder.endpoint);
    return { core, replica };
  };
  return { world, network, start };
}

Deno.test("what came from above waits for nobody at a site whose child is away", async () => {
  const { world, network, start } = tree();
  for (const site of ["root", "a"]) await start(site);
  const b = await start("b"), x = await start("x");
  await start("below");
  await world.run(2_000);
  const key = packKey(["x"]);
  const reader = await b.replica.attach(null);
  const read = reader.get([key]);
  await world.run(3_000);
  assert.equal((await read).length, 1);
  network.partition("b", "below", Infinity);
  await world.run(5_000);
  const before = b.core.rows.head;
  const writer = await x.replica.attach(null);
  for (let i = 0; i < 10; i++) {
    await writer.write([{ kind: "set", key, value: new Uint8Array(100) }]);
    await world.run(5_000 + 50 * i);
  }
  await world.run(10_000);
  assert.ok(b.core.rows.head > before, "they came");
  assert.equal(b.core.pending.bytes, 0);
});
