/** Openings of stateful sessions that die, or are overtaken, before anybody knows of them (functions/sessions/home/recovery.ts). */
import { strict as assert } from "node:assert";
import { HomeError } from "../../../../functions/sessions/home/mod.ts";
import { SEAT_MOVES_MAX } from "../../../../functions/sessions/log/limits.ts";
import { Cluster, commitOf, name } from "./cluster.ts";
import { decode, encode } from "../../../stateful/sim/program.ts";

Deno.test("a session has one seed, also where its first home died before anybody knew of it", async () => {
  const all = await Cluster.start(3, 1);
  const first = await all.open(1, "x");
  // What it has begun is on two disks, and on record nowhere.
  for (let ms = 0; ms < 50 && !all.logs(2).includes("x"); ms++) await all.pass(1);
  assert.deepEqual([1, 2].filter((at) => all.logs(at).includes("x")), [1, 2]);
  all.site(1).crash(false);
  void all.site(1).start();
  await all.pass(100);
  const second = await all.open(1, "x");
  assert.notDeepEqual(second.seed, first.seed, "nothing is left of the first");
  const home = second.start([]);
  await all.of(home.commit(commitOf("r1")));
  await all.of(home.rest());
  const woken = await all.open(1, "x");
  assert.deepEqual(woken.seed, second.seed);
  woken.start([{ request: "r1", bytes: encode("answer to r1") }]);
  all.site(1).crash(false);
  await all.pass(400);
  const next = await all.open(2, "x");
  assert.deepEqual(next.log.map(({ bytes }) => decode(bytes)), ["r1"]);
  assert.deepEqual(next.seed, second.seed);
});

Deno.test("a session that was begun twice keeps the seed of the beginning that went on, also at the home of the other", async () => {
  const all = await Cluster.start(4, 1);
  const first = await all.open(1, "x");
  all.site(1).crash(false);
  await all.pass(400);
  const second = await all.open(3, "x");
  assert.notDeepEqual(second.seed, first.seed);
  await all.of(second.start([]).commit(commitOf("r1")));
  all.site(3).crash(false);
  void all.site(1).start();
  await all.pass(400);
  assert.ok(all.logs(1).includes("x"), "the first beginning is on its disk");
  const next = await all.open(1, "x");
  assert.deepEqual(next.log.map(({ bytes }) => decode(bytes)), ["r1"]);
  assert.deepEqual(next.seed, second.seed);
});

Deno.test("an opening that a later one has overtaken releases nothing, where the owner that it asked has forgotten the log", async () => {
  const all = await Cluster.start(3, 0, { bounds: { lostMs: Infinity } });
  const first = await all.home(2, "x");
  await all.of(first.commit(commitOf("r1")));
  all.site(2).crash(false);
  await all.pass(400);
  // Granted, and waiting for the only owner, it is cut off; another one is granted the next epoch.
  const late = all.homes(1).open(name("x"), "v1");
  await all.pass(100);
  for (const other of ["s0", "s2"]) all.network.partition("s1", other, all.world.nowMs + 10_000);
  void all.site(2).start();
  await all.pass(500);
  const next = await all.home(0, "x");
  await all.of(next.commit(commitOf("r2")));
  await all.pass(300);
  assert.equal(all.logs(2).includes("x"), false, "the owner was told to forget");
  all.network.partition("s1", "s2", 0);
  let released = false;
  const then = late.then((opened) => opened.start([]).commit(commitOf("r3")).then(() => released = true));
  await assert.rejects(all.of(then, 20_000), HomeError);
  assert.equal(released, false);
});

Deno.test("what its owners on record know nothing of is not begun blank, but by an operator who ends it (H9)", async () => {
  const all = await Cluster.start(3, 1);
  await all.pass(1_000);
  const copies = [1, 2].map((at) => all.site(at).copy());
  await all.of((await all.home(1, "x")).commit(commitOf("r1")));
  const [row] = await all.of(all.homes(0).rows({ limit: 1 }));
  assert.deepEqual(row?.owners.map(({ site }) => site), ["s1", "s2"]);
  for (const at of [1, 2]) {
    all.site(at).crash(false);
    all.site(at).putBack(copies[at - 1] ?? {});
    await all.site(at).start();
  }
  await all.pass(1_000);
  await assert.rejects(
    all.open(1, "x"),
    (error) =>
      error instanceof HomeError && error.code === "stateful_unreachable" &&
      /\(s1, s2\) know nothing of it/.test(error.message),
  );
  const opened = await all.of(all.homes(1).open(name("x"), "v1", "ends"));
  assert.deepEqual(opened.log, []);
});

Deno.test("of many that are opened at the arbiter's site at once few move away, and the others are open there (SE4)", async () => {
  const all = await Cluster.start(4, 1, { seats: true });
  const ids = Array.from({ length: SEAT_MOVES_MAX + 2 }, (_, i) => `x${i}`);
  for (const id of ids) {
    const home = (await all.of(all.homes(0).open(name(id), "v1", false, true))).start([]);
    await all.of(home.commit(commitOf("r1")));
    await all.of(home.rest());
  }
  const opened = ids.map((id) =>
    all.homes(0).open(name(id), "v1").then(() => "here", (error) => {
      assert.ok(error instanceof HomeError && error.code === "elsewhere", `${error}`);
      return "moved";
    })
  );
  const outcomes = await Promise.all(opened.map((one) => all.of(one)));
  assert.equal(outcomes.filter((one) => one === "moved").length, SEAT_MOVES_MAX, outcomes.join());
});
