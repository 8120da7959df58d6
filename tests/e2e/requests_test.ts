/** What one request gets: bad tokens, limits, both address forms, forwarded routes, streams, sockets. */
import { strict as assert } from "node:assert";
import { type Answer, ask, CookieClient, HeaderClient, NEW_SESSION, read } from "./client.ts";
import { eventually, startCluster, type TestCluster } from "./cluster.ts";

const codeOf = (answer: Answer): string => {
  assert.equal(answer.headers.get("content-type"), "application/problem+json", answer.text);
  return (JSON.parse(answer.text) as { code: string }).code;
};

async function badTokens(cluster: TestCluster, other: TestCluster): Promise<void> {
  const url = `${cluster.url("edge-1")}/probe/where`;
  const good = (await ask(url, NEW_SESSION)).headers.get("sojourn-session") ?? "";
  const foreign =
    (await ask(`${other.url("cloud")}/probe/where`, NEW_SESSION)).headers.get("sojourn-session") ??
      "";
  const middle = Math.floor(good.length * 0.7);
  const forged = good.slice(0, middle) + (good[middle] === "A" ? "B" : "A") + good.slice(middle + 1);
  const cases = [
    { what: "garbage", token: "not a token", code: "token_malformed" },
    { what: "empty", token: ",", code: "token_malformed" },
    { what: "cut", token: good.slice(0, 30), code: "token_malformed" },
    { what: "altered", token: forged, code: "token_forged" },
    { what: "of another cluster", token: foreign, code: "token_foreign" },
    { what: "too long", token: good.repeat(8), code: "token_oversized" },
    { what: "good and bad", token: `${good}, ${forged}`, code: "token_forged" },
  ];
  for (const { what, token, code } of cases) {
    const answer = await ask(url, { headers: { "sojourn-session": token } });
    assert.equal(answer.status, 401, what);
    assert.equal(codeOf(answer), code, what);
    assert.match(answer.headers.get("www-authenticate") ?? "", new RegExp(code), what);
    assert.equal(answer.headers.get("sojourn-session"), null, what);
  }
  const cookie = await ask(url, { headers: { cookie: `a=1; sojourn_session=${forged}` } });
  assert.equal(cookie.status, 401);
  assert.match(cookie.headers.getSetCookie().join(), /sojourn_session=;.*Max-Age=0/);
  const navigation = await ask(`${url}?q=1`, {
    headers: { cookie: `sojourn_session=${forged}`, accept: "text/html,*/*" },
  });
  assert.equal(navigation.status, 303);
  assert.equal(navigation.headers.get("location"), "/probe/where?q=1");
  const header = await ask(url, {
    headers: { cookie: `sojourn_session=${forged}`, "sojourn-session": good },
  });
  assert.equal(header.status, 200, "the header beats the cookie");
  const reset = await ask(url, { headers: { "sojourn-session": forged, "sojourn-session-reset": "1" } });
  assert.equal(reset.status, 200, "a reset starts over whatever the token");
}

async function cookieOnlyWhenChanged(cluster: TestCluster): Promise<void> {
  const browser = new CookieClient();
  const url = cluster.url("edge-2");
  const blank = await browser.fetch(`${url}/probe/`);
  assert.deepEqual(blank.headers.getSetCookie(), [], "who did nothing in a session has none");
  assert.equal(blank.headers.get("sojourn-session"), null);
  const first = await browser.fetch(`${url}/probe/`, { headers: { accept: "text/html,*/*" } });
  const [set] = first.headers.getSetCookie();
  assert.match(set ?? "", /^sojourn_session=[\w-]+; HttpOnly; SameSite=Lax; Path=\/; Max-Age=2592000$/);
  const second = await browser.fetch(`${url}/probe/`);
  assert.deepEqual(second.headers.getSetCookie(), [], "a function that touched nothing changes nothing");
  const third = await browser.fetch(`${url}/probe/notes/x`, { method: "PUT", body: "x" });
  assert.equal(third.headers.getSetCookie().length, 1, "a write changes the token");
  const crossSite = { origin: "http://evil.example", "sec-fetch-site": "cross-site" };
  const put = { method: "PUT", body: "y", headers: crossSite };
  const post = await ask(`${url}/probe/notes/y`, put);
  assert.ok(post.status < 300, `${post.status}`);
  assert.deepEqual(
    post.headers.getSetCookie(),
    [],
    "another site's form has no cookie to tell, and changes none",
  );
  const ended = await ask(`${url}/_sojourn/session/reset`, { method: "POST", headers: crossSite });
  assert.deepEqual([ended.status, ended.headers.getSetCookie()], [403, []], "and ends no session");
  const over = await ask(`${url}/_sojourn/session/reset`, { method: "POST" });
  assert.equal(over.status, 204);
  assert.match(over.headers.getSetCookie().join(), /Max-Age=0/);
}

