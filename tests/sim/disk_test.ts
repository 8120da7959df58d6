/** What the simulated disk does beyond the contract: it loses, keeps and shows what a real one might (D1–D3). */
import assert from "node:assert/strict";
import type { Clock } from "../../store/model/ports.ts";
import { packKey } from "../../store/model/key.ts";
import { WHOLE } from "../../store/model/range.ts";
import { row, step } from "../contract/storage_contract.ts";
import { SimDisk, type SimDiskOptions } from "./disk.ts";
import { World } from "./world.ts";

const [a, b] = [packKey(["a"]), packKey(["b"])];

function setUp(more: Partial<SimDiskOptions> = {}) {
  const world = new World();
  const clock: Clock = {
    nowMs: () => world.nowMs,
    steadyMs: () => world.nowMs,
    after: (ms, callback) => world.after(ms, callback),
    turn: () => world.sleep(0),
  };
  const disk = new SimDisk({ clock, random: () => 0.5, commitDelayMs: [10, 10], earlyChance: 0, ...more });
  return { world, disk };
}

/** How a promise stands. */
function watch(promise: Promise<unknown>) {
  const state = { settled: "no" };
  promise.then(() => state.settled = "resolved", (error) => state.settled = error.code ?? error.message);
  return state;
}

Deno.test("a commit resolves after its delay, and is not seen before (S1, D1)", async () => {
  const { world, disk } = setUp();
  const commit = watch(disk.commit(step([row(a, 1, "1")])));
  await world.run(9.9);
  assert.equal(commit.settled, "no");
  assert.equal(disk.size, 0);
  await world.run(10);
  assert.equal(commit.settled, "resolved");
  assert.equal((await disk.get(a))?.position, 1);
});

Deno.test("a crash loses an unresolved commit or keeps it whole, as drawn; the dead disk answers nothing (D1)", async () => {
  for (const keepChance of [0, 1]) {
    const { world, disk } = setUp({ keepChance });
    void disk.commit(step([row(a, 1, "1")], [], [["cursor", new Uint8Array([1])]]));
    await world.run(10);
    const under = watch(
      disk.commit(step([row(a, 2, "2"), row(b, 3, "3")], [], [["cursor", new Uint8Array([2])]])),
    );
    await world.run(15);
    const next = disk.crash();
    const read = watch(disk.get(a));
    const late = watch(disk.commit(step([])));
    await world.run(100);
    assert.deepEqual([under.settled, read.settled, late.settled], ["no", "no", "no"]);
    const positions = (await next.scan(WHOLE)).map((one) => one.position);
    assert.deepEqual(positions, keepChance === 1 ? [2, 3] : [1]);
    assert.equal((await next.load()).get("cursor")?.[0], keepChance === 1 ? 2 : 1);
  }
});

Deno.test("rows that show early are taken back by a crash that loses their commit (D2, S2)", async () => {
  const { world, disk } = setUp({ earlyChance: 1, keepChance: 0 });
  void disk.commit(step([row(a, 1, "1"), row(b, 2, "2")]));
  await world.run(10);
  void disk.commit(step([row(a, 3, "3"), row(b, 4, "4")]));
  await world.run(16);
  assert.deepEqual(
    (await disk.journal(0, 9, 9)).map((one) => one.position),
    [3, 4],
    "shown before it resolved",
  );
  const next = disk.crash();
  assert.deepEqual((await next.journal(0, 9, 9)).map((one) => one.position), [1, 2]);
});

Deno.test("wipe gives a blank disk; fail fails the commit under way and every later one (D3, S3)", async () => {
  const { world, disk } = setUp({ earlyChance: 1 });
  void disk.commit(step([row(a, 1, "1")]));
  await world.run(10);
  const under = watch(disk.commit(step([row(a, 2, "2")])));
  await world.run(17);
  disk.fail();
  await world.run(20);
  assert.equal(under.settled, "disk_failed");
  assert.equal((await disk.get(a))?.position, 1, "nothing of the failed commit stays");
  await assert.rejects(disk.commit(step([])), { code: "disk_failed" });
  assert.deepEqual(await disk.wipe().scan(WHOLE), []);
});

Deno.test("after a failed commit the next start finds all of it or nothing, as drawn (D3)", async () => {
  for (const keepChance of [0, 1]) {
    const { world, disk } = setUp({ keepChance });
    void disk.commit(step([row(a, 1, "1")]));
    await world.run(10);
    const under = watch(disk.commit(step([row(a, 2, "2"), row(b, 3, "3")])));
    disk.fail();
    await world.run(20);
    assert.equal(under.settled, "disk_failed");
    assert.equal((await disk.get(a))?.position, 1, "the process that saw it fail sees nothing of it");
    const later = watch(disk.commit(step([row(a, 4, "4")])));
    await world.run(30);
    assert.equal(later.settled, "disk_failed");
    const positions = (await disk.crash().scan(WHOLE)).map((one) => one.position);
    assert.deepEqual(positions, keepChance === 1 ? [2, 3] : [1]);
  }
});

Deno.test("a slow disk takes longer, and is as quick as before once that is over", async () => {
  const { world, disk } = setUp();
  disk.slow(5);
  const slow = watch(disk.commit(step([row(a, 1, "1")])));
  await world.run(49);
  assert.equal(slow.settled, "no");
  await world.run(50);
  assert.equal(slow.settled, "resolved");
  disk.slow(1);
  const quick = watch(disk.commit(step([row(a, 2, "2")])));
  await world.run(60);
  assert.equal(quick.settled, "resolved");
});
