/**
 * Rows of a version that the watermark has passed, or that it may pass any moment (store/session/old_writes.ts, store/core/owed.ts):
 * written once, or said not to be, at whichever site.
 */
import { deepEqual, equal, ok, rejects } from "node:assert/strict";
import type { AttachedSession, DatedWrite } from "../../../store/api/api.ts";
import type { Key } from "../../../store/model/key.ts";
import { resolve } from "../../../store/model/merge.ts";
import type { Version } from "../../../store/model/row.ts";
import { openReplica } from "../../../store/replica.ts";
import { decodeValue, encodeValue } from "../../../functions/values/value.ts";
import { Scene, type SceneOptions } from "../../sim/scene.ts";

const HORIZON_MS = 300;
const TREE = {
  root: { parent: null, linkMs: 0 },
  mid: { parent: "root", linkMs: 5 },
  e1: { parent: "mid", linkMs: 5 },
  e2: { parent: "root", linkMs: 5 },
} as const;
const utf8 = new TextEncoder(), text = new TextDecoder();

async function began(options: SceneOptions = {}): Promise<Scene> {
  const scene = new Scene(TREE, { horizonMs: HORIZON_MS, ...options });
  await scene.start();
  return scene;
}

/** As writers do: some old ones at once, or one that is not. */
async function writing(session: AttachedSession, ...writes: readonly DatedWrite[]): Promise<readonly Key[]> {
  const written = await session.writeOld(writes);
  ok(written.ok);
  return written.left;
}

const version = (scene: Scene, session: AttachedSession, site: string): Version => ({
  clock: session.tick(),
  replica: scene.process(site).replica.status().replica,
});

const set = (key: Key, value: string) => ({ kind: "set", key, value: utf8.encode(value) }) as const;

async function read(scene: Scene, site: string, key: Key): Promise<string | null> {
  const [row] = await scene.done((await scene.attach(site)).get([key]));
  return row?.value ? text.decode(row.value) : null;
}

/** Until the watermark has passed what was there before. */
const aged = (scene: Scene) => scene.pass(5 * HORIZON_MS);

for (const site of ["root", "e1"]) {
  Deno.test(`${site}: what was never applied is written when older rows show that, however late (old_writes.ts OL2)`, async () => {
    const scene = await began(), key = scene.keyspace.key(0);
    const other = await scene.attach("e2");
    await scene.done(other.write([set(key, "before")]));
    await scene.pass(100);
    const session = await scene.attach(site), drawn = version(scene, session, site);
    await aged(scene);
    ok(session.isOld(drawn));
    equal(await scene.done(session.writeAs([set(key, "late")], drawn)), false, "never in silence");
    equal(await read(scene, site, key), "before");
    deepEqual(await scene.done(writing(session, { mutations: [set(key, "late")], version: drawn })), []);
    for (const there of ["root", "mid", "e1", "e2"]) equal(await read(scene, there, key), "late", there);
    await aged(scene);
    deepEqual(
      await scene.done(writing(session, { mutations: [set(key, "late")], version: drawn })),
      [],
      "again",
    );
    for (const there of ["root", "mid", "e1", "e2"]) equal(await read(scene, there, key), "late", there);
  });

  Deno.test(`${site}: of a row of which nothing stands nobody can tell, and it is said (old_writes.ts OL3)`, async () => {
    const scene = await began(), key = scene.keyspace.key(0);
    const session = await scene.attach(site), drawn = version(scene, session, site);
    equal(await scene.done(session.writeAs([set(key, "once")], drawn)), true);
    await scene.pass(100);
    const other = await scene.attach("e2");
    equal(await scene.done(other.get([key]).then(([row]) => text.decode(row?.value ?? undefined))), "once");
    await scene.done(other.write([{ kind: "delete", key }]));
    await scene.pass(100);
    await aged(scene);
    deepEqual(await scene.done(writing(session, { mutations: [set(key, "once")], version: drawn })), [key]);
    equal(await read(scene, "root", key), null, "what was deleted stays so");
    equal(scene.process(site).replica.status().counters["writes_left_out"], 1);
  });

  Deno.test(`${site}: writes of one key are one, and later homes find that they were made (old_writes.ts OL1)`, async () => {
    const scene = await began(), [x, y] = [scene.keyspace.key(0), scene.keyspace.key(1)];
    await scene.done((await scene.attach("e2")).write([set(x, "before")]));
    await scene.pass(100);
    const session = await scene.attach(site);
    const writes = ["one", "two", "three"].map((value, i) => ({
      mutations: [set(x, value), ...(i === 2 ? [set(y, value)] : [])],
      version: version(scene, session, site),
    }));
    await aged(scene);
    deepEqual(await scene.done(writing(session, ...writes)), []);
    equal(await read(scene, "root", x), "three");
    equal(await read(scene, "root", y), "three", "it was written together with what shows it");
    const second = await scene.attach("e2");
    deepEqual(await scene.done(writing(second, ...writes.slice(0, 2))), []);
    equal(await read(scene, "root", x), "three");
  });
}

