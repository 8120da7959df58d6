/**
 * Disks that went back, and sites that have started over them more than once since: positions that such a disk has given
 * again mean two things (store/model/gaps.ts, store/change/removal.ts R8, store/session/handoff.ts H13).
 */
import { strict as assert } from "node:assert";
import { type OpenReplica, StoreUnavailable, type TokenState } from "../../../store/api/api.ts";
import type { SiteId } from "../../../store/model/ports.ts";
import { openReplica } from "../../../store/replica.ts";
import { forgetsGaps } from "../../sim/broken/disk.ts";
import type { DiskCopy } from "../../sim/disk.ts";
import { Scene, type SceneSite } from "../../sim/scene.ts";

const TREE: Readonly<Record<SiteId, SceneSite>> = {
  root: { parent: null, linkMs: 0 },
  one: { parent: "root", linkMs: 5 },
  two: { parent: "root", linkMs: 5 },
};

const isLost = (error: unknown) => error instanceof StoreUnavailable && error.code === "source_lost";
const isRefused = (error: unknown) =>
  error instanceof StoreUnavailable && ["source_lost", "source_unreachable"].includes(error.code);

/** Writes a key as so many writes, one after the other. @returns the token of the last answer. */
async function written(
  scene: Scene,
  site: SiteId,
  key: number,
  writes: readonly number[],
  from: readonly TokenState[] = [],
): Promise<TokenState> {
  const session = await scene.attach(site, ...from);
  for (const write of writes) await scene.write(session, key, write);
  return session.token(false);
}

/** Its session goes to the root and back: its token names a position in the root's journal, and nothing is on its way. */
async function settledAt(scene: Scene, token: TokenState): Promise<TokenState> {
  const session = await scene.attach("one", (await scene.attach("root", token)).token(false));
  await scene.read(session, 0);
  const settled = session.token(false);
  assert.ok((settled.path[0] ?? 0) > 0);
  return settled;
}

/** What a client with a token is answered at a site. @throws StoreUnavailable */
const shown = async (scene: Scene, site: SiteId, token: TokenState, key: number): Promise<number | null> =>
  await scene.read(await scene.attach(site, token), key);

const positionOf = (scene: Scene, site: SiteId): number => scene.process(site).replica.status().position;
const dismissals = (scene: Scene): number => scene.probes.all()["note child_removed"] ?? 0;

/** The site is killed and starts again, over its disk as it is or as a copy has it. */
async function again(scene: Scene, id: SiteId, copy?: DiskCopy): Promise<void> {
  const site = scene.site(id);
  if (copy === undefined) site.crash();
  else site.putBack(copy, () => {});
  await scene.pass(50);
  void site.start();
  await scene.until(() => site.process?.ready === true);
}

const MUCH = Array.from({ length: 20 }, (_, i) => 1_000 + i);
/** Longer than links take to notice and to be dialled anew. */
const SOON_MS = 2_000;

/** A copy of the root is put back and started so often, and only then do others come who had more of it. */
async function olderRoot(starts: number, open: OpenReplica = openReplica): Promise<void> {
  const scene = new Scene(TREE, { keys: 4, open });
  await scene.start();
  const before = await written(scene, "one", 0, [1]);
  await scene.pass(SOON_MS);
  const copy = scene.site("root").copyDisk();
  const later = await written(scene, "one", 0, [2, 3], [before]);
  const atRoot = await written(scene, "root", 1, [4]);
  await scene.pass(SOON_MS);
  // It names a position in the root's journal, and nothing of it is on its way.
  const settled = await settledAt(scene, later);
  await scene.pass(SOON_MS);
  scene.site("one").crash();
  scene.site("two").wipe();
  await again(scene, "root", copy);
  for (let start = 1; start <= starts; start++) {
    if (start > 1) await again(scene, "root");
    await written(scene, "root", 2, MUCH);
  }
  await scene.pass(100);
  const wasDismissed = dismissals(scene);
  void scene.site("one").start();
  void scene.site("two").start();
  await scene.until(() => scene.site("two").process?.ready === true);
  await scene.pass(SOON_MS);
  assert.equal(scene.process("one").replica.status().parent?.connected, false);
  assert.ok(dismissals(scene) > wasDismissed, "the root says so");
  for (const site of ["root", "two"]) {
    for (const token of [settled, atRoot]) {
      await assert.rejects(() => shown(scene, site, token, 0), isLost, `${site}, of ${token.replica}`);
    }
    await assert.rejects(() => shown(scene, site, later, 0), isRefused, `${site}, what was on its way`);
    assert.equal(
      await scene.read(await scene.attach(site), 0),
      1,
      "who has seen nothing sees what there is",
    );
  }
  assert.equal(await shown(scene, "one", later, 0), 3, "where it was written it still is");
}

