/**
 * Sessions that are attached while a disk above their site is lost (session.ts E6): each step is put in its place, since
 * seeds rarely have a session whose only trace was on that disk.
 */
import { rejects, strictEqual } from "node:assert/strict";
import { Scene } from "../../sim/scene.ts";

const TREE = {
  root: { parent: null, linkMs: 0 },
  inner: { parent: "root", linkMs: 1 },
  e1: { parent: "inner", linkMs: 1 },
  e2: { parent: "inner", linkMs: 1 },
} as const;

/** A session at e1 that has read what was written at e2, and what both know of it is lost above. */
async function readThenLost(isAtRoot: boolean) {
  const scene = new Scene(TREE);
  await scene.start();
  const before = await scene.attach("e1");
  for (const key of [0, 1]) await scene.read(before, key);
  if (!isAtRoot) scene.network.partition("inner", "root", Infinity);
  await scene.write(await scene.attach("e2"), 0, 7);
  await scene.pass(200);
  const reader = await scene.attach("e1");
  strictEqual(await scene.read(reader, 0), 7);
  if (isAtRoot) await scene.pass(500);
  for (const site of ["inner", "e2"]) scene.site(site).wipe();
  if (!isAtRoot) scene.network.block("inner", "root", 0);
  for (const site of ["inner", "e2"]) await scene.site(site).start();
  await scene.pass(3_000);
  return { scene, reader };
}

Deno.test("a session is told that what it read was lost above its site, and answers nothing after that (E6)", async () => {
  const { scene, reader } = await readThenLost(false);
  await rejects(scene.done(reader.durable()), { code: "source_lost" });
  await rejects(scene.read(reader, 2), { code: "source_lost" });
  await rejects(scene.read(reader, 0), { code: "source_lost" });
});

Deno.test("a session goes on where what it read had come further than the disk that was lost (E6)", async () => {
  const { scene, reader } = await readThenLost(true);
  await scene.done(reader.durable());
  strictEqual(await scene.read(reader, 0), 7);
  strictEqual(await scene.read(reader, 2), null);
});

/** An edge whose core loses its disk while it starts, and that answers a session before it has met that again. */
async function toldMeanwhile(f: number) {
  const owned = (owner: string) => ({ f, nearMs: 0, sites: [owner] });
  const scene = new Scene({
    root: { parent: null, linkMs: 0 },
    core: { parent: "root", linkMs: 1, owners: owned("owner") },
    owner: { parent: "root", linkMs: 1 },
    e1: { parent: "core", linkMs: 1, owners: owned("e2") },
    e2: { parent: "core", linkMs: 1 },
  });
  await scene.start();
  await scene.until(() =>
    ["core", "e1"].every((id) => scene.process(id).replica.status().wards.owners.length === f)
  );
  await scene.pass(2_000);
  scene.site("e1").crash();
  scene.site("core").wipe();
  await scene.site("e1").start();
  await scene.until(() => scene.process("e1").ready);
  const session = await scene.attach("e1");
  await scene.write(session, 0, 7);
  const token = session.token(false);
  strictEqual(token.open, true, "its disk may be an older copy");
  await scene.site("core").start();
  await scene.until(() => scene.process("core").ready);
  await scene.pass(3_000);
  return { scene, token };
}

Deno.test("what a site tells while its parent is lost is elsewhere when that is back, where owners have all (H5, H11)", async () => {
  const { scene, token } = await toldMeanwhile(1);
  for (const site of ["owner", "e2", "core", "root"]) {
    strictEqual(await scene.read(await scene.attach(site, token), 0), 7, site);
  }
});

Deno.test("what a site tells while its parent is lost may be lost with that where there are no owners (H5)", async () => {
  const { scene, token } = await toldMeanwhile(0);
  await rejects(scene.attach("owner", token), { code: "source_lost" });
});
