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

Deno.test("session with an open token, whose site announced its stop, waits at the next site for what it was told since (H9)", async () => {
  const scene = new Scene({
    root: { parent: null, linkMs: 0 },
    b: { parent: "root", linkMs: 1 },
    s: { parent: "b", linkMs: 1 },
    d: { parent: "b", linkMs: 1 },
    e: { parent: "b", linkMs: 1 },
  });
  await scene.start();
  const covers = await scene.attach("e");
  await scene.read(covers, 0);
  await scene.read(covers, 1);
  const session = await scene.attach("s");
  await scene.write(session, 0, 1);
  await scene.pass(1_000);
  const open = session.token(true);
  scene.network.partition("b", "e", Infinity);
  await scene.write(session, 1, 2);
  void scene.process("s").replica.members.leave(4_000_000_000_000);
  await scene.pass(1_000);
  const next = await scene.attach("d", open);
  strictEqual(next.how, "nothing");
  const arrival = scene.attach("e", next.token(false));
  await scene.pass(100);
  scene.network.heal();
  strictEqual(await scene.read(await arrival, 1), 2);
});
