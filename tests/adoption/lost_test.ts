/** Sites that are moved while the parent that they leave has lost its disk, and waits for what they have. */
import { strictEqual } from "node:assert/strict";
import { Scene } from "../sim/scene.ts";

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
  scene.site("one").move(parent, []);
  await scene.until(() => scene.process("one").replica.status().parent?.connected === true);
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
