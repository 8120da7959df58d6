import { strict as assert } from "node:assert";
import { AdminTokens } from "../deploy/mod.ts";
import { platform, type PlatformServices, type SiteReadiness } from "./platform.ts";
import { Problem } from "../../functions/vocabulary/problem.ts";

const ADMIN = "the-token-of-an-admin";
const READER = "the-token-of-a-reader";

function setUp(more: Partial<PlatformServices> = {}): PlatformServices {
  return {
    site: "edge-1",
    dev: false,
    adminTokens: new AdminTokens(`${ADMIN}\nread ${READER}\n`),
    readiness: (): SiteReadiness => ({ ready: true, parent: "connected" }),
    sites: () => [{ id: "edge-1", url: "http://h", tier: "edge" }],
    hosts: () => new Map([["shop.example", "shop"]]),
    session: () => () => Promise.resolve(new Response(null, { status: 204 })),
    client: () => Promise.resolve(new Response("export {};")),
    status: () => ({ site: "edge-1" }),
    metrics: () => "sojourn_requests_total 3\n",
    chaos: null,
    dashboard: () => Promise.resolve(new Response("page")),
    admin: () => (_request, role) => Response.json({ role }),
    ...more,
  };
}

/** The code of a refusal, or the answer's status. */
async function outcome(
  services: PlatformServices,
  url: string,
  init: RequestInit = {},
): Promise<string | number> {
  try {
    const answer = await platform(services, new Request(url, init), new URL(url).pathname);
    await answer.body?.cancel();
    return answer.status;
  } catch (error) {
    if (error instanceof Problem) return error.code;
    throw error;
  }
}

/** A form of a page of that origin, sent by a browser that says so in either way. */
const from = (site: string | null, origin: string): RequestInit => ({
  method: "POST",
  headers: { origin, ...site === null ? {} : { "sec-fetch-site": site } },
});

Deno.test("outside dev only what is public needs no token (PF2)", async () => {
  const services = setUp();
  const reader = { headers: { authorization: `Bearer ${READER}` } };
  const rows: [string, RequestInit, string | number][] = [
    ["healthz", {}, 200],
    ["readyz", {}, 200],
    ["sites", {}, 200],
    ["session/reset", { method: "POST" }, 204],
    ["session/reset", {}, "method_not_allowed"],
    ["session/reset", from("same-origin", "http://127.0.0.1"), 204],
    ["session/reset", from(null, "http://127.0.0.1"), 204],
    ["session/reset", from("cross-site", "http://evil.example"), "cross_site"],
    ["session/reset", from("same-site", "http://beside.localhost"), "cross_site"],
    ["session/reset", from(null, "http://evil.example"), "cross_site"],
    ["status", {}, "admin_token_invalid"],
    ["status", { headers: { authorization: "Bearer wrong-token-of-nobody" } }, "admin_token_invalid"],
    ["status", reader, 200],
    ["metrics", {}, "admin_token_invalid"],
    ["metrics", reader, 200],
    ["dashboard", {}, 200],
    ["dashboard/main.js", {}, 200],
    ["session", {}, 204],
    ["session", { method: "POST" }, "method_not_allowed"],
    ["client.js", {}, 200],
    ["nothing", {}, "not_found"],
    ["admin", {}, "not_found"],
  ];
  for (const [path, init, expected] of rows) {
    assert.equal(await outcome(services, `http://127.0.0.1/_sojourn/${path}`, init), expected, path);
  }
});