Deno.test("where the root can't be heard an old write waits, and is made when it can", async () => {
  const scene = await began(), key = scene.keyspace.key(0);
  await scene.done((await scene.attach("e2")).write([set(key, "before")]));
  await scene.pass(100);
  const session = await scene.attach("e1"), drawn = version(scene, session, "e1");
  await aged(scene);
  await read(scene, "e1", key);
  scene.network.partition("mid", "root", Infinity);
  const write = { mutations: [set(key, "late")], version: drawn };
  await rejects(scene.done(writing(session, write)), { code: "store_unreachable" });
  equal(await read(scene, "e1", key), "before");
  scene.network.block("mid", "root", 0);
  await scene.pass(2_000);
  deepEqual(await scene.done(writing(session, write)), []);
  equal(await read(scene, "e2", key), "late");
});

Deno.test("what the floor has passed and the watermark not yet is written as it is, and holds both", async () => {
  const scene = await began(), key = scene.keyspace.key(0);
  // e2 has no way up: its floor of before holds the watermark.
  scene.network.partition("e2", "root", Infinity);
  const session = await scene.attach("e1"), drawn = version(scene, session, "e1");
  await aged(scene);
  ok(session.isOld(drawn));
  const over = writing(session, { mutations: [set(key, "late")], version: drawn });
  deepEqual(await scene.done(over), []);
  const [row] = await scene.done((await scene.attach("root")).get([key]));
  deepEqual([row?.clock, row?.replica], [drawn.clock, drawn.replica]);
  scene.network.block("e2", "root", 0);
  await aged(scene);
  equal(await read(scene, "e2", key), "late");
});

Deno.test("what is written anew is older than all that was written since, also where that comes later (old_writes.ts OL4)", async () => {
  const scene = await began(), key = scene.keyspace.key(0);
  await scene.done((await scene.attach("root")).write([set(key, "before")]));
  await scene.done((await scene.attach("e2")).get([key]));
  await scene.pass(100);
  const session = await scene.attach("e1"), drawn = version(scene, session, "e1");
  await aged(scene);
  scene.network.stall("e2", "root", scene.world.nowMs + 200);
  await scene.done((await scene.attach("e2")).write([set(key, "since")]));
  deepEqual(await scene.done(writing(session, { mutations: [set(key, "late")], version: drawn })), []);
  await scene.pass(1_000);
  for (const there of ["root", "e1", "e2"]) equal(await read(scene, there, key), "since", there);
});

const sum = (key: Key, amount: number) => ({ kind: "sum", key, value: encodeValue(amount) }) as const;
const numeral = (key: Key, amount: number) => ({ kind: "set", key, value: encodeValue(amount) }) as const;

