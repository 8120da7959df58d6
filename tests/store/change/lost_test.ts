/** Sites that are moved while the parent that they leave has lost its disk, and waits for what they have. */
import { strictEqual } from "node:assert/strict";
import { Scene } from "../../sim/scene.ts";

const TREE = {
  root: { parent: null, linkMs: 0 },
  core: { parent: "root", linkMs: 5 },
  one: { parent: "core", linkMs: 1 },
  other: { parent: "core", linkMs: 1 },
  far: { parent: "root", linkMs: 5 },
} as const;

/** Each has written what only it and the core have; the core loses its disk, and one is moved so much later. */
async function movedTo(parent: "other" | "far", afterMs: number): Promise<void> {
  const scene = new Scene(TREE);
  await scene.start();
  const writers = { one: await scene.attach("one"), other: await scene.attach("other") };
  await scene.read(writers.one, 0);
  await scene.read(writers.other, 1);
  scene.network.partition("root", "core", Infinity);
  await scene.write(writers.one, 0, 1);
  await scene.write(writers.other, 1, 2);
  await scene.pass(300);
  scene.site("core").wipe();
  scene.network.heal();
  void scene.site("core").start();
  await scene.pass(afterMs);
  await scene.move("one", parent);
  await scene.until(() => scene.site("core").process?.ready === true);
  const reader = await scene.attach(parent);
  strictEqual(await scene.read(reader, 0), 1, `moved to ${parent} after ${afterMs} ms`);
  strictEqual(await scene.read(await scene.attach("root"), 1), 2);
}

Deno.test("site is moved while the disk of its parent is lost, below its sibling or elsewhere", async () => {
  for (let afterMs = 0; afterMs <= 60; afterMs += 3) {
    await movedTo("other", afterMs);
    await movedTo("far", afterMs);
  }
});

const DEEP = {
  root: { parent: null, linkMs: 0 },
  core: { parent: "root", linkMs: 5 },
  middle: { parent: "core", linkMs: 1 },
  leaf: { parent: "middle", linkMs: 1 },
  other: { parent: "core", linkMs: 1 },
} as const;

Deno.test("site is moved with its child, apart, while the disk of the parent above both is lost", async () => {
  const scene = new Scene(DEEP);
  await scene.start();
  const reader = await scene.attach("leaf");
  await scene.read(reader, 0);
  const effect = await scene.attach("other");
  await scene.read(effect, 0);
  scene.network.partition("root", "core", Infinity);
  await scene.write(await scene.attach("middle"), 0, 1);
  await scene.pass(100);
  strictEqual(await scene.read(reader, 0), 1);
  strictEqual(await scene.read(effect, 0), 1);
  await scene.write(effect, 1, 2);
  scene.site("core").wipe();
  scene.site("leaf").move("root", []);
  // The root has heard by then who stood above.
  await scene.pass(1_500);
  scene.site("middle").move("root", []);
  await scene.pass(20);
  scene.network.heal();
  void scene.site("core").start();
  await scene.until(() => scene.site("core").process?.ready === true);
  const late = await scene.attach("core");
  strictEqual(await scene.read(late, 1), 2);
  strictEqual(await scene.read(late, 0), 1);
  for (const id of ["middle", "leaf"]) {
    await scene.until(() => scene.process(id).replica.status().parent?.connected === true);
  }
  await scene.until(() => scene.process("root").replica.status().adopting.length === 0);
});

Deno.test("site that lost its disk tells nothing before a child that has moved has brought what it had", async () => {
  const scene = new Scene(DEEP);
  await scene.start();
  const effect = await scene.attach("other");
  await scene.read(effect, 0);
  scene.network.partition("root", "core", Infinity);
  await scene.write(await scene.attach("middle"), 0, 1);
  await scene.pass(100);
  strictEqual(await scene.read(effect, 0), 1);
  await scene.write(effect, 1, 2);
  scene.site("core").wipe();
  scene.network.heal();
  void scene.site("core").start();
  scene.site("middle").move("root", []);
  await scene.until(() => scene.process("middle").replica.status().depth === 1);
  scene.network.partition("root", "middle", scene.world.nowMs + 3_000);
  await scene.pass(2_000);
  strictEqual(scene.site("core").process?.ready, false);
  await scene.until(() => scene.site("core").process?.ready === true);
  const late = await scene.attach("core");
  strictEqual(await scene.read(late, 1), 2);
  strictEqual(await scene.read(late, 0), 1);
});

Deno.test("orphan of a lost disk is taken in while its sibling stands below the next disk there", async () => {
  const scene = new Scene({ ...DEEP, other: { parent: "middle", linkMs: 1 } });
  await scene.start();
  const reader = await scene.attach("leaf");
  await scene.read(reader, 0);
  scene.network.partition("root", "core", Infinity);
  await scene.write(await scene.attach("other"), 0, 1);
  await scene.pass(100);
  strictEqual(await scene.read(reader, 0), 1);
  scene.site("middle").wipe();
  scene.network.heal();
  scene.site("leaf").move("root", []);
  await scene.pass(50);
  void scene.site("middle").start();
  await scene.until(() => scene.process("leaf").replica.status().parent?.connected === true);
  await scene.until(() => scene.site("middle").process?.ready === true);
  strictEqual(await scene.read(await scene.attach("root"), 0), 1);
  strictEqual(await scene.read(await scene.attach("middle"), 0), 1);
});

Deno.test("site that lost its disk hears of a child that went below a full one", async () => {
  const scene = new Scene({
    root: { parent: null, linkMs: 0 },
    core: { parent: "root", linkMs: 5 },
    middle: { parent: "core", linkMs: 1 },
    lower: { parent: "middle", linkMs: 1 },
    leaf: { parent: "core", linkMs: 1 },
  }, { pendingBytesMax: 500 });
  await scene.start();
  const writers = { middle: await scene.attach("middle"), leaf: await scene.attach("leaf") };
  scene.network.partition("root", "core", Infinity);
  await scene.write(writers.leaf, 7, 1);
  await scene.write(writers.middle, 0, 2);
  await scene.pass(100);
  scene.site("core").wipe();
  scene.site("leaf").move("lower", []);
  scene.network.heal();
  void scene.site("core").start();
  await scene.until(() => scene.site("core").process?.ready === true);
  await scene.until(() => scene.process("leaf").replica.status().parent?.connected === true);
  const late = await scene.attach("core");
  strictEqual(await scene.read(late, 7), 1);
  strictEqual(await scene.read(late, 0), 2);
});
