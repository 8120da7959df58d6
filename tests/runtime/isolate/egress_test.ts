/** Outgoing fetches: where they may go, and what comes back. */
import assert from "node:assert/strict";
import { isPublicAddress } from "../../../runtime/isolate/addresses.ts";
import { type IsolateAnswer, IsolatePool } from "../../../runtime/isolate/mod.ts";
import { EgressRules, hostPattern } from "../../../runtime/isolate/egress_rules.ts";
import { checkedAddress, type OutgoingRequest, sendChecked } from "../../../runtime/isolate/outgoing_http.ts";
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

interface Rule {
  readonly url: string;
  readonly declares: string[];
  readonly allow?: string[];
  readonly private?: string[];
  /** null: it may go there. */
  readonly says: RegExp | null;
}

const UNDECLARED = /the app does not declare/;
const UNPERMITTED = /the operator of this site does not permit/;
const PRIVATE = /is not a public address; the operator can permit/;

const RULES: readonly Rule[] = [
  { url: "http://127.0.0.1:8080/", declares: [], says: UNDECLARED },
  { url: "http://127.0.0.1:8080/", declares: ["127.0.0.1"], says: PRIVATE },
  { url: "http://127.0.0.1:8080/", declares: ["127.0.0.1"], private: ["127.0.0.1:8081"], says: PRIVATE },
  { url: "http://127.0.0.1:8080/", declares: ["127.0.0.1"], private: ["127.0.0.1:8080"], says: null },
  { url: "http://127.0.0.1:8080/", declares: ["127.0.0.1"], private: ["127.0.0.1"], says: PRIVATE },
  { url: "http://127.0.0.1:8080/", declares: ["127.0.0.1"], private: ["*"], says: PRIVATE },
  {
    url: "http://127.0.0.1:8080/",
    declares: ["127.0.0.1:9090"],
    private: ["127.0.0.1:8080"],
    says: UNDECLARED,
  },
  // Other spellings of an address.
  { url: "http://2130706433/", declares: ["127.0.0.1"], says: PRIVATE },
  { url: "http://0x7f.1/", declares: ["127.0.0.1"], says: PRIVATE },
  { url: "http://[::1]/", declares: ["[::1]"], says: PRIVATE },
  { url: "http://[0:0:0:0:0:0:0:1]/", declares: ["[::1]"], says: PRIVATE },
  { url: "http://[::1]:81/", declares: ["[::1]:81"], private: ["[0:0::1]:81"], says: null },
  { url: "http://[::ffff:127.0.0.1]/", declares: ["[::ffff:7f00:1]"], says: PRIVATE },
  { url: "http://[::ffff:169.254.169.254]/", declares: ["[::ffff:169.254.169.254]"], says: PRIVATE },
  { url: "http://[64:ff9b::7f00:1]/", declares: ["[64:ff9b::7f00:1]"], says: PRIVATE },
  { url: "http://169.254.169.254/latest/meta-data", declares: ["169.254.169.254"], says: PRIVATE },
  { url: "http://metadata.cloud.test/", declares: ["metadata.cloud.test"], says: PRIVATE },
  { url: "http://both.test/", declares: ["both.test"], says: null },
  { url: "http://none.test/", declares: ["none.test"], says: /no address is not a public address/ },
  { url: "http://localhost:1/", declares: ["localhost"], says: PRIVATE },
  { url: "http://localhost:1/", declares: ["localhost"], private: ["localhost:1"], says: null },
  { url: "http://1.1.1.1/", declares: ["1.1.1.1"], says: null },
  { url: "ftp://1.1.1.1/", declares: ["1.1.1.1"], says: /only http: and https:/ },
  // Both must say yes, whichever of them says it how.
  { url: "https://api.test/", declares: ["api.test"], allow: [], says: UNPERMITTED },
  { url: "https://api.test/", declares: [], allow: ["api.test"], says: UNDECLARED },
  { url: "https://api.test/", declares: ["api.test"], allow: ["api.test"], says: null },
  { url: "https://API.Test/", declares: ["api.test"], allow: ["api.test:443"], says: null },
  { url: "http://api.test/", declares: ["api.test"], allow: ["api.test:443"], says: UNPERMITTED },
  { url: "https://api.test:8443/", declares: ["api.test:443"], allow: ["*"], says: UNDECLARED },
  { url: "https://api.test/", declares: ["api.test:443"], allow: ["api.test"], says: null },
  { url: "https://a.api.test/", declares: ["*.api.test"], allow: ["*.api.test"], says: null },
  { url: "https://a.b.api.test/", declares: ["*.api.test"], allow: ["*.test:443"], says: null },
  { url: "https://api.test/", declares: ["*.api.test"], allow: ["*"], says: UNDECLARED },
  { url: "https://evilapi.test/", declares: ["*.api.test"], allow: ["*"], says: UNDECLARED },
  { url: "https://api.test.evil.test/", declares: ["api.test"], allow: ["*"], says: UNDECLARED },
  { url: "https://api.test./", declares: ["api.test"], allow: ["*"], says: UNDECLARED },
  // A private pair is permitted by its name, and nothing near it.
  { url: "http://db.test:5432/", declares: ["db.test"], allow: [], private: ["db.test:5432"], says: null },
  {
    url: "http://db.test:5433/",
    declares: ["db.test"],
    allow: [],
    private: ["db.test:5432"],
    says: UNPERMITTED,
  },
  {
    url: "http://db.test:5433/",
    declares: ["db.test"],
    allow: ["*"],
    private: ["db.test:5432"],
    says: PRIVATE,
  },
];

