/** What a change among the sites costs a parent (store/change/removal.ts). */
import { strict as assert } from "node:assert";
import { MemoryStorage } from "../../../runtime/storage/memory.ts";
import { Child } from "../../../store/core/child.ts";
import { Core } from "../../../store/core/core.ts";
import { Gaps } from "../../../store/model/gaps.ts";
import type { Key } from "../../../store/model/key.ts";
import { Least } from "../../../store/model/least.ts";
import { QUIET_MS } from "../../../store/model/limits.ts";
import { Removals } from "../../../store/change/removal.ts";
import {
  encodeJson,
  endedKey,
  GAPS_KEY,
  keptKey,
  removedKey,
  replicaKey,
  siteKey,
  SYSTEM_RANGE,
} from "../../../store/members/topology.ts";
import { Scene } from "../../sim/scene.ts";
import { learns, loneCore } from "../lone_core.ts";

/** A site below the root, whose time and notes are the caller's. */
function coreOf(
  now: { ms: number } = { ms: 1 },
  note: (detail?: Record<string, unknown>) => void = () => {},
): Core {
  return new Core(
    { site: "c", parent: "root", tier: "core", url: "", linkAddress: "", capacityBytes: 1e9 },
    {
      clock: {
        nowMs: () => now.ms,
        steadyMs: () => now.ms,
        after: () => () => {},
        turn: () => Promise.resolve(),
      },
      random: { bytes: (length) => new Uint8Array(length) },
      storage: new MemoryStorage(),
      network: { send: () => Promise.resolve() },
      fatal: (error) => {
        throw error;
      },
      note: (_, detail) => note(detail),
    },
  );
}

Deno.test("a change of one site has its parent look at that child, and at none of the others", async () => {
  const core = coreOf();
  const looked: string[][] = [];
  const removals = new Removals(core, {
    all: () => assert.fail("all children are looked at"),
    among: (sites) => {
      looked.push([...sites]);
      return [];
    },
    dismiss: () => {},
  });
  const write = (key: Key, value: unknown) => core.rows.put(core.own(key, encodeJson(value)));
  write(siteKey("e1"), { id: "e1", parent: "c" });
  await removals.sweep();
  await removals.sweep();
  // Whose end it is comes later.
  write(endedKey(7), { stable: 1 });
  await removals.sweep();
  write(replicaKey(7), { site: "e2", path: ["root", "c", "e2"], parent: 3, from: 0 });
  await removals.sweep();
  assert.deepEqual(looked, [["e1"], ["e2"]]);
});

Deno.test("a removed site that dials again and again is told to the host each time, and to the log once a minute", () => {
  const now = { ms: 1 }, told: unknown[] = [];
  const core = coreOf(now, (detail) => told.push([detail?.child, detail?.why, detail?.before]));
  const removals = new Removals(core, { all: () => [], among: () => [], dismiss: () => {} });
  for (const site of ["e1", "e2"]) core.rows.put(core.own(removedKey(site), encodeJson({ atMs: 1 })));
  const dial = (site: string) =>
    assert.ok(removals.refuses(site, { replica: 0, parentReplica: 0, cursor: 0 }));
  for (const site of ["e1", "e1", "e2", "e1"]) dial(site);
  now.ms += QUIET_MS;
  dial("e1");
  assert.deepEqual(told, [
    ["e1", "removed", 0],
    ["e1", "removed", null],
    ["e2", "removed", 0],
    ["e1", "removed", null],
    ["e1", "removed", 2],
  ]);
  assert.equal(core.counters["child_removed"], 5);
});

Deno.test("a site ends the numbers that it was given and did not take, once it knows which those are", async () => {
  const core = coreOf();
  const removals = new Removals(core, { all: () => [], among: () => [], dismiss: () => {} });
  const write = (key: Key, value: unknown) => core.rows.put(core.own(key, encodeJson(value)));
  // With a blank disk it said hello to `lost` and then to the root, where it is 6 and later, on the same disk, 9.
  const under = (parent: string, from: number) => ({
    site: "c",
    path: ["root", parent, "c"],
    parent: 3,
    from,
  });
  for (
    const [number, claim] of [[5, under("lost", 0)], [7, under("lost", 0)], [
      8,
      under("elsewhere", 6),
    ]] as const
  ) {
    write(replicaKey(number), claim);
  }
  write(replicaKey(6), { site: "c", path: ["root", "c"], parent: 1, from: 0 });
  write(replicaKey(9), { site: "c", path: ["root", "c"], parent: 1, from: 6 });
  write(endedKey(5), { stable: 3 });
  core.replica = 9;
  core.setPath(["root"]);
  const ends = () => [5, 6, 7, 8, 9].map((number) => core.topology.recordedEnd(number));
  await removals.sweep();
  assert.deepEqual(ends(), [3, undefined, undefined, undefined, undefined], "before it has all system rows");
  core.coverage.add(SYSTEM_RANGE);
  core.topology.departed.add("c");
  await removals.sweep();
  assert.deepEqual(ends(), [3, undefined, 0, 0, undefined], "neither its own nor the one that it was before");
});

