/** Who counts on the disk of a site that is to be given up, over real replicas (store/members/held_by.ts). */
import assert from "node:assert/strict";
import type { SiteId } from "../../../store/model/ports.ts";
import { Scene } from "../../sim/scene.ts";

const ONE = { f: 1, sites: ["o", "p"] } as const;
const BOTH = { f: 2, sites: ["o", "p"] } as const;
/** Links of s are slow: what it writes is at its owner long before it is at the root. */
const TREE = {
  root: { parent: null, linkMs: 0 },
  s: { parent: "root", linkMs: 100, owners: ONE },
  o: { parent: "root", linkMs: 1 },
  p: { parent: "root", linkMs: 1 },
  away: { parent: "root", linkMs: 1 },
} as const;

async function begun(settings: typeof ONE | typeof BOTH = ONE) {
  const scene = new Scene({ ...TREE, s: { ...TREE.s, owners: settings } }, { peerMs: 1 });
  await scene.start();
  const owners = () => scene.process("s").replica.status().wards.owners;
  await scene.until(() => owners().length === settings.f);
  await scene.pass(2_000);
  const [owner = ""] = owners();
  const held = (id: SiteId) => scene.process("root").replica.members.heldBy(id);
  const drain = async (id: SiteId) => {
    await scene.done(scene.process(id).replica.members.leave(scene.world.nowMs + 600_000));
    await scene.pass(200);
    scene.site(id).crash();
  };
  return { scene, owner, other: owner === "o" ? "p" : "o", owners, held, drain };
}

Deno.test("what a lost site had told is on the disk of its owner, drained or not, until that is at the root (HB1)", async () => {
  for (const isEmptied of [false, true]) {
    const { scene, owner, other, held, drain } = await begun();
    scene.site("away").crash(); // the root's stable clock stands
    await scene.pass(500);
    const session = await scene.attach("s");
    await scene.write(session, 0, 1);
    const token = session.token(false);
    scene.site("s").wipe(true);
    const { members } = scene.process("root").replica;
    assert.equal((await scene.done(members.remove("s"))).kind, "removed");
    await scene.pass(1_000);
    await drain(owner);
    assert.deepEqual(held(owner), { left: ["s"], owned: [] });
    assert.deepEqual(held(other), { left: [], owned: [] });
    if (isEmptied) {
      // What an operator would do who is not told.
      assert.equal((await scene.done(members.remove(owner))).kind, "removed");
      scene.site(owner).wipe(true);
      await scene.site("away").start();
      await scene.pass(5_000);
      await assert.rejects(scene.attach("root", token), { code: "source_lost" });
      continue;
    }
    await scene.site(owner).start();
    await scene.site("away").start();
    await scene.pass(5_000);
    await drain(owner);
    assert.deepEqual(held(owner), { left: [], owned: [] });
    assert.equal((await scene.done(members.remove(owner))).kind, "removed");
    scene.site(owner).wipe(true);
    await scene.pass(1_000);
    assert.equal(await scene.read(await scene.attach("root", token), 0), 1);
  }
});

Deno.test("a site that lives counts on an owner that was drained until another has everything, and says so (HB2)", async () => {
  const { scene, owner, other, owners, held, drain } = await begun();
  assert.deepEqual(held(owner), { left: [], owned: ["s"] });
  await drain(owner);
  await scene.until(() => owners()[0] === other);
  await scene.pass(500);
  assert.deepEqual(held(owner), { left: [], owned: ["s"] }, "its row names who was owner before");
  assert.deepEqual(owners(), [other], "and it knows better");
  assert.deepEqual(held("away"), { left: [], owned: [] });
});

Deno.test("what a site that stops has alone goes with its word, and is known at the root until it is back", async () => {
  const { scene } = await begun();
  const sole = [{ what: "messages of the queue q of a", count: 3 }];
  const { members } = scene.process("root").replica;
  assert.deepEqual(members.soleAt("o"), []);
  await scene.done(scene.process("o").replica.members.leave(scene.world.nowMs + 600_000, sole));
  await scene.pass(200);
  scene.site("o").crash();
  assert.deepEqual(members.soleAt("o"), sole);
  assert.deepEqual(members.soleAt("p"), []);
  await scene.site("o").start();
  await scene.pass(1_000);
  assert.deepEqual(members.soleAt("o"), []);
});

Deno.test("of a lost site the word of one owner that had something is enough, and that of one that had nothing is not (HB1)", async () => {
  for (const hasDisk of [true, false]) {
    const { scene, held, drain } = await begun(BOTH);
    scene.site("away").crash(); // the root's stable clock stands
    await scene.pass(500);
    await scene.write(await scene.attach("s"), 0, 1);
    scene.site("s").wipe(true);
    assert.equal((await scene.done(scene.process("root").replica.members.remove("s"))).kind, "removed");
    await scene.pass(1_000);
    await drain("o");
    assert.deepEqual([held("o"), held("p")], [{ left: ["s"], owned: [] }, { left: ["s"], owned: [] }]);
    if (!hasDisk) {
      scene.site("p").wipe();
      await scene.site("p").start();
    }
    await scene.site("away").start();
    await scene.pass(5_000);
    assert.deepEqual(held("p"), { left: [], owned: [] }, "it has said what it had");
    assert.deepEqual(held("o"), { left: hasDisk ? [] : ["s"], owned: [] });
  }
});
