/** What a site that is alone answers of rows that it holds no coverage of: what was written there (session.ts, E8). */
import { rejects, strictEqual } from "node:assert/strict";
import { StoreUnavailable } from "../../store/api/api.ts";
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
