/**
 * Disks that change rows by themselves (store/core/damage.ts): what a site answers then, of a row that another has, of one that
 * nobody has, and of all others.
 */
import { deepStrictEqual, ok, rejects, strictEqual } from "node:assert/strict";
import { StoreUnavailable } from "../../store/api/api.ts";
import { type Key, unpackKey } from "../../store/model/key.ts";
import type { SiteId } from "../../store/model/ports.ts";
import { Scene } from "./scene.ts";

const TREE = {
  root: { parent: null, linkMs: 5 },
  core: { parent: "root", linkMs: 5 },
  e: { parent: "core", linkMs: 2 },
  far: { parent: "root", linkMs: 5 },
} as const;
const KEY = 0, OTHER = 1, THIRD = 2;

async function begun(options: { readonly f?: number } = {}): Promise<Scene> {
  const owners = { f: options.f ?? 0 };
  const sites = Object.fromEntries(Object.entries(TREE).map(([id, site]) => [id, { ...site, owners }]));
  const scene = new Scene(sites, { keys: 4 });
  await scene.start();
  return scene;
}

/** Rows of a site's disk rot, and it starts over that: nothing is in its memory. */
async function rots(scene: Scene, id: SiteId, ...keys: readonly number[]): Promise<void> {
  await scene.pass(100);
  for (const key of keys) ok(scene.site(id).rot(scene.keyspace.key(key)));
  scene.site(id).crash();
  void scene.site(id).start();
  await scene.until(() => scene.site(id).process?.ready === true);
}

const damaged = (site: string) => (error: unknown) =>
  error instanceof StoreUnavailable && error.code === "row_damaged" &&
  error.message.includes(site) &&
  error.message.includes('["a","sim","g0",0]');

const count = (scene: Scene, id: SiteId, name: string) =>
  scene.process(id).replica.status().counters[name] ?? 0;

const isSiteRow = (key: Key, site: SiteId): boolean => {
  const [space, kind, id] = unpackKey(key);
  return space === "s" && kind === "site" && id === site;
};

const list = async (scene: Scene, id: SiteId): Promise<(number | null)[]> => {
  const session = await scene.attach(id);
  const [group] = scene.keyspace.groups;
  ok(group);
  const rows = await scene.done(session.list(group.range));
  return rows.map((row) => scene.keyspace.seen(row)?.write ?? null);
};

Deno.test("a row that is damaged below the root is fetched again, when it is read (G1)", async () => {
  const scene = await begun();
  const writer = await scene.attach("e");
  for (const [key, write] of [[KEY, 7], [OTHER, 8], [THIRD, 9]] as const) {
    await scene.write(writer, key, write);
  }
  await scene.pass(1_000);
  deepStrictEqual(await list(scene, "e"), [7, 8, 9]);
  await scene.pass(2_000);
  await rots(scene, "e", KEY, THIRD);
  const session = await scene.attach("e", writer.token(false));
  strictEqual(await scene.read(session, OTHER), 8);
  strictEqual(count(scene, "e", "rows_damaged"), 0);
  strictEqual(await scene.read(session, KEY), 7);
  strictEqual(count(scene, "e", "rows_damaged"), 1, "the other one was not read yet");
  deepStrictEqual(await list(scene, "e"), [7, 8, 9]);
  strictEqual(count(scene, "e", "rows_damaged"), 2);
  const before = count(scene, "e", "fetch");
  strictEqual(await scene.read(await scene.attach("e"), KEY), 7);
  strictEqual(count(scene, "e", "fetch"), before, "it is covered again");
  // And it is shown what changes.
  await scene.write(await scene.attach("far"), KEY, 17);
  await scene.pass(1_000);
  strictEqual(await scene.read(await scene.attach("e"), KEY), 17);
});

Deno.test("an inner site whose row is damaged tells its children, who fetch it through it", async () => {
  const scene = await begun();
  await scene.write(await scene.attach("far"), KEY, 7);
  await scene.pass(1_000);
  deepStrictEqual(await list(scene, "e"), [7]);
  await rots(scene, "core", KEY);
  await scene.write(await scene.attach("far"), KEY, 8);
  await scene.pass(1_000);
  strictEqual(await scene.read(await scene.attach("e"), KEY), 8);
  await scene.write(await scene.attach("far"), KEY, 9);
  await scene.pass(1_000);
  deepStrictEqual(await list(scene, "e"), [9], "its changes come again");
});

Deno.test("a damaged row that memory still has is written anew", async () => {
  const scene = await begun();
  const session = await scene.attach("root");
  await scene.write(session, KEY, 7);
  ok(scene.site("root").rot(scene.keyspace.key(KEY)));
  deepStrictEqual(await list(scene, "root"), [7]);
  strictEqual(count(scene, "root", "rows_mended"), 1);
  scene.site("root").crash();
  void scene.site("root").start();
  await scene.until(() => scene.site("root").process?.ready === true);
  strictEqual(await scene.read(await scene.attach("root"), KEY), 7);
});

