/** The root's disks go back to what they were: what its arbiter does then (arbitration.ts, certainty.ts). */
import { strict as assert } from "node:assert";
import { HomeError } from "../../../../functions/sessions/home/mod.ts";
import { HEARD_MS_MAX, PROMISE_MS_MAX } from "../../../../functions/sessions/log/limits.ts";
import { Cluster, commitOf, name } from "./cluster.ts";
import { decode } from "../../../stateful/sim/program.ts";

const code = (wanted: string, words = /./) => (error: unknown) =>
  error instanceof HomeError && error.code === wanted && words.test(error.message);
const logOf = (log: readonly { readonly bytes: Uint8Array }[]) => log.map(({ bytes }) => decode(bytes));
const stateOf = (all: Cluster) => all.homes(0).status().arbiter?.state;

/** Site 0 is stopped, has its disks as they were at the copy, and starts. */
async function putBack(
  all: Cluster,
  copy: ReturnType<Cluster["site"]>["copy"] extends () => infer C ? C : never,
) {
  const root = all.site(0);
  root.crash(false);
  root.putBack(copy);
  await root.start();
}

Deno.test("a session that changed hands twice since the copy has the home that it has, and not the one of the copy (arbiter.ts A9)", async () => {
  const all = await Cluster.start(5, 1);
  await all.of((await all.home(1, "x")).commit(commitOf("r1")));
  const [row] = await all.of(all.homes(0).rows({ limit: 1 }));
  const before = row?.owners.map(({ site }) => Number(site.slice(1))) ?? [];
  assert.ok(before.length === 2 && !before.includes(0), before.join());
  const copy = all.site(0).copy();
  const others = [1, 2, 3, 4].filter((at) => !before.includes(at));
  const [next = 0] = others;
  for (const at of before) {
    all.site(at).crash(false);
    await all.pass(400);
    if (at === 1) await all.of((await all.home(next, "x")).commit(commitOf("r2")));
    await all.pass(2_000); // another owner takes its place
  }
  const [moved] = await all.of(all.homes(0).rows({ limit: 1 }));
  assert.deepEqual(moved?.owners.map(({ site }) => Number(site.slice(1))).sort(), others.toSorted());
  await putBack(all, copy);
  for (const at of before) void all.site(at).start();
  await all.pass(500);
  for (const at of before) {
    await assert.rejects(all.open(at, "x"), code("elsewhere", new RegExp(`s${next}`)));
  }
  assert.equal(all.homes(next).status().open, 1);
  await all.pass(10_000);
  assert.equal(stateOf(all), "sure");
  // With its home dead, one that it has now goes on with all of it.
  all.site(next).crash(false);
  await all.pass(400);
  const [heir = 0] = others.slice(1);
  assert.deepEqual(logOf((await all.open(heir, "x")).log), ["r1", "r2"]);
});

Deno.test("the root's own disk of logs takes nothing before all sites were heard, or are not waited for (AB1)", async () => {
  const all = await Cluster.start(3, 1);
  all.site(2).crash(false);
  await all.pass(400);
  const home = await all.home(1, "x");
  await all.of(home.commit(commitOf("r1")));
  assert.deepEqual(all.logs(0), ["x"]);
  const { last } = all.homes(0).debugLog(name("x")) ?? { last: 0 };
  all.site(0).crash(false);
  await all.site(0).start();
  let isHeld = false;
  const held = home.commit(commitOf("r2")).then(() => isHeld = true);
  await all.pass(HEARD_MS_MAX - 500);
  assert.deepEqual([all.homes(0).debugLog(name("x"))?.last, isHeld, stateOf(all)], [last, false, "unsure"]);
  await all.pass(1_000);
  await all.of(held, 10_000);
  assert.deepEqual([all.homes(0).debugLog(name("x"))?.last, stateOf(all)], [last + 1, "unsure"]);
  assert.deepEqual(all.notes, ["s0 arbiter_unheard"]);
});

