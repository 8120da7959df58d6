/** An inner site that lost its disk gets from its owners what it had told, before it passes anything on (retake.ts). */
import { strict as assert } from "node:assert";
import { OWNERS_WAIT_MS } from "../../../store/model/limits.ts";
import { NO_OWNERS } from "../../../store/owners/site_owners.ts";
import type { SiteId } from "../../../store/model/ports.ts";
import { Scene } from "../../sim/scene.ts";

const CAUSE = 0, EFFECT = 1;

/** A core with an owner, and an edge below it. */
const tree = (above: SiteId, ownerBelow: SiteId) => ({
  root: { parent: null, linkMs: 1 },
  upper: { parent: "root", linkMs: 1 },
  core: { parent: above, linkMs: 1, owners: { ...NO_OWNERS, f: 1, nearMs: 0, sites: ["owner"] } },
  owner: { parent: ownerBelow, linkMs: 1 },
  edge: { parent: "core", linkMs: 1 },
});

/**
 * The core tells a session of a cause which only its owner has beside it; the session goes on to the edge and writes
 * the effect there, and the core loses its disk.
 */
async function broken(sites: ReturnType<typeof tree>): Promise<Scene> {
  const scene = new Scene(sites);
  await scene.start();
  await scene.until(() => scene.process("core").replica.status().wards.owners.length === 1);
  scene.network.partition(sites.core.parent, "core", Infinity);
  const writer = await scene.attach("core");
  await scene.write(writer, CAUSE, 1);
  await scene.write(await scene.attach("edge", writer.token(false)), EFFECT, 2);
  scene.site("core").wipe();
  scene.network.heal();
  return scene;
}

const isReady = (scene: Scene): boolean => scene.site("core").process?.ready === true;
const missed = (scene: Scene): number => scene.probes.all()["note ward_not_retaken"] ?? 0;

/** What the root has as soon as it has the effect. */
async function atRoot(scene: Scene): Promise<Record<"cause" | "effect", number | null>> {
  const reader = await scene.attach("root");
  await scene.until(() => isReady(scene));
  let effect: number | null = null;
  while (effect === null) {
    await scene.pass(1);
    effect = await scene.read(reader, EFFECT);
  }
  return { effect, cause: await scene.read(reader, CAUSE) };
}

const PLACES: readonly (readonly [string, SiteId, SiteId])[] = [
  ["beside it", "root", "root"],
  ["below it", "root", "core"],
  ["in another branch, with a site between it and their ancestor", "upper", "root"],
];

for (const [where, above, ownerBelow] of PLACES) {
  Deno.test(`a site that lost its disk passes on no effect before its cause, which its owner ${where} has`, async () => {
    const scene = await broken(tree(above, ownerBelow));
    // What the owner puts into the tree itself would come too late.
    if (ownerBelow !== "core") scene.network.partition(ownerBelow, "owner", Infinity);
    void scene.site("core").start();
    assert.deepEqual(await atRoot(scene), { effect: 2, cause: 1 });
  });
}

Deno.test("a site that lost its disk goes on, and says so, when its owner does not answer", async () => {
  const scene = await broken(tree("root", "root"));
  scene.network.partition("core", "owner", Infinity);
  void scene.site("core").start();
  const sinceMs = scene.world.nowMs;
  await scene.until(() => isReady(scene));
  assert.ok(scene.world.nowMs - sinceMs >= OWNERS_WAIT_MS);
  assert.equal(missed(scene), 1);
});

Deno.test("a site that lost its disk waits for no owner that lost its own", async () => {
  const scene = await broken(tree("root", "root"));
  scene.site("owner").wipe();
  void scene.site("owner").start();
  void scene.site("core").start();
  const sinceMs = scene.world.nowMs;
  await scene.until(() => isReady(scene));
  assert.ok(scene.world.nowMs - sinceMs < OWNERS_WAIT_MS);
  assert.equal(missed(scene), 0);
});
