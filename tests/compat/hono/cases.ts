/** Requests to app.tsx, and what Hono promises for each. */
import assert from "node:assert/strict";

/** A request, and what it gets. */
export interface Case {
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

/** Requests to the app. */
export const CASES: readonly Case[] = [
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

/** Sends every request but those to the paths left out, and compares. */
export async function checkCases(
  send: (path: string, init?: RequestInit) => Promise<Response>,
  leftOut: readonly string[] = [],
): Promise<void> {
  for (const { path, init, status = 200, body, headers = {} } of CASES) {
    if (leftOut.includes(path)) continue;
    const what = `${init?.method ?? "GET"} ${path}`;
    const response = await send(path, init);
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
}