Deno.test("a name whose home is away is granted when that was heard, or is not waited for any longer (AW2, AW3, arbiter.ts A8)", async () => {
  const all = await Cluster.start(2, 1);
  await all.of((await all.home(1, "x")).commit(commitOf("r1")));
  all.site(0).crash(false);
  all.site(1).crash(false);
  await all.pass(1_000);
  await all.site(0).start();
  await assert.rejects(all.open(0, "x"), code("stateful_unreachable", /has not heard from s1/));
  assert.equal(all.homes(0).debugLog(name("x"))?.head.promised, 1);
  await all.pass(HEARD_MS_MAX);
  const opened = await all.open(0, "x");
  assert.ok(opened.epoch > 2, `${opened.epoch}`);
  assert.deepEqual(logOf(opened.log), ["r1"]);
});

Deno.test("no site is told of a step that the arbiter's disk may not have (AB3)", async () => {
  let delayMs = 0;
  const all: Cluster = await Cluster.start(3, 2, {
    arbiterStorage: (storage) => ({
      ...storage,
      commit: async (commit) => {
        if (delayMs > 0) await all.world.sleep(delayMs);
        await storage.commit(commit);
      },
    }),
  });
  const home = await all.home(1, "x");
  await all.of(home.commit(commitOf("r1")));
  await all.pass(1_000);
  const { disk } = all.homes(0).status();
  delayMs = 200;
  const opening = all.homes(2).open(name("y"), "v1");
  opening.catch(() => {});
  await all.pass(50);
  // The root's answer leaves while the disk of its arbiter is written.
  await all.of(home.commit(commitOf("r2")), 100);
  all.site(0).crash(false);
  delayMs = 0;
  await all.site(0).start();
  await all.pass(1_000);
  assert.deepEqual([stateOf(all), all.homes(0).status().disk], ["sure", disk]);
  assert.deepEqual(all.notes, []);
  assert.ok((await all.of(opening)).epoch > 0);
});

Deno.test("a root that dies again and again as its arbiter has written a step keeps its disk of logs (AB4)", async () => {
  for (const missing of [[], [2]]) { // the arbiter is sure at its first step, or is not
    let deaths = 0;
    const all: Cluster = await Cluster.start(3, 0, {
      arbiterStorage: (storage, site) => ({
        ...storage,
        commit: async (commit) => {
          await storage.commit(commit);
          if (deaths === 0) return;
          deaths--;
          site.crash(false);
        },
      }),
    });
    await all.of((await all.home(0, "x")).commit(commitOf("r1")));
    await all.pass(1_000);
    const { disk } = all.homes(0).status();
    for (const at of missing) all.site(at).crash(false);
    for (let death = 1; death <= 3; death++) {
      deaths = 1;
      for (let tries = 0; tries < 10 && all.site(0).isUp; tries++) {
        all.homes(1).open(name(`y${death}`), "v1").catch(() => {});
        await all.pass(5_000);
      }
      assert.equal(all.site(0).isUp, false, `death ${death}`);
      await all.site(0).start();
    }
    await all.pass(HEARD_MS_MAX + 1_000);
    assert.equal(all.homes(0).status().disk, disk);
    assert.deepEqual(logOf((await all.open(0, "x")).log), ["r1"]);
  }
});

