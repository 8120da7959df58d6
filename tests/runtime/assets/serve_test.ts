import assert from "node:assert/strict";
import fc from "fast-check";
import type { Asset } from "../../../runtime/assets/asset_index.ts";
import { readRange } from "../../../runtime/assets/conditions.ts";
import { assetPath, entityTag, serveAsset } from "../../../runtime/assets/serve.ts";

const content = (mark: string, bytes: number) => ({ sha256: mark.repeat(64), bytes });
const page: Asset = { ...content("a", 100), br: content("b", 40), gzip: content("c", 50) };
const files = new Map<string, Asset>([
  ["/index.html", page],
  ["/docs/index.html", content("d", 10)],
  ["/docs/a b.txt", content("e", 10)],
  ["/ü.txt", content("f", 10)],
  ["/app.0123456789abcdef.js", content("0", 10)],
  ["/photo-20240101.jpg", content("1", 10)],
  ["/%2e", content("2", 10)],
  ["/empty", content("3", 0)],
]);

/** Asks as `METHOD target`, and answers with status, the blob that was read, and the headers. */
async function ask(
  target: string,
  headers: Record<string, string> = {},
  more: { method?: string; prefix?: string; bare?: boolean } = {},
) {
  const read: string[] = [];
  const answer = await serveAsset(files, {
    method: "GET",
    target,
    prefix: "/book",
    bare: false,
    ...more,
    header: (name) => headers[name] ?? null,
  }, {
    body: (content, part) => {
      read.push(content.sha256.charAt(0) + (part === undefined ? "" : `[${part.from}-${part.to}]`));
      return Promise.resolve("x");
    },
  });
  await answer?.body?.cancel();
  return {
    status: answer?.status ?? null,
    read: read.join(),
    get: (name: string) => answer?.headers.get(name) ?? null,
  };
}

Deno.test("a path is the file's, its folder's page, a redirect, or the app's", async () => {
  const rows: [string, number | null, string, string | null][] = [
    ["/", 200, "a", null],
    ["/index.html", 200, "a", null],
    ["/docs/", 200, "d", null],
    ["/docs", 307, "", "/book/docs/"],
    ["/docs?x=//evil.example", 307, "", "/book/docs/?x=//evil.example"],
    ["/docs/a%20b.txt?v=1", 200, "e", null],
    ["/%C3%BC.txt", 200, "f", null],
    ["/u%CC%88.txt", 200, "f", null], // the same letter, composed otherwise
    ["/%252e", 200, "2", null],
    ["/empty", 200, "3", null],
    ["/DOCS/", null, "", null],
    ["/none", null, "", null],
    ["/docs/a%20b.txt/", null, "", null],
    ["//docs", null, "", null],
    ["/docs//a%20b.txt", null, "", null],
    ["/docs%2Fa%20b.txt", null, "", null],
    ["/docs%5Ca%20b.txt", null, "", null],
    ["/docs/../index.html", null, "", null],
    ["/%2e%2e/index.html", null, "", null],
    ["/docs/%2E./index.html", null, "", null],
    ["/index.html%00.txt", null, "", null],
    ["/%", null, "", null],
    ["/%ff", null, "", null],
    ["*", null, "", null],
  ];
  for (const [target, status, read, location] of rows) {
    const answer = await ask(target);
    assert.deepEqual([answer.status, answer.read, answer.get("location")], [status, read, location], target);
  }
  assert.deepEqual((await ask("/", {}, { bare: true })).get("location"), "/book/");
  assert.deepEqual((await ask("/docs", {}, { prefix: "" })).get("location"), "/docs/");
  for (const method of ["POST", "OPTIONS", "DELETE"]) {
    assert.equal((await ask("/", {}, { method })).status, null);
  }
});

