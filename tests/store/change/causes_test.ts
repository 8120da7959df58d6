/** Causes of what a site brings along to another parent, which only an inner site above its old parent has. */
import { strictEqual } from "node:assert/strict";
import { Scene } from "../../sim/scene.ts";

/** An edge two cores below the root, another site beside the lower one, and a core that the edge is moved to. */
const TREE = {
  root: { parent: null, linkMs: 0 },
  upper: { parent: "root", linkMs: 1 },
  lower: { parent: "upper", linkMs: 1 },
  edge: { parent: "lower", linkMs: 1 },
  beside: { parent: "upper", linkMs: 1 },
  next: { parent: "root", linkMs: 1 },
} as const;
const CAUSE = 0, EFFECT = 1;

Deno.test("site that moves brings no effect to where its cause is not", async () => {
  const scene = new Scene(TREE);
  await scene.start();
  // All that the edge and its parent cover; the cause comes as far as the core above them.
  await scene.read(await scene.attach("edge"), EFFECT);
  scene.network.partition("root", "upper", Infinity);
  const writer = await scene.attach("beside");
  await scene.write(writer, CAUSE, 1);
  await scene.write(writer, EFFECT, 2);
  await scene.pass(500);
  strictEqual(await scene.read(await scene.attach("edge"), EFFECT), 2);
  await scene.move("edge", "next");
  await scene.pass(1_000);
  const reader = await scene.attach("next");
  strictEqual(await scene.read(reader, EFFECT), 2);
  strictEqual(await scene.read(reader, CAUSE), 1);
});
