/** What is kept of incarnations that are over: one row for a site, not several for each (store/change/past.ts). */
import { deepStrictEqual, ok, rejects, strictEqual } from "node:assert/strict";
import { COLLECTIONS_PER_HORIZON, HORIZON_MS } from "../../../store/model/limits.ts";
import { packKey } from "../../../store/model/key.ts";
import { prefixRange } from "../../../store/model/range.ts";
import { Past } from "../../../store/change/past.ts";
import {
  decodeJson,
  type PastGroup,
  pastKey,
  replicaKey,
  SYSTEM_RANGE,
} from "../../../store/members/topology.ts";
import { Scene, type SceneSite } from "../../sim/scene.ts";
import { ends, learns, loneCore } from "../lone_core.ts";

const TIMES = 20;
/** Longer than between two collections. */
const COLLECT_MS = 2 * HORIZON_MS / COLLECTIONS_PER_HORIZON;

function treeOf(f: number): Record<string, SceneSite> {
  const owners = { f };
  return {
    root: { parent: null, linkMs: 0 },
    inner: { parent: "root", linkMs: 1, owners },
    edge: { parent: "inner", linkMs: 1, owners },
    other: { parent: "inner", linkMs: 1, owners },
  };
}

/** How many system rows each site has on its disk, tombstones too. */
async function systemRows(scene: Scene): Promise<number[]> {
  const sites = ["root", "inner", "edge", "other"];
  return await Promise.all(
    sites.map(async (id) => (await scene.process(id).storage.scan(SYSTEM_RANGE)).length),
  );
}

/** The site's disk is lost, and it starts with a blank one. */
async function startBlank(scene: Scene, id: string): Promise<void> {
  scene.site(id).wipe();
  await scene.pass(20);
  await scene.site(id).start();
  await scene.until(() => scene.process(id).ready);
  await scene.pass(3_000);
}

/** What may go by the clock goes. */
async function collect(scene: Scene): Promise<void> {
  for (const ms of [COLLECT_MS, HORIZON_MS + COLLECT_MS, COLLECT_MS, COLLECT_MS]) {
    scene.nap(ms);
    await scene.pass(5_000);
  }
}

for (const f of [0, 1]) {
  Deno.test(`a site that starts with a blank disk ${TIMES} times leaves as many system rows as after the first (f=${f})`, async () => {
    const scene = new Scene(treeOf(f));
    await scene.start();
    await startBlank(scene, "edge");
    await collect(scene);
    const before = await systemRows(scene);
    for (let time = 1; time < TIMES; time++) await startBlank(scene, "edge");
    ok((await systemRows(scene)).some((rows, i) => rows > (before[i] ?? 0) + TIMES), "else nothing is shown");
    await collect(scene);
    strictEqual(`${await systemRows(scene)}`, `${before}`);
  });
}

/** All processes start again over their disks: what they know is what is there. */
async function restart(scene: Scene): Promise<void> {
  for (const id of ["root", "inner", "edge", "other"]) {
    scene.site(id).crash();
    await scene.site(id).start();
  }
  await scene.until(() => ["root", "inner", "edge", "other"].every((id) => scene.process(id).ready));
  await scene.pass(2_000);
}

for (const f of [0, 1]) {
  Deno.test(`a token of an incarnation that is over is told the same, whether or not its rows are kept together (f=${f})`, async () => {
    const scene = new Scene(treeOf(f));
    await scene.start();
    const whole = await scene.attach("edge");
    await scene.write(whole, 0, 1);
    await scene.pass(2_000);
    const lost = await scene.attach("edge");
    scene.network.partition("edge", "inner", Infinity);
    await scene.write(lost, 1, 2);
    await scene.pass(200);
    const tokens = { whole: whole.token(false), lost: lost.token(false) };
    scene.network.block("edge", "inner", 0);
    await startBlank(scene, "edge");
    for (let round = 0; round < 3; round++) {
      if (round === 1) await collect(scene);
      if (round === 2) await restart(scene);
      for (const at of ["root", "inner", "other", "edge"]) {
        strictEqual(await scene.read(await scene.attach(at, tokens.whole), 0), 1, `${at} ${round}`);
        if (f === 0) await rejects(scene.attach(at, tokens.lost), { code: "source_lost" }, `${at} ${round}`);
        else strictEqual(await scene.read(await scene.attach(at, tokens.lost), 1), 2, `${at} ${round}`);
      }
    }
    strictEqual((await scene.process("other").storage.scan(prefixRange(packKey(["s", "ended"])))).length, 0);
  });
}

