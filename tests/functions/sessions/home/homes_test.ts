/** What the runtime is told by homes (functions/sessions/log/api.ts). */
import { strict as assert } from "node:assert";
import { HomeError } from "../../../../functions/sessions/home/mod.ts";
import { AnswerRoom } from "../../../../functions/sessions/home/answer_room.ts";
import { Answers } from "../../../../functions/sessions/home/answers.ts";
import {
  AUDIT_MS,
  CALLER_ANSWER_KEPT_MS,
  CALLER_ANSWERS_MAX,
  PIECE_BYTES_MAX,
} from "../../../../functions/sessions/log/limits.ts";
import { Cluster, commitOf, name } from "./cluster.ts";
import { decode, encode } from "../../../stateful/sim/program.ts";

const code = (wanted: string, site: string | null = null) => (error: unknown) =>
  error instanceof HomeError && error.code === wanted && (site === null || error.site === site);

Deno.test("a session is claimed at its first use, and is elsewhere for all others", async () => {
  const all = await Cluster.start(3, 1);
  const opened = await all.open(1, "x");
  assert.deepEqual([opened.epoch, opened.checkpoint, opened.log, opened.version, opened.seed.length], [
    1,
    null,
    [],
    "v1",
    32,
  ]);
  const home = opened.start([]);
  await all.of(home.commit(commitOf("r1")));
  assert.equal(home.sequence, 1);
  await assert.rejects(all.open(2, "x"), code("elsewhere", "s1"));
  assert.equal(all.homes(2).where(name("x")), "s1");
  assert.equal(all.homes(1).where(name("x")), "s1");
  const [row] = await all.of(all.homes(0).rows({ limit: 10 }));
  assert.deepEqual([row?.site, row?.epoch, row?.owners.length, row?.version], ["s1", 1, 2, "v1"]);
  assert.equal(all.sites.filter((_, at) => all.logs(at).includes("x")).length, 2);
});

Deno.test("a commit is on f + 1 disks when it is held", async () => {
  const all = await Cluster.start(4, 2);
  const home = await all.home(3, "x");
  await all.of(home.commit(commitOf("r1")));
  const lasts = all.sites.map((_, at) => all.homes(at).debugLog(name("x"))?.last ?? 0);
  assert.equal(lasts.filter((last) => last === 1).length, 3);
});

Deno.test("what follows a base goes to owners that have it: behind each base is a log of one code (H16)", async () => {
  const all = await Cluster.start(3, 1);
  const home = await all.home(1, "x");
  await all.of(home.commit(commitOf("r1")));
  const owner = [0, 2].find((at) => all.logs(at).includes("x")) ?? 0;
  all.losesCheckpoints = true;
  void home.checkpoint({ at: 1, bytes: encode("state"), version: "v2" }).catch(() => {});
  await all.pass(500);
  // Another run of the same home goes on from it, with other code.
  all.site(1).crash(false);
  void all.site(1).start();
  await all.pass(1_000);
  const opened = await all.open(1, "x");
  assert.deepEqual([opened.checkpoint?.at, opened.version, opened.log], [1, "v2", []]);
  const next = opened.start([]);
  const held = next.commit(commitOf("r2"));
  await all.pass(2_000);
  const kept = () => {
    const log = all.homes(owner).debugLog(name("x"));
    return { base: log?.base?.at ?? 0, last: log?.last };
  };
  assert.deepEqual(kept(), { base: 0, last: 1 });
  all.losesCheckpoints = false;
  await all.of(held);
  assert.deepEqual(kept(), { base: 1, last: 2 });
});

Deno.test("what a log has when it is opened is released when all owners have it", async () => {
  const all = await Cluster.start(3, 2);
  const home = await all.home(1, "x");
  await all.of(home.commit(commitOf("r1")));
  all.site(1).crash(false);
  await all.pass(400);
  const next = (await all.open(2, "x")).start([{ request: "r1", bytes: encode("answer to r1") }]);
  const asked = next.ask("r1");
  let isAnswered = false;
  if (asked.kind === "known") void asked.answer.then(() => isAnswered = true);
  await all.pass(1_000);
  assert.deepEqual([asked.kind, isAnswered, next.released], ["known", false, 0]);
  void all.site(1).start();
  await all.pass(2_000);
  assert.deepEqual([isAnswered, next.released], [true, 1]);
});

