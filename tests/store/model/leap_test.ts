/**
 * Wall clocks that leap beyond what neighbours accept: nobody believes them, and nobody is cut off (store/model/wall.ts B1,
 * B5, B7; store/tree/timekeeper.ts K2 to K5).
 */
import { deepStrictEqual, rejects, strictEqual } from "node:assert/strict";
import { CLOCK_AHEAD_MS_MAX } from "../../../store/model/limits.ts";
import { Scene } from "../../sim/scene.ts";

const TREE = {
  root: { parent: null, linkMs: 0 },
  a: { parent: "root", linkMs: 2 },
  e1: { parent: "a", linkMs: 1 },
  e2: { parent: "root", linkMs: 2 },
} as const;
const { root, a } = TREE;
const SITES = Object.keys(TREE);
const HOUR_MS = 3_600_000;
/** Longer than an hour's leap needs to be gone by at a root that is alone (store/model/limits.ts CLOCK_STAYS_MS). */
const ALONE_MS = 70_000;

/** Every site writes, and what it wrote is everywhere within two seconds. */
async function works(scene: Scene, write: number): Promise<void> {
  for (const [i, site] of SITES.entries()) {
    const session = await scene.attach(site);
    await scene.write(session, i, write + i);
    for (const other of SITES) {
      strictEqual(
        await scene.read(await scene.attach(other, session.token(false)), i),
        write + i,
        `${site} ${other}`,
      );
    }
  }
  await scene.until(() => SITES.every((id) => scene.process(id).replica.status().pending === 0), 2_000);
}

for (const site of SITES) {
  for (const ms of [HOUR_MS, -HOUR_MS, 365 * 24 * HOUR_MS]) {
    Deno.test(`wall clock of ${site} that leaps ${ms / HOUR_MS} h for a while cuts nobody off, then and later`, async () => {
      const scene = new Scene(TREE);
      await scene.start();
      await works(scene, 10);
      scene.site(site).leap(ms);
      await scene.pass(400);
      await works(scene, 20);
      await scene.pass(15_000);
      await works(scene, 30);
      scene.site(site).leap(0);
      await works(scene, 40);
      await scene.pass(2_000);
      await works(scene, 50);
      for (const id of SITES) deepStrictEqual(scene.process(id).replica.status().clocksAhead, [], id);
    });

    Deno.test(`wall clock of ${site} that is ${ms / HOUR_MS} h off as it starts again cuts nobody off`, async () => {
      const scene = new Scene(TREE);
      await scene.start();
      await works(scene, 10);
      scene.site(site).crash();
      await scene.pass(50);
      scene.site(site).leap(ms);
      await scene.site(site).start();
      await scene.until(() => scene.process(site).ready);
      await works(scene, 20);
      scene.site(site).leap(0);
      scene.site(site).crash();
      await scene.site(site).start();
      await scene.until(() => scene.process(site).ready);
      await works(scene, 30);
    });
  }
}

for (const ms of [HOUR_MS, -HOUR_MS]) {
  Deno.test(`clock of a root that leapt ${ms / HOUR_MS} h before anybody joined keeps nobody out (B7)`, async () => {
    const scene = new Scene(TREE);
    await aloneFor(scene, () => scene.site("root").leap(ms));
    strictEqual(aheadMs(scene, "root"), ms);
    await scene.start();
    await works(scene, 10);
    await scene.pass(2_000);
    for (const id of SITES) strictEqual(Math.abs(aheadMs(scene, id)) < 2_000, true, id);
  });
}

Deno.test("a root that was suspended before anybody joined goes by its clock again, and so does who joins (B7, K2)", async () => {
  const scene = new Scene(TREE);
  await aloneFor(scene, () => {
    scene.world.sleptMs += HOUR_MS;
    scene.site("root").suspended(HOUR_MS);
  });
  strictEqual(aheadMs(scene, "root"), 0);
  await scene.start();
  await works(scene, 10);
  await scene.pass(5_000);
  for (const id of SITES) strictEqual(Math.abs(aheadMs(scene, id)) < 2_000, true, id);
});

/** Nobody but the root is there, to which something happens. */
async function aloneFor(scene: Scene, happens: () => void): Promise<void> {
  await scene.site("root").start();
  await scene.until(() => scene.process("root").ready);
  await scene.pass(100);
  happens();
  const session = await scene.attach("root");
  for (let passedMs = 0; passedMs < ALONE_MS; passedMs += 5_000) {
    await scene.write(session, 7, passedMs);
    await scene.pass(5_000);
  }
}

/** How far what a site goes by is ahead of the right time. */
function aheadMs(scene: Scene, site: string): number {
  const { clock, replica } = scene.process(site);
  return clock.aheadMs(replica.nowMs());
}

Deno.test("sites whose clocks were ahead by the same, and are right again, do not confirm each other for good (K3)", async () => {
  const scene = new Scene({ root, a });
  await scene.start();
  for (const id of ["root", "a"]) scene.site(id).warp(HOUR_MS);
  await scene.pass(2_000);
  for (const id of ["root", "a"]) scene.site(id).leap(0);
  await scene.pass(10_000);
  for (const id of ["root", "a"]) strictEqual(Math.abs(aheadMs(scene, id)) < 2_000, true, id);
});

const MINUTES_MS = 11 * 60_000;