async function limits(cluster: TestCluster): Promise<void> {
  const url = `${cluster.url("edge-1")}/probe`;
  const large = new Uint8Array(33 * 1024 * 1024);
  const cases: { what: string; path: string; init: RequestInit; status: number; code: string }[] = [
    {
      what: "body by length",
      path: "/length",
      init: { method: "POST", body: large },
      status: 413,
      code: "limit_body",
    },
    {
      what: "body as a stream",
      path: "/length",
      init: { method: "POST", body: chunks(33, 1024 * 1024) },
      status: 413,
      code: "limit_body",
    },
    {
      what: "headers",
      path: "/",
      init: { headers: { "x-large": "x".repeat(33 * 1024) } },
      status: 413,
      code: "limit_headers",
    },
    { what: "value", path: "/large-value", init: { method: "POST" }, status: 413, code: "limit_value" },
    { what: "key", path: `/notes/${"k".repeat(2100)}`, init: {}, status: 413, code: "limit_key" },
    { what: "row", path: "/bad-note", init: { method: "POST" }, status: 422, code: "row_invalid" },
    { what: "thrown", path: "/throw", init: {}, status: 502, code: "app_error" },
    // As a call that would make one stateful session too many fails.
    { what: "more", path: "/throw?code=limit_stateful", init: {}, status: 413, code: "limit_stateful" },
  ];
  for (const { what, path, init, status, code } of cases) {
    const answer = await ask(url + path, init);
    assert.equal(answer.status, status, `${what}: ${answer.text}`);
    assert.equal(codeOf(answer), code, what);
  }
  const fits = await ask(`${url}/length`, { method: "POST", body: chunks(31, 1024 * 1024) });
  assert.equal(fits.text, String(31 * 1024 * 1024));
}

function chunks(count: number, bytes: number): ReadableStream<Uint8Array<ArrayBuffer>> {
  let left = count;
  return new ReadableStream({
    pull(controller) {
      if (left-- > 0) controller.enqueue(new Uint8Array(bytes));
      else controller.close();
    },
  });
}

async function unknowns(cluster: TestCluster): Promise<void> {
  const url = cluster.url("edge-1");
  const cases = [
    { path: "/nobody/x", status: 404, code: "app_unknown" },
    { path: "/%00bad", status: 404, code: "app_unknown" },
    { path: "/_sojourn/nothing", status: 404, code: "not_found" },
    { path: "/_sojourn/nothing.js", status: 404, code: "not_found" },
  ];
  for (const { path, status, code } of cases) {
    const answer = await ask(url + path);
    assert.equal(answer.status, status, path);
    assert.equal(codeOf(answer), code, path);
  }
  const preview = await ask(`${url}/probe/`, { headers: { "sojourn-version": "0".repeat(64) } });
  assert.equal(codeOf(preview), "version_unknown");
  const front = await ask(url + "/");
  assert.equal(front.status, 200);
  assert.match(front.text, /href="\/probe\/"/);
}

async function samePath(cluster: TestCluster): Promise<void> {
  const url = cluster.url("edge-1");
  const { port } = new URL(url);
  const prefixed = JSON.parse((await ask(`${url}/probe/where?a=1`, { headers: { cookie: "own=1" } })).text);
  assert.deepEqual(prefixed, {
    url: `http://127.0.0.1:${port}/where?a=1`,
    prefix: "/probe",
    cookie: "own=1",
    token: null,
  });
  const client = new HeaderClient();
  await client.fetch(`${url}/probe/where`, NEW_SESSION);
  const hosted = JSON.parse(await askHost(Number(port), "probe.localhost", "/where?a=1", client.token));
  assert.deepEqual(hosted, {
    url: `http://probe.localhost:${port}/where?a=1`,
    prefix: null,
    cookie: null,
    token: null,
  });
}

