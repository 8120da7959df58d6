/** Sites that get another parent: what becomes of requests under way, and of what is nowhere above yet. */
import { deepStrictEqual, rejects, strictEqual } from "node:assert/strict";
import { Scene } from "../../sim/scene.ts";

/** Two regions; what is below a is near to it, and d is below b. */
const TREE = {
  root: { parent: null, linkMs: 0 },
  a: { parent: "root", linkMs: 5 },
  b: { parent: "root", linkMs: 5 },
  e1: { parent: "a", linkMs: 1 },
  e2: { parent: "a", linkMs: 1 },
  d: { parent: "b", linkMs: 1 },
} as const;

const CAUSE = 3;

/** What is written at e1 is read at e2, its last part only, which is all that e2 covers; nothing of it gets above a. */
async function knownBelowA(): Promise<{ scene: Scene; reader: Awaited<ReturnType<Scene["attach"]>> }> {
  const scene = new Scene(TREE);
  await scene.start();
  for (const key of [0, 1, CAUSE]) await scene.read(await scene.attach("d"), key);
  for (const key of [0, 1]) await scene.read(await scene.attach("e2"), key);
  scene.network.partition("a", "root", Infinity);
  const writer = await scene.attach("e1");
  await scene.write(writer, CAUSE, 9);
  await scene.write(writer, 0, 1);
  await scene.pass(100);
  const reader = await scene.attach("e2");
  strictEqual(await scene.read(reader, 0), 1);
  return { scene, reader };
}

/** The site is gone with its disk, and nobody waits for it. */
function lose(scene: Scene, site: string): void {
  scene.site(site).wipe();
}

Deno.test("a site that moves brings along what only its old parent has", async () => {
  const { scene, reader } = await knownBelowA();
  await scene.write(reader, 1, 2);
  await scene.move("e2", "b");
  await scene.pass(100);
  const there = await scene.attach("d");
  const keys = [await scene.read(there, 1), await scene.read(there, 0), await scene.read(there, CAUSE)];
  deepStrictEqual(keys, [2, 1, 9], "the effect and its causes");
});

Deno.test("a request goes on with what it saw while its site moves", async () => {
  const { scene, reader } = await knownBelowA();
  await scene.move("e2", "b");
  strictEqual(await scene.read(reader, 0), 1);
  await scene.done(reader.durable());
  const there = await scene.attach("d", reader.token(false));
  strictEqual(await scene.read(there, 0), 1);
});

Deno.test("an orphan is taken in with what its siblings have of what it saw", async () => {
  const { scene, reader } = await knownBelowA();
  await scene.write(reader, 1, 2);
  lose(scene, "a");
  await scene.move("e2", "b", ["a"]);
  await scene.pass(100);
  const there = await scene.attach("d");
  const keys = [await scene.read(there, 1), await scene.read(there, 0), await scene.read(there, CAUSE)];
  deepStrictEqual(keys, [2, 1, 9], "the effect and its causes");
});

/** Two above each other, of which one alone leads to a site that is far away. */
const DEEP = {
  root: { parent: null, linkMs: 0 },
  top: { parent: "root", linkMs: 5 },
  a: { parent: "top", linkMs: 1 },
  b: { parent: "root", linkMs: 5 },
  e1: { parent: "top", linkMs: 1 },
  e2: { parent: "a", linkMs: 20 },
} as const;

for (const lost of [["a"], ["top", "a"]]) {
  const whose = lost.length === 1 ? "a parent that lost its disk" : "parents that lost their disks";
  Deno.test(`a site that leaves ${whose}, and had not pushed there, waits for nobody who waits for it`, async () => {
    const asked: string[] = [];
    const scene = new Scene(DEEP, {
      tap: (_, to, message) => void (message.kind === "gather" && asked.push(to)),
    });
    await scene.start();
    for (const site of [...lost, "e2"]) lose(scene, site);
    for (const site of [...lost, "e2"]) void scene.site(site).start();
    // Who is who has come to it; what it pushes then is on its way, and does not arrive.
    await scene.until(() => (scene.site("e2").process?.replica.status().coverage.ranges ?? 0) > 0);
    await scene.pass(5);
    await scene.move("e2", "b");
    await scene.until(() => [...lost, "e2"].every((site) => scene.process(site).ready));
    deepStrictEqual([...new Set(asked)], ["a", "e2", ...lost.length === 1 ? ["top"] : ["top", "e1"]]);
    for (const site of ["a", "e2"]) await scene.write(await scene.attach(site), 0, 1);
  });
}

Deno.test("a site that leaves a parent that lost its disk at once brings along what others have of what it saw (moving.ts M3)", async () => {
  const { scene, reader } = await knownBelowA();
  await scene.write(reader, 1, 2);
  const { replica: before } = scene.process("e2").replica.status();
  lose(scene, "a");
  scene.network.block("a", "root", 0);
  scene.network.block("a", "e1", scene.world.nowMs + 5_000);
  void scene.site("a").start();
  await scene.until(() => scene.process("e2").replica.status().replica !== before);
  await scene.move("e2", "b");
  await scene.pass(100);
  const there = await scene.attach("d");
  const keys = [await scene.read(there, 1), await scene.read(there, 0), await scene.read(there, CAUSE)];
  deepStrictEqual(keys, [2, 1, 9], "the effect and its causes");
});