Deno.test("a session goes on elsewhere when its home is dead, with all that was held", async () => {
  const all = await Cluster.start(3, 1);
  const home = await all.home(1, "x");
  await all.of(home.commit(commitOf("r1")));
  await all.of(home.checkpoint({ at: 1, bytes: encode("state"), version: "v2" }));
  await all.of(home.commit(commitOf("r2")));
  all.site(1).crash(false);
  await all.pass(400);
  const opened = await all.open(2, "x");
  assert.deepEqual([opened.epoch, opened.version, opened.checkpoint?.at], [2, "v2", 1]);
  assert.equal(decode(opened.checkpoint?.bytes ?? new Uint8Array()), "state");
  assert.deepEqual(opened.log.map(({ first, bytes }) => [first, decode(bytes)]), [[2, "r2"]]);
  const next = opened.start([{ request: "r2", bytes: encode("answer to r2") }]);
  for (const request of ["r1", "r2"]) {
    const asked = next.ask(request);
    assert.equal(asked.kind, "known");
    if (asked.kind === "known") assert.equal(decode(await all.of(asked.answer)), `answer to ${request}`);
  }
  assert.equal(next.ask("r3").kind, "new");
});

Deno.test("with f = 0 a session waits for its home", async () => {
  const all = await Cluster.start(2, 0);
  const home = await all.home(1, "x");
  await all.of(home.commit(commitOf("r1")));
  all.site(1).crash(false);
  await all.pass(400);
  await assert.rejects(all.open(0, "x"), code("stateful_unreachable"));
  void all.site(1).start();
  await all.pass(500);
  // It was tried to be taken over, and is at home where that was.
  const opened = await all.open(0, "x");
  assert.deepEqual(opened.log.map(({ bytes }) => decode(bytes)), ["r1"]);
});

Deno.test("a home that another has taken over from is over at once, and what waits hears so (answers.ts R3, live_home.ts H8)", async () => {
  const all = await Cluster.start(3, 1);
  const home = await all.home(1, "x");
  await all.of(home.commit(commitOf("r1")));
  const others = ["s0", "s2"];
  for (const other of others) all.network.partition("s1", other, all.world.nowMs + 1_500);
  await all.pass(400);
  const waiting = home.commit(commitOf("r2"));
  waiting.catch(() => {});
  const asked = home.ask("r2");
  assert.equal(home.isStalled, true);
  const next = await all.home(2, "x");
  await all.of(next.commit(commitOf("r3")));
  await assert.rejects(all.of(waiting), code("superseded"));
  assert.ok(asked.kind === "known");
  await assert.rejects(all.of(asked.answer), code("superseded"));
  assert.equal((await all.of(home.over)).code, "superseded");
  await assert.rejects(all.of(home.commit(commitOf("r4"))), code("superseded"));
  assert.notEqual(all.homes(1).where(name("x")), "s1");
});

Deno.test("a home that is over moves nowhere, and sends the other site nothing (live_home.ts H18)", async () => {
  const all = await Cluster.start(4, 1);
  const home = await all.home(1, "x");
  await all.of(home.commit(commitOf("r1")));
  const parts = [encode("a part of the state")];
  await all.of(home.checkpoint({ at: 1, bytes: encode("state"), version: "v1", parts }));
  await all.of(home.moveTo("s2"));
  const next = await all.home(2, "x");
  await all.of(next.commit(commitOf("r2")));
  assert.equal((await all.of(home.over)).code, "superseded");
  const to = [0, 2, 3].find((at) => !all.logs(at).includes("x"));
  assert.ok(to !== undefined);
  await assert.rejects(all.of(home.moveTo(`s${to}`)), code("superseded"));
  await all.pass(500);
  assert.equal(all.logs(to).includes("x"), false);
});

Deno.test("an owner that is suspected is replaced, and the next home needs none of the first two", async () => {
  const all = await Cluster.start(4, 1);
  const home = await all.home(1, "x");
  await all.of(home.commit(commitOf("r1")));
  const owner = all.sites.findIndex((_, at) => at !== 1 && all.logs(at).includes("x"));
  assert.notEqual(owner, 0, "the root is to be asked in this test");
  all.site(owner).crash(false);
  await all.pass(400);
  await all.of(home.commit(commitOf("r2")));
  all.site(1).crash(false);
  await all.pass(400);
  const [left] = [2, 3].filter((at) => at !== owner);
  const opened = await all.open(left ?? 0, "x");
  assert.deepEqual(opened.log.map(({ bytes }) => decode(bytes)), ["r1", "r2"]);
});

