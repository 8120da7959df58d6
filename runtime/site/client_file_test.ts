import { strict as assert } from "node:assert";
import { Problem } from "../../functions/vocabulary/problem.ts";
import { ClientFile } from "./client_file.ts";

/** What a page waits for: more is a second round trip's worth of packets on a slow network. */
const BYTES_MAX = 56 * 1024;
const GZIPPED_BYTES_MAX = 20 * 1024;

Deno.test("the client library is served as one small module, made once, and kept by its ETag", async () => {
  const file = new ClientFile();
  const ask = (headers: HeadersInit = {}, method = "GET") =>
    file.answer(new Request("http://h/_sojourn/client.js", { method, headers }));
  const [first, again] = await Promise.all([ask(), ask()]);
  assert.match(first.headers.get("content-type") ?? "", /^text\/javascript/);
  const code = await first.text();
  assert.equal(await again.text(), code);
  assert(code.length < BYTES_MAX, `${code.length} bytes`);
  assert(!/\bfrom\s*["'](?!data:)/.test(code.slice(0, 200)), "it imports nothing");
  const loaded = await import(`data:text/javascript;base64,${btoa(unescape(encodeURIComponent(code)))}`);
  assert.equal(typeof loaded.connect, "function");
  await assert.rejects(
    loaded.connect({ sites: "nowhere" }),
    (error) => (error as Error).name === "ClientError",
  );

  const zipped = await ask({ "accept-encoding": "br, gzip;q=0.8" });
  assert.equal(zipped.headers.get("content-encoding"), "gzip");
  const bytes = await zipped.bytes();
  assert(bytes.length < GZIPPED_BYTES_MAX, `${bytes.length} bytes`);
  assert.equal(
    await new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).text(),
    code,
  );
  assert.equal((await ask({ "accept-encoding": "gzip;q=0" })).headers.get("content-encoding"), null);

  for (const answer of [first, zipped]) {
    const etag = answer.headers.get("etag") ?? "";
    const encoding = answer.headers.get("content-encoding") ?? "identity";
    const kept = await ask({ "if-none-match": etag, "accept-encoding": encoding });
    assert.deepEqual([kept.status, await kept.text()], [304, ""]);
  }
  assert.equal(await (await ask({}, "HEAD")).text(), "");
  await assert.rejects(
    ask({}, "POST"),
    (error) => error instanceof Problem && error.code === "method_not_allowed",
  );
});