for (const starts of [1, 2, 3]) {
  Deno.test(`an older copy of the root takes nobody who has had more of it, at its start number ${starts} as well (R8, H13)`, () =>
    olderRoot(starts));
}

Deno.test("a root that lost its disk takes nobody who had known it, also when it was started again since (R8, H13)", async () => {
  const scene = new Scene(TREE, { keys: 4 });
  await scene.start();
  const token = await written(scene, "one", 0, [1, 2]);
  await scene.pass(SOON_MS);
  const settled = await settledAt(scene, token);
  scene.site("one").crash();
  scene.site("two").wipe();
  scene.site("root").wipe();
  await again(scene, "root");
  await written(scene, "root", 2, MUCH);
  await again(scene, "root");
  for (const id of ["one", "two"]) void scene.site(id).start();
  await scene.until(() => scene.site("two").process?.ready === true);
  await scene.pass(SOON_MS);
  assert.equal(scene.process("one").replica.status().parent?.connected, false);
  for (const site of ["root", "two"]) await assert.rejects(() => shown(scene, site, settled, 0), isLost);
});

Deno.test("two roots over one copy are two: who has been with the one is not taken by the other (R8, H13)", async () => {
  const scene = new Scene(TREE, { keys: 4 });
  await scene.start();
  await written(scene, "root", 0, [1]);
  await scene.pass(SOON_MS);
  const copy = scene.site("root").copyDisk();
  for (const id of ["one", "two"]) scene.site(id).wipe();
  await again(scene, "root", copy);
  void scene.site("one").start();
  await scene.until(() => scene.site("one").process?.ready === true);
  const token = await written(scene, "one", 0, [2, 3]);
  await scene.pass(SOON_MS);
  const settled = await settledAt(scene, token);
  scene.site("one").crash();
  await again(scene, "root", copy);
  await written(scene, "root", 2, MUCH);
  await again(scene, "root");
  for (const id of ["one", "two"]) void scene.site(id).start();
  await scene.until(() => scene.site("two").process?.ready === true);
  await scene.pass(SOON_MS);
  assert.equal(scene.process("one").replica.status().parent?.connected, false);
  const numbers = ["one", "two"].map((id) => scene.process(id).replica.status().replica);
  assert.notEqual(numbers[0], numbers[1], "no number is given twice");
  for (const site of ["root", "two"]) {
    await assert.rejects(() => shown(scene, site, settled, 0), isLost);
    await assert.rejects(() => shown(scene, site, token, 0), isRefused);
  }
});

Deno.test("a number that only the other of two roots gave is nobody's: its tokens are not taken for another site's (N4)", async () => {
  const scene = new Scene(TREE, { keys: 4 });
  await scene.start();
  const copy = scene.site("root").copyDisk();
  for (const id of ["one", "two"]) scene.site(id).wipe();
  await again(scene, "root", copy);
  void scene.site("one").start();
  await scene.until(() => scene.site("one").process?.ready === true);
  scene.network.partition("one", "root", Infinity);
  const token = await written(scene, "one", 0, [2]);
  assert.equal(token.path[0], null);
  scene.site("one").crash();
  await again(scene, "root", copy);
  void scene.site("two").start();
  await scene.until(() => scene.site("two").process?.ready === true);
  await written(scene, "two", 1, MUCH);
  await scene.pass(SOON_MS);
  for (const site of ["root", "two"]) await assert.rejects(() => shown(scene, site, token, 0), isRefused);
});

/** A copy of an edge is put back and started so often while it is alone, before its parent is there again. */
async function olderEdge(starts: number, open: OpenReplica = openReplica): Promise<void> {
  const scene = new Scene(TREE, { keys: 4, open });
  await scene.start();
  await written(scene, "one", 0, [1]);
  await scene.pass(SOON_MS);
  const copy = scene.site("one").copyDisk();
  await written(scene, "one", 0, [2, 3]);
  await scene.pass(SOON_MS);
  scene.network.partition("one", "root", Infinity);
  let isFound = false;
  scene.site("one").putBack(copy, () => isFound = true);
  for (let start = 1; start <= starts; start++) {
    if (start > 1) scene.site("one").crash();
    void scene.site("one").start();
    await scene.until(() => scene.site("one").process?.ready === true);
    await written(scene, "one", 2, MUCH);
  }
  assert.equal(isFound, false);
  scene.network.heal();
  await scene.pass(SOON_MS);
  assert.ok(isFound, "it stops before anything of what it wrote since is taken for known above");
}