Deno.test("a site that is restarted asks whether it is still the home, and goes on in another epoch (recovery.ts H1)", async () => {
  const all = await Cluster.start(3, 1);
  const home = await all.home(1, "x");
  await all.of(home.commit(commitOf("r1")));
  all.site(1).crash(false);
  void all.site(1).start();
  await all.pass(300);
  const opened = await all.open(1, "x");
  assert.deepEqual([opened.epoch, opened.log.length], [2, 1]);
});

Deno.test("a session rests, and wakes where it was, in its epoch, without asking anybody", async () => {
  const all = await Cluster.start(3, 1);
  const home = await all.home(1, "x");
  await all.of(home.commit(commitOf("r1")));
  await all.of(home.rest());
  assert.deepEqual([all.homes(1).status().open, all.homes(1).status().resting], [0, 1]);
  const before = all.packets;
  const opened = await all.open(1, "x");
  assert.deepEqual([opened.epoch, opened.log.length, all.packets - before], [1, 1, 0]);
});

Deno.test("a session that rests while a checkpoint is written wakes with all of its log", async () => {
  for (let lateMs = 0; lateMs < 20; lateMs++) {
    const all = await Cluster.start(2, 1);
    const home = await all.home(1, "x");
    for (const at of [1, 2, 3]) {
      await all.of(home.commit(commitOf(`r${at}`)));
      if (at === 1) await all.of(home.checkpoint({ at, bytes: encode("s"), version: "v1" }));
    }
    const checkpoint = home.checkpoint({ at: 3, bytes: encode("s"), version: "v1" });
    await all.pass(lateMs);
    await all.of(home.rest());
    const opened = await all.open(1, "x");
    const { at = 0 } = opened.checkpoint ?? {};
    assert.deepEqual(opened.log.map(({ first }) => first), at === 3 ? [] : [2, 3], `after ${lateMs} ms`);
    await all.of(checkpoint);
  }
});

Deno.test("what its owner does not have yet is no base: another home may go on without it (H4)", async () => {
  const all = await Cluster.start(3, 1);
  const home = await all.home(1, "x");
  await all.of(home.commit(commitOf("r1")));
  const owner = all.logs(0).includes("x") ? "s0" : "s2";
  const baseAt = () => all.homes(1).debugLog(name("x"))?.base?.at ?? 0;
  all.network.stall("s1", owner, all.world.nowMs + 200);
  const held = home.commit(commitOf("r2"));
  const checkpoint = home.checkpoint({ at: 2, bytes: encode("state"), version: "v1" });
  await all.pass(150);
  assert.deepEqual([home.released, baseAt()], [1, 0]);
  await all.of(Promise.all([held, checkpoint]));
  assert.deepEqual([home.released, baseAt()], [2, 2]);
});

Deno.test("who had a session open before it rested neither appends to it nor writes its checkpoint (OH1)", async () => {
  const all = await Cluster.start(2, 1);
  const before = await all.home(1, "x");
  await all.of(before.commit(commitOf("r1")));
  const checkpoint = () => before.checkpoint({ at: 1, bytes: encode("s"), version: "v1" });
  const resting = before.rest();
  for (const isWoken of [false, true]) {
    assert.throws(() => before.commit(commitOf("r2")), /a commit of shop\/cart\/x, which rests/);
    assert.throws(checkpoint, /a checkpoint of shop\/cart\/x, which rests/);
    if (isWoken) break;
    await all.of(resting);
    const opened = await all.open(1, "x");
    assert.deepEqual([opened.checkpoint, opened.log.map(({ first }) => first)], [null, [1]]);
    await all.of(opened.start([]).commit(commitOf("r3")));
  }
});

Deno.test("a session moves on purpose, and back", async () => {
  const all = await Cluster.start(3, 1);
  let home = await all.home(1, "x");
  await all.of(home.commit(commitOf("r1")));
  for (const [from, to, epoch] of [[1, 2, 2], [2, 1, 3]] as const) {
    await all.of(home.moveTo(`s${to}`));
    assert.equal((await all.of(home.over)).site, `s${to}`);
    await assert.rejects(all.open(0, "x"), code("elsewhere", `s${to}`));
    assert.equal(all.homes(from).where(name("x")), `s${to}`);
    await all.pass(50);
    assert.deepEqual(new Set(all.due), new Set([`s${to} x`]), "it is told to open it");
    all.due.length = 0;
    const opening = all.open(to, "x");
    assert.equal(all.homes(to).where(name("x")), `s${to}`, "who comes waits there, and is not sent back");
    const opened = await opening;
    assert.deepEqual([opened.epoch, opened.log.length], [epoch, 1]);
    home = opened.start([]);
    await all.pass(200);
  }
});