Deno.test("the admin handlers are told who asks: in dev an admin, unless another origin may be behind it (PF2, page_calls.ts PC1)", async () => {
  const roleOf = async (services: PlatformServices, url: string, headers: Record<string, string> = {}) => {
    const answer = await platform(services, new Request(url, { headers }), "/_sojourn/admin/apps");
    return (await answer.json() as { role: string | null }).role;
  };
  const path = ":8000/_sojourn/admin/apps";
  const rows: [boolean, string, Record<string, string>, string | null][] = [
    [false, "http://127.0.0.1", {}, null],
    [false, "http://127.0.0.1", { authorization: `Bearer ${READER}` }, "read"],
    [true, "http://127.0.0.1", {}, "admin"],
    [true, "http://localhost", {}, "admin"],
    [true, "http://app.localhost", {}, "admin"],
    [true, "http://[::1]", {}, "admin"],
    // A page: of an app on this very host, of somebody else, the sandboxed dashboard.
    [true, "http://127.0.0.1", { origin: "http://127.0.0.1:8000" }, null],
    [true, "http://127.0.0.1", { "sec-fetch-site": "same-origin" }, null],
    [true, "http://127.0.0.1", { "sec-fetch-site": "cross-site" }, null],
    [true, "http://127.0.0.1", { "sec-fetch-site": "none" }, "admin"], // an address that somebody typed
    [true, "http://127.0.0.1", { origin: "http://evil.example" }, null],
    [true, "http://127.0.0.1", { origin: "null" }, null],
    // A name of somebody else's that resolves to this machine.
    [true, "http://evil.example", {}, null],
    [true, "http://evil.example", { origin: "http://evil.example:8000" }, null],
    [true, "http://127.0.0.1.evil.example", {}, null],
    [true, "http://127.0.0.1", { authorization: `Bearer ${READER}` }, "read"],
    [true, "http://127.0.0.1", { authorization: "Bearer wrong-token-of-nobody" }, null],
  ];
  for (const [dev, origin, headers, role] of rows) {
    assert.equal(
      await roleOf(setUp({ dev }), origin + path, headers),
      role,
      JSON.stringify([dev, origin, headers]),
    );
  }
});

Deno.test("readyz says why a site is not ready", async () => {
  const rows: [SiteReadiness, string | number][] = [
    [{ ready: true, parent: "unreachable" }, 200],
    [{ ready: false, code: "not_ready", detail: "waits" }, "not_ready"],
    [{ ready: false, code: "disk_failed", detail: "full" }, "disk_failed"],
  ];
  for (const [readiness, expected] of rows) {
    assert.equal(await outcome(setUp({ readiness: () => readiness }), "http://h/_sojourn/readyz"), expected);
  }
  assert.equal(await outcome(setUp({ admin: () => null }), "http://h/_sojourn/admin/apps"), "not_ready");
});

Deno.test("metrics are lines that a scraper takes", async () => {
  const answer = await platform(
    setUp({ dev: true }),
    new Request("http://127.0.0.1/_sojourn/metrics"),
    "/_sojourn/metrics",
  );
  assert.match(answer.headers.get("content-type") ?? "", /^text\/plain; version=0\.0\.4/);
  assert.equal(await answer.text(), "sojourn_requests_total 3\n");
});

Deno.test("changes are logged with who asked for them, reads and blobs are not, and no log is filled by a path", async () => {
  const calls: string[] = [];
  const adminTokens = new AdminTokens(`deploy ${ADMIN} ci\n`);
  const services = setUp({
    adminTokens,
    chaos: { handle: () => Promise.resolve(new Response()) },
    adminCall: (level, fields) => void calls.push(`${level} ${Object.values(fields).join(" ")}`),
  });
  const authorization = `Bearer ${ADMIN}`;
  const ask = (method: string, path: string, headers: Record<string, string> = { authorization }) =>
    outcome(services, `http://h/_sojourn/admin/${path}`, { method, headers });
  await ask("GET", "apps");
  await ask("PUT", "blobs/00");
  await ask("POST", "deploy?app=shop");
  await ask("DELETE", "apps/shop", {});
  await ask("POST", "x".repeat(5_000), {});
  assert.deepEqual(calls.slice(0, 2), [
    "info ci deploy POST /admin/deploy",
    "info none DELETE /admin/apps/shop",
  ]);
  assert.equal(calls.length, 3);
  assert.ok((calls[2]?.length ?? 0) < 250);
  await ask("PUT", "chaos/site");
  assert.equal(calls[3], "debug ci deploy PUT /admin/chaos/site"); // the same at each site, of one fault
});