for (const starts of [1, 2]) {
  Deno.test(`an older copy of an edge that was alone, and has started ${starts} times, is found out by its parent`, () =>
    olderEdge(starts));
}

Deno.test("a start that forgets what the one before has left out is caught, of a root and of an edge (JG1)", async () => {
  await olderRoot(1, forgetsGaps());
  await assert.rejects(() => olderRoot(2, forgetsGaps()), assert.AssertionError);
  await olderEdge(1, forgetsGaps());
  await assert.rejects(() => olderEdge(2, forgetsGaps()), assert.AssertionError);
});

Deno.test("a session that comes back to an edge that went back and was started twice is told what it lost", async () => {
  const scene = new Scene(TREE, { keys: 4 });
  await scene.start();
  await written(scene, "one", 0, [1]);
  await scene.pass(SOON_MS);
  const copy = scene.site("one").copyDisk();
  scene.network.partition("one", "root", Infinity);
  const token = await written(scene, "one", 0, [2]);
  scene.site("one").putBack(copy, () => {});
  for (let start = 1; start <= 2; start++) {
    if (start > 1) scene.site("one").crash();
    void scene.site("one").start();
    await scene.until(() => scene.site("one").process?.ready === true);
    await written(scene, "one", 2, MUCH);
  }
  await assert.rejects(() => shown(scene, "one", token, 0), isLost);
});

const DEEP: Readonly<Record<SiteId, SceneSite>> = {
  root: { parent: null, linkMs: 0 },
  core: { parent: "root", linkMs: 5 },
  other: { parent: "root", linkMs: 5 },
  edge: { parent: "core", linkMs: 2 },
};

/** An edge has had more of the root's journal than the root has; its own parent is a blank one by now. */
async function outlived(): Promise<{ readonly scene: Scene; readonly pending: TokenState }> {
  const scene = new Scene(DEEP, { keys: 4 });
  await scene.start();
  await written(scene, "other", 0, [1]);
  await scene.pass(SOON_MS);
  const copy = scene.site("root").copyDisk();
  await written(scene, "other", 0, [2]);
  await scene.pass(SOON_MS);
  const session = await scene.attach("edge");
  assert.equal(await scene.read(session, 0), 2);
  scene.network.partition("edge", "core", Infinity);
  await scene.write(session, 1, 3);
  const pending = session.token(false);
  for (const id of ["core", "other"]) scene.site(id).wipe();
  await again(scene, "root", copy);
  await again(scene, "root");
  for (const id of ["core", "other"]) void scene.site(id).start();
  await scene.until(() => scene.site("other").process?.ready === true);
  return { scene, pending };
}

Deno.test("an edge below a blank core that has had more of the root than there is stops before it shows what was before", async () => {
  const { scene, pending } = await outlived();
  scene.network.heal();
  await scene.pass(SOON_MS);
  const faults = scene.events.flatMap((event) => event.kind === "fault" ? [event.text] : []);
  assert.ok(faults.some((text) => /edge: fatal: .*root .* older copy/.test(text)), faults.join("\n"));
  for (const site of ["core", "other", "root"]) {
    await assert.rejects(() => shown(scene, site, pending, 0), isRefused, site);
  }
});

Deno.test("an edge that has had more of the root than there is, and is moved, is taken nowhere", async () => {
  const { scene, pending } = await outlived();
  const wasDismissed = dismissals(scene);
  scene.site("edge").move("other", []);
  scene.network.heal();
  await scene.pass(SOON_MS);
  assert.ok(dismissals(scene) > wasDismissed);
  assert.equal(await shown(scene, "edge", pending, 0), 2);
  for (const site of ["other", "root"]) {
    await assert.rejects(() => shown(scene, site, pending, 0), isRefused, site);
  }
});

Deno.test("positions go on beyond what a start has left out, and what is on disk is known as had", async () => {
  const scene = new Scene(TREE, { keys: 4 });
  await scene.start();
  const heads: number[] = [];
  for (let i = 0; i < 4; i++) {
    await written(scene, "one", 0, [i]);
    heads.push(positionOf(scene, "one"));
    await again(scene, "one");
  }
  heads.reduce((before, head) => {
    assert.ok(head - before > 2 ** 35 - 2 ** 20 && head - before < 2 ** 37, `${head} after ${before}`);
    return head;
  });
  await scene.pass(SOON_MS);
  assert.equal(scene.process("one").replica.status().parent?.connected, true);
  assert.equal(scene.process("one").replica.status().pending, 0);
});
