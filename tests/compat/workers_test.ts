/** Modules written for Cloudflare Workers. */
import assert from "node:assert/strict";
import { scryptSync } from "node:crypto";
import { MemoryStore } from "../isolate/apps.ts";
import { startEcho } from "./echo_server.ts";
import { bundleText, runApp, runBundle, untilTrue } from "./apps.ts";

Deno.test("a Workers module finds what Workers have", async () => {
  await using app = await runApp(
    `
    const routes: Record<string, (request: Request, env: Record<string, unknown>, ctx: ExecutionContext) => unknown> = {
      "/json": () => ({ a: 1 }),
      "/wait": async () => {
        const late = scheduler.wait(60_000, { signal: AbortSignal.timeout(5) }).catch((error) => error.name);
        await scheduler.wait(1);
        return [await late, await scheduler.wait(0)];
      },
      "/equal": () => [
        crypto.subtle.timingSafeEqual(new Uint8Array([1, 2]), new Uint8Array([1, 2]).buffer),
        crypto.subtle.timingSafeEqual(new Uint8Array([1, 2]), new Uint8Array([1, 3])),
        message(() => crypto.subtle.timingSafeEqual(new Uint8Array(1), new Uint8Array(2))),
        message(() => crypto.subtle.timingSafeEqual("a" as never, "a" as never)),
      ],
      "/agent": () => navigator.userAgent,
      "/names": (request, env) => [env.NAME, env.vars?.NAME, process.env.NAME, process.platform, typeof process.nextTick, request.cf],
      "/ctx": (_, __, ctx) => [typeof ctx.passThroughOnException(), ctx.props],
      "/socket": () => message(() => new WebSocket("ws://127.0.0.1:1/")),
      "/absent": () => ["HTMLRewriter", "Worker", "BroadcastChannel", "localStorage", "EventSource", "close"]
        .filter((name) => name in globalThis),
    };
    const message = (work: () => unknown) => { try { return work(); } catch (error) { return String(error); } };
    export default {
      vars: { NAME: "declared" },
      async fetch(request: Request, env: Record<string, unknown>, ctx: ExecutionContext): Promise<Response> {
        return Response.json(await routes[new URL(request.url).pathname]?.(request, env, ctx) ?? null);
      },
    } satisfies ExportedHandler;`,
    { vars: { NAME: "given" } },
  );
  const json = async (path: string) => await (await app.fetch(path)).json();
  assert.deepEqual(await json("/json"), { a: 1 });
  assert.deepEqual(await json("/wait"), ["TimeoutError", null]);
  assert.deepEqual(await json("/equal"), [
    true,
    false,
    "TypeError: timingSafeEqual: both take the same number of bytes, not 1 and 2",
    "TypeError: timingSafeEqual takes an ArrayBuffer or a view of one, not string",
  ]);
  assert.equal(await json("/agent"), navigator.userAgent);
  assert.deepEqual(await json("/names"), ["given", "given", "given", "linux", "function", null]);
  assert.deepEqual(await json("/ctx"), ["undefined", {}]);
  assert.match(await json("/socket"), /^TypeError: new WebSocket is not available in a function/);
  assert.deepEqual(await json("/absent"), []);
});

Deno.test("AsyncLocalStorage keeps requests apart, through streams and waitUntil", async () => {
  await using app = await runApp(`
    import { AsyncLocalStorage } from "node:async_hooks";
    const storage = new AsyncLocalStorage<string>();
    const later = async (what: string) => { await scheduler.wait(5); return what + storage.getStore(); };
    export default {
      fetch(request: Request, _env: unknown, ctx: { waitUntil(work: Promise<unknown>): void }) {
        return storage.run(new URL(request.url).pathname, async () => {
          ctx.waitUntil(later("after ").then((line) => console.log(line)));
          let sent = false;
          return new Response(new ReadableStream({
            async pull(controller) {
              if (sent) return controller.close();
              sent = true;
              controller.enqueue(new TextEncoder().encode(await later("in ")));
            },
          }));
        });
      },
    };`);
  const names = Array.from({ length: 8 }, (_, i) => `/${i}`);
  const texts = await Promise.all(names.map(async (name) => await (await app.fetch(name)).text()));
  assert.deepEqual(texts, names.map((name) => `in ${name}`));
  await untilTrue("every waitUntil has logged", () => app.lines.length === names.length);
  assert.deepEqual(app.lines.toSorted(), names.map((name) => `info after ${name}`));
});

Deno.test("a pair's sockets give bytes as an ArrayBuffer", async () => {
  await using app = await runApp(`
    export default {
      fetch(): Response {
        const [client, server] = Object.values(new WebSocketPair());
        server.accept();
        server.addEventListener("message", ({ data }) => server.send(data instanceof ArrayBuffer ? "bytes " + data.byteLength : data));
        return new Response(null, { status: 101, webSocket: client });
      },
    };`);
  const answer = await app.call(new Request("http://localhost/", { headers: { upgrade: "websocket" } }));
  assert.equal(answer.kind, "upgrade");
  if (answer.kind !== "upgrade") return;
  const got: unknown[] = [];
  answer.socket.bridge({ message: (data) => got.push(data), close: () => {} });
  answer.socket.send(new Uint8Array(3));
  await untilTrue("an answer", () => got.length === 1);
  assert.deepEqual(got, ["bytes 3"]);
  answer.socket.close(1000, "");
  await answer.settled;
});

