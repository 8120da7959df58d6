/** Disks that are lost one after the other, while a site that is away holds back the stable clocks (recovery.ts, retake.ts). */
import { strict as assert } from "node:assert";
import { OWNERS_WAIT_MS, WARD_IDLE_MS } from "../../../store/model/limits.ts";
import { NO_OWNERS } from "../../../store/owners/site_owners.ts";
import { Scene } from "../../sim/scene.ts";

const KEY = 0, OTHER = 1;
const owned = { ...NO_OWNERS, f: 1, nearMs: 0, sites: ["owner"] };

const TREE = {
  root: { parent: null, linkMs: 1 },
  core: { parent: "root", linkMs: 1 },
  source: { parent: "core", linkMs: 1, owners: owned },
  owner: { parent: "core", linkMs: 1 },
  edge: { parent: "source", linkMs: 1 },
  away: { parent: "core", linkMs: 1 },
} as const;

/**
 * A site with an owner writes something that the clocks of those below it have not reached, and loses its disk; long
 * after it is back its owner does.
 *
 * @param isKnown whether its owner has heard that the root has it, as it does with what comes next.
 */
async function lost(isKnown: boolean): Promise<Scene> {
  const scene = new Scene(TREE), { network, world } = scene;
  await scene.start();
  await scene.until(() => scene.process("source").replica.status().wards.owners.length === 1);
  network.partition("core", "away", Infinity);
  network.partition("source", "edge", world.nowMs + 2_000);
  await scene.pass(500);
  const writer = await scene.attach("source");
  await scene.read(writer, OTHER);
  await scene.write(writer, KEY, 1);
  const token = writer.token(false);
  await scene.pass(WARD_IDLE_MS);
  if (isKnown) await scene.write(await scene.attach("root"), OTHER, 2);
  await scene.pass(2 * WARD_IDLE_MS);
  for (const id of ["source", "owner"]) {
    scene.site(id).wipe();
    await scene.pass(100);
    void scene.site(id).start();
    await scene.until(() => scene.site(id).process?.ready === true);
    await scene.pass(5_000);
  }
  network.heal();
  await scene.pass(1_000);
  assert.equal(await scene.read(await scene.attach("root", token), KEY), 1);
  return scene;
}

Deno.test("a session whose site lost its disk, and long after that its owner, is told of no loss where the root had all (Y6)", async () => {
  await lost(true);
});

Deno.test("a session whose site lost its disk, and long after that its owner, is told of no loss where it took all back (B5)", async () => {
  await lost(false);
});

/** The same tree, but nothing is below the source. */
const { edge: _, ...LEAF } = TREE;

/**
 * A site without children writes what the way up does not take, and loses its disk; long after it is back its owner does.
 *
 * @param cutMs for so long it does not reach its owner when it is back.
 * @param stops its process is killed, and started anew, before it does.
 */
async function leafLost(cutMs: number, stops = false): Promise<void> {
  const scene = new Scene(LEAF), { network, world } = scene;
  await scene.start();
  await scene.until(() => scene.process("source").replica.status().wards.owners.length === 1);
  network.partition("core", "away", Infinity);
  await scene.pass(500);
  network.partition("core", "source", world.nowMs + 1_000);
  const writer = await scene.attach("source");
  await scene.write(writer, KEY, 1);
  const token = writer.token(false);
  await scene.pass(WARD_IDLE_MS);
  network.partition("source", "owner", world.nowMs + cutMs);
  for (const id of ["source", "owner"]) {
    scene.site(id).wipe();
    await scene.pass(100);
    void scene.site(id).start();
    await scene.until(() => scene.site(id).process?.ready === true);
    if (id === "source" && stops) {
      scene.site(id).crash();
      await scene.pass(100);
      void scene.site(id).start();
    }
    await scene.pass(cutMs + 10_000);
    assert.equal(await scene.read(await scene.attach("root"), KEY), 1, `${id} has lost its disk`);
  }
  network.heal();
  await scene.pass(1_000);
  assert.equal(await scene.read(await scene.attach("root", token), KEY), 1);
}

Deno.test("what a site without children had told is not on its owner's disk alone once it is back (B1)", async () => {
  await leafLost(0);
});

Deno.test("what a site had told is not on its owner's disk alone once that is back, too (B6)", async () => {
  await leafLost(OWNERS_WAIT_MS + 3_000);
  await leafLost(OWNERS_WAIT_MS + 3_000, true);
});