/** Names that tests look up; whatever else is looked up fails. */
const NAMES: Readonly<Record<string, readonly string[]>> = {
  "localhost": ["127.0.0.1"],
  "api.test": ["1.2.3.4"],
  "a.api.test": ["1.2.3.4"],
  "a.b.api.test": ["2606:4700::1111"],
  "db.test": ["10.0.0.5"],
  "both.test": ["10.0.0.5", "1.2.3.4"],
  "metadata.cloud.test": ["169.254.169.254", "fe80::a9fe:a9fe"],
  "none.test": [],
};

function lookup(host: string): Promise<readonly string[]> {
  const found = NAMES[host];
  return found === undefined ? Promise.reject(new Error(`${host} is looked up`)) : Promise.resolve(found);
}

Deno.test("fetch goes only where app and operator both allow it, and the refusal says which did not (egress.ts E1; egress_rules.ts G1, G2)", async (t) => {
  for (const rule of RULES) {
    await t.step(`${rule.url} ${JSON.stringify(rule)}`, async () => {
      const { declares: fetchHosts, allow = ["*"], private: privateHosts = [] } = rule;
      const checked = checkedAddress(
        new URL(rule.url),
        new EgressRules({ fetchHosts, allow, privateHosts, lookup }),
      );
      if (rule.says === null) assert((await checked).length > 0);
      else await assert.rejects(checked, rule.says);
    });
  }
});

Deno.test("a refusal does not show the query of its address", async () => {
  const url = new URL("https://api.test/v1?key=0123456789");
  await assert.rejects(
    checkedAddress(url, new EgressRules({ fetchHosts: [] })),
    (error: unknown) => error instanceof Error && error.message.startsWith("fetch(https://api.test/v1): "),
  );
});

Deno.test("a pattern of hosts is one only in these forms", () => {
  const good = [
    "*",
    "api.test",
    "API.test",
    "*.api.test",
    "*.api.test:443",
    "1.2.3.4:80",
    "[::1]",
    "[::1]:8080",
  ];
  const bad = [
    "",
    "*.",
    "*:443",
    "a*.test",
    "*.*.test",
    "api.test:",
    "api.test:99999",
    "api.test/x",
    "http://a.test",
  ];
  bad.push("a b", "::1", "user@a.test", "[zz]:1", "api.test:44x");
  for (const text of good) assert.notEqual(hostPattern(text), null, text);
  for (const text of bad) assert.equal(hostPattern(text), null, text);
});