Deno.test("a site whose parent asked twice for its number, and was lost, is taken elsewhere under the later one (R5)", () => {
  const core = coreOf();
  const removals = new Removals(core, { all: () => [], among: () => [], dismiss: () => {} });
  const write = (key: Key, value: unknown) => core.rows.put(core.own(key, encodeJson(value)));
  const given = (number: number, parent: number) =>
    write(replicaKey(number), { site: "e", path: ["root", "lost", "e"], parent, from: 0 });
  given(5, 3);
  given(7, 3);
  const isRefused = (replica: number) => removals.refuses("e", { replica, parentReplica: 3, cursor: 0 });
  assert.equal(isRefused(7), false);
  assert.equal(isRefused(5), true, "7 is the disk that lives");
  given(8, 4);
  assert.equal(isRefused(8), false, "the next disk of that parent took this one for the site's");
  assert.equal(isRefused(7), true);
  write(replicaKey(9), { site: "e", path: ["root", "other", "e"], parent: 2, from: 8 });
  assert.equal(isRefused(9), false, "it has been elsewhere since");
  write(replicaKey(10), { site: "e", path: ["root", "third", "e"], parent: 6, from: 0 });
  assert.equal(isRefused(9), true, "another disk lives below a third");
});

Deno.test("a site that said that its number was void is no child, whatever its parent had written of it", () => {
  const core = coreOf();
  const write = (key: Key, value: unknown) => core.rows.put(core.own(key, encodeJson(value)));
  const below = () => core.topology.joinedBelow("c");
  // It was a child of the root, said hello here, and went back before it was answered.
  write(replicaKey(4), { site: "e", path: ["root", "e"], parent: 1, from: 0 });
  write(replicaKey(8), { site: "e", path: ["root", "c", "e"], parent: 3, from: 4 });
  write(endedKey(4), { stable: 1, next: 8 });
  write(siteKey("e"), { id: "e", parent: "c", number: 8 });
  assert.deepEqual(below(), ["e"]);
  write(endedKey(8), { stable: 0 });
  assert.deepEqual(below(), []);
});

Deno.test("a site that has taken its number under another parent is no child, whatever this one had written of it", () => {
  const core = coreOf();
  const write = (key: Key, value: unknown) => core.rows.put(core.own(key, encodeJson(value)));
  const below = () => core.topology.joinedBelow("c");
  // It was a child of this site, whose disk was lost. While it was asked a number for, the child went elsewhere.
  write(replicaKey(8), { site: "e", path: ["root", "c", "e"], parent: 5, from: 0 });
  write(replicaKey(13), { site: "e", path: ["root", "c", "e"], parent: 9, from: 8 });
  write(siteKey("e"), { id: "e", parent: "c", number: 13 });
  write(endedKey(8), { stable: 1, next: 13 });
  assert.deepEqual(below(), ["e"]);
  write(replicaKey(10), { site: "e", path: ["root", "d", "e"], parent: 2, from: 8 });
  core.rows.put({ ...core.own(keptKey(8), encodeJson({ floor: 0, known: 0, whole: true })), replica: 10 });
  // It ends what it took to be the one that 13 goes on with: 13 itself is void.
  write(endedKey(10), { stable: 1, next: 13 });
  assert.deepEqual(below(), []);
});

Deno.test("a site that was let in again and lost before it joined can be removed again", async () => {
  const scene = new Scene({ root: { parent: null, linkMs: 0 }, e: { parent: "root", linkMs: 1 } });
  await scene.start();
  const { members } = scene.process("root").replica;
  const remove = async (id: string) => (await scene.done(members.remove(id))).kind;
  scene.site("e").wipe();
  assert.equal(await remove("nobody"), "unknown");
  assert.equal(await remove("root"), "root");
  assert.equal(await remove("e"), "removed");
  assert.equal(await remove("e"), "unknown", "it is removed already");
  assert.equal(await scene.done(members.admit("e")), true);
  assert.equal(await remove("e"), "removed");
  assert.equal(members.isRemoved("e"), true);
});

