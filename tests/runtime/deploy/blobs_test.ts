import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { encodeAssetIndex } from "../../../runtime/assets/asset_index.ts";
import { AppStacks } from "../../../runtime/deploy/app_stacks.ts";
import { Blobs } from "../../../runtime/deploy/blobs.ts";
import { AppTable, Deployments } from "../../../runtime/deploy/mod.ts";
import { packKey } from "../../../store/model/key.ts";
import { prefixRange } from "../../../store/model/range.ts";
import { asSystem, MemorySystem } from "./memory_system.ts";

const sha256 = (bytes: Uint8Array) => createHash("sha256").update(bytes).digest("hex");
const bytesOf = (text: string) => new TextEncoder().encode(text);

async function* pieces(bytes: Uint8Array, size = 10_007): AsyncIterable<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) yield await Promise.resolve(bytes.subarray(at, at + size));
}

function setUp() {
  const system = new MemorySystem();
  const clock = { nowMs: 1_000_000 };
  const blobs = new Blobs(asSystem(system), () => clock.nowMs);
  const put = async (bytes: Uint8Array) => {
    assert.deepEqual(await blobs.put(sha256(bytes), pieces(bytes), 1e7), { ok: true });
    return { sha256: sha256(bytes), bytes: bytes.length };
  };
  const parts = async () => (await system.list(prefixRange(packKey(["b", "part"])))).length;
  return { system, clock, blobs, put, parts };
}

const random = (length: number) => {
  const bytes = new Uint8Array(length);
  for (let at = 0; at < length; at += 65_536) crypto.getRandomValues(bytes.subarray(at, at + 65_536));
  return bytes;
};

Deno.test("a blob is read as it was put: whole, streamed, and in parts", async () => {
  const { blobs, put } = setUp();
  for (const length of [0, 1, 61_440, 61_441, 1_048_577, 2_500_000]) {
    const bytes = random(length);
    const ref = await put(bytes);
    const read = async (part?: { from: number; to: number }) =>
      new Uint8Array(await new Response(await blobs.reader.body(ref, part)).arrayBuffer());
    assert.deepEqual(await read(), bytes, `${length}`);
    if (length === 0) continue;
    for (
      const [from, to] of [[0, 0], [length - 1, length - 1], [length >> 1, length - 1], [
        0,
        length - 1,
      ]] as const
    ) {
      assert.deepEqual(await read({ from, to }), bytes.slice(from, to + 1), `${length}: ${from}-${to}`);
    }
  }
});

Deno.test("bytes that are not the blob's are neither kept nor given (BLB1, BLB3)", async () => {
  const { system, blobs, put } = setUp();
  const good = random(200_000), bad = random(200_000);
  const refused = await blobs.put(sha256(good), pieces(bad), 1e7);
  assert.equal(refused.ok, false);
  assert.deepEqual(await blobs.missing([sha256(good)]), [sha256(good)]);
  assert.equal((await blobs.put(sha256(good), pieces(good), 100_000)).ok, false, "too large");
  const ref = await put(good);
  assert.deepEqual(
    await blobs.put(sha256(good), pieces(bad), 1e7),
    { ok: true },
    "it is here: not looked at",
  );
  assert.deepEqual(await blobs.reader.whole(ref), good);

  const large = await put(random(1_500_000));
  const key = packKey(["b", "part", large.sha256, 3]);
  const row = system.rows.get(key);
  assert.ok(row?.value);
  const spoilt = row.value.slice();
  spoilt[7] = (spoilt[7] ?? 0) ^ 1;
  system.rows.set(key, { ...row, value: spoilt });
  await assert.rejects(new Response(await blobs.reader.body(large)).arrayBuffer(), /is not whole here/);
  system.rows.delete(key);
  await assert.rejects(
    async () => await new Response(await blobs.reader.body(large)).arrayBuffer(),
    /is not whole here/,
  );
  await assert.rejects(blobs.reader.whole({ sha256: "0".repeat(64), bytes: 5 }), /is not whole here/);
});

