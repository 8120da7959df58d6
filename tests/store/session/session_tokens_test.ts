/** What a session's token has to say of what it has touched here: each step of a schedule is put in its place. */
import { equal, notEqual, ok } from "node:assert/strict";
import { packKey } from "../../../store/model/key.ts";
import { Scene } from "../../sim/scene.ts";
import { Tree } from "../owners/tree.ts";

const HORIZON_MS = 300;
const TREE = {
  root: { parent: null, linkMs: 0 },
  e1: { parent: "root", linkMs: 1 },
  e2: { parent: "root", linkMs: 1 },
  e3: { parent: "root", linkMs: 1 },
} as const;

Deno.test("a token's clock is that at which a row came here, not the row's version (E4)", async () => {
  const scene = new Scene(TREE);
  await scene.start();
  const writer = await scene.attach("e1");
  for (const site of ["e2", "e3"]) await scene.read(await scene.attach(site), 0);
  scene.network.partition("e1", "root", Infinity);
  await scene.write(writer, 0, 1);
  await scene.pass(1_000); // it is old when it is carried
  scene.network.stall("e2", "root", scene.world.nowMs + 5_000);
  const carried = await scene.attach("e2", writer.token(false));
  equal(carried.how, "carry");
  // Where it was written it is gone, and nothing of that site holds the root's stable clock back any more.
  scene.site("e1").wipe();
  scene.network.block("e1", "root", 0);
  await scene.site("e1").start();
  await scene.pass(1_000);
  const reader = await scene.attach("e2");
  equal(await scene.read(reader, 0), 1);
  const elsewhere = await scene.attach("e3", reader.token(false));
  notEqual(elsewhere.how, "nothing");
  equal(await scene.read(elsewhere, 0), 1);
});

/** A site that has stopped as planned and is back, and a token of it from before. */
async function back() {
  const scene = new Scene({ ...TREE, e1: { parent: "root", linkMs: 20 } });
  await scene.start();
  const before = (await scene.attach("e1")).token(false);
  for (const key of [0, 1]) equal(await scene.read(await scene.attach("e2"), key), null);
  await scene.done(scene.process("e1").replica.members.leave(0));
  scene.site("e1").crash();
  await scene.site("e1").start();
  await scene.until(() => scene.process("e1").ready);
  await scene.pass(1_000);
  return { scene, before };
}

Deno.test("what a site said of a stop is older than each open token that it gives when it is back (E4, H9)", async () => {
  const { scene, before } = await back();
  for (const [key, came] of [[], [before]].entries()) {
    const session = await scene.attach("e1", ...came);
    const open = session.token(true);
    await scene.write(session, key, 1);
    const elsewhere = await scene.attach("e2", open);
    equal(elsewhere.how, "carry");
    equal(await scene.read(elsewhere, key), 1);
  }
});

Deno.test("a site that is back after a stop is asked what it has written since, whatever it said of that (H9, H14)", async () => {
  const { scene, before } = await back();
  await scene.write(await scene.attach("e1", before), 0, 1);
  const elsewhere = await scene.attach("e2");
  equal(await scene.done(elsewhere.seeWhole(before, () => Promise.resolve())), true);
  equal(await scene.read(elsewhere, 0), 1);
});

Deno.test("what is not there counts as the deletion that left it so, also when that is collected (E2)", async () => {
  const scene = new Scene(TREE, { horizonMs: HORIZON_MS });
  await scene.start();
  const writer = await scene.attach("e1");
  await scene.write(writer, 0, 1);
  await scene.pass(100);
  for (const site of ["e2", "e3"]) equal(await scene.read(await scene.attach(site), 0), 1);
  // Nothing comes down to e3 for a while, and what it says goes up.
  scene.network.stall("root", "e3", scene.world.nowMs + 10 * HORIZON_MS);
  await scene.done(writer.write([{ kind: "delete", key: scene.keyspace.key(0) }]));
  const other = await scene.attach("e3");
  for (let i = 0; i < 4; i++) {
    await scene.pass(HORIZON_MS);
    await scene.write(other, 1, 2 + i); // who hears nothing says nothing of itself otherwise
  }
  await scene.pass(100);
  const counters = scene.process("e2").replica.status().counters;
  ok((counters["collected"] ?? 0) > 0, "the deletion is forgotten");
  const reader = await scene.attach("e2");
  equal(await scene.read(reader, 0), null);
  const attached = scene.process("e3").replica.attach(reader.token(false));
  const elsewhere = await scene.done(Promise.resolve(attached));
  equal(await scene.read(elsewhere, 0), null, "it does not live again");
});

Deno.test("whatever a session sees, absences and lists too, makes another token of its (E1, E2)", async () => {
  const scene = new Scene(TREE);
  await scene.start();
  const session = await scene.attach("e1");
  const key = scene.keyspace.key(0), [group] = scene.keyspace.groups;
  ok(group);
  const steps: readonly (readonly [string, () => Promise<unknown>])[] = [
    ["a read of what is not there", () => session.get([key])],
    ["a write", () => session.write([{ kind: "set", key, value: Uint8Array.of(1) }])],
    ["a read", () => session.get([key])],
    ["a list", () => session.list(group.range)],
    ["an empty list", () => session.list({ start: key, end: (key + "\0") as typeof key })],
    ["a check", () => session.write([], [{ key, version: null }])],
  ];
  for (const [says, step] of steps) {
    const before = session.touches;
    await scene.done(step());
    ok(session.touches > before, says);
  }
});

Deno.test("a token names the newest of all that its session has touched, in whichever order that was (E1, E4)", async () => {
  const tree = new Tree();
  const root = await tree.start("root", null), e1 = await tree.start("e1", null);
  await tree.pass(2_000);
  const keyOf = (name: string) => packKey(["row", name]);
  const set = (name: string) => [{ kind: "set", key: keyOf(name), value: Uint8Array.of(1) }] as const;
  const done = async <T>(promise: Promise<T>): Promise<T> => {
    await tree.pass(200);
    return await promise;
  };
  await done((await e1.attach(null)).get(["own", "old", "new"].map(keyOf)));
  await done((await e1.attach(null)).write([...set("own")]));
  for (const name of ["old", "new"]) await done((await root.attach(null)).write([...set(name)]));
  const reading = async (...names: string[]) => {
    const session = await e1.attach(null);
    for (const name of names) await session.get([keyOf(name)]);
    return session;
  };
  const ofNew = (await reading("new")).token(false), ofOld = (await reading("old")).token(false);
  ok((ofNew.path[0] ?? 0) > (ofOld.path[0] ?? Infinity), "the root's journal tells them apart");
  for (const names of [["new", "old"], ["new", "own"], ["own", "new", "old"]]) {
    const { path, clock } = (await reading(...names)).token(false);
    equal(path[0], ofNew.path[0], `${names}`);
    ok((path[1] ?? 0) >= (ofNew.path[1] ?? Infinity), `${names}`);
    ok(clock >= ofNew.clock, `${names}`);
  }
  const writer = await e1.attach(null);
  await writer.write([...set("written")]);
  const { clock } = writer.token(false);
  ok(!writer.isDurable, "a commit is under way");
  await writer.get([keyOf("old")]);
  ok(writer.token(false).clock >= clock, "what it read is older");
});
