/** Which answer to its hellos a site goes by (store/tree/uplink.ts P6). */
import { strict as assert } from "node:assert";
import { MemoryStorage } from "../../../runtime/storage/memory.ts";
import { Core } from "../../../store/core/core.ts";
import { decodeMessage, encodeMessage, type Message } from "../../../store/wire/message.ts";
import { SiteReplica } from "../../../store/replica.ts";
import { Draws } from "../../sim/random.ts";
import { ProcessClock, World } from "../../sim/world.ts";

/** A blank site, and what it says to its parent, which the test is. */
async function site() {
  const world = new World(), said: Message[] = [];
  const core = new Core({
    ...{ site: "e", parent: "root", tier: "edge", url: "", linkAddress: "", capacityBytes: 1e9 },
  }, {
    clock: new ProcessClock(world, { skewMs: 0, drift: 0 }),
    random: new Draws("hello"),
    storage: new MemoryStorage(),
    network: {
      send: (_, message) => {
        said.push(decodeMessage(message));
        return Promise.resolve();
      },
    },
    fatal: (error) => {
      throw error;
    },
    note: () => {},
  });
  const replica = new SiteReplica(core);
  await replica.start();
  replica.connected("root", "parent");
  await world.run(100);
  const hears = async (message: Message) => {
    replica.receive("root", encodeMessage(message));
    await world.run(world.nowMs + 200);
  };
  return { core, hears, heard: (kind: Message["kind"]) => said.filter((message) => message.kind === kind) };
}

Deno.test("a site that has said hello again goes by the answer to that, and not by an earlier one (P6)", async () => {
  const { core, hears, heard } = await site();
  await hears({ kind: "again" });
  const [first, second] = heard("hello").map((hello) => hello.kind === "hello" ? hello.attempt : 0);
  assert.ok(first !== undefined && second !== undefined && first !== second);
  const welcome = (attempt: number): Message => ({
    ...{ kind: "welcome", attempt, replica: 2, parentReplica: 1, clock: core.clock.last, pushed: 0 },
    ...{ path: ["root"], refused: [] },
  });
  await hears(welcome(first));
  assert.deepEqual([core.replica, heard("fetch")], [0, []]);
  await hears(welcome(second));
  assert.equal(core.replica, 2);
  assert.equal(heard("fetch").length, 1);
});