/** The root is down while minutes pass. */
async function downForMinutes(
  scene: Scene,
  meanwhile: () => void = () => {},
  ms = MINUTES_MS,
): Promise<void> {
  scene.site("root").crash();
  await scene.pass(50);
  scene.world.sleptMs += ms;
  meanwhile();
  await scene.site("root").start();
  await scene.until(() => scene.process("root").ready);
}

for (const ms of [-HOUR_MS, -MINUTES_MS / 2]) {
  Deno.test(`a root that was down for minutes, and whose clock is ${ms / 60_000} min off, takes the time from its children (K4)`, async () => {
    const scene = new Scene(TREE);
    await scene.start();
    await works(scene, 10);
    await downForMinutes(scene, () => scene.site("root").leap(ms));
    await scene.pass(10_000);
    strictEqual(Math.abs(aheadMs(scene, "root")) < 2_000, true);
    await works(scene, 20);
    scene.site("root").leap(0);
    await works(scene, 30);
    for (const id of SITES) strictEqual(Math.abs(aheadMs(scene, id)) < 2_000, true, id);
  });
}

for (const [says, tree] of [["its children", TREE], ["its only child", { root, a }]] as const) {
  for (const [downMs, leapMs] of [[40_000, -66_000], [65_000, -84_000], [100_000, -106_000]] as const) {
    Deno.test(`a root that was down for ${downMs / 1000} s, and whose clock is ${-leapMs / 1000} s behind, has the time of ${says} (B1)`, async () => {
      const scene = new Scene(tree);
      await scene.start();
      const session = await scene.attach("a");
      await scene.write(session, 0, 1);
      await downForMinutes(scene, () => scene.site("root").leap(leapMs), downMs);
      await scene.pass(10_000);
      await scene.write(session, 0, 2);
      const atRoot = await scene.attach("root", session.token(false));
      strictEqual(await scene.read(atRoot, 0), 2);
      for (const id of Object.keys(tree)) {
        deepStrictEqual(scene.process(id).replica.status().clocksAhead, [], id);
        strictEqual(Math.abs(aheadMs(scene, id)) < CLOCK_AHEAD_MS_MAX, true, id);
      }
    });
  }
}

Deno.test("a root whose clock leaps back goes on as its child dates, not as that one's wall clock says (B5, K2)", async () => {
  const tree = { root, a, e1: TREE.e1 }, scene = new Scene(tree);
  await scene.start();
  const session = await scene.attach("e1");
  await scene.write(session, 0, 1);
  for (const ms of [30_000, 31_000]) { // by so little that each is believed
    for (const id of ["root", "e1"]) scene.site(id).leap(ms);
    await scene.pass(1_000);
    await scene.write(session, 0, 2);
    await scene.pass(1_000);
  }
  scene.site("root").leap(-58_000);
  await scene.pass(10_000);
  await scene.write(session, 0, 3);
  strictEqual(await scene.read(await scene.attach("root", session.token(false)), 0), 3);
  for (const id of Object.keys(tree)) deepStrictEqual(scene.process(id).replica.status().clocksAhead, [], id);
});

Deno.test("a root whose clock is behind by as much as it was down takes the time from its children (K4)", async () => {
  const scene = new Scene(TREE);
  await scene.start();
  await works(scene, 10);
  await downForMinutes(scene, () => scene.site("root").leap(-MINUTES_MS));
  await scene.pass(10_000);
  strictEqual(Math.abs(aheadMs(scene, "root")) < 2_000, true);
  await works(scene, 20);
});

Deno.test("a root that was down for minutes, and whose children lost their disks, does not refuse sessions for as long (K5)", async () => {
  const scene = new Scene(TREE);
  await scene.start();
  await works(scene, 10);
  scene.site("root").crash();
  await scene.pass(50);
  scene.world.sleptMs += MINUTES_MS;
  scene.site("root").leap(-HOUR_MS);
  const session = await scene.attach("a");
  await scene.write(session, 0, 20);
  const token = session.token(false);
  for (const id of ["a", "e1", "e2"]) scene.site(id).wipe();
  await scene.start();
  await scene.pass(6_000);
  await rejects(scene.attach("root", token), { code: "source_unreachable" });
  await scene.pass(2_000);
  await rejects(scene.attach("root", token), { code: "source_lost" });
  for (const id of SITES) strictEqual(Math.abs(aheadMs(scene, id)) < CLOCK_AHEAD_MS_MAX, true, id);
  await works(scene, 30);
});

Deno.test("a root whose clock is behind does not take the time of one child, which the other contradicts (K4)", async () => {
  const scene = new Scene(TREE);
  await scene.start();
  await works(scene, 10);
  scene.site("root").leap(-HOUR_MS);
  scene.site("e2").warp(HOUR_MS);
  await scene.pass(10_000);
  strictEqual(Math.abs(aheadMs(scene, "root")) < 2_000, true);
});

Deno.test("a root that was down for minutes hears the time from a child that it refuses, and whose clock is right again (K3)", async () => {
  const scene = new Scene({ root, a });
  await scene.start();
  scene.site("a").warp(CLOCK_AHEAD_MS_MAX + 1_000);
  const session = await scene.attach("a");
  await scene.write(session, 0, 1);
  await downForMinutes(scene, () => scene.site("a").leap(0));
  await scene.pass(10_000);
  for (const id of ["root", "a"]) strictEqual(Math.abs(aheadMs(scene, id)) < 2_000, true, id);
  strictEqual(await scene.read(await scene.attach("root"), 0), 1);
});
