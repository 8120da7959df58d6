import assert from "node:assert/strict";
import { AppTable, Deployments, type Evaluation } from "../../../runtime/deploy/mod.ts";
import {
  APP_VERSIONS_MAX,
  BUNDLE_CHUNK_BYTES,
  bundleRange,
  chunkKey,
  DEPLOYED_BYTES_MAX,
  versionKey,
} from "../../../runtime/deploy/records.ts";
import { VALUE_TAG } from "../../../store/model/value.ts";
import { MemorySystem } from "./memory_system.ts";

const bytes = (text: string) => new TextEncoder().encode(text);

/** Deployments whose bundles are their own manifests: evaluating one parses it. */
function setUp() {
  const system = new MemorySystem();
  let clockMs = 1000;
  const evaluate = (bundle: Uint8Array): Promise<Evaluation> => {
    const text = new TextDecoder().decode(bundle);
    if (!text.startsWith("{")) {
      return Promise.resolve({ ok: false, message: "it threw", stack: "app.ts:3:7" });
    }
    return Promise.resolve({ ok: true, manifest: JSON.parse(text.split("\n")[0] ?? "") });
  };
  const deployments = new Deployments({ system, evaluate, nowMs: () => clockMs++ });
  return { system, deployments };
}

const bundleOf = (manifest: unknown, body = "") => bytes(`${JSON.stringify(manifest)}\n${body}`);

async function deployed(deployments: Deployments, bundle: Uint8Array, app = "shop"): Promise<string> {
  const result = await deployments.deploy({ bundle, app });
  assert(result.ok, JSON.stringify(result));
  return result.version;
}

Deno.test("a deployed app is found with its routes and bundle", async () => {
  const { system, deployments } = setUp();
  const table = await AppTable.open(system);
  const bundle = bundleOf({ routes: { "/login/*": { at: "root" } }, vars: { CURRENCY: "EUR" } });
  const version = await deployed(deployments, bundle);
  await table.refresh();
  const live = table.get("shop");
  assert.equal(live?.current.version, version);
  assert.equal(live.current.tierOf("/login/ann"), "root");
  assert.equal(live.current.tierOf("/orders"), "edge");
  assert.deepEqual(live.current.manifest.vars, { CURRENCY: "EUR" });
  assert.deepEqual(await live.current.bundle(), bundle);
  table.close();
});

Deno.test("a bundle of several chunks comes back whole", async () => {
  const { system, deployments } = setUp();
  const bundle = bundleOf({}, "x".repeat(BUNDLE_CHUNK_BYTES * 40 + 17));
  const version = await deployed(deployments, bundle);
  assert.equal((await system.list(bundleRange(version))).length, 41);
  const table = await AppTable.open(system);
  assert.deepEqual(await table.get("shop")?.current.bundle(), bundle);
  table.close();
});

Deno.test("a bundle of any bytes makes chunks that the store takes for bytes, and comes back whole", async () => {
  const { system, deployments } = setUp();
  const bundle = bundleOf({ name: "odd" }, "\x10".repeat(3 * BUNDLE_CHUNK_BYTES));
  const result = await deployments.deploy({ bundle });
  assert(result.ok);
  const rows = await system.list(bundleRange(result.version));
  assert.deepEqual(rows.map((row) => row.value?.[0]), rows.map(() => VALUE_TAG.bytes));
  const table = await AppTable.open(system);
  assert.deepEqual(await table.get("odd")?.current.bundle(), bundle);
  table.close();
});

Deno.test("a bundle with a damaged chunk is refused, and fetched again when it is asked for again (app_table.ts APT2)", async () => {
  const { system, deployments } = setUp();
  const bundle = bundleOf({}, "whole");
  const version = await deployed(deployments, bundle);
  const [good] = await system.get([chunkKey(version, 0)]);
  await system.write([{ kind: "set", key: chunkKey(version, 0), value: new Uint8Array(bundle.length) }]);
  const table = await AppTable.open(system);
  await assert.rejects(async () => await table.get("shop")?.current.bundle(), /is not whole here/);
  await system.write([{ kind: "set", key: chunkKey(version, 0), value: good?.value ?? new Uint8Array() }]);
  assert.deepEqual(await table.get("shop")?.current.bundle(), bundle);
  table.close();
});

Deno.test("deploying what already serves writes nothing (DE3)", async () => {
  const { system, deployments } = setUp();
  const bundle = bundleOf({});
  await deployed(deployments, bundle);
  const before = new Map(system.rows);
  const again = await deployments.deploy({ bundle, app: "shop" });
  assert(again.ok && !again.changed);
  assert.deepEqual(system.rows, before);
});

Deno.test("a deploy that fails before its app row leaves the old version serving (records.ts REC1)", async () => {
  const { system, deployments } = setUp();
  const version = await deployed(deployments, bundleOf({}));
  const table = await AppTable.open(system);
  system.failAfterWrites = 1; // the chunks go through, version and pointer do not
  await assert.rejects(deployments.deploy({ bundle: bundleOf({}, "next"), app: "shop" }), /the disk is full/);
  await table.refresh();
  assert.equal(table.get("shop")?.current.version, version);
  assert.equal(table.get("shop")?.record.versions.length, 1);
  system.failAfterWrites = Infinity;
  await deployed(deployments, bundleOf({}, "next"));
  table.close();
});

