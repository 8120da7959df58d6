/** Modules written for Cloudflare Workers. */
import assert from "node:assert/strict";
import { MemoryStore } from "../runtime/isolate/apps.ts";
import { startEcho } from "./echo_server.ts";
import { bundleText, runApp, untilTrue } from "./apps.ts";

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