Deno.test("nobody is told of a loss by a site that was drained and removed, whatever its branch lacks (R1, H9)", async () => {
  const scene = new Scene({
    root: { parent: null, linkMs: 0 },
    c: { parent: "root", linkMs: 1 },
    e: { parent: "c", linkMs: 1 },
    away: { parent: "c", linkMs: 1 },
  });
  await scene.start();
  scene.site("away").crash(); // the branch's stable clock stands at that site's
  await scene.pass(100);
  const written = await scene.attach("e");
  await scene.write(written, 0, 1);
  const tokens = [written.token(false), written.token(true)];
  written.close();
  await scene.pass(100);
  assert.equal(await scene.done(scene.site("e").retire(0)), true);
  const { members } = scene.process("root").replica;
  assert.equal((await scene.done(members.remove("e"))).kind, "removed");
  for (const at of ["root", "c"]) {
    await scene.pass(100);
    for (const token of tokens) {
      assert.equal(await scene.read(await scene.attach(at, token), 0), 1, `at ${at}`);
    }
  }
});

/** A tree of three, in which e is drained and removed; and an open token of a session that wrote there before. */
async function drained() {
  const scene = new Scene({
    root: { parent: null, linkMs: 0 },
    c: { parent: "root", linkMs: 1 },
    e: { parent: "c", linkMs: 1 },
    near: { parent: "c", linkMs: 1 },
  });
  await scene.start();
  const written = await scene.attach("e");
  const token = written.token(true);
  await scene.write(written, 0, 1);
  written.close();
  assert.equal(await scene.done(scene.site("e").retire(0)), true);
  const { members } = scene.process("root").replica;
  assert.equal((await scene.done(members.remove("e"))).kind, "removed");
  await scene.pass(100);
  return { scene, token, members };
}

Deno.test("an open session of a site that was drained and removed goes on there when it was let in again (H9)", async () => {
  const { scene, token, members } = await drained();
  assert.equal(await scene.done(members.admit("e")), true);
  await scene.site("e").start();
  await scene.until(() => scene.process("e").ready);
  assert.equal(await scene.read(await scene.attach("e", token), 0), 1);
});

Deno.test("an open session of a site that was drained and removed goes on below a disk that was lost since (H9)", async () => {
  const { scene, token } = await drained();
  scene.site("c").wipe();
  await scene.site("c").start();
  await scene.until(() => scene.process("c").ready);
  await scene.pass(1_000);
  for (const at of ["c", "near", "root"]) {
    assert.equal(await scene.read(await scene.attach(at, token), 0), 1, `at ${at}`);
  }
});

Deno.test("what a site said before it was drained and removed is known when it is back and has taken that word away (H9)", async () => {
  const { scene, token, members } = await drained();
  assert.equal(await scene.done(members.admit("e")), true);
  await scene.site("e").start();
  await scene.until(() => scene.process("e").ready);
  await scene.pass(1_000);
  for (const at of ["near", "c", "root"]) {
    scene.site(at).crash();
    await scene.site(at).start();
    await scene.until(() => scene.process(at).ready);
    await scene.pass(1_000);
  }
  for (const at of ["near", "e", "c", "root"]) {
    assert.equal(await scene.read(await scene.attach(at, token), 0), 1, `at ${at}`);
  }
});

