/** What becomes of a child whose link has ended, and of what was done for it (store/core/inboxes.ts B1, B4, store/tree/downlinks.ts). */
import { strict as assert } from "node:assert";
import { MemoryStorage } from "../../../runtime/storage/memory.ts";
import { Core } from "../../../store/core/core.ts";
import { type ChildHello, decodeMessage, encodeMessage, type Message } from "../../../store/wire/message.ts";
import type { DiskCommit, SiteId } from "../../../store/model/ports.ts";
import { SiteReplica } from "../../../store/replica.ts";
import { Draws } from "../../sim/random.ts";
import { ProcessClock, World } from "../../sim/world.ts";

/** A disk that takes nothing while it is held. */
class HeldStorage extends MemoryStorage {
  held: PromiseWithResolvers<void> | null = null;

  override async commit(commit: DiskCommit): Promise<void> {
    await this.held?.promise;
    await super.commit(commit);
  }
}

/** A site, and what it says to its child `e`. */
async function siteBelow(parent: SiteId | null) {
  const world = new World(), storage = new HeldStorage(), said: Message[] = [];
  const core = new Core({
    site: parent === null ? "root" : "a",
    parent,
    tier: parent === null ? "root" : "core",
    url: "",
    linkAddress: "",
    capacityBytes: 1e9,
  }, {
    clock: new ProcessClock(world, { skewMs: 0, drift: 0 }),
    random: new Draws("links"),
    storage,
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
  await world.run(100);
  const hello: ChildHello = {
    kind: "hello",
    attempt: 1,
    replica: 0,
    parentReplica: 0,
    cursor: 0,
    clock: 0,
    tier: "edge",
    url: "",
    linkAddress: "",
    coverage: [],
  };
  const welcomes = () => said.flatMap((message) => message.kind === "welcome" ? [message.replica] : []);
  const says = () => replica.receive("e", encodeMessage(hello));
  return { world, storage, core, replica, says, welcomes };
}

Deno.test("a blank site is not told the number of the one before it, whose link ended before the number had come", async () => {
  const { world, storage, core, replica, says, welcomes } = await siteBelow(null);
  storage.held = Promise.withResolvers();
  replica.connected("e", "child");
  says();
  await world.run(200);
  const [first = 0, ...more] = core.topology.living("e");
  assert.ok(first > 1 && more.length === 0, "it has a number, which is not on disk yet");
  replica.disconnected("e");
  replica.connected("e", "child");
  storage.held.resolve();
  storage.held = null;
  await world.run(400);
  assert.deepEqual(welcomes(), [], "nobody has said hello on this link");
  says();
  await world.run(500);
  assert.deepEqual(welcomes(), [first + 1]);
  assert.ok(core.topology.recordedEnd(first) !== undefined, "the number that nobody has heard is over");
});

Deno.test("a site whose link holds is told its number as soon as that is on disk", async () => {
  const { world, storage, core, replica, says, welcomes } = await siteBelow(null);
  storage.held = Promise.withResolvers();
  replica.connected("e", "child");
  says();
  await world.run(200);
  assert.deepEqual(welcomes(), []);
  storage.held.resolve();
  storage.held = null;
  await world.run(300);
  assert.equal(welcomes().length, 1);
  assert.deepEqual(core.topology.living("e"), welcomes());
});

/** What may come next, at once, to a site that was moved below its child `e`, when their old link has ended. */
const NEXT: readonly (readonly [what: string, happens: (replica: SiteReplica) => void])[] = [
  ["nothing", () => {}],
  ["its link to the parent", (replica) => replica.connected("e", "parent")],
  ["a move to another parent", (replica) => replica.move("root")],
];

for (const [what, happens] of NEXT) {
  Deno.test(`a child that became the parent is no connected child when their old link has ended; next comes ${what} (store/core/inboxes.ts B4)`, async () => {
    const { world, replica } = await siteBelow("root");
    const isConnected = () => replica.status().children.some(({ id, connected }) => id === "e" && connected);
    replica.connected("e", "child");
    await world.run(200);
    replica.move("e");
    await world.run(300);
    assert.ok(isConnected(), "nobody has noticed yet that the old link is gone");
    replica.disconnected("e");
    happens(replica);
    await world.run(400);
    assert.ok(!isConnected());
  });
}
