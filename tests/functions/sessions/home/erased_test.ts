/** What an operator ends though nobody has its log any more: the disks on record are lost for good (H9). */
import assert from "node:assert/strict";
import { Cluster, commitOf, name } from "./cluster.ts";

const unreachable = { code: "stateful_unreachable" };

Deno.test("a session whose disks are lost is ended for who ends it, opened by nobody else, and begins anew (recovery.ts H7)", async () => {
  const all = await Cluster.start(2, 0);
  const home = await all.home(1, "x");
  await all.of(home.commit(commitOf("r1")));
  all.site(1).crash(true);
  void all.site(1).start();
  await all.pass(500);
  await assert.rejects(all.open(1, "x"), unreachable);
  await assert.rejects(all.of(all.homes(1).open(name("x"), "v1", true)), unreachable);
  const ending = await all.of(all.homes(1).open(name("x"), "v1", "ends"));
  assert.deepEqual([ending.log, ending.checkpoint], [[], null]);
  await all.of(ending.start([]).end());
  const again = await all.open(1, "x");
  assert.deepEqual(again.log, []);
  assert.ok(again.epoch > 3, `${again.epoch}`);
});

Deno.test("a session of which a disk only does not answer is not ended: what it has may be what was told", async () => {
  const all = await Cluster.start(3, 1, { bounds: { lostMs: Infinity } });
  const home = await all.home(1, "x");
  await all.of(home.commit(commitOf("r1")));
  await all.of(home.settled());
  const [other = ""] = home.heirs;
  all.site(1).crash(true);
  all.site(Number(other.slice(1))).crash(false);
  void all.site(1).start();
  await all.pass(500);
  await assert.rejects(all.of(all.homes(1).open(name("x"), "v1", "ends")), unreachable);
  const ending = all.homes(1).open(name("x"), "v1", "ends");
  await all.pass(1_200);
  void all.site(Number(other.slice(1))).start();
  assert.equal((await all.of(ending)).log.length, 1, "it is waited for as by any other opening");
});
