/** Sessions whose answers go on while their site moves. */
import { strictEqual } from "node:assert/strict";
import { Scene } from "../../sim/scene.ts";

/** An edge below one core, which is to go below another; a third edge is far from both. */
const TREE = {
  root: { parent: null, linkMs: 0 },
  a: { parent: "root", linkMs: 1 },
  b: { parent: "root", linkMs: 60 },
  e: { parent: "a", linkMs: 1 },
  far: { parent: "b", linkMs: 1 },
} as const;

Deno.test("session with an open token sees what it was told after its site had moved", async () => {
  const scene = new Scene(TREE);
  await scene.start();
  // Covered there, so that what is read is what has arrived.
  await scene.read(await scene.attach("far"), 0);
  const writer = await scene.attach("e");
  await scene.write(writer, 0, 1);
  const open = writer.token(true);
  await scene.move("e", "root");
  await scene.pass(500);
  await scene.write(writer, 0, 2);
  const reader = await scene.attach("far", open);
  strictEqual(await scene.read(reader, 0), 2);
});
