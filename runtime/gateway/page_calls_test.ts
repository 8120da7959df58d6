import assert from "node:assert/strict";
import { madeByPage, preflight, readable } from "./page_calls.ts";

const STATUS = "/_sojourn/status", SITES = "/_sojourn/sites";
const call = (origin: string | null, init: RequestInit = {}) =>
  new Request(`http://h${STATUS}`, {
    ...init,
    headers: { ...init.headers, ...origin === null ? {} : { origin } },
  });

Deno.test("an answer is readable for the sandboxed dashboard, and for no other origin (PC2)", () => {
  const rows: [origin: string | null, path: string, readableFor: string | null][] = [
    ["null", STATUS, "null"],
    ["http://h", STATUS, null],
    ["http://elsewhere", STATUS, null],
    ["Null", STATUS, null],
    [null, STATUS, null],
    ["http://elsewhere", SITES, "*"],
    [null, SITES, "*"],
  ];
  for (const [origin, path, expected] of rows) {
    const answer = readable(call(origin), path, new Response("x"));
    assert.equal(answer.headers.get("access-control-allow-origin"), expected, `${origin} ${path}`);
    assert.equal(answer.headers.get("access-control-allow-credentials"), null);
    const asked = preflight(call(origin, { method: "OPTIONS" }), STATUS);
    assert.equal(
      asked?.headers.get("access-control-allow-origin") ?? null,
      origin === "null" ? "null" : null,
    );
  }
});

Deno.test("a call is a page's where a browser says so, and a person's where he typed its address (PC1)", () => {
  const rows: [headers: Record<string, string>, method: string, isPage: boolean][] = [
    [{}, "GET", false],
    [{}, "POST", false],
    [{ origin: "http://h" }, "GET", true],
    [{ "sec-fetch-site": "none" }, "GET", false],
    [{ "sec-fetch-site": "none" }, "POST", true],
    [{ "sec-fetch-site": "same-origin" }, "GET", true],
    [{ "sec-fetch-site": "cross-site" }, "HEAD", true],
  ];
  for (const [headers, method, isPage] of rows) {
    assert.equal(madeByPage(new Request("http://h/", { method, headers })), isPage, JSON.stringify(headers));
  }
});
