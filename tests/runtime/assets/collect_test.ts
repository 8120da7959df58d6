import assert from "node:assert/strict";
import { join } from "node:path";
import { brotliDecompressSync, gunzipSync } from "node:zlib";
import {
  ASSET_BYTES_MAX,
  ASSETS_MAX,
  decodeAssetIndex,
  encodeAssetIndex,
} from "../../../runtime/assets/asset_index.ts";
import { AssetsRefused, collectAssets } from "../../../runtime/assets/mod.ts";

/** An app's folder with files; goes when the test ends. */
async function folder(files: Record<string, string | Uint8Array>) {
  const path = await Deno.makeTempDir({ prefix: "sojourn-assets-" });
  for (const [name, text] of Object.entries(files)) {
    await Deno.mkdir(join(path, name, ".."), { recursive: true });
    await Deno.writeFile(join(path, name), typeof text === "string" ? new TextEncoder().encode(text) : text);
  }
  return { path, [Symbol.asyncDispose]: () => Deno.remove(path, { recursive: true }) };
}

const refuses = (app: { path: string }, assets: string, says: RegExp) =>
  assert.rejects(
    collectAssets(app.path, assets),
    (error) => error instanceof AssetsRefused && says.test(error.message),
    `${assets} ${says}`,
  );

Deno.test("a folder becomes an index: dotfiles left out, text compressed, equal files once (C2, asset_index.ts X2)", async () => {
  const css = "body { color: red }\n".repeat(500);
  const noise = crypto.getRandomValues(new Uint8Array(2000));
  await using app = await folder({
    "public/index.html": "<p>hi</p>",
    "public/css/a.css": css,
    "public/css/b.css": css,
    "public/noise.txt": noise,
    "public/.env": "SECRET",
    "public/.git/config": "x",
    "public/.well-known/security.txt": "mail me",
    "app.ts": "not an asset",
  });
  const { index, blobs, indexDigest } = await collectAssets(app.path, "./public");
  const files = decodeAssetIndex(index);
  assert.deepEqual([...files.keys()], [
    "/.well-known/security.txt",
    "/css/a.css",
    "/css/b.css",
    "/index.html",
    "/noise.txt",
  ]);
  const a = files.get("/css/a.css");
  assert.deepEqual(a, files.get("/css/b.css"));
  const bytesOf = async (digest = "") => await blobs.get(digest)?.bytesOf() ?? new Uint8Array();
  const text = new TextDecoder();
  assert.equal(text.decode(await bytesOf(a?.sha256)), css);
  assert.equal(text.decode(brotliDecompressSync(await bytesOf(a?.br?.sha256))), css);
  assert.equal(text.decode(gunzipSync(await bytesOf(a?.gzip?.sha256))), css);
  assert.deepEqual(Object.keys(files.get("/noise.txt") ?? {}), ["sha256", "bytes"], "nothing is saved there");
  assert.equal((await collectAssets(app.path, "public")).indexDigest, indexDigest);
});

Deno.test("nothing outside of the folder is collected (C1)", async () => {
  await using app = await folder({ "public/index.html": "x", "secret.txt": "s", "other/x.txt": "x" });
  const link = (to: string, name: string) => Deno.symlink(to, join(app.path, "public", name));
  await refuses(app, "/etc", /expected a folder relative to the module/);
  await refuses(app, "..", /expected a folder below the module's/);
  await refuses(app, ".", /expected a folder below the module's/);
  await refuses(app, ".", /expected a folder below the module's/);
  await refuses(app, "./gone", /gone is no folder/);
  await refuses(app, "./secret.txt", /is no folder/);
  await Deno.symlink("/etc", join(app.path, "etc"));
  await refuses(app, "./etc", /which is \/etc; expected a folder below/);
  for (
    const [to, says] of [
      ["../secret.txt", /outside of/],
      ["/etc/passwd", /outside of/],
      ["../other", /outside of/],
      ["nowhere", /leads nowhere/],
      [".", /contains it/],
    ] as const
  ) {
    await link(to, "link");
    await refuses(app, "./public", says);
    await Deno.remove(join(app.path, "public", "link"));
  }
  await link("index.html", "copy.html");
  const { index } = await collectAssets(app.path, "./public");
  assert.deepEqual([...decodeAssetIndex(index).keys()], ["/copy.html", "/index.html"]);
});

Deno.test("what is too large, or changes meanwhile, is refused by name (C3)", async () => {
  await using app = await folder({ "public/a.txt": "a" });
  const { blobs } = await collectAssets(app.path, "public");
  await Deno.writeTextFile(join(app.path, "public", "a.txt"), "b");
  const [blob] = blobs.values();
  await assert.rejects(blob?.bytesOf() ?? Promise.resolve(), /a\.txt was changed while it was deployed/);
  const large = join(app.path, "public", "large.bin");
  await Deno.writeTextFile(large, "");
  await Deno.truncate(large, ASSET_BYTES_MAX + 1);
  await refuses(app, "public", /large\.bin has 26214401 bytes; an asset has at most 26214400/);
});

Deno.test("an index from outside is checked: paths, digests, count (asset_index.ts X1)", () => {
  const file = { sha256: "a".repeat(64), bytes: 1 };
  const of = (files: unknown) => decodeAssetIndex(new TextEncoder().encode(JSON.stringify({ files })));
  assert.equal(of({ "/a": file }).size, 1);
  for (const path of ["a", "/", "/a/", "/../a", "/a/./b", "//a", "/a\\b", "/a\0", "/" + "x".repeat(600)]) {
    assert.throws(() => of({ [path]: file }), path);
  }
  assert.throws(() => of({ "/a": { ...file, sha256: "../../etc" } }));
  assert.throws(() => of({ "/a": { ...file, bytes: ASSET_BYTES_MAX + 1 } }));
  const many = new Map(Array.from({ length: ASSETS_MAX + 1 }, (_, i) => [`/${i}`, file]));
  assert.throws(() => decodeAssetIndex(encodeAssetIndex(many)), /at most 5000 files/);
});