Deno.test("a session whose next home dies when it is to move there is opened by whoever is asked (arbiter.ts A3)", async () => {
  const all = await Cluster.start(3, 1);
  const home = await all.home(1, "x");
  await all.of(home.commit(commitOf("r1")));
  await all.of(home.moveTo("s2"));
  all.site(2).crash(false);
  await all.pass(400);
  const opened = await all.open(0, "x");
  assert.deepEqual([opened.epoch, opened.log.length], [2, 1]);
});

/** Four sites, a home at s1 with an owner, and a site that is neither. */
async function withStranger(options: Parameters<typeof Cluster.start>[2] = {}) {
  const all = await Cluster.start(4, 1, options);
  const home = await all.home(1, "x");
  await all.of(home.commit(commitOf("r1")));
  const to = [2, 3].find((at) => !all.logs(at).includes("x")) ?? 0;
  assert.notEqual(to, 0);
  return { all, home, to };
}

Deno.test("a site that a session is to move to has its log before, and is no owner by that", async () => {
  const { all, home, to } = await withStranger();
  await all.of(home.checkpoint({ at: 1, bytes: encode("one"), version: "v1" }));
  await all.of(home.prepareMove(`s${to}`));
  await all.of(home.commit(commitOf("r2")));
  await all.pass(50);
  assert.equal(all.homes(to).debugLog(name("x"))?.last, 2);
  const [row] = await all.of(all.homes(0).rows({ limit: 10 }));
  assert.ok(row?.owners.every(({ site }) => site !== `s${to}`), "its promise would count");
  home.stay(`s${to}`);
  await all.pass(50);
  assert.ok(!all.logs(to).includes("x"), "a move that is given up leaves nothing");
  await all.of(home.moveTo(`s${to}`));
  const opened = await all.open(to, "x");
  assert.deepEqual([opened.epoch, opened.log.length, opened.checkpoint?.at], [2, 1, 1]);
  assert.equal(all.homes(to).status().counters.completed, 1, "what it has is not sent again");
  await all.of(opened.start([]).commit(commitOf("r3")));
  const [moved] = await all.of(all.homes(0).rows({ limit: 10 }));
  assert.equal(moved?.owners.length, 2);
});

Deno.test("a session that can't move goes on where it is, and is told why", async () => {
  const { all, home, to } = await withStranger({ keptMax: (site) => site === "s1" ? 10 : 1 });
  const refused = (why: RegExp) => (error: unknown) =>
    error instanceof HomeError && error.code === "move_refused" && why.test(error.message);
  const other = await all.home(to, "y");
  await all.of(other.commit(commitOf("r1")));
  await assert.rejects(all.of(home.moveTo("s1")), refused(/at home there/));
  await assert.rejects(all.of(home.moveTo(`s${to}`)), refused(/no room/));
  all.site(to).crash(false);
  await assert.rejects(all.of(home.moveTo(`s${to}`)), refused(/does not answer/));
  await all.of(home.commit(commitOf("r2")));
  assert.equal(home.sequence, 2);
});

Deno.test("a session that nobody takes over is opened again where it was, and only then (move.ts M4)", async () => {
  const { all, home, to } = await withStranger();
  await all.of(home.moveTo(`s${to}`));
  // Its own site asks: what it agreed to stands.
  await assert.rejects(all.open(1, "x"), code("elsewhere", `s${to}`));
  const taken = all.homes(1).whenTaken({ name: name("x"), epoch: 1, to: `s${to}` }, 300);
  assert.equal(await all.of(taken), false);
  const opened = await all.open(1, "x");
  assert.deepEqual([opened.epoch, opened.log.length], [2, 1]);
  await assert.rejects(all.open(to, "x"), code("elsewhere", "s1"));
});

Deno.test("a site that stops takes nothing over, and says so at once", async () => {
  const { all, home, to } = await withStranger();
  all.homes(to).leave();
  await all.of(home.moveTo(`s${to}`));
  const taken = all.homes(1).whenTaken({ name: name("x"), epoch: 1, to: `s${to}` }, 60_000);
  assert.equal(await all.of(taken, 500), false);
  assert.equal((await all.open(1, "x")).epoch, 2);
});