/** The body of a GET with a host of our choice, which `fetch` would look up. */
async function askHost(port: number, host: string, target: string, token: string): Promise<string> {
  using connection = await Deno.connect({ hostname: "127.0.0.1", port });
  const head = [
    `GET ${target} HTTP/1.1`,
    `host: ${host}:${port}`,
    `sojourn-session: ${token}`,
    "connection: close",
  ];
  await connection.write(new TextEncoder().encode(head.join("\r\n") + "\r\n\r\n"));
  let text = "";
  const buffer = new Uint8Array(16_384);
  for (let n = await connection.read(buffer); n !== null; n = await connection.read(buffer)) {
    text += new TextDecoder().decode(buffer.subarray(0, n));
  }
  return text.slice(text.indexOf("{"), text.lastIndexOf("}") + 1);
}

async function forwarded(cluster: TestCluster): Promise<void> {
  const client = new HeaderClient();
  const edge = cluster.url("edge-3");
  const where = await client.fetch(`${edge}/probe/root/where`);
  assert.equal(where.status, 200, where.text);
  assert.equal(where.headers.get("sojourn-site"), "cloud");
  const put = await client.fetch(`${edge}/probe/root/notes/f`, { method: "PUT", body: "by the root" });
  assert.equal(put.status, 201);
  const got = await client.fetch(`${edge}/probe/notes/f`);
  assert.equal(got.headers.get("sojourn-site"), "edge-3");
  assert.equal(got.text, "by the root", "what ran at the root is seen at the edge in the same session");
  await client.fetch(`${edge}/probe/notes/g`, { method: "PUT", body: "by the edge" });
  const large = new Uint8Array(3 * 1024 * 1024).map((_, i) => i * 7);
  const echoed = await fetch(`${edge}/probe/root/echo`, { method: "POST", body: large });
  assert.deepEqual(new Uint8Array(await echoed.arrayBuffer()), large, "bodies stream both ways");
  const browser = new CookieClient();
  await browser.fetch(`${edge}/probe/root/notes/h`, { method: "PUT", body: "cookie" });
  assert.equal((await browser.fetch(`${edge}/probe/notes/h`)).text, "cookie");
  const bad = await ask(`${edge}/probe/root/where`, { headers: { "sojourn-session": "nonsense" } });
  assert.equal(bad.status, 401);
}

async function events(cluster: TestCluster, path: string): Promise<void> {
  let reads = 0;
  // A reader that is kept from reading for a moment finds several at once.
  for (let tries = 0; tries < 10 && reads < 2; tries++) {
    const answer = await fetch(`${cluster.url("edge-1")}/probe${path}`);
    assert.equal(answer.headers.get("content-type"), "text/event-stream");
    let text = "";
    reads = 0;
    for await (const part of answer.body?.pipeThrough(new TextDecoderStream()) ?? []) {
      text += part;
      reads++;
    }
    assert.equal(text, "data: 1\n\ndata: 2\n\ndata: 3\n\n");
  }
  assert.ok(reads >= 2, "events arrive one by one, not all at the end");
}

async function clientLeaves(cluster: TestCluster, path: string, says: string): Promise<void> {
  const leave = new AbortController();
  const answer = await fetch(`${cluster.url("edge-1")}/probe${path}`, { signal: leave.signal });
  const reader = answer.body?.getReader();
  await reader?.read();
  leave.abort();
  await reader?.read().catch(() => {});
  await eventually("the function's stream is cancelled", async () => {
    const got = await ask(`${cluster.url("cloud")}/probe/kv/cancelled`);
    return (JSON.parse(got.text) as { value: unknown }).value === says;
  });
}

async function clientGivesUp(cluster: TestCluster, path: string, says: string): Promise<void> {
  const noted = async (what: string) => {
    const got = await ask(`${cluster.url("cloud")}/probe/kv/gone`);
    return (JSON.parse(got.text) as { value: unknown }).value === what;
  };
  const patience = new AbortController();
  const url = `${cluster.url("edge-1")}/probe${path}`;
  const rejected = assert.rejects(fetch(url, { signal: patience.signal }));
  await eventually("the function waits", () => noted(`${says} waits`));
  patience.abort();
  await rejected;
  await eventually("the function is told", () => noted(says));
}

