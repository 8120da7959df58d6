/**
 * Hono apps, written as its own documentation and runtime tests write them: JSX, middleware, cookies, streams,
 * validators, sockets (hono/app.tsx). Handlers are ours; what they check is what Hono promises.
 */
import assert from "node:assert/strict";
import { join } from "node:path";
import { bundleApp } from "../../runtime/bundle/mod.ts";
import { runApp, runBundle, type RunningApp, untilTrue } from "./apps.ts";
import { CASES, checkCases } from "./hono/cases.ts";
import { pageSection } from "./page.ts";

let code: string | undefined;
async function start(): Promise<RunningApp> {
  if (code === undefined) {
    const bundle = await bundleApp(join(import.meta.dirname ?? ".", "hono", "app.tsx"));
    if (bundle.kind === "failed") throw new Error(bundle.message);
    code = new TextDecoder().decode(bundle.code);
  }
  return runBundle(code, { vars: { NAME: "given" } });
}

Deno.test("Hono's features work as on its other runtimes", async () => {
  await using app = await start();
  await checkCases(app.fetch);
  assert.match(await pageSection("## Hono"), new RegExp(`sends ${CASES.length} requests`));
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

for (
  const [path, says] of [["/socket", ["open", "got x"]], ["/socket-workers", ["workers got x"]]] as const
) {
  Deno.test(`Hono's upgradeWebSocket answers sockets at ${path}`, async () => {
    await using app = await start();
    const answer = await app.call(
      new Request(`http://localhost${path}`, { headers: { upgrade: "websocket" } }),
    );
    assert.equal(answer.kind, "upgrade", JSON.stringify(answer));
    if (answer.kind !== "upgrade") return;
    const got: unknown[] = [];
    answer.socket.bridge({ message: (data) => got.push(data), close: () => {} });
    answer.socket.send("x");
    await untilTrue("the app has answered", () => got.length === says.length);
    assert.deepEqual(got, says);
    answer.socket.close(1000, "");
    await answer.settled;
    if (path === "/socket") {
      await untilTrue(
        "the close is seen",
        () => app.lines.includes("info closed 1000"),
      );
    }
  });
}

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