Deno.test("whoever agreed to a move says when it is over", async () => {
  const { all, home, to } = await withStranger();
  await all.of(home.moveTo(`s${to}`));
  const taken = all.homes(1).whenTaken({ name: name("x"), epoch: 1, to: `s${to}` }, 5_000);
  await all.home(to, "x");
  assert.equal(await all.of(taken, 500), true);
});

Deno.test("a timer of a session that has ended, in a log that was not told so, begins nothing", async () => {
  const all = await Cluster.start(4, 2);
  const home = await all.home(1, "x");
  await all.of(home.commit(commitOf("r1", all.wallMs + 3_000)));
  await all.pass(100);
  const owner = [2, 3].find((at) => all.logs(at).includes("x")) ?? 0;
  for (const at of [0, 1, 2, 3]) {
    if (at !== owner) all.network.partition(`s${at}`, `s${owner}`, all.world.nowMs + 1_500);
  }
  await all.pass(400);
  await all.of(home.commit(commitOf("r2", all.wallMs + 3_000)));
  await all.of(home.end());
  all.site(1).crash(false);
  assert.deepEqual(all.logs(owner), ["x"]);
  await all.pass(10_000);
  assert.deepEqual([all.due.length, all.logs(owner)], [0, []]);
});

Deno.test("a session that has ended is gone from all disks; its name begins blank in a later epoch", async () => {
  const all = await Cluster.start(3, 1);
  const home = await all.home(1, "x");
  await all.of(home.commit(commitOf("r1")));
  await all.of(home.end());
  assert.equal((await all.of(home.over)).code, "ended");
  await all.pass(100);
  assert.deepEqual(all.sites.flatMap((_, at) => all.logs(at)), []);
  const opened = await all.open(2, "x");
  assert.deepEqual([opened.epoch, opened.log], [2, []]);
});

Deno.test("a session that is made has an id of its birth, without a trip to the root after the first", async () => {
  const all = await Cluster.start(3, 1);
  const kind = { app: "shop", class: "cart" };
  const first = await all.of(all.homes(1).create(kind, "v1"));
  assert.match(first.name.id, /^s1\.1\.[0-9a-f]{32}$/);
  await all.of(first.start([]).commit(commitOf("r1")));
  const before = all.arbiterAsks;
  const second = await all.of(all.homes(1).create(kind, "v1"));
  await all.of(second.start([]).commit(commitOf("r1")));
  assert.equal(all.arbiterAsks - before, 0);
  all.site(1).crash(false);
  await all.pass(400);
  const opened = await all.of(all.homes(2).open(second.name, "v1"));
  assert.deepEqual([opened.epoch, opened.log.length], [2, 1]);
});

Deno.test("nobody is told the name of a session that is made before all its owners know it (H2)", async () => {
  const all = await Cluster.start(3, 1);
  const create = () => all.homes(1).create({ app: "shop", class: "cart" }, "v1");
  const { name: first } = await all.of(create());
  const owner = [0, 2].find((at) => all.logs(at).includes(first.id)) ?? 0;
  all.network.stall("s1", `s${owner}`, all.world.nowMs + 300);
  let made = "";
  void create().then(({ name }) => made = name.id);
  await all.pass(200);
  assert.equal(made, "");
  await all.pass(500);
  assert.ok(all.logs(owner).includes(made));
});

Deno.test("a name in the form of a birth that never was is opened blank", async () => {
  const all = await Cluster.start(3, 1);
  const made = await all.of(all.homes(1).create({ app: "shop", class: "cart" }, "v1"));
  const id = `${made.name.id.slice(0, -32)}${"0".repeat(32)}`;
  await assert.rejects(all.open(2, id), code("elsewhere", "s1"));
  const home = await all.home(1, id);
  await all.of(home.commit(commitOf("r1")));
});

