/**
 * Deletions that overlap: asked for twice, or found by the root's own look while a command still waits.
 */
import assert from "node:assert/strict";
import { Deployments } from "../../../runtime/deploy/mod.ts";
import type { Change } from "../../../runtime/deploy/app_rows.ts";
import { packKey } from "../../../store/model/key.ts";
import { MemorySystem } from "./memory_system.ts";

const rowKey = packKey(["a", "shop", "notes", "milk"]);

async function setUp() {
  const system = new MemorySystem();
  const deployments = new Deployments({
    system,
    evaluate: () => Promise.resolve({ ok: true, manifest: {} }),
    nowMs: () => 1000,
  });
  const deploy = async () => {
    const result = await deployments.deploy({ bundle: new TextEncoder().encode("bundle"), app: "shop" });
    assert(result.ok, JSON.stringify(result));
    await system.write([{ kind: "set", key: rowKey, value: new Uint8Array([1]) }]);
  };
  await deploy();
  const begin = async (): Promise<Change> => {
    const begun = await deployments.deletion.begin("shop");
    assert(begun.ok);
    return begun;
  };
  return { system, deployments, deletion: deployments.deletion, deploy, begin };
}

Deno.test("a deletion leaves the rows of an app deployed since alone when another has freed the name (DD2)", async () => {
  const { system, deletion, deploy, begin } = await setUp();
  const [first, second] = [await begin(), await begin()];
  assert.equal(await deletion.removeRows(first), 1);
  await deletion.finish(first);
  await deploy();
  assert.equal(await deletion.removeRows(second), 0);
  await deletion.finish(second);
  assert(system.rows.has(rowKey));
  assert.equal((await deletion.unfinished()).length, 0);
  assert((await system.get([packKey(["s", "app", "shop"])]))[0] !== undefined);
});

Deno.test("a deletion does not free the name when the app has been deployed and is being deleted again (DD2)", async () => {
  const { deletion, deploy, begin } = await setUp();
  const [first, second] = [await begin(), await begin()];
  await deletion.finish(first);
  await deploy();
  await begin();
  await deletion.finish(second); // its sites followed the first deletion, not this one
  assert.deepEqual(await deletion.unfinished(), ["shop"]);
});

Deno.test("a deletion is done once when it is asked for twice (DD2)", async () => {
  const { deletion } = await setUp();
  const over = Promise.withResolvers<void>();
  let works = 0;
  const work = async () => {
    works++;
    await over.promise;
    return { sites: [], missing: [], rows: works };
  };
  const both = Promise.all([deletion.once("shop", work), deletion.once("shop", work)]);
  assert(deletion.isGoing("shop"));
  over.resolve();
  assert.deepEqual((await both).map(({ rows }) => rows), [1, 1]);
  assert(!deletion.isGoing("shop"));
});
