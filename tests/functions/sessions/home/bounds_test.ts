/** What one app, or what is kept for callers, may take of a site. */
import { strict as assert } from "node:assert";
import { HomeError } from "../../../../functions/sessions/home/mod.ts";
import { ANSWER_KEPT_MS } from "../../../../functions/sessions/log/limits.ts";
import { Cluster, commitOf, name } from "./cluster.ts";
import { decode } from "../../../stateful/sim/program.ts";

const KIB = 1024;
const refusedWith = (code: string, text: RegExp) => (error: unknown) =>
  error instanceof HomeError && error.code === code && text.test(error.message);
const large = (request: string) => ({
  ...commitOf(request),
  answers: [{ request, bytes: new Uint8Array(6 * KIB) }],
});
const ROOM = { bounds: { answersBytesMax: 10 * KIB } };

Deno.test("an answer that was received goes first, whichever session gave it, when answers fill the site (answer_room.ts M1)", async () => {
  const all = await Cluster.start(2, 1, ROOM);
  const [first, second] = [await all.home(1, "x"), await all.home(1, "y")];
  assert.equal(first.ask("r1").kind, "new");
  await all.of(first.commit(large("r1")));
  first.received("r1");
  assert.equal(first.ask("r1").kind, "known");
  assert.equal(second.ask("r2").kind, "new");
  await all.of(second.commit(large("r2")));
  assert.equal(first.ask("r1").kind, "past");
  assert.equal(second.ask("r2").kind, "known");
  assert.equal(first.ask("r3").kind, "new");
});

Deno.test("nothing new is run, and nothing is lost, while answers that nobody has received fill the site (answer_room.ts M2)", async () => {
  const all = await Cluster.start(2, 1, ROOM);
  const [first, second] = [await all.home(1, "x"), await all.home(1, "y")];
  await all.of(first.commit(large("r1")));
  await all.of(second.commit(large("r2")));
  const overloaded = refusedWith("overloaded", /12288 bytes, more than 10240/);
  for (const home of [first, second]) assert.throws(() => home.ask("r3"), overloaded);
  for (const [home, request] of [[first, "r1"], [second, "r2"]] as const) {
    const asked = home.ask(request);
    assert.ok(asked.kind === "known");
    assert.equal((await all.of(asked.answer)).length, 6 * KIB);
  }
  await assert.rejects(all.open(1, "z"), overloaded);
  assert.equal(all.homes(1).where(name("z")), null, "it is not claimed");
  assert.equal(first.ask("r4", true).kind, "new", "what runs already is not refused");
  await all.pass(ANSWER_KEPT_MS + 100);
  assert.equal(second.ask("r3").kind, "new");
  assert.equal(first.ask("r1").kind, "past", "the oldest went");
  assert.equal(second.ask("r2").kind, "known", "and no more than had to");
});

Deno.test("answers of what rests, has ended or was abandoned take no room", async () => {
  const all = await Cluster.start(2, 1, ROOM);
  for (const id of ["x", "y", "z"]) {
    const home = await all.home(1, id);
    assert.equal(home.ask("r1").kind, "new");
    await all.of(home.commit(large("r1")));
    await all.of(home.checkpoint({ at: 1, bytes: new Uint8Array(1), version: "v1" }));
    await all.of(id === "z" ? home.end() : home.rest());
  }
  for (const id of ["x", "y", "x"]) (await all.open(1, id)).abandon();
  const woken = await all.home(1, "x");
  assert.equal(woken.ask("r1").kind, "known");
  assert.equal(woken.ask("r2").kind, "new");
});

Deno.test("an app has as many stateful sessions as it may, and others are not in its way (arbiter.ts A5)", async () => {
  const all = await Cluster.start(3, 1, { bounds: { perAppMax: 2 } });
  await all.home(1, "a");
  const second = await all.home(2, "b");
  const full = refusedWith("limit_stateful", /shop has 2 stateful sessions.*s0.*limits\.statefulPerApp/);
  for (const at of [0, 1]) await assert.rejects(all.open(at, "c"), full);
  assert.equal((await all.of(all.homes(0).rows({ limit: 10 }))).length, 2, "no row of what was refused");
  const other = { app: "bank", class: "account", id: "a" };
  assert.equal((await all.of(all.homes(1).open(other, "v1"))).epoch, 1);
  await all.of(second.end());
  await all.of((await all.home(1, "c")).commit(commitOf("r1")));
  await assert.rejects(all.open(2, "b"), full, "what has ended begins anew only where there is room");
});

Deno.test("what an app has is counted over a restart of the root, and what it has is opened and taken over", async () => {
  const all = await Cluster.start(3, 1, { bounds: { perAppMax: 2 } });
  const home = await all.home(1, "a");
  await all.of(home.commit(commitOf("r1")));
  await all.of((await all.home(2, "gone")).end());
  await all.home(2, "b");
  all.site(0).crash(false);
  void all.site(0).start();
  await all.pass(500);
  await assert.rejects(all.open(2, "c"), refusedWith("limit_stateful", /2 stateful sessions/));
  all.site(1).crash(false);
  await all.pass(400);
  const taken = await all.open(2, "a");
  assert.deepEqual(taken.log.map(({ bytes }) => decode(bytes)), ["r1"]);
  await all.of(taken.start([]).end());
  assert.equal((await all.open(2, "c")).name.id, name("c").id);
});

Deno.test("that a name has ended is on record as long as the root's file says, and its epochs go on after that", async () => {
  const all = await Cluster.start(1, 0, { bounds: { endedMs: 1.5 * 3_600_000 } });
  await all.of((await all.home(0, "a")).end());
  const rows = async () => (await all.of(all.homes(0).rows({ limit: 10 }))).map(({ ended }) => ended);
  await all.pass(1.2 * 3_600_000); // rows are swept once an hour
  assert.deepEqual(await rows(), [true]);
  await all.pass(3_600_000);
  assert.deepEqual(await rows(), []);
  const opened = await all.open(0, "a");
  assert.ok(opened.epoch > 1, `epoch ${opened.epoch}`);
});