/** How many incarnations have an end in a row of its own, at the root. */
const endsAt = async (scene: Scene): Promise<number> =>
  (await scene.process("root").storage.scan(prefixRange(packKey(["s", "ended"])))).length;

Deno.test("an incarnation keeps its rows until each owner has said what it had of it (Z3)", async () => {
  const scene = new Scene(treeOf(1));
  await scene.start();
  await scene.pass(5_000);
  scene.network.partition("edge", "inner", Infinity);
  const session = await scene.attach("edge");
  await scene.write(session, 1, 2);
  await scene.pass(200);
  scene.site("other").crash();
  scene.network.block("edge", "inner", 0);
  await startBlank(scene, "edge");
  await collect(scene);
  strictEqual(await endsAt(scene), 1);
  await rejects(scene.attach("root", session.token(false)), { code: "source_unreachable" });
  await scene.site("other").start();
  await scene.until(() => scene.process("other").ready);
  await scene.pass(3_000);
  await collect(scene);
  strictEqual(await endsAt(scene), 0);
  strictEqual(await scene.read(await scene.attach("root", session.token(false)), 1), 2);
});

Deno.test("what is kept together, and the rows that it stands for are deleted, in one commit (Z2)", async () => {
  const scene = new Scene(treeOf(1));
  await scene.start();
  for (let time = 0; time < 3; time++) await startBlank(scene, "edge");
  // Its memory is empty: what it looks up it waits for, and other commits may be made meanwhile.
  scene.site("root").crash();
  await scene.site("root").start();
  await scene.until(() => scene.process("root").ready);
  const { storage } = scene.process("root"), past = prefixRange(packKey(["s", "past"]));
  const ended = prefixRange(packKey(["s", "ended"]));
  const commit = storage.commit.bind(storage), getMany = storage.getMany.bind(storage);
  storage.getMany = async (keys) => {
    await new Promise<void>((resolve) => scene.world.after(20, resolve));
    return await getMany(keys);
  };
  const steps: { readonly taken: number; readonly deleted: number }[] = [];
  storage.commit = (step) => {
    const isIn = ({ start, end }: typeof past) => step.rows.filter(({ key }) => key >= start && key < end);
    const taken = isIn(past).length, deleted = isIn(ended).filter(({ value }) => value === null).length;
    if (taken + deleted > 0) steps.push({ taken, deleted });
    return commit(step);
  };
  const session = await scene.attach("root");
  const writing = { isOver: false };
  const written = (async () => {
    for (let i = 0; !writing.isOver; i++) {
      await scene.write(session, 0, i);
      await scene.pass(1);
    }
  })();
  await scene.pass(10);
  scene.nap(COLLECT_MS);
  await scene.pass(5_000);
  writing.isOver = true;
  await written;
  deepStrictEqual(steps, [{ taken: 1, deleted: 3 }]);
});

Deno.test("incarnations are kept together that stood at one place below one disk, and what is known of each (Z1)", async () => {
  const core = loneCore(["root"], 1), past = new Past(core);
  const at = async (site: string) => {
    const [row] = await core.rows.lookup([pastKey(site)]);
    return decodeJson(row?.value ?? null) as PastGroup[];
  };
  const e = ["root", "c", "e"];
  for (
    const [number, path, parent] of [[12, e, 8], [13, e, 8], [14, e, 9], [15, ["root", "e"], 8]] as const
  ) {
    learns(core, number, path, { parent });
    ends(core, number, { stable: 100 + number });
    await past.sweep();
  }
  const over = (...numbers: readonly number[]) => numbers.map((number) => ({ number, stable: 100 + number }));
  deepStrictEqual(await at("e"), [
    { path: e, parent: 8, over: over(12, 13) },
    { path: e, parent: 9, over: over(14) },
    { path: ["root", "e"], parent: 8, over: over(15) },
  ]);
  // Its rows come once more, as from a site that had them: they go again, and the word of it stands once.
  learns(core, 13, e, { parent: 8 });
  ends(core, 13, { stable: 113 });
  await past.sweep();
  strictEqual((await at("e")).flatMap((group) => group.over).filter(({ number }) => number === 13).length, 1);
  strictEqual((await core.rows.lookup([replicaKey(13)]))[0]?.value, null);
});
