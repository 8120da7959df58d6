/** What a site that is alone answers of rows that it holds no coverage of: what was written there (session.ts, E8). */
import { rejects, strictEqual } from "node:assert/strict";
import { type AttachedSession, StoreUnavailable } from "../../store/api/api.ts";
import type { Version } from "../../store/model/row.ts";
import { VALUE_TAG } from "../../store/model/value.ts";
import { Scene } from "./scene.ts";

const TREE = {
  root: { parent: null, linkMs: 5 },
  e: { parent: "root", linkMs: 5 },
  far: { parent: "root", linkMs: 5 },
} as const;
const MINE = 0, OTHER = 1;

const unreachable = (error: unknown) =>
  error instanceof StoreUnavailable && error.code === "store_unreachable";

function cutOff(scene: Scene): void {
  for (const other of ["root", "far"]) scene.network.partition("e", other, Infinity);
}

Deno.test("a site that is alone reads back what it wrote, in the same session and in later ones", async () => {
  const scene = new Scene(TREE, { keys: 2 });
  await scene.start();
  cutOff(scene);
  const first = await scene.attach("e");
  await scene.write(first, MINE, 7);
  strictEqual(await scene.read(first, MINE), 7);
  const again = await scene.attach("e", first.token(false));
  strictEqual(await scene.read(again, MINE), 7);
  strictEqual(await scene.read(await scene.attach("e"), MINE), 7);
  strictEqual(await scene.read(await scene.attach("e", again.token(false)), MINE), 7, "as often as one asks");
  await rejects(
    scene.read(await scene.attach("e"), OTHER),
    unreachable,
    "what it did not write it can't know",
  );
});

Deno.test("it does not, where a session may have seen a newer row elsewhere", async () => {
  const scene = new Scene(TREE, { keys: 2 });
  await scene.start();
  await scene.write(await scene.attach("e"), MINE, 7); // not covered here, and soon at the root
  await scene.pass(1_000);
  const far = await scene.attach("far");
  strictEqual(await scene.read(far, MINE), 7);
  await scene.write(far, MINE, 8);
  await scene.pass(1_000);
  const came = await scene.attach("e", far.token(false));
  const token = came.token(false);
  cutOff(scene);
  await rejects(scene.read(await scene.attach("e", token), MINE), unreachable);
  await scene.write(await scene.attach("e", token), MINE, 9);
  strictEqual(
    await scene.read(await scene.attach("e", token), MINE),
    9,
    "this one is newer than all that came",
  );
});

// What a stateful session wrote has the version of its handler, and comes to the rows later, maybe much.

Deno.test("it does not, where it had shown a newer row, and gave it back", async () => {
  const scene = new Scene(TREE, { keys: 2 });
  await scene.start();
  const stateful = await scene.attach("e"), before = await versionOf(scene, stateful);
  const session = await scene.attach("e");
  await scene.write(session, MINE, 8);
  strictEqual(await scene.read(session, MINE), 8);
  await scene.pass(1_000);
  await scene.done(scene.process("e").replica.evict());
  cutOff(scene);
  await writeAs(scene, stateful, 7, before);
  const token = session.token(false);
  await rejects(scene.read(await scene.attach("e", token), MINE), unreachable);
  await writeAs(scene, stateful, 9, await versionOf(scene, stateful));
  strictEqual(await scene.read(await scene.attach("e", token), MINE), 9, "this one is newer than what went");
});

Deno.test("it does not, where a newer row that was written there has gone, since the root has it", async () => {
  const scene = new Scene(TREE, { keys: 2 });
  await scene.start();
  const stateful = await scene.attach("e"), before = await versionOf(scene, stateful);
  const session = await scene.attach("e");
  await scene.write(session, MINE, 8); // not covered here
  await scene.pass(1_000);
  cutOff(scene);
  await writeAs(scene, stateful, 7, before);
  await rejects(scene.read(await scene.attach("e", session.token(false)), MINE), unreachable);
});

Deno.test("it does not, where a newer row that had been shown is only kept to be compared", async () => {
  const scene = new Scene(TREE, { keys: 2 });
  await scene.start();
  const stateful = await scene.attach("e"), before = await versionOf(scene, stateful);
  const session = await scene.attach("e");
  await scene.write(session, MINE, 8);
  strictEqual(await scene.read(session, MINE), 8);
  await scene.pass(1_000);
  await scene.move("e", "far"); // another parent, which has not vouched for anything yet
  for (const other of ["root", "far"]) scene.network.partition("e", other, Infinity);
  await writeAs(scene, stateful, 7, before);
  await rejects(scene.read(await scene.attach("e", session.token(false)), MINE), unreachable);
});

Deno.test("a site between does not, where what comes from below is older than what it had shown", async () => {
  const scene = new Scene({
    root: { parent: null, linkMs: 5 },
    core: { parent: "root", linkMs: 5 },
    e: { parent: "core", linkMs: 5 },
  }, { keys: 2 });
  await scene.start();
  const stateful = await scene.attach("e"), before = await versionOf(scene, stateful);
  const session = await scene.attach("core");
  await scene.write(session, MINE, 8);
  strictEqual(await scene.read(session, MINE), 8);
  await scene.pass(1_000);
  await scene.done(scene.process("core").replica.evict());
  scene.network.partition("core", "root", Infinity);
  await writeAs(scene, stateful, 7, before);
  await scene.pass(1_000);
  await rejects(scene.read(await scene.attach("core", session.token(false)), MINE), unreachable);
});

Deno.test("it answers no sum that may lack what it had shown of it", async () => {
  const scene = new Scene(TREE, { keys: 2 });
  await scene.start();
  const far = await scene.attach("far");
  strictEqual(await sumOf(scene, far), null);
  const session = await scene.attach("e");
  await add(scene, session, 1);
  await scene.pass(1_000);
  strictEqual(await sumOf(scene, session), 1n);
  await scene.done(scene.process("e").replica.evict());
  scene.network.partition("far", "root", Infinity);
  await scene.write(far, OTHER, 1);
  const token = far.token(false);
  await add(scene, far, 2);
  scene.network.partition("e", "root", Infinity);
  const came = await scene.attach("e", token);
  strictEqual(came.how, "carry", "with what is newer than the token");
  await rejects(sumOf(scene, await scene.attach("e", session.token(false))), unreachable);
});

async function add(scene: Scene, session: AttachedSession, by: number): Promise<void> {
  const value = Uint8Array.of(VALUE_TAG.u64, by, 0, 0, 0, 0, 0, 0, 0);
  await scene.done(session.write([{ kind: "sum", key: scene.keyspace.key(MINE), value }]));
  await scene.done(session.durable());
}

async function sumOf(scene: Scene, session: AttachedSession): Promise<bigint | null> {
  const [row] = await scene.done(session.get([scene.keyspace.key(MINE)]));
  if (row?.value === undefined || row.value === null) return null;
  return new DataView(row.value.buffer, row.value.byteOffset).getBigUint64(1, true);
}

/** The version of a handler that runs now. */
async function versionOf(scene: Scene, session: AttachedSession): Promise<Version> {
  const version = { clock: session.tick(), replica: scene.process("e").replica.status().replica };
  await scene.pass(10);
  return version;
}

async function writeAs(
  scene: Scene,
  session: AttachedSession,
  write: number,
  version: Version,
): Promise<void> {
  const { keyspace } = scene;
  await scene.done(
    session.writeAs([{ kind: "set", key: keyspace.key(MINE), value: keyspace.value(write) }], version),
  );
  await scene.done(session.settle());
}