Deno.test("what the store has lost the arbiter and the disk of logs have lost: names are put on record anew (AB2)", async () => {
  const all = await Cluster.start(3, 1);
  await all.of((await all.home(1, "x")).commit(commitOf("r1")));
  await all.pass(1_000);
  const { disk } = all.homes(0).status();
  assert.equal(stateOf(all), "sure");
  all.homes(0).storeWentBack("s2");
  all.homes(0).storeWentBack("s1");
  assert.equal(stateOf(all), "behind");
  assert.deepEqual(all.notes, ["s0 arbiter_behind"], "it is said once");
  await assert.rejects(all.open(2, "x"), code("elsewhere", /s1/));
  await all.pass(10_000);
  const { arbiter, disk: other } = all.homes(0).status();
  assert.deepEqual(arbiter, { state: "sure", missed: [] });
  assert.notEqual(other, disk);
  all.homes(0).storeWentBack("s2"); // it comes again and again, and nothing is doubted anew
  assert.equal(stateOf(all), "sure");
  all.site(1).crash(false);
  await all.pass(400);
  const opened = await all.open(2, "x");
  assert.deepEqual(logOf(opened.log), ["r1"]);
  const [row] = await all.of(all.homes(0).rows({ limit: 1 }));
  assert.deepEqual([row?.site, row?.epoch], ["s2", opened.epoch]);
});

Deno.test("a site that is no child any more, since it has had more of the root, is waited for however long it is gone (AB2)", async () => {
  const all = await Cluster.start(4, 1);
  const copy = all.site(0).copy();
  await all.of((await all.home(1, "x")).commit(commitOf("r1")));
  for (const at of [1, 2, 3]) all.network.partition("s0", `s${at}`, all.world.nowMs + 3_600_000);
  await putBack(all, copy);
  all.homes(0).storeWentBack("s1");
  await all.pass(3 * HEARD_MS_MAX);
  await assert.rejects(all.open(0, "x"), code("stateful_unreachable", /has not heard from s1, s2, s3/));
  await all.pass(PROMISE_MS_MAX);
  assert.equal(all.homes(1).status().open, 1);
});

Deno.test("what is made under a number that the arbiter has lost is on record with its owners (BR1)", async () => {
  const all = await Cluster.start(4, 1);
  const copy = all.site(0).copy();
  const kind = { app: "shop", class: "cart" };
  await all.of((await all.of(all.homes(1).create(kind, "v1"))).start([]).commit(commitOf("r1")));
  await putBack(all, copy);
  await all.pass(15_000);
  assert.equal(stateOf(all), "sure");
  const made = await all.of(all.homes(1).create(kind, "v1"));
  await all.of(made.start([]).commit(commitOf("r2")));
  all.site(1).crash(false);
  await all.pass(400);
  const opened = await all.open(2, made.name.id);
  assert.deepEqual(logOf(opened.log), ["r2"]);
});

Deno.test("a step that was lost is seen by who heard of it, however many were made since, and over starts (A7, RE3)", async () => {
  const all = await Cluster.start(4, 0);
  await all.of((await all.home(1, "x")).commit(commitOf("r1")));
  const copy = all.site(0).copy();
  // It is ended, and begun anew: the copy says that site 1 has it, which is its only owner and away in the end.
  await all.of((await all.home(3, "y")).commit(commitOf("r1")));
  all.site(3).crash(false);
  await putBack(all, copy);
  await all.pass(HEARD_MS_MAX + 2_000);
  assert.equal(stateOf(all), "unsure");
  // More steps than were lost; all others hear of them, and the root forgets that it began with a copy.
  for (let i = 0; i < 10; i++) await all.of((await all.home(2, `z${i}`)).commit(commitOf("r1")));
  const other = await all.home(2, "y");
  await all.of(other.commit(commitOf("r2")));
  assert.deepEqual(all.notes, ["s0 arbiter_unheard"]);
  all.site(0).crash(false);
  await all.site(0).start();
  await all.pass(300);
  // What site 3 knows it says, though another tells it first how far the arbiter is.
  all.network.partition("s0", "s3", all.world.nowMs + 1_000);
  await all.site(3).start();
  await all.pass(300);
  await assert.rejects(all.open(3, "z0"), (error) => error instanceof HomeError);
  await all.pass(15_000);
  assert.ok(all.notes.includes("s0 arbiter_behind"), all.notes.join());
  assert.equal(stateOf(all), "sure");
});