Deno.test("what is beyond its limits is refused, and nothing is appended", async () => {
  const all = await Cluster.start(2, 1);
  await assert.rejects(all.open(0, ""), code("limit_stateful"));
  await assert.rejects(all.open(0, "x".repeat(201)), code("limit_stateful"));
  const home = await all.home(0, "x");
  const large = { ...commitOf("r1"), entries: new Uint8Array(PIECE_BYTES_MAX + 1) };
  await assert.rejects(all.of(home.commit(large)), code("limit_stateful"));
  await assert.rejects(all.of(home.commit({ ...commitOf("r1"), count: 0 })), code("limit_stateful"));
  assert.throws(() => home.ask(""), code("limit_stateful"));
  assert.equal(home.sequence, 0);
  await assert.rejects(
    all.of(home.checkpoint({ at: 0, bytes: new Uint8Array(), version: "" })),
    code("limit_stateful"),
  );
  const ahead = home.checkpoint({ at: 1, bytes: new Uint8Array(), version: "v1" });
  await assert.rejects(all.of(ahead), code("limit_stateful"));
  await all.of(home.commit(commitOf("r1")));
  await all.of(home.rest());
});

Deno.test("a site without room is no owner, and another is taken (keepers.ts K5)", async () => {
  const all = await Cluster.start(4, 1, { keptMax: (site) => site === "s2" ? 1 : 100 });
  for (const id of ["x", "y", "z"]) {
    const home = await all.home(1, id);
    await all.of(home.commit(commitOf("r1")));
  }
  assert.ok(all.logs(2).length <= 1);
  assert.equal([0, 2, 3].flatMap((at) => all.logs(at)).length, 3);
  await assert.rejects(
    (async () => {
      for (const id of ["a", "b"]) await all.home(2, id);
    })(),
    code("limit_stateful"),
  );
});

Deno.test("an answer is kept until a checkpoint after it was received, and its request is never new again (answers.ts R1)", async () => {
  const all = await Cluster.start(2, 1);
  const home = await all.home(0, "x");
  assert.equal(home.ask("r1").kind, "new");
  const joined = home.ask("r1");
  assert.equal(joined.kind, "known");
  await all.of(home.commit(commitOf("r1")));
  if (joined.kind === "known") assert.equal(decode(await all.of(joined.answer)), "answer to r1");
  await all.of(home.commit(commitOf("r2")));
  home.received("r1");
  assert.equal(home.ask("r1").kind, "known");
  await all.of(home.checkpoint({ at: 2, bytes: encode("s"), version: "v1" }));
  assert.equal(home.ask("r1").kind, "past");
  assert.equal(home.ask("r2").kind, "known");
  await all.of(home.rest());
  const again = await all.home(0, "x");
  assert.deepEqual([again.ask("r1").kind, again.ask("r2").kind, again.ask("r3").kind], [
    "past",
    "known",
    "new",
  ]);
  again.dropped("r3");
  assert.equal(again.ask("r3").kind, "new");
});

Deno.test("an answer to another stateful session is kept for a day, not a minute: that may have to find a home first (R4)", async () => {
  const all = await Cluster.start(3, 1);
  const home = await all.home(1, "x");
  const ofSession = "5e".repeat(32), heard = "4d".repeat(32);
  for (const request of ["r1", ofSession, heard]) await all.of(home.commit(commitOf(request)));
  await all.pass(70_000);
  home.received(heard);
  const state = { bytes: encode("s"), version: "v1" };
  await all.of(home.checkpoint({ at: 3, ...state }));
  assert.deepEqual(["r1", ofSession, heard].map((request) => home.ask(request).kind), [
    "past",
    "known",
    "past",
  ]);
  await all.of(home.rest());
  all.site(1).crash(false);
  await all.pass(2_000);
  const later = await all.home(2, "x");
  const asked = later.ask(ofSession);
  assert.equal(asked.kind === "known" && decode(await all.of(asked.answer)), `answer to ${ofSession}`);
});

Deno.test("of callers that are never heard of so many answers are kept, the newest", () => {
  let nowMs = 0;
  const answers = new Answers(() => nowMs, new AnswerRoom({ nowMs: () => nowMs, bytesMax: 1 << 20 }));
  const requests = Array.from({ length: CALLER_ANSWERS_MAX + 2 }, (_, i) => `${i}`.padStart(64, "0"));
  answers.held(1);
  answers.answered(requests.map((request) => ({ request, bytes: new Uint8Array(1) })), 1);
  answers.checkpoint(1);
  assert.ok(requests.every((request) => answers.ask(request).kind === "known"), "each for a minute");
  nowMs = 61_000;
  answers.checkpoint(1);
  const kinds = requests.map((request) => answers.ask(request).kind);
  assert.deepEqual(kinds.slice(0, 3), ["past", "past", "known"]);
  assert.equal(kinds.filter((kind) => kind === "known").length, CALLER_ANSWERS_MAX);
  nowMs = CALLER_ANSWER_KEPT_MS + 1;
  answers.checkpoint(1);
  assert.ok(requests.slice(2).every((request) => answers.ask(request).kind === "past"), "for a day");
});