Deno.test("sweeping takes what nobody refers to and nobody announced lately, half uploads too (BLB2)", async () => {
  const { clock, blobs, put, parts, system } = setUp();
  const kept = await put(random(100_000)),
    lost = await put(random(100_000)),
    again = await put(random(100_000));
  system.failAfterWrites = 1;
  await assert.rejects(put(random(100_000)), /disk is full/);
  system.failAfterWrites = Infinity;
  assert.equal(await blobs.sweep(new Set([kept.sha256])), 0, "all were announced just now");
  clock.nowMs += 11 * 60_000;
  assert.deepEqual(await blobs.missing([again.sha256]), []);
  assert.equal(await blobs.sweep(new Set([kept.sha256])), 2);
  assert.deepEqual(await blobs.missing([kept.sha256, lost.sha256, again.sha256]), [lost.sha256]);
  assert.equal(await parts(), 4);
});

/** A root whose bundles are manifests. */
function root() {
  const { system, clock, put, blobs } = setUp();
  let evaluated = 0;
  const deployments = new Deployments({
    system: asSystem(system),
    nowMs: () => clock.nowMs,
    evaluate: (bundle) => {
      evaluated++;
      return Promise.resolve({ ok: true, manifest: JSON.parse(new TextDecoder().decode(bundle)) });
    },
  });
  const bundle = bytesOf(JSON.stringify({ assets: "./public" }));
  return { system, clock, put, blobs, deployments, bundle, evaluations: () => evaluated };
}

Deno.test("a version with assets is written when all its files are here, and its name covers them (VF1)", async () => {
  const { system, put, deployments, bundle, evaluations } = root();
  const needed = await deployments.deploy({ bundle, app: "shop" });
  assert.ok(!needed.ok);
  assert.deepEqual([needed.code, needed.place], ["assets_needed", "./public"]);
  const page = bytesOf("<p>1</p>");
  const index = encodeAssetIndex(new Map([["/index.html", { sha256: sha256(page), bytes: page.length }]]));
  const files = { sha256: sha256(index), bytes: index.length };
  const refusal = async () => {
    const result = await deployments.deploy({ bundle, app: "shop", files });
    return result.ok ? "" : result.code;
  };
  assert.equal(await refusal(), "blobs_missing", "the index");
  await put(index);
  assert.equal(await refusal(), "blobs_missing", "the page");
  await put(page);
  const lying = await deployments.deploy({ bundle, app: "shop", files: { ...files, bytes: 2 ** 40 } });
  assert.ok(!lying.ok && lying.code === "blobs_missing", "of another size");
  const first = await deployments.deploy({ bundle, app: "shop", files });
  assert.ok(first.ok);
  assert.equal(evaluations(), 1, "one bundle is evaluated once");

  const noIndex = await put(bytesOf('{"files":{"/../x":{"sha256":"00","bytes":1}}}'));
  const refused = await deployments.deploy({ bundle, app: "shop", files: noIndex });
  assert.ok(!refused.ok && refused.code === "deploy_invalid", "no index");

  const apps = await AppTable.open(asSystem(system));
  const served = await apps.get("shop")?.current.files?.();
  assert.equal(served?.get("/index.html")?.bytes, page.length);
  const other = encodeAssetIndex(new Map([["/page.html", { sha256: sha256(page), bytes: page.length }]]));
  const second = await deployments.deploy({ bundle, app: "shop", files: await put(other) });
  assert.ok(second.ok && second.version !== first.version);
  apps.close();
});

Deno.test("files go with the last version that has them", async () => {
  const { system, clock, put, blobs, deployments, bundle } = root();
  const shared = await put(bytesOf("shared")), own: { sha256: string; bytes: number }[] = [];
  for (let i = 0; i < 52; i++) {
    own.push(await put(bytesOf(`own ${i}`)));
    const index = encodeAssetIndex(new Map([["/shared", shared], ["/own", own[i] ?? shared]]));
    clock.nowMs += 60_000;
    const files = await put(index), sourceMap = own[i] ?? shared;
    assert.ok((await deployments.deploy({ bundle, app: "shop", files, sourceMap })).ok);
  }
  clock.nowMs += 11 * 60_000;
  assert.ok((await deployments.deploy({ bundle: bytesOf("{}"), app: "shop" })).ok);
  await deployments.settle("shop");
  const digests = own.map((file) => file.sha256);
  const gone = await blobs.missing(digests);
  assert.deepEqual(gone, digests.slice(0, 3), "50 versions are kept");
  assert.deepEqual(await blobs.missing([shared.sha256]), []);
  const maps = await system.list(prefixRange(packKey(["b", "map"])));
  assert.equal(maps.length, 49, "each goes with its version; the last one came without");
});

