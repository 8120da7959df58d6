/** What a session has followed of journals above is waited for, also where something it saw is on its way there (H6). */
import { deepEqual, equal, ok, rejects } from "node:assert/strict";
import { Scene, type SceneSite } from "../../sim/scene.ts";

const TREE = {
  root: { parent: null, linkMs: 0 },
  e1: { parent: "root", linkMs: 1 },
  e2: { parent: "root", linkMs: 1 },
  e3: { parent: "root", linkMs: 1 },
} as const;

/**
 * A session that wrote key 0 at e3 goes on at e1, which need not have that row, and sees there what is on its way to the
 * root since before; then e1 dies. Nothing of it comes down to e2 for a while.
 */
async function followed(tree: Readonly<Record<string, SceneSite>>) {
  const scene = new Scene(tree);
  await scene.start();
  equal(await scene.read(await scene.attach("e2"), 0), null);
  equal(await scene.read(await scene.attach("e1"), 1), null);
  await scene.pass(3_000);
  const { network, world } = scene;
  network.stall("e1", "root", Infinity);
  const other = await scene.attach("e1");
  await scene.write(other, 1, 1);
  const writer = await scene.attach("e3");
  network.stall("root", "e2", world.nowMs + 1_500);
  await scene.write(writer, 0, 2);
  await scene.until(() => writer.token(false).path[0] !== null);
  const token = writer.token(false);
  await scene.pass(300);
  const reader = await scene.attach("e1", token);
  equal(reader.how, "nothing");
  equal(await scene.read(reader, 1), 1);
  await scene.done(reader.durable());
  const left = reader.token(false);
  equal(left.path[0], null);
  return { scene, left };
}

Deno.test("a session comes from a site that has forgotten in a crash how far it had followed the root's journal (H6)", async () => {
  const { scene, left } = await followed(TREE);
  scene.network.block("e1", "root", Infinity);
  scene.site("e1").crash();
  await scene.site("e1").start();
  await scene.until(() => scene.process("e1").ready);
  const elsewhere = await scene.attach("e2", left);
  equal(await scene.read(elsewhere, 0), 2);
  equal(await scene.read(elsewhere, 1), 1);
});

Deno.test("what a session has followed goes with its pending token from site to site, by itself and beside others (E1, H6)", async () => {
  const { scene, left } = await followed(TREE);
  const [position] = left.followed ?? [];
  const same = await scene.attach("e1", left);
  deepEqual(same.token(false).followed, left.followed);
  const other = await scene.attach("e1");
  await scene.read(other, 1);
  const both = await scene.attach("e1", other.token(false), left);
  deepEqual(both.token(false).followed, left.followed);
  await scene.done(other.see(left));
  deepEqual(other.token(false).followed, left.followed);
  const carried = await scene.attach("e3", left);
  equal(carried.how, "carry");
  const [further = 0] = carried.token(false).followed ?? [];
  ok(position !== undefined && further >= position);
});

Deno.test("a session comes from a site whose owner does not know how far that had followed the root's journal (H6)", async () => {
  const owners = { f: 1 } as const;
  const { scene, left } = await followed({ ...TREE, e1: { ...TREE.e1, owners } });
  scene.network.block("e1", "root", Infinity);
  scene.site("e1").crash();
  const elsewhere = await scene.attach("e2", left);
  equal(await scene.read(elsewhere, 0), 2);
  equal(await scene.read(elsewhere, 1), 1);
});

const DEEP_TREE = {
  root: { parent: null, linkMs: 0 },
  core: { parent: "root", linkMs: 1, owners: { f: 1, sites: ["e4"] } },
  e1: { parent: "core", linkMs: 1, owners: { f: 1, sites: ["e4"] } },
  e2: { parent: "core", linkMs: 1 },
  e3: { parent: "root", linkMs: 1 },
  e4: { parent: "root", linkMs: 1 },
} as const;

/**
 * A session that wrote key 0 at e2 goes on at e1, and sees there what is on its way to the core since before. The core fed
 * its children before its owner had that row: that owner said nothing for half a second.
 */
async function followedEarly() {
  const scene = new Scene(DEEP_TREE), { network } = scene;
  await scene.start();
  equal(await scene.read(await scene.attach("e3"), 0), null);
  equal(await scene.read(await scene.attach("e1"), 1), null);
  await scene.pass(3_000);
  const other = await scene.attach("e1");
  network.stall("e1", "core", Infinity);
  await scene.write(other, 1, 1);
  for (const site of ["e4", "root"]) network.stall("core", site, Infinity);
  const writer = await scene.attach("e2");
  await scene.write(writer, 0, 2);
  await scene.until(() => writer.token(false).path[1] !== null);
  await scene.pass(1_000);
  const reader = await scene.attach("e1", writer.token(false));
  equal(reader.how, "nothing");
  equal(await scene.read(reader, 1), 1);
  return { scene, left: reader.token(false) };
}

Deno.test("an owner stands in for a site between where it reaches what the token names of that site's journal, too (wards/stand_in.ts T1)", async () => {
  const { scene, left } = await followedEarly();
  for (const site of ["core", "e1"]) scene.site(site).crash();
  await rejects(() => scene.attach("e3", left), ({ code }) => code === "source_unreachable");
});

Deno.test("a session whose site is lost together with the one above is told of what it followed there and nobody has (Y4)", async () => {
  const { scene, left } = await followedEarly();
  for (const site of ["core", "e1", "e2"]) scene.site(site).wipe();
  for (const site of ["core", "e1", "e2"]) void scene.site(site).start();
  await scene.pass(10_000);
  await rejects(() => scene.attach("e3", left), ({ code }) => code === "source_lost");
});

Deno.test("a site that started again gives open tokens until its parent has met it: its clock may have gone back (H17)", async () => {
  const scene = new Scene(TREE);
  await scene.start();
  equal((await scene.attach("e1")).token(false).open, false);
  scene.network.block("e1", "root", scene.world.nowMs + 5_000);
  scene.site("e1").crash();
  await scene.site("e1").start();
  await scene.until(() => scene.process("e1").ready);
  const session = await scene.attach("e1");
  equal(session.token(false).open, false); // it rests on nothing of this disk
  await scene.write(session, 0, 1);
  equal(session.token(false).open, true);
  await scene.pass(10_000);
  equal(session.token(false).open, false);
});