Deno.test("a hello is refused by what is known of the site, of its disk and of who stands where (R3, R5 to R8)", () => {
  const told: unknown[] = [];
  const core = coreOf({ ms: 1 }, (detail) => told.push(detail?.why));
  const removals = new Removals(core, { all: () => [], among: () => [], dismiss: () => {} });
  const write = (key: Key, value: unknown) => core.rows.put(core.own(key, encodeJson(value)));
  const stands = (number: number, site: string, parent: string, above: number) =>
    write(replicaKey(number), { site, path: ["root", parent, site], parent: above, from: 0 });
  core.setPath(["root", "b"]);
  core.replica = 9;
  core.gaps = new Gaps([{ from: 100, to: 120, clock: 1, atMs: 0 }]);
  write(removedKey("gone"), { atMs: 1 });
  stands(20, "back", "b", 3);
  write(endedKey(20), { stable: 1, removed: true });
  stands(21, "other", "b", 3);
  stands(22, "far", "d", 4);
  stands(23, "orphan", "gone", 5);
  stands(24, "mine", "c", 9);
  write(GAPS_KEY, [{ from: 500, to: 600, clock: 1 }]);
  core.rows.jumpTo(130);
  const hello = { replica: 0, parentReplica: 0, cursor: 0 };
  const moved = { floor: 0, from: "d", siblings: [], lost: ["d"] };
  const rows: readonly (readonly [string, string, Parameters<Removals["refuses"]>[1], string | null])[] = [
    ["a new site", "new", hello, null],
    ["one that was removed", "gone", hello, "removed"],
    ["a disk of a removed site that was let in again", "back", { ...hello, replica: 20 }, "old_disk"],
    ["a blank disk of that site", "back", hello, null],
    ["another site's disk", "new", { ...hello, replica: 21 }, "other_disk"],
    ["a site above this one", "b", hello, "above"],
    ["the root", "root", hello, "above"],
    ["this site itself", "c", hello, "above"],
    ["a blank disk of a site that lives elsewhere", "far", hello, "elsewhere"],
    ["its living disk", "far", { ...hello, replica: 22 }, null],
    ["a blank one, where its parent was given up", "far", { ...hello, moved }, null],
    ["a blank one, where its parent was removed", "orphan", hello, null],
    ["a blank disk of a site that lived here", "mine", hello, null],
    ["one that has had all of it", "mine", { replica: 24, parentReplica: 9, cursor: 130 }, null],
    ["one that has had more than that", "mine", { replica: 24, parentReplica: 9, cursor: 131 }, "ahead"],
    ["one that has had what was left out", "mine", { replica: 24, parentReplica: 9, cursor: 119 }, "ahead"],
    ["what came before and after that", "mine", { replica: 24, parentReplica: 9, cursor: 120 }, null],
    ["as much of another disk of this site", "mine", { replica: 24, parentReplica: 8, cursor: 131 }, null],
    [
      "one that moved, with what the root has had",
      "far",
      { ...hello, moved: { ...moved, floor: 600 } },
      null,
    ],
    ["with what the root has left out", "far", { ...hello, moved: { ...moved, floor: 501 } }, "ahead"],
    ["a number that the root has not told of", "new", { ...hello, replica: 30 }, null],
  ];
  for (const [says, id, said, why] of rows) {
    told.length = 0;
    assert.equal(removals.refuses(id, said), why !== null, says);
    assert.deepEqual(told, why === null ? [] : [why], says);
  }
});

Deno.test("who removes a child gives it up before that is answered, with the end that its branch has come to (R1, R2)", async () => {
  const core = loneCore(["root"], 1);
  learns(core, 7, ["root", "e"], { parent: 1 });
  const child = new Child("e", 7, { stables: new Least<Child>(), floors: new Least<Child>() });
  child.stable = 55;
  const dismissed: string[] = [];
  const removals = new Removals(core, {
    all: () => [child],
    among: (sites) => [...sites].includes("e") ? [child] : [],
    dismiss: ({ id }) => void dismissed.push(id),
  });
  assert.deepEqual(await removals.remove("e"), { kind: "removed", stable: 55 });
  assert.deepEqual([dismissed, core.topology.isRemoved("e")], [["e"], true]);
  assert.deepEqual(await removals.remove("e"), { kind: "unknown" });
});

Deno.test("a site that has children is not removed, before they are (R4)", async () => {
  const core = loneCore(["root"], 1);
  learns(core, 7, ["root", "e"], { parent: 1 });
  learns(core, 8, ["root", "e", "f"], { parent: 7 });
  const removals = new Removals(core, { all: () => [], among: () => [], dismiss: () => {} });
  assert.deepEqual(await removals.remove("e"), { kind: "has_children", children: ["f"] });
  assert.equal(core.topology.isRemoved("e"), false);
  assert.equal((await removals.remove("f")).kind, "removed");
  assert.equal((await removals.remove("e")).kind, "removed");
});

Deno.test("the root refuses a site that comes with a number which it never gave (R8)", () => {
  const core = new Core(
    { site: "root", parent: null, tier: "root", url: "", linkAddress: "", capacityBytes: 1e9 },
    coreOf().ports,
  );
  const removals = new Removals(core, { all: () => [], among: () => [], dismiss: () => {} });
  core.rows.put(
    core.own(replicaKey(4), encodeJson({ site: "e", path: ["root", "e"], parent: 1, from: 0 })),
  );
  const isRefused = (replica: number) => removals.refuses("e", { replica, parentReplica: 0, cursor: 0 });
  assert.deepEqual([0, 4, 5].map(isRefused), [false, false, true]);
});