async function socket(cluster: TestCluster, path: string): Promise<void> {
  const client = new HeaderClient();
  await client.fetch(`${cluster.url("edge-1")}/probe/`, NEW_SESSION);
  const url = cluster.url("edge-1").replace("http:", "ws:");
  const ws = new WebSocket(`${url}/probe${path}?sojourn_session=${client.token}`);
  ws.binaryType = "arraybuffer";
  const messages: (string | ArrayBuffer)[] = [];
  const done = Promise.withResolvers<CloseEvent>();
  ws.onopen = () => {
    ws.send("one");
    ws.send(new Uint8Array([1, 2, 3]));
    ws.send("x".repeat(300_000));
    ws.send("bye");
  };
  ws.onmessage = (event) => messages.push(event.data);
  ws.onclose = (event) => done.resolve(event);
  const close = await done.promise;
  assert.equal(close.code, 4001);
  assert.equal(close.reason, "as asked");
  assert.equal(messages[0], "heard one");
  assert.deepEqual(new Uint8Array(messages[1] as ArrayBuffer), new Uint8Array([1, 2, 3]));
  assert.equal((messages[2] as string).length, 300_006);
  const bad = await read(
    await fetch(`${cluster.url("edge-1")}/probe${path}?sojourn_session=nonsense`, {
      headers: { upgrade: "websocket", connection: "upgrade" },
    }),
  ).catch(() => null);
  if (bad !== null) assert.equal(bad.status, 401);
}

async function later(cluster: TestCluster): Promise<void> {
  const client = new HeaderClient();
  const begun = await client.fetch(`${cluster.url("edge-1")}/probe/later`);
  assert.equal(begun.text, "begun");
  await eventually("work after the answer is done", async () => {
    const got = await client.fetch(`${cluster.url("edge-2")}/probe/kv/later`);
    return (JSON.parse(got.text) as { value: unknown }).value === "done";
  });
}

async function admin(cluster: TestCluster): Promise<void> {
  const url = cluster.url("edge-1");
  const status = JSON.parse((await ask(`${url}/_sojourn/status`)).text) as Record<string, unknown>;
  assert.equal(status.site, "edge-1");
  assert.equal(status.tier, "edge");
  for (
    const field of [
      "incarnation",
      "position",
      "parent",
      "coverage",
      "pending",
      "children",
      "apps",
      "sessions",
      "alerts",
    ]
  ) {
    assert.ok(field in status, `status names ${field}`);
  }
  const wrong = await ask(`${url}/_sojourn/status`, {
    headers: { authorization: "Bearer wrong-token-that-is-long" },
  });
  assert.equal(wrong.status, 401);
  const crossSite = await ask(`${url}/_sojourn/admin/apps`, { headers: { origin: "https://evil.example" } });
  assert.equal(crossSite.status, 401, "a page of another origin is nobody");
  const apps = await ask(`${url}/_sojourn/admin/apps`, {
    headers: { authorization: `Bearer ${cluster.adminToken}` },
  });
  assert.deepEqual((JSON.parse(apps.text) as { app: string }[]).map(({ app }) => app), ["probe"]);
  assert.match((await ask(`${url}/_sojourn/metrics`)).text, /^sojourn_requests_total \d+$/m);
}

Deno.test("a gateway answers each request as the surfaces say", async (t) => {
  await using cluster = await startCluster();
  await t.step("bad tokens are 401", async () => {
    await using other = await startCluster({ topology: "single" });
    await badTokens(cluster, other);
  });
  await t.step("the cookie is set only when it changed", () => cookieOnlyWhenChanged(cluster));
  await t.step("limits are 413, bad rows 422", () => limits(cluster));
  await t.step("unknown apps and paths are 404", () => unknowns(cluster));
  await t.step("an app sees the same path in both address forms", () => samePath(cluster));
  await t.step("a route pinned to the root runs there, in the same session", () => forwarded(cluster));
  await t.step("events stream", () => events(cluster, "/events"));
  await t.step("events stream from the root", () => events(cluster, "/root/events"));
  await t.step("a client that leaves ends its stream", () => clientLeaves(cluster, "/forever", "forever"));
  await t.step(
    "a client that leaves ends its stream at the root",
    () => clientLeaves(cluster, "/root/forever", "root"),
  );
  await t.step("a client that gives up ends its request", () => clientGivesUp(cluster, "/slow", "slow"));
  await t.step(
    "a client that gives up ends its request at the root",
    () => clientGivesUp(cluster, "/root/slow", "root"),
  );
  await t.step("a WebSocket talks", () => socket(cluster, "/socket"));
  await t.step("a WebSocket talks to the root", () => socket(cluster, "/root/socket"));
  await t.step("waitUntil work goes on after the answer", () => later(cluster));
  await t.step("status, metrics and admin calls know who asks", () => admin(cluster));
});