Deno.test("a row that is damaged at the root is refused by name, everywhere, and no other one (G1)", async () => {
  const scene = await begun();
  const writer = await scene.attach("root");
  await scene.write(writer, KEY, 7);
  await scene.write(writer, OTHER, 8);
  deepStrictEqual(await list(scene, "e"), [7, 8]);
  await rots(scene, "root", KEY);
  const name = (id: SiteId) => damaged(id === "root" ? "the disk of site root" : `a disk above site ${id}`);
  for (let round = 0; round < 2; round++) {
    for (const id of ["root", "far", "e"]) {
      await rejects(scene.read(await scene.attach(id), KEY), name(id), `${id} ${round}`);
      await rejects(list(scene, id), name(id), `${id} ${round}`);
      strictEqual(await scene.read(await scene.attach(id), OTHER), 8);
    }
    scene.site("root").crash();
    void scene.site("root").start();
    await scene.until(() => scene.site("root").process?.ready === true);
    await scene.pass(1_000);
  }
  await scene.write(await scene.attach("far"), KEY, 9);
  await scene.pass(1_000);
  for (const id of ["root", "far", "e"]) {
    strictEqual(await scene.read(await scene.attach(id), KEY), 9, `${id}: a newer row stands for it (G3)`);
    deepStrictEqual(await list(scene, id), [9, 8]);
  }
});

Deno.test("who watches a row that is damaged at the root is told when it is written anew", async () => {
  const scene = await begun();
  await scene.write(await scene.attach("root"), KEY, 7);
  await scene.write(await scene.attach("root"), OTHER, 8);
  const session = await scene.attach("e");
  const [group] = scene.keyspace.groups;
  ok(group);
  let changes = 0;
  const end = session.watch([group.range], () => changes++);
  deepStrictEqual(await list(scene, "e"), [7, 8]);
  await rots(scene, "root", KEY);
  await rejects(scene.read(await scene.attach("root"), KEY), damaged("root"));
  await scene.pass(2_000);
  await scene.write(await scene.attach("root"), OTHER, 18);
  await scene.pass(2_000);
  const before = changes;
  await scene.write(await scene.attach("root"), KEY, 9);
  await scene.pass(3_000);
  ok(changes > before);
  deepStrictEqual(await list(scene, "e"), [9, 18]);
  await scene.write(await scene.attach("root"), KEY, 10);
  const last = changes;
  await scene.pass(1_000);
  ok(changes > last, "and of all that follows");
  end();
});

Deno.test("a pending row that is damaged is told to nobody as if it had been told (G2)", async () => {
  const scene = await begun();
  scene.network.partition("e", "core", Infinity);
  const writer = await scene.attach("e");
  await scene.write(writer, KEY, 7);
  await scene.write(writer, OTHER, 8);
  await rots(scene, "e", KEY);
  scene.network.heal();
  await scene.pass(3_000);
  strictEqual(scene.process("e").replica.status().damaged.length, 1);
  const session = await scene.attach("e", writer.token(false));
  await rejects(scene.read(session, KEY), damaged("e"));
  const elsewhere = scene.process("far").replica.attach(writer.token(false));
  await rejects(scene.done(Promise.resolve(elsewhere)), /source|site e/);
  await scene.write(session, KEY, 9);
  await scene.pass(1_000);
  const after = await scene.attach("far", session.token(false));
  strictEqual(await scene.read(after, KEY), 9);
  strictEqual(await scene.read(after, OTHER), 8);
  strictEqual(scene.process("e").replica.status().damaged.length, 0);
});

Deno.test("a pending row that is damaged comes back from its owner, f = 1", async () => {
  const scene = await begun({ f: 1 });
  await scene.pass(2_000);
  const writer = await scene.attach("e");
  strictEqual(await scene.read(writer, KEY), null);
  scene.network.partition("e", "core", Infinity);
  await scene.write(writer, KEY, 7);
  await rots(scene, "e", KEY);
  await scene.pass(5_000);
  const session = await scene.attach("e", writer.token(false));
  strictEqual(count(scene, "e", "rows_regained"), 1);
  strictEqual(await scene.read(session, KEY), 7);
  scene.network.heal();
  await scene.pass(3_000);
  strictEqual(await scene.read(await scene.attach("far", session.token(false)), KEY), 7);
});

Deno.test("a row of who is who that is damaged is fetched again below the root; the root stops, and says which", async () => {
  const scene = await begun();
  await scene.pass(1_000);
  const key = scene.site("e").held.map((row) => row.key).find((each) => isSiteRow(each, "far"));
  ok(key);
  ok(scene.site("e").rot(key));
  scene.site("e").crash();
  void scene.site("e").start();
  await scene.until(() => scene.site("e").process?.ready === true);
  ok(scene.process("e").replica.members.sites.has("far"));
  ok(scene.site("root").rot(key));
  scene.site("root").crash();
  const said: unknown[] = [];
  await scene.site("root").start().catch((error: unknown) => said.push(error));
  await scene.pass(100);
  ok(
    [...said, ...scene.events].some((event) =>
      JSON.stringify(event, Object.getOwnPropertyNames(event as object)).includes("who is who")
    ),
    "it says why",
  );
});
