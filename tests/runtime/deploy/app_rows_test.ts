/** Rows of apps and their versions: what is written under which check, and what a site shows of them. */
import { strict as assert } from "node:assert";
import { AppRows } from "../../../runtime/deploy/app_rows.ts";
import { AppTable } from "../../../runtime/deploy/app_table.ts";
import {
  appKey,
  type AppRecord,
  bundleDigest,
  storedManifest,
  versionKey,
  versionOf,
} from "../../../runtime/deploy/records.ts";
import { encodeSystem } from "../../../store/model/system_value.ts";
import type { SystemStore } from "../../../runtime/deploy/system_store.ts";
import { MemorySystem } from "./memory_system.ts";

const [ONE, TWO] = ["1".repeat(64), "2".repeat(64)] as [string, string];
const recordOf = (current: string): AppRecord => ({
  ...{ name: "shop", current },
  versions: [{ version: current, createdMs: 1 }],
});

Deno.test("an app's row is written over the one that it was computed from, and over no other (APR1)", async () => {
  const system = new MemorySystem(), rows = new AppRows(system as unknown as SystemStore);
  const before = await rows.find("shop");
  assert.ok((await rows.write(before, recordOf(ONE), ONE)).ok);
  const late = await rows.write(before, recordOf(TWO), TWO);
  assert.deepEqual(
    [late.ok, !late.ok && late.code],
    [false, "check_failed"],
    "another root process was first",
  );
  assert.equal((await rows.find("shop")).record?.current, ONE);
  assert.ok((await rows.write(await rows.find("shop"), recordOf(TWO), TWO)).ok);
});

Deno.test("a change of an app is answered when it is on the disk (APR2)", async () => {
  const system = new MemorySystem(), disk = Promise.withResolvers<void>();
  const rows = new AppRows(Object.assign(system, { durable: () => disk.promise }) as unknown as SystemStore);
  let isAnswered = false;
  const written = rows.write(await rows.find("shop"), recordOf(ONE), ONE).then((change) => {
    isAnswered = true;
    return change;
  });
  await new Promise((resolve) => setTimeout(resolve, 0));
  assert.deepEqual([system.rows.has(appKey("shop")), isAnswered], [true, false]);
  disk.resolve();
  assert.ok((await written).ok);
});

Deno.test("an app stays as it was shown until the record of its new version is there (APT1)", async () => {
  const system = new MemorySystem();
  const put = (key: Parameters<MemorySystem["get"]>[0][number], value: unknown) =>
    system.write([{ kind: "set", key, value: encodeSystem(value) }]);
  const version = (name: string) => ({
    ...{ version: name, manifest: storedManifest({}), bundleSha256: name, bundleBytes: 1, bundleChunks: 1 },
    createdMs: 1,
  });
  await put(versionKey(ONE), version(ONE));
  await put(appKey("shop"), recordOf(ONE));
  const notes: string[] = [];
  const table = await AppTable.open(system as unknown as SystemStore, (event) => notes.push(event));
  const shown = () => table.get("shop")?.current.version;
  assert.equal(shown(), ONE);
  await put(appKey("shop"), recordOf(TWO));
  await table.refresh();
  assert.deepEqual([shown(), notes.at(-1)], [ONE, "version_missing"]);
  await put(versionKey(TWO), version(TWO));
  await table.refresh();
  assert.equal(shown(), TWO);
  table.close();
});

Deno.test("a version is named by all of its manifest and its bundle, however the manifest is ordered (REC2)", () => {
  const bundle = new TextEncoder().encode("code");
  const name = versionOf({ name: "shop", routes: { "/a": { at: "root" }, "/b": { at: "edge" } } }, bundle);
  assert.match(name, /^[0-9a-f]{64}$/);
  assert.equal(
    versionOf({ routes: { "/b": { at: "edge" }, "/a": { at: "root" } }, name: "shop" }, bundle),
    name,
  );
  for (
    const [manifest, code] of [
      [{ name: "shop", routes: { "/a": { at: "root" }, "/b": { at: "core" } } }, "code"],
      [{ name: "shop", routes: {} }, "code"],
      [{ name: "shop", routes: { "/a": { at: "root" }, "/b": { at: "edge" } } }, "code "],
    ] as const
  ) assert.notEqual(versionOf(manifest, new TextEncoder().encode(code)), name);
  assert.notEqual(bundleDigest(bundle), name);
});