Deno.test("a Workers module passes requests on to another server, and its answers back", async () => {
  await using echo = startEcho();
  await using app = await runApp(
    `
    export default {
      async fetch(request: Request): Promise<Response> {
        const { pathname, search } = new URL(request.url);
        const response = await fetch(new Request("${echo.url}" + pathname + search, request), { redirect: "manual" });
        return pathname === "/changed" ? new Response(response.body, { ...response, headers: { ...Object.fromEntries(response.headers), "x-by": "proxy" } }) : response;
      },
    };`,
    { mayFetch: [`127.0.0.1:${echo.port}`] },
  );
  const posted = await app.fetch("/p?q=1", {
    method: "PUT",
    body: "body",
    headers: { "x-a": "1", cookie: "c=1" },
  });
  const { method, path, headers, body } = await posted.json();
  assert.deepEqual([method, path, body, headers["x-a"], headers.cookie, headers.host], [
    "PUT",
    "/p?q=1",
    "body",
    "1",
    "c=1",
    `127.0.0.1:${echo.port}`,
  ]);
  const zipped = await app.fetch("/gzip", { headers: { "accept-encoding": "gzip" } });
  assert.deepEqual([await zipped.text(), zipped.headers.get("content-encoding")], ["zipped", null]);
  assert.deepEqual((await app.fetch("/cookies")).headers.getSetCookie(), ["a=1; Path=/", "b=2"]);
  const redirect = await app.fetch("/redirect/302?to=/there");
  assert.deepEqual([redirect.status, redirect.headers.get("location")], [302, "/there"]);
  const head = await app.fetch("/", { method: "HEAD" });
  assert.deepEqual([head.status, await head.text()], [200, ""]);
  assert.equal((await app.fetch("/status/204")).status, 204);
  assert.equal((await (await app.fetch("/big")).bytes()).length, 2_000_000);
  const changed = await app.fetch("/changed");
  assert.deepEqual([changed.headers.get("x-by"), (await changed.json()).path], ["proxy", "/changed"]);
});

Deno.test("a Workers module transforms streams", async () => {
  await using app = await runApp(`
    export default {
      async fetch(request: Request): Promise<Response> {
        const upper = new TransformStream<string, string>({
          transform: (chunk, controller) => controller.enqueue(chunk.toUpperCase()),
        });
        const { readable, writable } = new TransformStream();
        request.body?.pipeThrough(new TextDecoderStream()).pipeThrough(upper).pipeThrough(new TextEncoderStream())
          .pipeThrough(new CompressionStream("gzip")).pipeTo(writable);
        return new Response(readable, { headers: { "content-encoding": "gzip" } });
      },
    };`);
  const response = await app.fetch("/", { method: "POST", body: "x".repeat(200_000) });
  const plain = response.body?.pipeThrough(new DecompressionStream("gzip")) ?? null;
  assert.equal(await new Response(plain).text(), "X".repeat(200_000));
});

const ENTRYPOINT = `
  import { env, waitUntil, WorkerEntrypoint } from "cloudflare:workers";
  interface Env { vars: Record<string, string>; kv: { set(key: string[], value: unknown): Promise<unknown> } }
  export default class extends WorkerEntrypoint<Env> {
    static vars = { NAME: "declared" };
    static cron = { any: "* * * * *" };
    #made = 0;
    async fetch(request: Request): Promise<Response> {
      waitUntil(this.env.kv.set(["seen"], 1));
      return Response.json([this.env.vars["NAME"], env.vars["NAME"], new URL(request.url).pathname, typeof this.ctx.waitUntil, ++this.#made]);
    }
    async scheduled(controller: { cron: string }) {
      await this.env.kv.set(["scheduled"], controller.cron);
    }
  }`;

Deno.test("a WorkerEntrypoint class is an app, with an object for each request", async () => {
  const store = new MemoryStore();
  await using app = await runApp(ENTRYPOINT, { vars: { NAME: "given" }, store });
  for (const path of ["/a", "/b"]) {
    assert.deepEqual(await (await app.fetch(path)).json(), ["given", "given", path, "function", 1]);
  }
  assert.equal(store.rows.size, 1);
  assert.equal(await app.schedule("any"), "response");
  assert.equal(store.rows.size, 2);
  const { handlers, vars } = await app.manifest() as { handlers: string[]; vars: unknown };
  assert.deepEqual([handlers, vars], [["fetch", "scheduled"], { NAME: "declared" }]);
});

