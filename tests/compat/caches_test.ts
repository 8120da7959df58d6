/** `caches`, as Workers have it, in the memory of an isolate. */
import assert from "node:assert/strict";
import { runApp, runBundle } from "./apps.ts";

Deno.test("caches.default keeps responses in the isolate, within its rules (runtime/isolate/inside/caches.ts C1)", async () => {
  await using app = await runApp(`
    const say = async (response: Response | undefined) => response && [response.status, await response.text(), response.headers.get("x-a")];
    const put = async (url: string, response: Response, init?: RequestInit) => {
      await caches.default.put(new Request(url, init), response);
      return await say(await caches.default.match(new Request(url, init)));
    };
    const failure = (work: Promise<unknown>) => work.then(() => "kept", (error) => String(error));
    export default {
      async fetch() {
        const cache = caches.default;
        const other = await caches.open("other");
        const kept = await put("http://c/kept", new Response("body", { status: 203, headers: { "x-a": "1" } }));
        const vary = new Response("en", { headers: { vary: "accept-language" } });
        const filled = await Promise.all(Array.from({ length: 12 }, (_, i) =>
          other.put("http://c/" + i, new Response(new Uint8Array(1_000_000)))));
        return Response.json({
          kept,
          again: await say(await cache.match("http://c/kept#fragment")),
          elsewhere: await say(await other.match("http://c/kept")),
          missing: await say(await cache.match("http://c/none")),
          deleted: [await cache.delete("http://c/kept"), await cache.delete("http://c/kept"), await say(await cache.match("http://c/kept"))],
          noStore: await put("http://c/a", new Response("x", { headers: { "cache-control": "no-store" } })),
          expired: await put("http://c/b", new Response("x", { headers: { "cache-control": "max-age=0" } })),
          fresh: await put("http://c/c", new Response("x", { headers: { "cache-control": "public, s-maxage=9, max-age=0" } })),
          cookie: await put("http://c/d", new Response("x", { headers: { "set-cookie": "a=1" } })),
          varies: [
            await put("http://c/e", vary, { headers: { "accept-language": "en" } }),
            await say(await cache.match(new Request("http://c/e", { headers: { "accept-language": "de" } }))),
          ],
          large: await put("http://c/f", new Response(new Uint8Array(2_000_000))),
          bounded: (await Promise.all(filled.map(async (_, i) => await other.match("http://c/" + i)))).filter(Boolean).length,
          post: await failure(cache.put(new Request("http://c/", { method: "POST" }), new Response())),
          part: await failure(cache.put("http://c/", new Response("x", { status: 206 }))),
          star: await failure(cache.put("http://c/", new Response("x", { headers: { vary: "*" } }))),
        });
      },
    };`);
  assert.deepEqual(await (await app.fetch("/")).json(), {
    kept: [203, "body", "1"],
    again: [203, "body", "1"],
    deleted: [true, false, null],
    fresh: [200, "x", null],
    varies: [[200, "en", null], null],
    bounded: 8,
    post: "TypeError: a cache keeps answers to GET, not to POST",
    part: "TypeError: a cache keeps no part of a response (status 206)",
    star: "TypeError: a cache keeps no response with Vary: *",
  });
});

Deno.test("two apps have caches of their own", async () => {
  const code = `export default { async fetch(request) {
    if (request.method === "PUT") await caches.default.put("http://c/", new Response(await request.text()));
    return new Response(await (await caches.default.match("http://c/"))?.text() ?? "nothing");
  } };`;
  await using one = runBundle(code);
  await using other = runBundle(`${code} // another version`);
  assert.equal(await (await one.fetch("/", { method: "PUT", body: "kept" })).text(), "kept");
  assert.deepEqual([await (await one.fetch("/")).text(), await (await other.fetch("/")).text()], [
    "kept",
    "nothing",
  ]);
});