Deno.test("encodings, ranges and conditions are those of RFC 9110 (serve.ts S3)", async () => {
  const tag = entityTag(page), brTag = entityTag(page, "br");
  const rows: [Record<string, string>, number, string][] = [
    [{}, 200, "a"],
    [{ "accept-encoding": "gzip, deflate, br, zstd" }, 200, "b"],
    [{ "accept-encoding": "gzip" }, 200, "c"],
    [{ "accept-encoding": "br;q=0.1, gzip;q=0.9" }, 200, "c"],
    [{ "accept-encoding": "br;q=0, *" }, 200, "c"],
    [{ "accept-encoding": "br;q=nonsense" }, 200, "a"],
    [{ "accept-encoding": "identity, br;q=0.5" }, 200, "a"],
    [{ "if-none-match": tag }, 304, ""],
    [{ "if-none-match": `"x", W/${tag}` }, 304, ""],
    [{ "if-none-match": "*" }, 304, ""],
    [{ "if-none-match": tag, "accept-encoding": "br" }, 200, "b"],
    [{ "if-none-match": brTag, "accept-encoding": "br" }, 304, ""],
    [{ range: "bytes=0-9", "accept-encoding": "br" }, 206, "a[0-9]"],
    [{ range: "bytes=-5" }, 206, "a[95-99]"],
    [{ range: "bytes=90-" }, 206, "a[90-99]"],
    [{ range: "bytes=0-0,5-9" }, 200, "a"],
    [{ range: "lines=1-2" }, 200, "a"],
    [{ range: "bytes=100-" }, 416, ""],
    [{ range: "bytes=-0" }, 416, ""],
    [{ range: "bytes=0-9", "if-range": tag }, 206, "a[0-9]"],
    [{ range: "bytes=0-9", "if-range": brTag, "accept-encoding": "br" }, 200, "b"],
    [{ range: "bytes=0-9", "if-range": "Sat, 21 Nov 2026 00:00:00 GMT" }, 200, "a"],
    [{ range: "bytes=0-9", "if-none-match": tag }, 304, ""],
  ];
  for (const [headers, status, read] of rows) {
    const answer = await ask("/", headers);
    assert.deepEqual([answer.status, answer.read], [status, read], JSON.stringify(headers));
    assert.equal(answer.get("vary"), "accept-encoding");
    assert.equal(answer.get("set-cookie") ?? answer.get("sojourn-session"), null);
  }
  const part = await ask("/", { range: "bytes=10-999" });
  assert.deepEqual([part.get("content-range"), part.get("content-length")], ["bytes 10-99/100", "90"]);
  assert.equal((await ask("/", { range: "bytes=100-" })).get("content-range"), "bytes */100");
  assert.equal((await ask("/empty", { range: "bytes=0-" })).status, 416);
  const head = await ask("/", { "accept-encoding": "br", range: "bytes=0-1" }, { method: "HEAD" });
  assert.deepEqual([head.status, head.read, head.get("content-length"), head.get("content-encoding")], [
    200,
    "",
    "40",
    "br",
  ]);
});

Deno.test("types come from the name, no other is guessed, and only hashed names are immutable", async () => {
  const html = await ask("/");
  assert.deepEqual([html.get("content-type"), html.get("x-content-type-options")], [
    "text/html; charset=utf-8",
    "nosniff",
  ]);
  assert.match(html.get("cache-control") ?? "", /must-revalidate/);
  assert.match((await ask("/app.0123456789abcdef.js")).get("cache-control") ?? "", /immutable/);
  assert.match((await ask("/photo-20240101.jpg")).get("cache-control") ?? "", /must-revalidate/);
  assert.equal((await ask("/empty")).get("content-type"), "application/octet-stream");
});

const piece = fc.constantFrom(
  "..",
  ".",
  "%2e",
  "%2E%2e",
  "%252e",
  "/",
  "%2f",
  "%5c",
  "\\",
  "%00",
  "\0",
  "docs",
  "index.html",
  "a%20b.txt",
  "%",
  "%c0%ae",
  "ü",
  "//",
  "a b.txt",
  "INDEX.HTML",
  ":",
  "?",
  "#",
  "%u002e",
);

// S1
Deno.test("no path reaches anything but a file of the index, and no redirect another host (serve.ts S2)", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(piece, { maxLength: 8 }), async (pieces) => {
      const target = "/" + pieces.join("");
      const { status, get } = await ask(target, {}, { prefix: "" });
      const raw = target.split("?")[0] ?? "";
      const path = assetPath(raw);
      if (path !== null) assert.ok(!/(^|\/)\.\.?(\/|$)|[\\\0]/.test(path), path);
      if (status === 200) assert.ok(files.has(path ?? "") || files.has(`${path}index.html`));
      const location = get("location");
      if (location !== null) {
        assert.equal(new URL(location, "http://here.example/").origin, "http://here.example");
      }
    }),
    { numRuns: 5_000 },
  );
});

Deno.test("a range lies within its file, whatever is asked for", () => {
  fc.assert(fc.property(fc.string(), fc.nat(), fc.nat(), fc.nat(1000), (noise, a, b, bytes) => {
    for (const header of [noise, `bytes=${noise}`, `bytes=${a}-${b}`, `bytes=-${a}`, `bytes=${a}-`]) {
      const range = readRange(header, null, { etag: '"x"', bytes });
      if (range.kind === "part") {
        assert.ok(0 <= range.from && range.from <= range.to && range.to < bytes, header);
      }
    }
  }));
});
