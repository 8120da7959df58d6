/** Outgoing fetches: where they may go, and what comes back. */
import assert from "node:assert/strict";
import { isPublicAddress } from "../../runtime/isolate/addresses.ts";
import { type IsolateAnswer, IsolatePool } from "../../runtime/isolate/mod.ts";
import { checkedAddress } from "../../runtime/isolate/outgoing_http.ts";
import { appOf, callOf } from "./apps.ts";

const ADDRESSES: readonly (readonly [address: string, isPublic: boolean])[] = [
  ["1.1.1.1", true],
  ["93.184.216.34", true],
  ["172.15.0.1", true],
  ["172.32.0.1", true],
  ["2606:4700::1111", true],
  ["::ffff:8.8.8.8", true],
  ["0.0.0.0", false],
  ["10.1.2.3", false],
  ["100.64.0.1", false],
  ["127.0.0.1", false],
  ["169.254.169.254", false],
  ["172.16.0.1", false],
  ["192.168.1.1", false],
  ["198.18.0.1", false],
  ["224.0.0.1", false],
  ["255.255.255.255", false],
  ["::", false],
  ["::1", false],
  ["::ffff:127.0.0.1", false],
  ["::ffff:7f00:1", false],
  ["64:ff9b::7f00:1", false],
  ["fe80::1", false],
  ["fe80::1%eth0", false],
  ["fd00::1", false],
  ["ff02::1", false],
  ["2001:db8::1", false],
  ["2002:7f00:1::", false],
  ["localhost", false],
  ["", false],
];

Deno.test("address is public only where it is known to be", () => {
  for (const [address, expected] of ADDRESSES) assert.equal(isPublicAddress(address), expected, address);
});

const RULES:
  readonly (readonly [url: string, fetchHosts: string[], privateHosts: string[], says: RegExp | null])[] = [
    ["http://127.0.0.1:8080/", [], [], /does not declare/],
    ["http://127.0.0.1:8080/", ["127.0.0.1"], [], /not a public address/],
    ["http://127.0.0.1:8080/", ["127.0.0.1"], ["127.0.0.1:8081"], /not a public address/],
    ["http://127.0.0.1:8080/", ["127.0.0.1"], ["127.0.0.1:8080"], null],
    ["http://127.0.0.1:8080/", ["127.0.0.1:9090"], ["127.0.0.1:8080"], /does not declare/],
    ["http://2130706433/", ["127.0.0.1"], [], /not a public address/],
    ["http://0x7f.1/", ["127.0.0.1"], [], /not a public address/],
    ["http://[::1]/", ["[::1]"], [], /not a public address/],
    ["http://[::ffff:127.0.0.1]/", ["[::ffff:7f00:1]"], [], /not a public address/],
    ["http://localhost:1/", ["localhost"], [], /not a public address/],
    ["http://localhost:1/", ["localhost"], ["localhost:1"], null],
    ["http://1.1.1.1/", ["1.1.1.1"], [], null],
    ["ftp://1.1.1.1/", ["1.1.1.1"], [], /only http: and https:/],
  ];

Deno.test("fetch goes only where app and operator allow it", async () => {
  for (const [url, fetchHosts, privateHosts, says] of RULES) {
    const checked = checkedAddress(new URL(url), { fetchHosts, privateHosts });
    if (says === null) await checked;
    else await assert.rejects(checked, says, url);
  }
});

