/** Rows that stand at a site outside of what it covers: written there, pushed by a child, carried (store/tree/collector.ts). */
import assert from "node:assert/strict";
import { Scene } from "../../sim/scene.ts";

const TREE = {
  root: { parent: null, linkMs: 0 },
  core: { parent: "root", linkMs: 2 },
  e1: { parent: "core", linkMs: 1 },
  e2: { parent: "core", linkMs: 1 },
} as const;

/** Which of the scene's keys have a row on a site's disk. */
function held(scene: Scene, site: string): number[] {
  const keys = new Set(scene.site(site).held.map(({ key }) => key));
  return Array.from({ length: 8 }, (_, i) => i).filter((i) => keys.has(scene.keyspace.key(i)));
}

Deno.test("what a child pushed and nobody reads leaves the disks on its way once the root has it (L4)", async () => {
  const scene = new Scene(TREE);
  await scene.start();
  const writer = await scene.attach("e1");
  for (let key = 0; key < 4; key++) await scene.write(writer, key, key + 1);
  await scene.until(() => held(scene, "root").length === 4);
  await scene.pass(2_000);
  assert.deepEqual({ core: held(scene, "core"), e1: held(scene, "e1") }, { core: [], e1: [] });
});

Deno.test("what was carried and nobody reads leaves the disk once the root has it (L4)", async () => {
  const scene = new Scene(TREE);
  await scene.start();
  scene.network.partition("core", "root", Infinity);
  const [writer, other] = [await scene.attach("e1"), await scene.attach("e1")];
  for (let key = 1; key < 4; key++) await scene.write(other, key, key + 1);
  await scene.write(writer, 0, 1);
  scene.network.partition("e1", "core", Infinity);
  const there = await scene.attach("e2", writer.token(false));
  assert.equal(there.how, "carry");
  for (const lower of ["core", "e1"]) scene.network.block(lower, lower === "core" ? "root" : "core", 0);
  await scene.until(() => held(scene, "root").length === 4);
  await scene.pass(2_000);
  // What the session itself had touched was fetched.
  assert.deepEqual({ e1: held(scene, "e1"), e2: held(scene, "e2") }, { e1: [], e2: [0] });
});

Deno.test("a site that is alone shows no older row than one of a child that went with its own (E8)", async () => {
  const scene = new Scene(TREE);
  await scene.start();
  const [own, late, child] = [await scene.attach("core"), await scene.attach("e2"), await scene.attach("e1")];
  scene.network.partition("core", "root", Infinity);
  scene.network.partition("e2", "core", Infinity);
  await scene.write(own, 0, 1);
  await scene.pass(20);
  await scene.write(late, 0, 2);
  await scene.pass(20);
  await scene.write(child, 0, 3);
  const reader = await scene.attach("core");
  await scene.pass(20);
  assert.equal(await scene.read(reader, 0), 3);
  scene.network.block("core", "root", 0);
  await scene.until(() => held(scene, "root").length === 1 && held(scene, "core").length === 0);
  scene.network.partition("core", "root", Infinity);
  scene.network.block("e2", "core", 0);
  await scene.until(() => held(scene, "core").length === 1);
  await assert.rejects(scene.read(reader, 0), { code: "store_unreachable" });
});