Deno.test("a timer that is due is told where the session rests, and by the owners of one whose home is lost", async () => {
  const all = await Cluster.start(3, 1);
  const home = await all.home(1, "x");
  await all.of(home.commit(commitOf("r1", all.wallMs + 1_000)));
  await all.pass(2_000);
  assert.equal(all.due.length, 0, "who has it open looks after its timers itself");
  await all.of(home.rest());
  await all.pass(5_500);
  assert.ok(all.due.includes("s1 x"), `${all.due}`);
  all.due.length = 0;
  all.site(1).crash(false);
  await all.pass(6_000);
  const owner = all.sites.findIndex((site, at) => site.isUp && all.logs(at).includes("x"));
  assert.deepEqual([...new Set(all.due)], [`s${owner} x`]);
});

Deno.test("a timer that is due is told to a home that is back without its disk, by who has it", async () => {
  const all = await Cluster.start(3, 1);
  const home = await all.home(1, "x");
  await all.of(home.commit(commitOf("r1", all.wallMs + 1_000)));
  all.site(1).crash(true);
  void all.site(1).start();
  await all.pass(4_000);
  assert.deepEqual(all.due, [], "it may have it open");
  await all.pass(4_000);
  assert.deepEqual([...new Set(all.due)], ["s1 x"]);
  const opened = await all.open(1, "x");
  assert.equal(opened.log.length, 1);
});

/** Pieces of one byte leave that open. */
const openOf = (bytes: Uint8Array): number => bytes.length === 1 ? bytes[0] ?? 0 : 0;
const leaving = (request: string, open: number) => ({ ...commitOf(request), entries: Uint8Array.of(open) });

Deno.test("work that a log leaves open is due when its site is started anew (D4)", async () => {
  const all = await Cluster.start(2, 0, { bounds: { openOf } });
  const home = await all.home(1, "x"), other = await all.home(1, "y");
  await all.of(home.commit(leaving("r1", 7)));
  await all.of(other.commit(leaving("r1", 7)));
  await all.of(other.commit(leaving("r2", 0)));
  await all.pass(100_000);
  assert.deepEqual(all.due, [], "who has it open is at it");
  all.site(1).crash(false);
  void all.site(1).start();
  await all.pass(2_000);
  assert.deepEqual(all.due, ["s1 x"], "at once, and nothing else");
  all.due.length = 0;
  const again = (await all.open(1, "x")).start([]);
  await all.of(again.commit(leaving("r2", 0)));
  await all.of(again.rest());
  await all.pass(100_000);
  assert.deepEqual(all.due, []);
});

Deno.test("the oldest version that a log leaves open is told at each of its owners, for an hour", async () => {
  const all = await Cluster.start(3, 1, { bounds: { openOf } });
  const x = await all.home(1, "x"), y = await all.home(1, "y"), z = await all.home(1, "z");
  assert.equal(all.homes(1).leastOpen, Infinity);
  await all.of(x.commit(leaving("r1", 9)));
  await all.of(y.commit(leaving("r1", 7)));
  await all.of(z.commit(leaving("r1", 1))); // work without a version
  const least = () =>
    [1, ...[0, 2].filter((at) => all.logs(at).includes("y"))].map((at) => all.homes(at).leastOpen);
  assert.deepEqual(least(), [7, 7]);
  all.site(1).crash(false);
  await all.of(all.site(1).start());
  assert.equal(all.homes(1).leastOpen, 7, "as soon as it is there");
  const again = (await all.open(1, "y")).start([]);
  await all.of(again.commit(leaving("r2", 0)));
  assert.deepEqual(least(), [9, 9]);
  await all.pass(3_500_000);
  assert.deepEqual(least(), [9, 9]);
  await all.pass(200_000);
  assert.deepEqual(least(), [Infinity, Infinity], "it could not be opened for an hour");
});