const request = (url: string): OutgoingRequest => ({
  method: "GET",
  url,
  headers: [],
  body: null,
  signal: new AbortController().signal,
});

Deno.test("the address that was checked is the one connected to, whatever the name says next (egress.ts E2)", async () => {
  await withServer(async (port, _pool, seen) => {
    let asked = 0;
    const rules = new EgressRules({
      fetchHosts: ["rebind.test"],
      privateHosts: [`rebind.test:${port}`],
      // What a name server does that rebinds: the second answer is another one.
      lookup: () => Promise.resolve(asked++ === 0 ? ["127.0.0.1"] : ["192.0.2.1"]),
    });
    const answer = await sendChecked(request(`http://rebind.test:${port}/here`), rules);
    await answer.body?.cancel();
    assert.deepEqual([answer.status, asked, seen], [200, 1, [`GET /here rebind.test:${port}`]]);
    // It is looked up, and so checked, again for the next request: there it is refused.
    const open = new EgressRules({
      fetchHosts: ["rebind.test"],
      lookup: () => Promise.resolve(["127.0.0.1"]),
    });
    await assert.rejects(sendChecked(request(`http://rebind.test:${port}/there`), open), PRIVATE);
    assert.equal(seen.length, 1);
  });
});

Deno.test("a proxy in the site's environment is not asked: it would look names up by itself", async () => {
  await withServer(async (port, _pool, seen) => {
    const module = (name: string) => new URL(`../../../runtime/isolate/${name}.ts`, import.meta.url).href;
    const code = `
      import { sendChecked } from ${JSON.stringify(module("outgoing_http"))};
      import { EgressRules } from ${JSON.stringify(module("egress_rules"))};
      const rules = new EgressRules({
        fetchHosts: ["named.test"], privateHosts: ["named.test:${port}"], lookup: () => Promise.resolve(["127.0.0.1"]),
      });
      const answer = await sendChecked({
        method: "GET", url: "http://named.test:${port}/direct", headers: [], body: null, signal: new AbortController().signal,
      }, rules);
      await answer.body.cancel();`;
    const proxy = "http://127.0.0.1:9";
    const { success, stderr } = await new Deno.Command(Deno.execPath(), {
      args: ["eval", "--no-check", code],
      env: { NODE_USE_ENV_PROXY: "1", HTTP_PROXY: proxy, http_proxy: proxy, ALL_PROXY: proxy },
    }).output();
    assert(success, new TextDecoder().decode(stderr));
    assert.deepEqual(seen, [`GET /direct named.test:${port}`]);
  });
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
  const pool = new IsolatePool({ spares: 0, egress: { privateHosts: [`127.0.0.1:${port}`] } });
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

Deno.test("fetch inside an isolate reaches a declared host through the site (egress.ts E1, E3)", async () => {
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
          if (pathname === "/elsewhere") return (await fetch(base + "/redirect?to=http://undeclared.test/")).status;
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
    assert.match(String(await get("/elsewhere")), /fetch_refused,.*does not declare undeclared\.test:80/);
    assert.equal(await get("/manual"), 302);
    assert.match(String(await get("/undeclared")), /fetch_refused,.*does not declare example\.com/);
    assert.match(String(await get("/abort")), /aborted due to timeout/);
  });
});

Deno.test("fetch waits for the output gate (egress.ts E4)", async () => {
  await withServer(async (port, pool, seen) => {
    const app = appOf(
      `export default { async fetch() { return Response.json((await fetch("http://127.0.0.1:${port}/")).status); } };`,
      { fetchHosts: ["127.0.0.1"] },
    );
    const asked = Promise.withResolvers<void>(), held = Promise.withResolvers<void>();
    const gate = () => {
      asked.resolve();
      return held.promise;
    };
    const answer = pool.call(app, callOf("/", { gate }));
    await asked.promise; // by the fetch, or else by the response behind it
    assert.deepEqual(seen, []);
    held.resolve();
    assert.equal(await jsonOf(await answer), 200);
  });
});