for (const isPassed of [true, false]) {
  const what = isPassed ? "that the watermark has passed" : "that the floor alone has passed";
  Deno.test(`old writes ${what}, and the merges among them, show at once at every site (old_writes.ts OL5)`, async () => {
    const scene = await began(), [x, y, z] = [0, 1, 2].map((i) => scene.keyspace.key(i)) as [Key, Key, Key];
    const sites = ["root", "mid", "e1", "e2"] as const;
    await scene.done((await scene.attach("root")).write([numeral(x, 0), numeral(y, 0), numeral(z, 0)]));
    for (const site of sites) await scene.done((await scene.attach(site)).get([x, y, z])); // held from now on
    await scene.pass(100);
    const session = await scene.attach("e1");
    // e2 has no way up: its floor of before holds the watermark.
    if (!isPassed) scene.network.partition("e2", "root", Infinity);
    const writes = [[numeral(x, 1), numeral(z, 1)], [numeral(x, 2)]].map((mutations) => ({
      mutations,
      version: version(scene, session, "e1"),
    }));
    await aged(scene);
    ok(writes.every(({ version }) => session.isOld(version)));
    let isOver = false;
    const written = session.writeOld(writes, { checks: [], batches: [[sum(y, 3)], [sum(y, 4)]] });
    void written.finally(() => isOver = true);
    const seen = new Set<string>();
    const look = async () => {
      for (const site of sites) {
        const rows = await scene.done((await scene.attach(site)).get([x, y, z]));
        seen.add(rows.map((row) => decodeValue(resolve(row?.value ?? null) ?? new Uint8Array())).join());
      }
    };
    while (!isOver) {
      await scene.pass(1);
      await look();
    }
    deepEqual(await written, { ok: true, left: [], refused: [] });
    if (!isPassed) scene.network.block("e2", "root", 0);
    await scene.pass(500);
    await look();
    deepEqual([...seen].sort(), ["0,0,0", "2,7,1"]);
  });
}

Deno.test("where a check of old writes' merges does not hold nothing is written; one that can't be merged is left out alone", async () => {
  const scene = await began(), [x, y, z] = [0, 1, 2].map((i) => scene.keyspace.key(i)) as [Key, Key, Key];
  await scene.done((await scene.attach("root")).write([set(x, "before"), set(z, "no number")]));
  await scene.pass(100);
  const session = await scene.attach("e1");
  const writes = [{ mutations: [set(x, "late")], version: version(scene, session, "e1") }];
  await aged(scene);
  const batches = [[sum(z, 1)], [sum(y, 2)]];
  const refused = session.writeOld(writes, { checks: [{ key: z, version: null }], batches });
  deepEqual(await scene.done(refused), { ok: false });
  equal(await read(scene, "root", x), "before");
  const done = await scene.done(session.writeOld(writes, { checks: [{ key: y, version: null }], batches }));
  ok(done.ok);
  deepEqual([done.left, done.refused.map(({ name }) => name)], [[], ["MergeError"]]);
  equal(await read(scene, "root", x), "late");
  equal(await read(scene, "root", z), "no number");
  const [row] = await scene.done((await scene.attach("root")).get([y]));
  equal(decodeValue(resolve(row?.value ?? null) ?? new Uint8Array()), 2);
});

/** As `began`; what the host at e1 owes is as the result says. */
async function owing() {
  const owed = { least: Infinity };
  const scene = await began({
    open: (config, ports) =>
      openReplica(config, config.site === "e1" ? { ...ports, owed: () => owed.least } : ports),
  });
  return { scene, owed };
}

Deno.test("what a host owes is written as it is, however late: nothing of that age is forgotten meanwhile (OW1)", async () => {
  const { scene, owed } = await owing(), [x, y] = [scene.keyspace.key(0), scene.keyspace.key(1)];
  const session = await scene.attach("e1"), drawn = version(scene, session, "e1");
  owed.least = drawn.clock;
  await scene.pass(50);
  const other = await scene.attach("root");
  await scene.done(other.write([set(x, "since")]));
  await scene.done(other.write([{ kind: "delete", key: x }]));
  await aged(scene);
  equal(await scene.done(session.writeAs([set(x, "late"), set(y, "late")], drawn)), true);
  owed.least = Infinity;
  await aged(scene);
  for (const there of ["root", "mid", "e1", "e2"]) {
    deepEqual([await read(scene, there, x), await read(scene, there, y)], [null, "late"], there);
  }
});

Deno.test("a site that does not know yet what its host owes says nothing of what may be forgotten", async () => {
  const { scene, owed } = await owing(), key = scene.keyspace.key(0);
  const session = await scene.attach("e1"), drawn = version(scene, session, "e1");
  await scene.pass(100);
  scene.site("e1").crash();
  await aged(scene);
  owed.least = 0;
  await scene.site("e1").start();
  await scene.until(() => scene.process("e1").ready);
  await aged(scene);
  owed.least = drawn.clock;
  const later = await scene.attach("e1");
  const write = { mutations: [set(key, "late")], version: drawn };
  ok(await scene.done(later.writeAs(write.mutations, drawn)) || later.isOld(drawn));
  deepEqual(await scene.done(writing(later, write)), [], "the watermark has not passed it");
  equal(await read(scene, "e2", key), "late");
});
