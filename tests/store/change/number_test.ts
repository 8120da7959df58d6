/** Sites that wait for a number from above, for a child of theirs, and get another parent meanwhile. */
import { strictEqual } from "node:assert/strict";
import { Scene } from "../../sim/scene.ts";

const TREE = {
  root: { parent: null, linkMs: 0 },
  a: { parent: "root", linkMs: 1 },
  b: { parent: "root", linkMs: 1 },
} as const;

Deno.test("site that waits for a number for a child is moved below that child, which went elsewhere", async () => {
  const scene = new Scene(TREE);
  await scene.start();
  await scene.pass(2_000);
  scene.network.partition("root", "a", Infinity);
  // It says hello to a, who asks for its number in vain; then it is back where it was.
  scene.site("b").move("a", []);
  await scene.pass(1_000);
  scene.site("b").move("root", []);
  await scene.pass(1_000);
  strictEqual(scene.process("b").replica.status().parent?.connected, true);
  await scene.write(await scene.attach("b"), 0, 1);
  await scene.move("a", "b");
  strictEqual(await scene.read(await scene.attach("a"), 0), 1);
});
