import { strict as assert } from "node:assert";
import { addressOf } from "./address.ts";
import { allowed, pageOrigin, shared } from "./cross_origin.ts";

const HOSTS = new Map([["shop.example", "shop"]]);
const SITES = [{ url: "https://edge-1.example" }, { url: "http://127.0.0.1:8003" }, {
  url: "http://127.0.0.1:8004",
}];

/** The origin that may read the answer to a request at `url`. */
function readerOf(url: string, origin: string | null): string | null {
  const request = new Request(url, { headers: origin === null ? {} : { origin } });
  const address = addressOf(url, HOSTS);
  assert(address.kind === "app");
  return pageOrigin(request, address, { sites: () => SITES, hosts: HOSTS });
}

Deno.test("an app's answers are readable for pages of its own, of any site (XO1)", () => {
  const rows: [url: string, origin: string | null, reads: boolean][] = [
    ["http://127.0.0.1:8003/shop/x", null, false],
    ["http://127.0.0.1:8003/shop/x", "http://127.0.0.1:8003", false], // the same origin: nothing to say
    ["http://127.0.0.1:8004/shop/x", "http://127.0.0.1:8003", true],
    ["http://127.0.0.1:8004/shop/x", "http://localhost:8003", true],
    ["http://127.0.0.1:8004/shop/x", "http://shop.localhost:8003", true],
    ["http://127.0.0.1:8004/shop/x", "http://notes.localhost:8003", false],
    ["http://127.0.0.1:8004/shop/x", "http://shop.localhost:9999", false], // no site's port
    ["http://127.0.0.1:8004/shop/x", "http://localhost:9999", false],
    ["http://127.0.0.1:8004/shop/x", "https://localhost:8003", false],
    ["https://edge-1.example/shop/x", "https://shop.example", true],
    ["https://edge-1.example/notes/x", "https://shop.example", false],
    ["https://shop.example/x", "https://edge-1.example", true],
    ["https://edge-1.example/shop/x", "https://edge-2.example", false],
    ["https://edge-1.example/shop/x", "https://edge-1.example.evil.example", false],
    ["https://edge-1.example/shop/x", "null", false],
    ["https://edge-1.example/shop/x", "file://", false],
    ["https://edge-1.example/shop/x", "https://", false],
  ];
  for (const [url, origin, reads] of rows) {
    assert.equal(readerOf(url, origin), reads ? origin : null, `${origin} → ${url}`);
  }
});

Deno.test("a browser that asks is told yes to what it asked for, and never that cookies count (XO2)", () => {
  const asked = new Request("http://127.0.0.1:8004/shop/x", {
    method: "OPTIONS",
    headers: {
      "access-control-request-method": "PUT",
      "access-control-request-headers": "idempotency-key, sojourn-session",
    },
  });
  const answer = allowed(asked, "http://localhost:8003");
  assert.equal(answer?.headers.get("access-control-allow-methods"), "PUT");
  assert.equal(answer?.headers.get("access-control-allow-headers"), "idempotency-key, sojourn-session");
  assert.equal(answer?.headers.get("access-control-allow-credentials"), null);
  assert.equal(
    allowed(new Request("http://h/", { method: "OPTIONS" }), "http://p"),
    null,
    "an app's own OPTIONS",
  );
});

Deno.test("an app that says who may read its answer is not spoken over (XO3)", () => {
  const own = new Response("x", { headers: { "access-control-allow-origin": "https://a.example" } });
  assert.equal(
    shared(own, "https://b.example").headers.get("access-control-allow-origin"),
    "https://a.example",
  );
  const told = shared(new Response("x", { headers: { vary: "accept" } }), "https://b.example");
  assert.equal(told.headers.get("access-control-allow-origin"), "https://b.example");
  assert.equal(told.headers.get("vary"), "accept, origin");
});