Deno.test("work that a log leaves open is due at its owners when its home is lost, and told to one that lives and does not know", async () => {
  const all = await Cluster.start(3, 1, { bounds: { openOf } });
  const home = await all.home(1, "x");
  await all.of(home.commit(leaving("r1", 7)));
  all.site(1).crash(false);
  await all.pass(20_000);
  const owner = all.sites.findIndex((site, at) => site.isUp && all.logs(at).includes("x"));
  assert.deepEqual([...new Set(all.due)], [`s${owner} x`]);
  all.due.length = 0;
  const taken = (await all.open(owner, "x")).start([]);
  void all.site(1).start();
  await all.of(taken.commit(leaving("r2", 7)));
  await all.pass(1_000);
  all.due.length = 0;
  const asks = all.arbiterAsks;
  await all.pass(40_000);
  assert.deepEqual([all.due, all.arbiterAsks - asks], [[], 0], "it is open: nobody asks anything");
  all.site(owner).crash(true);
  void all.site(owner).start();
  await all.pass(50_000);
  assert.deepEqual([...new Set(all.due)], [`s${owner} x`], "it knows of nothing");
});

Deno.test("a checkpoint says of timers what was so at its entry, whatever is committed meanwhile", async () => {
  const all = await Cluster.start(3, 1);
  const home = await all.home(1, "x");
  const dueMs = Math.ceil(all.wallMs) + 60_000;
  void home.commit(commitOf("r1", dueMs)).catch(() => {});
  const written = home.checkpoint({ at: 1, bytes: encode("one"), version: "v1" });
  const later = home.commit(commitOf("r2"));
  await all.of(written);
  const log = all.homes(1).debugLog(home.name);
  assert.deepEqual([log?.base?.at, log?.base?.wakeAtMs], [1, dueMs]);
  await all.of(later);
  assert.equal(log?.wakeAtMs, 0);
});

Deno.test("a log that this site is no owner of any more is dropped after a while", async () => {
  const all = await Cluster.start(4, 1);
  const home = await all.home(1, "x");
  await all.of(home.commit(commitOf("r1")));
  const owner = all.sites.findIndex((_, at) => at !== 1 && all.logs(at).includes("x"));
  all.site(owner).crash(false);
  await all.pass(400);
  await all.of(home.commit(commitOf("r2")));
  all.site(1).crash(false);
  await all.pass(400);
  const [left] = [2, 3].filter((at) => at !== owner);
  const next = await all.home(left ?? 0, "x");
  await all.of(next.commit(commitOf("r3")));
  void all.site(owner).start();
  void all.site(1).start();
  await all.pass(1_000);
  const has = () => all.sites.filter((_, at) => all.logs(at).includes("x")).length;
  assert.ok(has() > 2, `${has()} logs`);
  await all.pass(1.5 * AUDIT_MS);
  assert.equal(has(), 2);
  await all.of(next.commit(commitOf("r4")));
});

Deno.test("many sessions that commit together share packets and steps of the disks", async () => {
  const all = await Cluster.start(2, 1);
  const homes = [];
  for (let i = 0; i < 100; i++) homes.push(await all.home(1, `x${i}`));
  await all.pass(500);
  const before = { packets: all.packets, steps: all.site(0).disk.commits };
  await all.of(Promise.all(homes.map((home) => home.commit(commitOf("r1")))));
  assert.ok(all.packets - before.packets <= 6, `${all.packets - before.packets} packets`);
  assert.ok(
    all.site(0).disk.commits - before.steps <= 3,
    `${all.site(0).disk.commits - before.steps} steps`,
  );
});

Deno.test("a site that stops answers nobody more", async () => {
  const all = await Cluster.start(2, 1);
  const home = await all.home(1, "x");
  const held = home.commit(commitOf("r1"));
  await all.of(all.homes(1).close());
  await held;
  assert.equal((await all.of(home.over)).code, "closed");
  await assert.rejects(all.open(1, "y"), code("closed"));
});

Deno.test("the arbiter is an owner only where no other site is: its loss stops no session", async () => {
  const all = await Cluster.start(4, 1);
  const homes = [await all.home(1, "x"), await all.home(2, "y"), await all.home(3, "z")];
  for (const home of homes) await all.of(home.commit(commitOf("r1")));
  assert.deepEqual(all.logs(0), []);
  all.site(0).crash(false);
  await all.pass(2_000);
  for (const home of homes) await all.of(home.commit(commitOf("r2")));
  const few = await Cluster.start(2, 1);
  await few.of((await few.home(1, "x")).commit(commitOf("r1")));
  assert.deepEqual(few.logs(0), ["x"]);
});