async function withServer(
  work: (port: number, pool: IsolatePool, seen: string[]) => Promise<void>,
): Promise<void> {
  const seen: string[] = [];
  const server = Deno.serve({ port: 0, hostname: "127.0.0.1", onListen() {} }, async (request) => {
    const url = new URL(request.url);
    seen.push(`${request.method} ${url.pathname} ${request.headers.get("host")}`);
    if (url.pathname === "/redirect") {
      return new Response(null, { status: 302, headers: { location: url.searchParams.get("to") ?? "/" } });
    }
    if (url.pathname === "/slow") {
      await new Promise((resolve) => request.signal.addEventListener("abort", resolve));
    }
    if (url.pathname === "/big") return new Response(new Uint8Array(2_000_000).fill(7));
    return new Response(`${request.method} ${await request.text()} ${request.headers.get("x-a")}`, {
      headers: [["set-cookie", "a=1"], ["set-cookie", "b=2"]],
    });
  });
  const { port } = server.addr;
  const pool = new IsolatePool({ spares: 0, privateHosts: [`127.0.0.1:${port}`] });
  try {
    await work(port, pool, seen);
  } finally {
    await pool.close();
    await server.shutdown();
  }
}

async function jsonOf(answer: IsolateAnswer): Promise<unknown> {
  if (answer.kind !== "response") throw new Error(`no response: ${JSON.stringify(answer)}`);
  return await answer.response.json();
}

Deno.test("fetch inside an isolate reaches a declared host through the site", async () => {
  await withServer(async (port, pool, seen) => {
    const app = appOf(
      `const base = "http://127.0.0.1:${port}";
      const tryTo = async (f) => { try { return await f(); } catch (e) { return [e.code ?? e.name, e.message]; } };
      export default { async fetch(request) {
        const { pathname } = new URL(request.url);
        return Response.json(await tryTo(async () => {
          if (pathname === "/post") {
            const r = await fetch(base + "/p", { method: "POST", body: "data", headers: { "x-a": "1" } });
            return [r.status, await r.text(), r.headers.getSetCookie(), r.url, r.ok];
          }
          if (pathname === "/big") return (await (await fetch(base + "/big")).bytes()).length;
          if (pathname === "/redirect") {
            const r = await fetch(base + "/redirect?to=/there");
            return [r.redirected, r.url, await r.text()];
          }
          if (pathname === "/out") return (await fetch(base + "/redirect?to=http://10.0.0.1/")).status;
          if (pathname === "/manual") return (await fetch(base + "/redirect?to=/there", { redirect: "manual" })).status;
          if (pathname === "/undeclared") return (await fetch("http://example.com/")).status;
          if (pathname === "/abort") return (await fetch(base + "/slow", { signal: AbortSignal.timeout(50) })).status;
        }));
      } };`,
      { fetchHosts: ["127.0.0.1", "10.0.0.1"] },
    );
    const get = async (path: string) => await jsonOf(await pool.call(app, callOf(path)));
    const base = `http://127.0.0.1:${port}`;
    assert.deepEqual(await get("/post"), [200, "POST data 1", ["a=1", "b=2"], `${base}/p`, true]);
    assert.deepEqual(seen, [`POST /p 127.0.0.1:${port}`]);
    assert.equal(await get("/big"), 2_000_000);
    assert.deepEqual(await get("/redirect"), [true, `${base}/there`, "GET  null"]);
    assert.match(String(await get("/out")), /fetch_refused,.*10\.0\.0\.1 is not a public address/);
    assert.equal(await get("/manual"), 302);
    assert.match(String(await get("/undeclared")), /fetch_refused,.*does not declare example\.com/);
    assert.match(String(await get("/abort")), /aborted due to timeout/);
  });
});

Deno.test("fetch waits for the output gate", async () => {
  await withServer(async (port, pool, seen) => {
    const app = appOf(
      `export default { async fetch() { return Response.json((await fetch("http://127.0.0.1:${port}/")).status); } };`,
      { fetchHosts: ["127.0.0.1"] },
    );
    const held = Promise.withResolvers<void>();
    const answer = pool.call(app, callOf("/", { gate: () => held.promise }));
    await pool.call(appOf(`export default { fetch: () => new Response() };`), callOf("/"));
    assert.deepEqual(seen, []);
    held.resolve();
    assert.equal(await jsonOf(await answer), 200);
  });
});
