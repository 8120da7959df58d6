/**
 * Hono apps, written as its own documentation and runtime tests write them: JSX, middleware, cookies, streams,
 * validators, sockets. Handlers are ours; what they check is what Hono promises.
 */
import assert from "node:assert/strict";
import { bundleText, runApp, runBundle, untilTrue } from "./apps.ts";

const APP = `
  /** @jsxImportSource hono/jsx */
  import { Hono } from "hono";
  import { HTTPException } from "hono/http-exception";
  import { basicAuth } from "hono/basic-auth";
  import { bearerAuth } from "hono/bearer-auth";
  import { bodyLimit } from "hono/body-limit";
  import { cache } from "hono/cache";
  import { compress } from "hono/compress";
  import { cors } from "hono/cors";
  import { csrf } from "hono/csrf";
  import { deleteCookie, getCookie, getSignedCookie, setCookie, setSignedCookie } from "hono/cookie";
  import { contextStorage, getContext } from "hono/context-storage";
  import { env, getRuntimeKey } from "hono/adapter";
  import { etag } from "hono/etag";
  import { getConnInfo, upgradeWebSocket } from "hono/deno";
  import { jsxRenderer } from "hono/jsx-renderer";
  import { Suspense } from "hono/jsx/streaming";
  import { sign, verify } from "hono/jwt";
  import { logger } from "hono/logger";
  import { poweredBy } from "hono/powered-by";
  import { prettyJSON } from "hono/pretty-json";
  import { requestId } from "hono/request-id";
  import { secureHeaders } from "hono/secure-headers";
  import { stream, streamSSE, streamText } from "hono/streaming";
  import { timeout } from "hono/timeout";
  import { endTime, setMetric, startTime, timing } from "hono/timing";
  import { validator } from "hono/validator";
  import { z } from "zod";
  import type { FC, PropsWithChildren } from "hono/jsx";

  const app = new Hono();
  const Page: FC<PropsWithChildren<{ title: string }>> = ({ title, children }) => <html><body><h1>{title}</h1>{children}</body></html>;
  const Late = async () => { await new Promise((r) => setTimeout(r, 5)); return <p>late</p>; };

  app.get("/jsx", (c) => c.html(<Page title={"<&>"}>{[1, 2].map((n) => <li key={n}>{n}</li>)}</Page>));
  app.get("/jsx-async", (c) => c.html(<Late />));
  app.use("/rendered/*", jsxRenderer(({ children }) => <html><body>{children}</body></html>, { stream: true }));
  app.get("/rendered/", (c) => c.render(<Suspense fallback={<i>wait</i>}><Late /></Suspense>));

  app.use("/basic/*", basicAuth({ username: "ann", password: "secret" }));
  app.get("/basic/", (c) => c.text("in"));
  app.use("/bearer/*", bearerAuth({ token: "token" }));
  app.get("/bearer/", (c) => c.text("in"));
  app.get("/jwt", async (c) => c.json(await verify(await sign({ a: 1 }, "key", "HS256"), "key", "HS256")));

  app.get("/etag", etag(), (c) => c.text("tagged"));
  app.use("/cors/*", cors({ origin: "http://other.example", allowMethods: ["GET", "PUT"], maxAge: 60, credentials: true }));
  app.all("/cors/", (c) => c.text("cors"));
  app.use("/compress/*", compress());
  app.get("/compress/", (c) => c.text("x".repeat(5000)));
  app.post("/csrf", csrf(), (c) => c.text("done"));
  app.get("/cached", cache({ cacheName: "mine", cacheControl: "max-age=60" }), (c) => c.text(String(++calls)));
  let calls = 0;

  app.get("/cookies", async (c) => {
    setCookie(c, "plain", "1", { httpOnly: true, path: "/", maxAge: 10, sameSite: "Lax" });
    await setSignedCookie(c, "signed", "value", "secret");
    deleteCookie(c, "old");
    return c.json({ plain: getCookie(c, "plain"), signed: await getSignedCookie(c, "secret", "signed") });
  });

  app.get("/stream", (c) => stream(c, async (s) => { for (const n of [1, 2, 3]) { await s.write(new Uint8Array([48 + n])); await s.sleep(1); } }));
  app.get("/stream-text", (c) => streamText(c, async (s) => { await s.writeln("one"); await s.write("two"); }));
  app.get("/stream-pipe", (c) => stream(c, (s) => s.pipe(new Blob(["piped"]).stream())));
  app.get("/sse", (c) => streamSSE(c, async (s) => { for (let id = 0; id < 3; id++) await s.writeSSE({ data: "a\\nb", event: "tick", id: String(id) }); }));
  app.get("/stream-error", (c) => stream(c, () => { throw new Error("in a stream"); }, async (error, s) => void await s.write("caught " + error.message)));

  app.post("/validated/:id",
    validator("param", (value, c) => z.coerce.number().safeParse(value["id"]).data ?? c.text("no number", 400)),
    validator("json", (value, c) => z.object({ name: z.string().min(2) }).safeParse(value).data ?? c.json({ error: "name" }, 400)),
    (c) => c.json([c.req.valid("param"), c.req.valid("json")]));
  app.post("/form", async (c) => {
    const { file, many, text } = await c.req.parseBody({ all: true });
    return c.json([file instanceof File && [file.name, await file.text()], many, text]);
  });
  app.post("/limited", bodyLimit({ maxSize: 10, onError: (c) => c.text("too large", 413) }), async (c) => c.text(await c.req.text()));

  app.get("/timing", timing({ total: true }), async (c) => {
    setMetric(c, "region", "eu");
    startTime(c, "db");
    await new Promise((r) => setTimeout(r, 2));
    endTime(c, "db");
    return c.text("timed");
  });
  app.get("/timeout", timeout(20), async (c) => { await new Promise((r) => setTimeout(r, 10_000)); return c.text("late"); });
  app.use("/headers", secureHeaders(), poweredBy(), requestId(), prettyJSON());
  app.get("/headers", (c) => c.json({ id: c.get("requestId") }));
  app.get("/logged", logger((line) => console.log(line.replace(/\\x1b\\[\\d+m/g, ""))), (c) => c.text("x"));

  app.get("/runtime", (c) => c.json([getRuntimeKey(), env<{ NAME: string }>(c).NAME, getConnInfo(c).remote.address]));
  app.use("/context/*", contextStorage());
  app.get("/context/", async (c) => { c.set("who" as never, "ann" as never); await Promise.resolve(); return c.text(getContext().get("who" as never)); });
  app.get("/later", (c) => { c.executionCtx.waitUntil(Promise.resolve().then(() => console.log("waited"))); return c.text("now"); });
  app.get("/socket", upgradeWebSocket(() => ({
    onOpen: (_, ws) => ws.send("open"),
    onMessage: (event, ws) => ws.send("got " + event.data),
    onClose: (event) => console.log("closed " + event.code),
  })));
  app.get("/file/*", (c) => c.text("not there: use assets", 404));

  const books = new Hono().basePath("/v1");
  books.get("/books/:id{[0-9]+}", (c) => c.json(c.req.param()));
  books.get("/fail", () => { throw new HTTPException(418, { message: "teapot" }); });
  app.route("/api", books);
  app.mount("/mounted", (request) => new Response("mounted " + new URL(request.url).pathname));
  app.get("/redirect", (c) => c.redirect("/there", 301));
  app.get("/query", (c) => c.json([c.req.query("a"), c.req.queries("b"), c.req.header("x-a"), c.req.path, c.req.method]));
  app.on(["PURGE", "DELETE"], "/purge", (c) => c.text(c.req.method));
  app.post("/raw", async (c) => { const copy = c.req.raw.clone(); return c.json([(await copy.text()).length, (await c.req.arrayBuffer()).byteLength]); });
  app.get("/fail", () => { throw new Error("handler failed"); });
  app.notFound((c) => c.text("nothing at " + c.req.path, 404));
  app.onError((error, c) => error instanceof HTTPException ? error.getResponse() : c.text("onError: " + error.message, 500));
  export default app;`;