Deno.test("a bad bundle is refused and writes nothing (DE1)", async (t) => {
  const key = (fields: string[], more: object = {}) =>
    bundleOf({ tables: { users: { key: fields, ...more } } });
  const cases = [
    { name: "throws at load", bundle: bytes("oops"), app: "shop", says: /it threw/ },
    { name: "name", bundle: bundleOf({}), app: "Shop", says: /"Shop" can't be an app's name/ },
    { name: "no name", bundle: bundleOf({}), app: undefined, says: /has no name/ },
    {
      name: "bytes",
      bundle: new Uint8Array(DEPLOYED_BYTES_MAX + 1),
      app: "shop",
      says: /at most 10485760 bytes/,
    },
    {
      name: "key",
      bundle: key(["id"]),
      app: "shop",
      says: /users has the key \[name\] and cannot get the key \[id\]/,
    },
    { name: "place", bundle: key(["name"], { at: "root" }), app: "shop", says: /cannot move at the root/ },
  ];
  const { system, deployments } = setUp();
  await deployed(deployments, key(["name"]));
  await deployed(deployments, bundleOf({ tables: {} })); // dropping a table does not free its key
  const before = new Map(system.rows);
  for (const { name, bundle, app, says } of cases) {
    await t.step(name, async () => {
      const result = await deployments.deploy({ bundle, ...app === undefined ? {} : { app } });
      assert(!result.ok);
      assert.match(result.message, says);
      assert.deepEqual(system.rows, before);
    });
  }
});

Deno.test("the app's name is --app's, else the manifest's, else the folder's", async () => {
  const { deployments } = setUp();
  const names = [];
  for (
    const request of [
      { bundle: bundleOf({ name: "named" }), app: "given", fallback: "folder" },
      { bundle: bundleOf({ name: "named" }), fallback: "folder" },
      { bundle: bundleOf({}), fallback: "folder" },
    ]
  ) {
    const result = await deployments.deploy(request);
    assert(result.ok);
    names.push(result.app);
  }
  assert.deepEqual(names, ["given", "named", "folder"]);
});

Deno.test("rollback moves the pointer back, to a prefix, and nowhere unknown", async () => {
  const { system, deployments } = setUp();
  const [first, second, third] = [
    await deployed(deployments, bundleOf({}, "1")),
    await deployed(deployments, bundleOf({}, "2")),
    await deployed(deployments, bundleOf({}, "3")),
  ];
  const table = await AppTable.open(system);
  const current = async () => {
    await table.refresh();
    return table.get("shop")?.current.version;
  };
  await deployments.rollback("shop");
  assert.equal(await current(), second);
  await deployments.rollback("shop");
  assert.equal(await current(), first);
  assert.equal((await deployments.rollback("shop")).ok, false);
  await deployments.rollback("shop", third.slice(0, 10));
  assert.equal(await current(), third);
  assert.equal((await deployments.rollback("shop", "ffff")).ok, false);
  assert.equal((await deployments.rollback("other")).ok, false);
  assert.equal(await current(), third);
  assert.equal((await table.version("shop", first))?.version, first);
  assert.equal(await table.version("shop", "0".repeat(64)), undefined);
  table.close();
});

Deno.test("versions beyond the limit are removed with their bundles, unless another app has them (bundle_rows.ts BUR1)", async () => {
  const { system, deployments } = setUp();
  const shared = await deployed(deployments, bundleOf({}, "0"));
  await deployed(deployments, bundleOf({}, "0"), "other");
  const old = await deployed(deployments, bundleOf({}, "1"));
  for (let i = 2; i <= APP_VERSIONS_MAX + 1; i++) await deployed(deployments, bundleOf({}, `${i}`));
  const table = await AppTable.open(system);
  assert.equal(await table.version("shop", old), undefined);
  table.close();
  assert(system.rows.has(versionKey(old)), "a site that is behind may still run it");
  await deployments.settle("shop");
  assert.equal(system.rows.has(versionKey(old)), false);
  assert.equal(system.rows.has(chunkKey(old, 0)), false);
  assert.equal(system.rows.has(chunkKey(shared, 0)), true);
});

Deno.test("deploys at the same time take turns (DE2)", async () => {
  const { system, deployments } = setUp();
  const versions = await Promise.all(
    ["a", "b", "c"].map((body) => deployed(deployments, bundleOf({}, body))),
  );
  const table = await AppTable.open(system);
  assert.deepEqual(table.get("shop")?.record.versions.map((entry) => entry.version), versions);
  table.close();
});

Deno.test("a row that is no app record is noted and hurts no other app", async () => {
  const { system, deployments } = setUp();
  await deployed(deployments, bundleOf({}));
  const { appKey } = await import("../../../runtime/deploy/records.ts");
  await system.write([{ kind: "set", key: appKey("broken"), value: bytes("?") }]);
  const notes: string[] = [];
  const table = await AppTable.open(system, (event) => notes.push(event));
  assert.deepEqual(notes, ["app_row_invalid"]);
  assert.deepEqual(table.list().map((app) => app.name), ["shop"]);
  table.close();
});

Deno.test("what a deploy left that did not come to its end is removed by the next change (bundle_rows.ts BUR2)", async () => {
  const { system, deployments } = setUp();
  await deployed(deployments, bundleOf({}));
  const rows = [...system.rows.keys()];
  await system.write([{ kind: "set", key: chunkKey("a".repeat(64), 0), value: bytes("half") }]);
  assert.deepEqual(await deployments.tidy(), ["a".repeat(64)]);
  assert.deepEqual([...system.rows.keys()], rows);
});

Deno.test("a deploy whose caller has gone changes nothing and leaves nothing (DE4)", async () => {
  const { system, deployments } = setUp();
  await deployed(deployments, bundleOf({}));
  const rows = new Map(system.rows);
  const gone = new AbortController();
  const deploying = deployments.deploy({
    bundle: bundleOf({}, "next"),
    app: "shop",
    signal: gone.signal,
    begun: () => gone.abort(), // while its chunks are written
  });
  const result = await deploying;
  assert(!result.ok);
  assert.equal(result.code, "interrupted");
  assert.deepEqual(system.rows, rows);
});
