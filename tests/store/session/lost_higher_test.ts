/** Sessions from a site that stands two below a disk that was lost, and has not been heard of since. */
import { rejects, strictEqual } from "node:assert/strict";
import { Scene } from "../../sim/scene.ts";

/** A session at a leaf has read what only the disk two above it had; that is lost, and the leaf is cut off. */
async function readThenCutOff(f: number) {
  const owned = (owner: string) => ({ f, nearMs: 0, sites: [owner] });
  const scene = new Scene({
    root: { parent: null, linkMs: 0 },
    core: { parent: "root", linkMs: 1, owners: owned("far") },
    middle: { parent: "core", linkMs: 1, owners: owned("far") },
    leaf: { parent: "middle", linkMs: 1, owners: owned("far") },
    far: { parent: "root", linkMs: 1 },
  });
  await scene.start();
  await scene.until(() =>
    ["core", "middle", "leaf"].every((id) => scene.process(id).replica.status().wards.owners.length === f)
  );
  await scene.pass(2_000);
  await scene.read(await scene.attach("leaf"), 0);
  scene.network.partition("core", "root", Infinity);
  await scene.write(await scene.attach("core"), 0, 7);
  await scene.pass(100);
  const reader = await scene.attach("leaf");
  strictEqual(await scene.read(reader, 0), 7);
  await scene.done(reader.durable());
  const token = reader.token(false);
  scene.network.partition("leaf", "middle", Infinity);
  scene.site("core").wipe();
  scene.network.block("core", "root", 0);
  const before = scene.process("middle").replica.status().replica;
  await scene.site("core").start();
  await scene.until(() => scene.process("middle").replica.status().replica !== before);
  await scene.pass(1_000);
  return { scene, token };
}

Deno.test("a session from below a lost disk is told of no loss before its site was heard of, where owners have all (Y7)", async () => {
  const { scene, token } = await readThenCutOff(1);
  await rejects(scene.attach("far", token), { code: "source_unreachable" });
  scene.network.block("leaf", "middle", 0);
  await scene.pass(3_000);
  strictEqual(await scene.read(await scene.attach("far", token), 0), 7);
});

Deno.test("a session from below a lost disk is told of the loss at once where there are no owners (Y7)", async () => {
  const { scene, token } = await readThenCutOff(0);
  await rejects(scene.attach("far", token), { code: "source_lost" });
});