Deno.test("a session is told of a loss, whenever it comes, when what it saw went with the parent of its site", async () => {
  const { scene } = await knownBelowA();
  // What a alone has a session sees there, and goes on at e2, which does not cover it.
  const first = await scene.attach("a");
  await scene.write(first, 2, 3);
  const running = await scene.attach("e2", first.token(false));
  await scene.done(running.durable());
  const token = running.token(false);
  const early = (await scene.attach("e2")).token(false);
  lose(scene, "a");
  await scene.move("e2", "b", ["a", "e1"]);
  await rejects(scene.read(running, 2), { code: "source_lost" });
  await scene.pass(500);
  await rejects(scene.attach("d", token), { code: "source_lost" });
  lose(scene, "e1");
  const { members } = scene.process("root").replica;
  for (const site of ["e1", "a"]) strictEqual((await scene.done(members.remove(site))).kind, "removed");
  await scene.pass(2_000);
  // No clock makes up for it, and no restart forgets it.
  await rejects(scene.attach("d", token), { code: "source_lost" });
  scene.site("d").crash();
  await scene.site("d").start();
  await scene.until(() => scene.site("d").process?.ready === true);
  await rejects(scene.attach("d", token), { code: "source_lost" });
  // Whoever saw nothing of it goes on.
  strictEqual((await scene.attach("d", early)).how, "nothing");
});

Deno.test("a session from a site that moved gets its rows, whatever the clocks of the new branch say", async () => {
  const scene = new Scene(TREE);
  await scene.start();
  await scene.read(await scene.attach("d"), 1);
  scene.network.partition("e2", "a", Infinity);
  const writer = await scene.attach("e2");
  await scene.write(writer, 1, 2);
  const token = writer.token(false);
  // Nobody but e2 has it. The new branch is past its time, and the former parent will be when it gives e2 up.
  await scene.pass(1_000);
  await scene.move("e2", "b");
  scene.network.stall("e2", "b", scene.world.nowMs + 1_500);
  await scene.pass(1_000);
  const there = await scene.attach("d", token);
  strictEqual(await scene.read(there, 1), 2);
  // When all that it had is there, nobody is asked any more.
  await scene.until(() => (scene.process("b").replica.status().counters["settled"] ?? 0) > 0);
  await scene.pass(500);
  strictEqual((await scene.attach("b", token)).how, "nothing");
});

Deno.test("two sites that swap places do not wait for each other", async () => {
  const scene = new Scene({ ...TREE, c: { parent: "b", linkMs: 1 } });
  await scene.start();
  await scene.write(await scene.attach("e1"), 0, 1);
  await scene.write(await scene.attach("d"), 1, 2);
  const numbers = () => ["e1", "d"].map((id) => scene.process(id).replica.status().replica);
  const before = numbers();
  scene.site("e1").move("b", []);
  scene.site("d").move("a", []);
  await scene.until(() => numbers().every((number, i) => number !== before[i]));
  await scene.until(() =>
    ["a", "b"].every((id) => (scene.process(id).replica.status().counters["settled"] ?? 0) > 0)
  );
  for (const site of ["e1", "d", "c"]) {
    const session = await scene.attach(site);
    deepStrictEqual([await scene.read(session, 0), await scene.read(session, 1)], [1, 2], site);
  }
});

Deno.test("of two moves, one right after the other, the later one counts (store/core/inboxes.ts B3)", async () => {
  const scene = new Scene(TREE);
  await scene.start();
  const { storage, replica } = scene.process("e1");
  const scan = storage.scan.bind(storage);
  storage.scan = async (...asked) => {
    await new Promise<void>((resolve) => scene.world.after(5, resolve));
    return await scan(...asked);
  };
  // To take that in took so long that it waits for a turn before it hears the next (B2).
  await scene.read(await scene.attach("e1"), 0);
  scene.site("e1").move("b", []);
  scene.site("e1").move("a", []);
  await scene.write(await scene.attach("e1"), 1, 2);
  await scene.until(() => ["e1", "a"].every((id) => scene.process(id).replica.status().pending === 0));
  strictEqual(replica.status().parent?.id, "a");
  strictEqual(await scene.read(await scene.attach("root"), 1), 2);
});

Deno.test("a site that moves below its child, whose link it took for up, has no child in it any more (store/core/inboxes.ts B4)", async () => {
  const scene = new Scene({
    root: { parent: null, linkMs: 5 },
    upper: { parent: "root", linkMs: 5 },
    lower: { parent: "upper", linkMs: 1 },
    edge: { parent: "upper", linkMs: 1 },
  }, { noticeMs: 3_000 });
  await scene.start();
  await scene.move("lower", "root");
  const writer = await scene.attach("edge");
  await scene.write(writer, 0, 1);
  const token = writer.token(false);
  await scene.pass(1_000);
  // What its session saw is at the root, and no disk is asked for it any more.
  scene.site("edge").wipe();
  await scene.site("edge").start();
  await scene.until(() => scene.process("edge").ready);
  const childrenOfUpper = () =>
    scene.process("upper").replica.status().children.map(({ id, connected }) => [id, connected]);
  deepStrictEqual(childrenOfUpper(), [["edge", true], ["lower", true]]);
  await scene.move("upper", "lower");
  await scene.pass(5_000);
  deepStrictEqual(childrenOfUpper(), [["edge", true]]);
  const there = await scene.attach("lower", token);
  strictEqual(await scene.read(there, 0), 1);
});