let bundle: Promise<string> | undefined;
const start = async () =>
  runBundle(await (bundle ??= bundleText({ "app.tsx": APP }, "app.tsx")), { vars: { NAME: "given" } });

interface Case {
  readonly path: string;
  readonly init?: RequestInit;
  readonly status?: number;
  /** The body: the whole text, or a part by a pattern. */
  readonly body?: string | RegExp;
  readonly headers?: Readonly<Record<string, string | RegExp | null>>;
}

const bearer = (token: string): RequestInit => ({ headers: { authorization: `Bearer ${token}` } });
const json = (value: unknown): RequestInit => ({
  method: "POST",
  body: JSON.stringify(value),
  headers: { "content-type": "application/json" },
});
function form(): RequestInit {
  const body = new FormData();
  body.set("file", new File(["content"], "n.txt"));
  body.append("many", "1");
  body.append("many", "2");
  body.set("text", "t");
  return { method: "POST", body };
}

const CASES: readonly Case[] = [
  {
    path: "/jsx",
    body: "<html><body><h1>&lt;&amp;&gt;</h1><li>1</li><li>2</li></body></html>",
    headers: { "content-type": /text\/html/ },
  },
  { path: "/jsx-async", body: "<p>late</p>" },
  { path: "/rendered/", body: /<i>wait<\/i>[\s\S]*<p>late<\/p>/ },
  { path: "/basic/", status: 401, headers: { "www-authenticate": /Basic realm/ } },
  { path: "/basic/", init: { headers: { authorization: `Basic ${btoa("ann:secret")}` } }, body: "in" },
  { path: "/basic/", init: { headers: { authorization: `Basic ${btoa("ann:wrong")}` } }, status: 401 },
  { path: "/bearer/", init: bearer("token"), body: "in" },
  { path: "/bearer/", init: bearer("wrong"), status: 401 },
  { path: "/jwt", body: `{"a":1}` },
  { path: "/etag", body: "tagged", headers: { etag: /^"[0-9a-f]{40}"$/ } },
  { path: "/etag", init: { headers: { "if-none-match": `"${"0".repeat(40)}"` } }, body: "tagged" },
  {
    path: "/cors/",
    init: { method: "OPTIONS", headers: { origin: "http://other.example" } },
    status: 204,
    headers: { "access-control-allow-methods": "GET,PUT", "access-control-max-age": "60" },
  },
  {
    path: "/cors/",
    init: { headers: { origin: "http://other.example" } },
    body: "cors",
    headers: {
      "access-control-allow-origin": "http://other.example",
      "access-control-allow-credentials": "true",
    },
  },
  {
    path: "/csrf",
    init: {
      method: "POST",
      headers: { origin: "http://evil.example", "content-type": "text/plain" },
      body: "x",
    },
    status: 403,
  },
  {
    path: "/csrf",
    init: {
      method: "POST",
      headers: { origin: "http://localhost", "content-type": "text/plain" },
      body: "x",
    },
    body: "done",
  },
  { path: "/cached", body: "1", headers: { "cache-control": "max-age=60" } },
  { path: "/cached", body: "1" },
  { path: "/stream", body: "123" },
  {
    path: "/stream-text",
    body: "one\ntwo",
    headers: { "content-type": /text\/plain/, "x-content-type-options": "nosniff" },
  },
  { path: "/stream-pipe", body: "piped" },
  {
    path: "/sse",
    body: /^event: tick\ndata: a\ndata: b\nid: 0\n\n/,
    headers: { "content-type": "text/event-stream" },
  },
  { path: "/stream-error", body: "caught in a stream" },
  { path: "/validated/7", init: json({ name: "ann" }), body: `[7,{"name":"ann"}]` },
  { path: "/validated/x", init: json({ name: "ann" }), status: 400, body: "no number" },
  { path: "/validated/7", init: json({ name: "a" }), status: 400, body: `{"error":"name"}` },
  {
    path: "/validated/7",
    init: { ...json(1), body: "{" },
    status: 400,
    body: "Malformed JSON in request body",
  },
  { path: "/form", init: form(), body: `[["n.txt","content"],["1","2"],"t"]` },
  { path: "/limited", init: { method: "POST", body: "short" }, body: "short" },
  { path: "/limited", init: { method: "POST", body: "x".repeat(100) }, status: 413, body: "too large" },
  {
    path: "/timing",
    body: "timed",
    headers: { "server-timing": /^region;desc="eu",db;dur=[\d.]+,total;dur=/ },
  },
  { path: "/timeout", status: 504, body: "Gateway Timeout" },
  {
    path: "/headers?pretty",
    body: /\{\n {2}"id": "[0-9a-f-]{36}"/,
    headers: { "x-frame-options": "SAMEORIGIN", "x-powered-by": null, "x-request-id": /^[0-9a-f-]{36}$/ },
  },
  { path: "/runtime", body: `["deno","given","127.0.0.1"]` },
  { path: "/context/", body: "ann" },
  { path: "/api/v1/books/12", body: `{"id":"12"}` },
  { path: "/api/v1/books/x", status: 404, body: "nothing at /api/v1/books/x" },
  { path: "/api/v1/fail", status: 418, body: "teapot" },
  { path: "/mounted/a/b", body: "mounted /a/b" },
  { path: "/redirect", status: 301, headers: { location: "/there" } },
  {
    path: "/query?a=1&b=2&b=3",
    init: { headers: { "x-a": "y" } },
    body: `["1",["2","3"],"y","/query","GET"]`,
  },
  { path: "/purge", init: { method: "DELETE" }, body: "DELETE" },
  { path: "/raw", init: { method: "POST", body: "é" }, body: "[1,2]" },
  { path: "/fail", status: 500, body: "onError: handler failed" },
  { path: "/none", status: 404, body: "nothing at /none" },
  { path: "/jsx", init: { method: "HEAD" }, body: "" },
  { path: "/file/x", status: 404 },
];

Deno.test("Hono's features work as on its other runtimes", async () => {
  await using app = await start();
  for (const { path, init, status = 200, body, headers = {} } of CASES) {
    const what = `${init?.method ?? "GET"} ${path}`;
    const response = await app.fetch(path, init);
    const text = await response.text();
    assert.equal(response.status, status, `${what}: ${text}`);
    if (body instanceof RegExp) assert.match(text, body, what);
    else if (body !== undefined) assert.equal(text, body, what);
    for (const [name, expected] of Object.entries(headers)) {
      const got = response.headers.get(name);
      if (expected instanceof RegExp) assert.match(got ?? "", expected, `${what}: ${name}`);
      else assert.equal(got, expected, `${what}: ${name}`);
    }
  }
});

Deno.test("Hono answers 304 to the ETag that it gave", async () => {
  await using app = await start();
  const first = await app.fetch("/etag");
  await first.text();
  const again = await app.fetch("/etag", { headers: { "if-none-match": first.headers.get("etag") ?? "" } });
  assert.deepEqual([again.status, await again.text()], [304, ""]);
});

Deno.test("Hono sets, reads and signs cookies", async () => {
  await using app = await start();
  const first = await app.fetch("/cookies");
  assert.deepEqual(await first.json(), {});
  const set = first.headers.getSetCookie();
  assert.equal(set.length, 3);
  assert.equal(set[0], "plain=1; Max-Age=10; Path=/; HttpOnly; SameSite=Lax");
  const cookie = set.map((line) => line.split(";")[0]).join("; ");
  assert.deepEqual(await (await app.fetch("/cookies", { headers: { cookie } })).json(), {
    plain: "1",
    signed: "value",
  });
  const forged = cookie.replace("signed=value", "signed=other");
  assert.deepEqual(await (await app.fetch("/cookies", { headers: { cookie: forged } })).json(), {
    plain: "1",
    signed: false,
  });
});

Deno.test("Hono compresses", async () => {
  await using app = await start();
  const response = await app.fetch("/compress/", { headers: { "accept-encoding": "gzip" } });
  assert.equal(response.headers.get("content-encoding"), "gzip");
  const plain = response.body?.pipeThrough(new DecompressionStream("gzip")) ?? null;
  assert.equal(await new Response(plain).text(), "x".repeat(5000));
});

Deno.test("Hono logs, and its waitUntil goes on after the response", async () => {
  await using app = await start();
  await (await app.fetch("/logged")).text();
  await (await app.fetch("/later")).text();
  await untilTrue("three lines", () => app.lines.length >= 3);
  assert.match(app.lines.join("\n"), /info <-- GET \/logged\ninfo --> GET \/logged 200 \d+m?s\ninfo waited/);
});

Deno.test("Hono's upgradeWebSocket for Deno answers sockets", async () => {
  await using app = await start();
  const answer = await app.call(
    new Request("http://localhost/socket", { headers: { upgrade: "websocket" } }),
  );
  assert.equal(answer.kind, "upgrade", JSON.stringify(answer));
  if (answer.kind !== "upgrade") return;
  const got: unknown[] = [];
  answer.socket.bridge({ message: (data) => got.push(data), close: () => {} });
  answer.socket.send("x");
  await untilTrue("two messages", () => got.length === 2);
  assert.deepEqual(got, ["open", "got x"]);
  answer.socket.close(1000, "");
  await answer.settled;
  await untilTrue("the close is seen", () => app.lines.includes("info closed 1000"));
});

Deno.test("Hono's serveStatic finds no file, and the log says why", async () => {
  await using app = await runApp(`
    import { Hono } from "hono";
    import { serveStatic } from "hono/deno";
    const app = new Hono();
    app.use("/*", serveStatic({ root: "./public" }));
    export default app;`);
  const response = await app.fetch("/index.html");
  assert.deepEqual([response.status, await response.text()], [404, "404 Not Found"]);
  await untilTrue("the log says why", () => app.lines.length > 0);
  assert.match(app.lines.join(), /warn Deno\.\w+ was used: it is not available in a function/);
});
