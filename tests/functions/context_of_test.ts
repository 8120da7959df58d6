/** `contextOf`, with Hono's own context. */
import assert from "node:assert/strict";
import { type AppContext, codeOf, contextOf } from "sojourn";
import { Hono } from "hono";

const app = new Hono();
app.get("/", (c) => c.text(contextOf(c).site));
app.onError((error, c) => c.text(`${codeOf(error)}: ${error.message}`, 500));

Deno.test("contextOf gives a Hono handler the ctx that the app was called with", async () => {
  const ctx: AppContext = {
    waitUntil: () => {},
    passThroughOnException: () => {},
    props: {},
    session: { id: "s" },
    site: "edge-1",
    version: "0".repeat(64),
  };
  const response = await app.fetch(new Request("http://app.localhost/"), {}, ctx);
  assert.equal(await response.text(), "edge-1");
});

Deno.test("contextOf says what to pass on when the app was called without a site's ctx", async () => {
  const others = [undefined, { waitUntil: () => {}, passThroughOnException: () => {}, props: {} }];
  for (const ctx of others) {
    const response = await app.fetch(new Request("http://app.localhost/"), {}, ctx);
    assert.match(await response.text(), /^no_request: .*app\.fetch\(request, env, ctx\)/);
  }
});
