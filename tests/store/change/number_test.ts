/** Sites that wait for a number from above, for a child of theirs, and get another parent meanwhile. */
import { deepStrictEqual, strictEqual } from "node:assert/strict";
import { Scene } from "../../sim/scene.ts";
import { endedKey, replicaKey } from "../../../store/members/topology.ts";
import type { Key } from "../../../store/model/key.ts";
import type { ReplicaNumber } from "../../../store/model/row.ts";

const TREE = {
  root: { parent: null, linkMs: 0 },
  a: { parent: "root", linkMs: 1 },
  b: { parent: "root", linkMs: 1 },
} as const;

Deno.test("site that waits for a number for a child is moved below that child, which went elsewhere", async () => {
  const scene = new Scene(TREE);
  await scene.start();
  await scene.pass(2_000);
  scene.network.partition("root", "a", Infinity);
  // It says hello to a, who asks for its number in vain; then it is back where it was.
  scene.site("b").move("a", []);
  await scene.pass(1_000);
  scene.site("b").move("root", []);
  await scene.pass(1_000);
  strictEqual(scene.process("b").replica.status().parent?.connected, true);
  await scene.write(await scene.attach("b"), 0, 1);
  await scene.move("a", "b");
  strictEqual(await scene.read(await scene.attach("a"), 0), 1);
});

/** A site's disk takes its time from now on; what it has by now. */
function slowDisk(scene: Scene, id: string): ReadonlySet<Key> {
  const { storage } = scene.process(id), written = new Set<Key>();
  const commit = storage.commit.bind(storage);
  storage.commit = async (step) => {
    await new Promise<void>((resolve) => scene.world.after(40, resolve));
    await commit(step);
    for (const { key } of step.rows) written.add(key);
  };
  return written;
}

Deno.test("whoever hears a number: it is on the root's disk, and the end of the one before on the parent's (numbers.ts N1, N2, enrolment.ts N1)", async () => {
  const disks = new Map<string, ReadonlySet<Key>>();
  const heard: ReplicaNumber[] = [], wrong: string[] = [];
  const before = new Map<string, ReplicaNumber>();
  const scene = new Scene({ ...TREE, edge: { parent: "a", linkMs: 1 } }, {
    tap: (from, to, message) => {
      if (message.kind !== "number" && message.kind !== "welcome") return;
      const { replica } = message, old = before.get(to);
      if (replica === 0) return;
      if (disks.get("root")?.has(replicaKey(replica)) === false) {
        wrong.push(`${from} tells ${to} of ${replica}`);
      }
      if (message.kind !== "welcome") return;
      if (old !== undefined && disks.get(from)?.has(endedKey(old)) === false) {
        wrong.push(`${from} welcomes ${to}, and has no end of ${old}`);
      }
      if (disks.size > 0) heard.push(replica);
      before.set(to, replica);
    },
  });
  await scene.start();
  for (const id of ["root", "a"]) disks.set(id, slowDisk(scene, id));
  // Blank disks: each of them asks for a number, and its old one ends.
  for (const id of ["b", "edge"]) {
    scene.site(id).wipe();
    await scene.pass(20);
    void scene.site(id).start();
  }
  await scene.until(() => scene.process("b").ready && scene.process("edge").ready);
  strictEqual(heard.length, 2);
  deepStrictEqual(wrong, []);
});
