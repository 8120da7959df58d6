import assert from "node:assert/strict";
import { IsolatePool } from "../../../runtime/isolate/mod.ts";
import { appOf, callOf } from "./apps.ts";

Deno.test("isolate answers what the handler answers", async () => {
  const pool = new IsolatePool();
  try {
    const app = appOf(`export default {
      async fetch(request, env, ctx) {
        const url = new URL(request.url);
        if (url.pathname === "/stream") {
          let n = 0;
          return new Response(new ReadableStream({
            pull(c) { if (n++ < 3) c.enqueue(new TextEncoder().encode("part" + n)); else c.close(); },
          }));
        }
        if (url.pathname === "/throw") throw new Error("no");
        if (url.pathname === "/kv") { await env.kv.set(["a"], 1); return Response.json((await env.kv.get(["a"])).value); }
        return new Response(request.method + " " + await request.text() + " " + ctx.session.id, {
          status: 201, headers: { "x-a": "b" },
        });
      },
    };`);
    const plain = await pool.call(
      app,
      callOf(new Request("http://localhost/", { method: "POST", body: "hello" })),
    );
    assert.equal(plain.kind, "response", JSON.stringify(plain));
    if (plain.kind !== "response") return;
    assert.equal(plain.response.status, 201);
    assert.equal(plain.response.headers.get("x-a"), "b");
    assert.equal(await plain.response.text(), "POST hello s1");
    const stream = await pool.call(app, callOf("/stream"));
    assert.equal(stream.kind === "response" && await stream.response.text(), "part1part2part3");
    const thrown = await pool.call(app, callOf("/throw"));
    assert.equal(thrown.kind === "error" && thrown.code, "app_error");
    assert.match(
      thrown.kind === "error" ? thrown.stack ?? "" : "",
      /^Error: no\n {4}at Object\.fetch \(bundle:10:\d+\)$/,
    );
    const kv = await pool.call(app, callOf("/kv"));
    if (kv.kind === "error") console.log(kv);
    assert.equal(kv.kind === "response" && await kv.response.text(), "1");
  } finally {
    await pool.close();
  }
});
