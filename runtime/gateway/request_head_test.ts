import { strict as assert } from "node:assert";
import { addressOf } from "./address.ts";
import { Problem } from "../../functions/vocabulary/problem.ts";
import { answeredProtocol, readHead, takeQueryToken } from "./request_head.ts";

function head(headers: Record<string, string>, url = "http://h/app/x", method = "GET") {
  const address = addressOf(url);
  assert.equal(address.kind, "app");
  if (address.kind !== "app") throw new Error("unreachable");
  return readHead({ method, headers: Object.entries(headers) }, address, 1024);
}

Deno.test("readHead finds the token by precedence: header, query of an upgrade, cookie", () => {
  const cookie = "sojourn_session=c";
  const rows = [
    [{ "sojourn-session": "h", cookie }, "http://h/app/x", ["h"], "header"],
    [{ "sojourn-session": "h1, h2" }, "http://h/app/x", ["h1", "h2"], "header"],
    [{ cookie }, "http://h/app/x", ["c"], "cookie"],
    [{ cookie, upgrade: "WebSocket" }, "http://h/app/x?sojourn_session=q", ["q"], "query"],
    [{ cookie }, "http://h/app/x?sojourn_session=q", ["c"], "cookie"],
    [{}, "http://h/app/x", [], "none"],
    // Over https another host may have set the plain one; over http no browser sends the other.
    [{ cookie: "sojourn_session=c" }, "https://h/app/x", [], "none"],
    [{ cookie: "__Host-sojourn_session=s; sojourn_session=c" }, "https://h/app/x", ["s"], "cookie"],
    [
      { cookie: "sojourn_session=c; __Host-sojourn_session=s", "x-forwarded-proto": "https" },
      "http://h/app/x",
      ["s"],
      "cookie",
    ],
    [{ cookie: "__Host-sojourn_session=s" }, "http://h/app/x", [], "none"],
    [{ cookie: "sojourn_session=" }, "http://h/app/x", [""], "cookie"],
    [{ "sojourn-session": "h", "sojourn-session-reset": "1" }, "http://h/app/x", [], "header"],
  ] as const;
  for (const [headers, url, tokens, from] of rows) {
    const read = head(headers, url);
    assert.deepEqual([read.tokens, read.tokenFrom], [tokens, from], JSON.stringify([headers, url]));
  }
});

Deno.test("readHead knows who asks where it ran, and keeps that from the app", () => {
  const rows: [Record<string, string>, boolean][] = [
    [{}, false],
    [{ "sojourn-session": "h" }, false],
    [{ "sojourn-timing": "1" }, true],
    [{ "sojourn-version": "v" }, true],
  ];
  for (const [headers, asks] of rows) {
    const read = head({ ...headers, accept: "*/*" });
    assert.equal(read.asksWhere, asks);
    assert.deepEqual(read.headers, [["accept", "*/*"], ["x-forwarded-prefix", "/app"]]);
  }
});

Deno.test("readHead keeps what carries a token from the app (RH1)", () => {
  const read = head(
    {
      "sojourn-session": "h",
      cookie: "a=1; sojourn_session=c; b=2",
      upgrade: "websocket",
      "x-forwarded-prefix": "/evil",
      accept: "*/*",
    },
    "http://h/app/x?a=1&sojourn_session=q&b=2",
  );
  assert.deepEqual(read.headers, [
    ["cookie", "a=1; b=2"],
    ["upgrade", "websocket"],
    ["accept", "*/*"],
    ["x-forwarded-prefix", "/app"],
  ]);
  assert.equal(read.url, "http://h/x?a=1&b=2");
});

Deno.test("readHead refuses large heads (RH2)", () => {
  assert.throws(
    () => head({ a: "x".repeat(1100) }),
    (error) => error instanceof Problem && error.code === "limit_headers",
  );
});

Deno.test("readHead knows a navigation", () => {
  assert.equal(head({ accept: "text/html,*/*" }).navigation, true);
  assert.equal(head({ "sec-fetch-mode": "navigate" }).navigation, true);
  assert.equal(head({ accept: "text/html" }, "http://h/app/x", "POST").navigation, false);
  assert.equal(head({ accept: "*/*" }).navigation, false);
});

Deno.test("takeQueryToken leaves what is not the token as it is", () => {
  assert.deepEqual(takeQueryToken("/x?a=1"), { token: null, target: "/x?a=1" });
  assert.deepEqual(takeQueryToken("/x?sojourn_session=a%2Cb"), { token: "a,b", target: "/x" });
  assert.deepEqual(takeQueryToken("/x?sojourn_session=%zz"), { token: "%zz", target: "/x" });
});

Deno.test("subprotocols of the platform's are not the app's to see, and one that it has none is said to who asked", () => {
  const rows: [sent: string, offers: string[], app: string | undefined][] = [
    ["chat", [], "chat"],
    ["sojourn.session.1, sojourn.plain.1", ["sojourn.session.1", "sojourn.plain.1"], undefined],
    ["sojourn.plain.1,chat , graphql", ["sojourn.plain.1"], "chat, graphql"],
  ];
  for (const [sent, offers, app] of rows) {
    const read = head({ upgrade: "websocket", "sec-websocket-protocol": sent });
    assert.deepEqual(read.offers, offers);
    assert.equal(read.headers.find(([name]) => name === "sec-websocket-protocol")?.[1], app);
    assert.equal(answeredProtocol(read, "chat"), "chat");
    assert.equal(answeredProtocol(read, ""), offers.length > 0 ? "sojourn.plain.1" : "");
  }
});