Deno.test("what Workers have and functions have not is refused where it is bundled", async () => {
  const refused = async (code: string) =>
    await assert.rejects(bundleText(code), (error: Error) => {
      assert.match(error.message, /app\.ts:1/);
      return true;
    });
  await refused(
    `import { DurableObject } from "cloudflare:workers"; export class A extends DurableObject {} export default { fetch: () => new Response() };`,
  );
  await refused(`import { connect } from "cloudflare:sockets"; export default { fetch: () => connect() };`);
});

Deno.test("caches.default keeps responses in the isolate, within its rules", async () => {
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

const NODE = `
  import assert from "node:assert";
  import { AsyncLocalStorage } from "node:async_hooks";
  import { Buffer } from "node:buffer";
  import { createHash, randomBytes, scryptSync, timingSafeEqual } from "node:crypto";
  import { channel } from "node:diagnostics_channel";
  import { EventEmitter, once } from "node:events";
  import path from "node:path";
  import win32 from "node:path/win32";
  import querystring from "node:querystring";
  import { Readable, Transform } from "node:stream";
  import { text } from "node:stream/consumers";
  import { pipeline } from "node:stream/promises";
  import { StringDecoder } from "node:string_decoder";
  import { setTimeout as later } from "node:timers/promises";
  import { setImmediate } from "node:timers";
  import { fileURLToPath, parse } from "node:url";
  import { format, inspect, promisify } from "node:util";
  import { brotliCompressSync, brotliDecompressSync, createGzip, gunzip, gzipSync, inflateRaw, deflateRawSync } from "node:zlib";
  export default { async fetch() {
    const emitter = new EventEmitter();
    const done = once(emitter, "done");
    queueMicrotask(() => emitter.emit("done", 1));
    const said: unknown[] = [];
    channel("mine").subscribe((message) => said.push(message));
    channel("mine").publish("hello");
    const upper = new Transform({ transform: (chunk, _, done) => done(null, String(chunk).toUpperCase()) });
    const piped = text(upper);
    await pipeline(Readable.from(["a", "b"]), upper);
    return Response.json({
      assert: (() => { try { assert.deepStrictEqual([1], [2]); } catch (error) { return (error as Error).name; } })(),
      async_hooks: new AsyncLocalStorage().run(1, () => 2),
      buffer: Buffer.from("é").toString("base64url"),
      crypto: [createHash("md5").update("a").digest("hex"), randomBytes(4).length, scryptSync("p", "s", 8).toString("hex"), timingSafeEqual(Buffer.from("a"), Buffer.from("a"))],
      diagnostics_channel: said,
      events: await done,
      path: [path.join("/a", "../b"), win32.join("a", "b")],
      querystring: querystring.parse("a=1&a=2"),
      stream: await piped,
      string_decoder: new StringDecoder("utf8").write(Buffer.from([0xc3])),
      timers: [await later(1, "x"), await new Promise((resolve) => setImmediate(() => resolve("y")))],
      url: [parse("http://h:1/p").port, fileURLToPath("file:///a/b")],
      util: [format("%s:%d", "a", 1), inspect({ a: [1] }), await promisify((done: (e: null, v: number) => void) => done(null, 3))()],
      zlib: [
        (await promisify(gunzip)(gzipSync("z"))).toString(),
        brotliDecompressSync(brotliCompressSync("b")).toString(),
        (await promisify(inflateRaw)(deflateRawSync("d"))).toString(),
        (await promisify(gunzip)(Buffer.concat(await Array.fromAsync(Readable.from(["s"]).pipe(createGzip()))))).toString(),
      ],
    });
  } };`;

Deno.test("node built-ins that need no permission work", async () => {
  await using app = await runApp(NODE);
  assert.deepEqual(await (await app.fetch("/")).json(), {
    assert: "AssertionError",
    async_hooks: 2,
    buffer: "w6k",
    crypto: ["0cc175b9c0f1b6a831c399e269772661", 4, scryptSync("p", "s", 8).toString("hex"), true],
    diagnostics_channel: ["hello"],
    events: [1],
    path: ["/b", "a\\b"],
    querystring: { a: ["1", "2"] },
    stream: "AB",
    string_decoder: "",
    timers: ["x", "y"],
    url: ["1", "/a/b"],
    util: ["a:1", "{ a: [ 1 ] }", 3],
    zlib: ["z", "b", "d", "s"],
  });
});

Deno.test("node built-ins with effects are refused where they are imported", async () => {
  for (
    const name of ["fs", "child_process", "net", "http", "os", "worker_threads", "vm", "process", "module"]
  ) {
    const code =
      `import * as x from "node:${name}"; export default { fetch: () => Response.json(Object.keys(x)) };`;
    await assert.rejects(bundleText(code), new RegExp(`can't import "node:${name}": only its own modules`));
    await using app = runBundle(code); // made elsewhere: looked at again where it is deployed
    await assert.rejects(app.manifest(), /can't import/);
  }
});
