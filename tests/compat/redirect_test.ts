/** Redirects that keep a body: followed by the isolate, and checked by the site like every other request. */
import assert from "node:assert/strict";
import { runApp } from "./apps.ts";
import { startEcho } from "./echo_server.ts";

const APP = `
  export default {
    async fetch(request: Request): Promise<Response> {
      const to = new URL(request.url).searchParams.get("to") ?? "";
      const body = request.headers.has("x-form") ? new FormData() : "body";
      if (body instanceof FormData) body.set("a", "1");
      try {
        return await fetch(to, { method: "POST", body, headers: { authorization: "Bearer secret", cookie: "c=1", "x-a": "1" } });
      } catch (error) {
        return Response.json([error.name, error.code, error.message.replace(/127\\.0\\.0\\.1:\\d+/g, "HOST")]);
      }
    },
  };`;

Deno.test("a body that goes on with a redirect leaves credentials behind at another origin (outgoing.ts O3)", async () => {
  await using first = startEcho();
  await using second = startEcho();
  const mayFetch = [`127.0.0.1:${first.port}`, `127.0.0.1:${second.port}`];
  await using app = await runApp(APP, { mayFetch });
  const send = async (to: string, headers: Record<string, string> = {}) =>
    await (await app.fetch(`/?to=${encodeURIComponent(to)}`, { headers })).json();

  const same = await send(`${first.url}/redirect/307?to=/there`);
  assert.deepEqual([same.method, same.path, same.body, same.headers.authorization], [
    "POST",
    "/there",
    "body",
    "Bearer secret",
  ]);
  const other = await send(`${first.url}/redirect/308?to=${second.url}/there`);
  assert.deepEqual([other.method, other.body, other.headers["x-a"]], ["POST", "body", "1"]);
  assert.deepEqual([other.headers.authorization, other.headers.cookie], [undefined, undefined]);
  const form = await send(`${first.url}/redirect/307?to=/there`, { "x-form": "1" });
  const boundary = /boundary=(\S+)/.exec(form.headers["content-type"])?.[1] ?? "none";
  assert.ok(form.body.includes(`--${boundary}`) && form.body.includes(`name="a"`), form.body);
});

Deno.test("a body does not go on to where the app may not go, nor round and round (outgoing.ts O2)", async () => {
  await using echo = startEcho();
  await using closed = startEcho();
  await using app = await runApp(APP, { mayFetch: [`127.0.0.1:${echo.port}`] });
  const send = async (to: string) => await (await app.fetch(`/?to=${encodeURIComponent(to)}`)).json();
  const [name, code] = await send(`${echo.url}/redirect/307?to=${closed.url}/there`);
  assert.deepEqual([name, code], ["TypeError", "fetch_refused"]);
  assert.deepEqual(await send(`${echo.url}/loop/307`), [
    "TypeError",
    "fetch_failed",
    "fetch(http://HOST/loop/307): more than 20 redirects",
  ]);
});