Deno.test("at a host of an app the list of sites says which app it is", async () => {
  for (const [host, app] of [["shop.example", "shop"], ["notes.localhost:8003", "notes"], ["h:1", null]]) {
    const answer = await platform(setUp(), new Request(`http://${host}/_sojourn/sites`), "/_sojourn/sites");
    assert.equal(answer.headers.get("sojourn-app"), app);
    assert.deepEqual(await answer.json(), [{ id: "edge-1", url: "http://h", tier: "edge" }]);
  }
});

Deno.test("a page of any origin may ask for what is public, with a session's token, and for nothing else (PC3, cross_origin.ts XO4)", async () => {
  const question = (path: string) =>
    new Request(`http://h${path}`, {
      method: "OPTIONS",
      headers: {
        origin: "http://elsewhere",
        "access-control-request-method": "GET",
        "access-control-request-headers": "sojourn-session",
      },
    });
  const answer = await platform(setUp(), question("/_sojourn/session"), "/_sojourn/session");
  assert.deepEqual([answer.status, answer.headers.get("access-control-allow-origin")], [204, "*"]);
  assert.equal(answer.headers.get("access-control-allow-headers"), "sojourn-session");
  await assert.rejects(
    async () => await platform(setUp(), question("/_sojourn/status"), "/_sojourn/status"),
    (error) => error instanceof Problem && error.code === "admin_token_invalid",
  );
});

Deno.test("a token of agents opens what agents ask for, and nothing else; no lesser role does", async () => {
  const scopes: unknown[] = [];
  const services = setUp({
    adminTokens: new AdminTokens(`${ADMIN}\ndeploy ${READER}\nagent:shop/till agents-of-the-shop\n`),
    agents: () => (_request, path, scope) => {
      scopes.push([path, scope]);
      return new Response();
    },
  });
  const rows: [string, string, string | number][] = [
    ["agent/origin", "agents-of-the-shop", 200],
    ["agent/origin", ADMIN, 200],
    ["agent/origin", READER, "admin_role"],
    ["agent/origin", "nobody's-token-at-all", "admin_token_invalid"],
    ["status", "agents-of-the-shop", "admin_role"],
    ["metrics", "agents-of-the-shop", "admin_role"],
    ["admin/apps", "agents-of-the-shop", "admin_role"],
    ["admin/deploy", "agents-of-the-shop", "admin_role"],
  ];
  for (const [path, token, expected] of rows) {
    const init = { headers: { authorization: `Bearer ${token}` } };
    assert.equal(await outcome(services, `http://h/_sojourn/${path}`, init), expected, `${path} ${token}`);
  }
  assert.deepEqual(scopes, [["origin", { app: "shop", class: "till" }], ["origin", null]]);
});

Deno.test("a token of queues opens queues, and nothing else; no lesser role does", async () => {
  const scopes: unknown[] = [];
  const services = setUp({
    adminTokens: new AdminTokens(
      `${ADMIN}\ndeploy ${READER}\nsend:shop/sms sender-of-messages\nagent:shop agents-of-the-shop\n`,
    ),
    queues: () => (_request, path, scope) => {
      scopes.push([path, scope]);
      return new Response();
    },
    agents: () => () => new Response(),
  });
  const rows: [string, string, string | number][] = [
    ["queues/shop/sms", "sender-of-messages", 200],
    ["queues/shop/sms", ADMIN, 200],
    ["queues/shop/sms", READER, "admin_role"],
    ["queues/shop/sms", "agents-of-the-shop", "admin_role"],
    ["queues/shop/sms", "nobody's-token-at-all", "admin_token_invalid"],
    ["status", "sender-of-messages", "admin_role"],
    ["metrics", "sender-of-messages", "admin_role"],
    ["admin/apps", "sender-of-messages", "admin_role"],
    ["agent/check", "sender-of-messages", "admin_role"],
  ];
  for (const [path, token, expected] of rows) {
    const init = { method: "POST", headers: { authorization: `Bearer ${token}` } };
    assert.equal(await outcome(services, `http://h/_sojourn/${path}`, init), expected, `${path} ${token}`);
  }
  const scope = { may: "send", app: "shop", queue: "sms" };
  assert.deepEqual(scopes, [["shop/sms", scope], ["shop/sms", null]]);
});
