/** Stages of a version with a new index: announced, followed, filled, live; and what becomes of those cut short. */
import assert from "node:assert/strict";
import { AppTable, Deployments } from "../../../runtime/deploy/mod.ts";
import { appKey, decodeApp } from "../../../runtime/deploy/records.ts";
import { MemorySystem } from "./memory_system.ts";

const bundleOf = (indexes: Record<string, string[]> | null, body = "") => {
  const tables = indexes === null ? {} : { users: { key: ["id"], indexes } };
  return new TextEncoder().encode(`${JSON.stringify({ tables })}\n${body}`);
};

async function setUp() {
  const system = new MemorySystem();
  const table = await AppTable.open(system);
  const events: string[] = [];
  let missing: string[] = [];
  let fails = false;
  const deployments = new Deployments({
    system,
    nowMs: () => 1,
    evaluate: (bundle) =>
      Promise.resolve({
        ok: true,
        manifest: JSON.parse(new TextDecoder().decode(bundle).split("\n")[0] ?? ""),
      }),
    follow: async () => {
      await table.refresh();
      const live = table.get("shop");
      const preparing = Object.keys(live?.preparing?.manifest.tables.users?.indexes ?? {});
      const current = Object.keys(live?.current.manifest.tables.users?.indexes ?? {});
      events.push(`follow: ${current} serve, ${preparing} prepared`);
      return missing;
    },
    fill: (app, indexes) => {
      events.push(`fill ${app}: ${indexes.flatMap((fill) => Object.keys(fill.indexes))}`);
      return fails ? Promise.reject(new Error("rows change too fast")) : Promise.resolve();
    },
  });
  const deploy = async (indexes: Record<string, string[]> | null, body?: string) => {
    const result = await deployments.deploy({ bundle: bundleOf(indexes, body), app: "shop" });
    assert(result.ok, JSON.stringify(result));
    return result.version;
  };
  const record = () => decodeApp(system.rows.get(appKey("shop"))?.value ?? new Uint8Array());
  const taken = () => events.splice(0);
  const set = (next: { missing?: string[]; fails?: boolean }) => {
    missing = next.missing ?? missing;
    fails = next.fails ?? fails;
  };
  return { system, table, deployments, deploy, record, taken, set };
}

const TOWN = { byTown: ["town"] };

Deno.test("a new index is announced to every site before it is filled, and filled before it serves", async () => {
  const { table, deployments, deploy, record, taken } = await setUp();
  await deploy({});
  assert.deepEqual(taken(), []);
  await deploy(TOWN);
  assert.deepEqual(taken(), ["follow:  serve, byTown prepared", "fill shop: byTown"]);
  assert.equal(record().preparing, undefined);
  assert.equal(record().unsettled, undefined);
  await deploy(TOWN, "only code");
  assert.deepEqual(taken(), [], "nothing is new");
  await deploy({ ...TOWN, byAge: ["age"] });
  assert.deepEqual(taken(), ["follow: byTown serve, byTown,byAge prepared", "fill shop: byAge"]);
  await deployments.settle("shop");
  assert.deepEqual(taken(), [], "every site has followed: there is nothing to fill again");
  table.close();
});

Deno.test("a version that comes back fills what was written without it", async () => {
  const { table, deployments, deploy, taken } = await setUp();
  await deploy({});
  const two = await deploy(TOWN);
  await deployments.rollback("shop");
  taken();
  assert((await deployments.rollout("shop", two, 10)).ok);
  assert.deepEqual(taken(), ["follow:  serve, byTown prepared", "fill shop: byTown"]);
  table.close();
});

Deno.test("a table that was left out for a while has rows of before, a fresh one has none", async () => {
  const { table, deploy, taken } = await setUp();
  await deploy(null);
  await deploy(TOWN);
  assert.deepEqual(taken(), [], "a fresh table");
  await deploy(null, "without");
  await deploy(TOWN, "again");
  assert.deepEqual(taken(), ["follow:  serve, byTown prepared", "fill shop: byTown"]);
  table.close();
});

Deno.test("what a site was missing for is filled again when it has followed", async () => {
  const { table, deployments, deploy, record, taken, set } = await setUp();
  const one = await deploy({});
  set({ missing: ["edge-3"] });
  await deploy(TOWN);
  assert.deepEqual(record().unsettled, [one]);
  assert.deepEqual((await deployments.unsettled()).map((change) => change.app), ["shop"]);
  taken();
  await deployments.settle("shop");
  assert.deepEqual(taken(), ["fill shop: byTown"]);
  assert.deepEqual(await deployments.unsettled(), []);
  table.close();
});

Deno.test("a deploy that fails while it fills, or whose root crashes then, leaves the app as it was", async () => {
  const { system, table, deployments, deploy, record, set } = await setUp();
  const one = await deploy({});
  const before = record();
  const rows = [...system.rows.keys()];
  set({ fails: true });
  await assert.rejects(deployments.deploy({ bundle: bundleOf(TOWN), app: "shop" }), /too fast/);
  assert.deepEqual(record(), before);
  assert.deepEqual([...system.rows.keys()], rows);

  const crashed = Promise.withResolvers<void>();
  const cut = new Deployments({
    system,
    nowMs: () => 1,
    evaluate: () =>
      Promise.resolve({ ok: true, manifest: { tables: { users: { key: ["id"], indexes: TOWN } } } }),
    fill: () => {
      crashed.resolve();
      return new Promise(() => {}); // the process ends here
    },
  });
  void cut.deploy({ bundle: bundleOf(TOWN), app: "shop" });
  await crashed.promise;
  assert.notEqual(record().preparing, undefined);
  await deployments.recover();
  assert.deepEqual(record(), before);
  assert.deepEqual([...system.rows.keys()], rows);
  await table.refresh();
  assert.equal(table.get("shop")?.current.version, one);
  table.close();
});

Deno.test("while an index is filled, other apps are deployed and swept, and the app's own change waits (deployments.ts DE2)", async () => {
  const { system, table, record } = await setUp();
  const filling = Promise.withResolvers<void>();
  const filled = Promise.withResolvers<void>();
  const deployments = new Deployments({
    system,
    nowMs: () => 1,
    evaluate: (bundle) =>
      Promise.resolve({
        ok: true,
        manifest: JSON.parse(new TextDecoder().decode(bundle).split("\n")[0] ?? ""),
      }),
    fill: () => {
      filling.resolve();
      return filled.promise;
    },
  });
  const deploy = async (app: string, indexes: Record<string, string[]>, body?: string) => {
    const result = await deployments.deploy({ bundle: bundleOf(indexes, body), app });
    assert(result.ok, JSON.stringify(result));
    return result.version;
  };
  await deploy("shop", {});
  const done: string[] = [];
  const two = deploy("shop", TOWN).finally(() => done.push("two"));
  await filling.promise;
  const three = deploy("shop", TOWN, "again").finally(() => done.push("three"));
  await deploy("other", {}, "other");
  const removed = await deployments.tidy();
  assert.deepEqual([removed, done], [[], []], "what is being prepared is kept");
  filled.resolve();
  const [second, third] = await Promise.all([two, three]);
  assert.deepEqual(done, ["two", "three"]);
  assert.deepEqual(record().versions.map(({ version }) => version).slice(-2).sort(), [second, third].sort());
  await table.refresh();
  const bundle = await table.get("shop")?.current.bundle();
  assert.deepEqual(bundle, bundleOf(TOWN, "again"));
  table.close();
});
