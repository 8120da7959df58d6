/** What a site that is drained has on its disk when that is emptied (store/change/members.ts, A1). */
import { deepStrictEqual, ok, strictEqual } from "node:assert/strict";
import { DisksCheck } from "./check_disks.ts";
import { Scene } from "./scene.ts";
import { Trail } from "./trail.ts";

const TREE = {
  root: { parent: null, linkMs: 50 },
  core: { parent: "root", linkMs: 50 },
  leaver: { parent: "core", linkMs: 2 },
  writer: { parent: "core", linkMs: 2 },
} as const;
const EARLY = 0, LATE = 1;

Deno.test("a site that leaves has nothing that the root lacks, but what it was fed behind its word (A1)", async () => {
  const scene = new Scene(TREE, { keys: 2 });
  await scene.start();
  const reader = await scene.attach("leaver");
  for (const key of [EARLY, LATE]) strictEqual(await scene.read(reader, key), null);
  const writer = await scene.attach("writer");
  await scene.write(writer, EARLY, 1);
  await scene.until(() => scene.process("leaver").storage.rows.has(EARLY));
  const drained = scene.site("leaver").retire(0);
  await scene.until(() => scene.events.some(({ kind }) => kind === "leaves"));
  // The root has neither its word nor the first row yet: the other one comes behind both.
  ok(!scene.process("root").storage.rows.has(EARLY));
  await scene.pass(60);
  await scene.write(writer, LATE, 2);
  ok(await scene.done(drained));

  const trail = new Trail({ keys: 2, root: "root", events: [] }), excused: string[] = [];
  const disks = new DisksCheck(trail, (name) => void excused.push(name));
  for (const event of scene.events) {
    if (event.kind === "emptied") {
      const [early, late] = [EARLY, LATE].map((key) => trail.losses.rows("leaver").get(key)?.stamp ?? "");
      deepStrictEqual([early, late].map((stamp) => stamp === ""), [false, false]);
      ok(trail.losses.isAtRoot(EARLY, early ?? ""));
      ok(!trail.losses.isAtRoot(LATE, late ?? ""));
    }
    disks.before(event);
    trail.step(event);
  }
  deepStrictEqual(disks.violations.filter(({ checker }) => checker === "kept"), []);
  strictEqual(excused.length, 1);
});
