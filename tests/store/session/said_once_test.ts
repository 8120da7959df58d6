/**
 * A session that comes to a site while its hello to another parent is under way (store/change/moving.ts M1): directed here, since
 * one seed in thousands has it.
 */
import { strictEqual } from "node:assert/strict";
import type { OpenReplica } from "../../../store/api/api.ts";
import { openReplica } from "../../../store/replica.ts";
import { saysOnce } from "../../sim/broken/moving.ts";
import { Scene } from "../../sim/scene.ts";

const TREE = {
  root: { parent: null, linkMs: 0 },
  old: { parent: "root", linkMs: 1 },
  edge: { parent: "old", linkMs: 50 },
} as const;

/** What a session that wrote at the old parent reads at the edge, where it came before the new parent's answer did. */
async function readAfterMove(open: OpenReplica): Promise<number | null> {
  const scene = new Scene(TREE, { open });
  await scene.start();
  await scene.pass(2_000);
  // Its push, and what it answers, come late.
  scene.network.stall("old", "root", scene.world.nowMs + 1_500);
  const session = await scene.attach("old");
  await scene.write(session, 0, 7);
  await scene.pass(200);
  scene.site("edge").move("root", []);
  await scene.pass(120);
  const moved = await scene.attach("edge", session.token(false));
  // What the edge does not cover only the old parent has.
  await scene.pass(300);
  const later = await scene.attach("edge", moved.token(false));
  return await scene.read(later, 0);
}

Deno.test("a session that comes while its site is on its way to another parent reads its own writes there (M1)", async () => {
  strictEqual(await readAfterMove(openReplica), 7);
});

Deno.test("a site on its way that says what it depends on once, and not what it has come to depend on since, is found out", async () => {
  strictEqual(await readAfterMove(saysOnce.make()), null);
});