Deno.test("lines leave in order with their places told; a bad map leaves them as they are (APS1, APS2)", async () => {
  const { system, put, deployments, blobs } = root();
  const map = {
    version: 3,
    sources: ["app.ts"],
    names: [],
    // Line 2, column 1 of the bundle is line 5, column 3 of app.ts.
    mappings: ";AAIE",
  };
  const zipped = new Uint8Array(
    await new Response(new Blob([JSON.stringify(map)]).stream().pipeThrough(new CompressionStream("gzip")))
      .arrayBuffer(),
  );
  const deploy = async (name: string, bytes: Uint8Array) => {
    const sourceMap = await put(bytes);
    const result = await deployments.deploy({
      bundle: bytesOf(JSON.stringify({ name })),
      app: name,
      sourceMap,
    });
    assert.ok(result.ok);
    return result.version;
  };
  const notes: string[] = [];
  const stacks = new AppStacks(asSystem(system), blobs.reader, (event) => void notes.push(event));
  const version = await deploy("good", zipped);
  const lines: string[] = [];
  const say = (text: string) => stacks.line({ version, text }, (line) => void lines.push(line.text));
  say("first");
  say("Error: x\n    at f (bundle:2:1)\n  [cause]: at bundle:2:1, bundle:99:1");
  say("second");
  while (lines.length < 3) await new Promise((resolve) => setTimeout(resolve, 1));
  assert.deepEqual(lines, [
    "first",
    "Error: x\n    at f (app.ts:5:3)\n  [cause]: at app.ts:5:3, bundle:99:1",
    "second",
  ]);
  for (const bad of ["not gzip", ""]) {
    const name = `bad${bad.length}`;
    const other = await deploy(name, bytesOf(bad));
    assert.equal(await stacks.mapped(other, "at bundle:2:1"), "at bundle:2:1");
  }
  assert.equal(await stacks.mapped("0".repeat(64), "at bundle:2:1"), "at bundle:2:1");
  assert.deepEqual(notes, ["source_map_unread", "source_map_unread"]);
  // The code is the same, the map is not: the newer one counts.
  map.mappings = ";AAKE";
  const moved = new Uint8Array(
    await new Response(new Blob([JSON.stringify(map)]).stream().pipeThrough(new CompressionStream("gzip")))
      .arrayBuffer(),
  );
  assert.equal(await deploy("good", moved), version);
  assert.equal(await stacks.mapped(version, "at bundle:2:1"), "at app.ts:6:3");
});

Deno.test("lines whose map does not come leave as they are, in order, and nothing holds them (APS1, APS3)", async () => {
  const asked = Promise.withResolvers<never>();
  let asks = 0;
  const { system, blobs } = setUp();
  const away = {
    ...asSystem(system),
    get: () => {
      asks++;
      return asked.promise;
    },
  };
  const stacks = new AppStacks(away, blobs.reader, () => {});
  const version = "0".repeat(64);
  const passed: string[] = [];
  const say = (text: string) => stacks.line({ version, text }, (line) => void passed.push(line.text));
  for (let i = 0; i < 2_500; i++) say(i % 2 === 0 ? `${i} at bundle:2:1` : `${i}`);
  assert.equal(passed.length, 2_002, "at most 1,000 wait");
  assert.deepEqual(passed.map((text) => parseInt(text)), passed.map((_, i) => i));
  const long = "x".repeat(16 * 1024) + " at bundle:2:1";
  for (let i = 0; i < 640; i++) say(long);
  assert.ok(2_500 + 640 - passed.length <= 64, "at most 1 MiB waits");
  assert.equal(asks, 1, "one wait serves them all");
  say("the last that waits");
  assert.notEqual(passed.at(-1), "the last that waits");
  asked.reject(new Error("the store is away"));
  while (passed.length < 2_500 + 640 + 1) await new Promise((resolve) => setTimeout(resolve, 1));
  say("at once");
  assert.equal(passed.at(-1), "at once");
});
