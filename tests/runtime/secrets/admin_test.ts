/** The admin paths of secrets, at a root and at a site below it. */
import assert from "node:assert/strict";
import { Hono } from "hono";
import type { AdminBindings } from "../../../runtime/admin/mod.ts";
import { secretRoutes } from "../../../runtime/admin/secrets.ts";
import { MemorySystem } from "../deploy/memory_system.ts";
import { memorySecrets } from "../deploy/memory_secrets.ts";

const VALUE = "the-value-of-a-secret";

async function setUp() {
  const system = new MemorySystem();
  const { ring, store, table } = await memorySecrets(system, (app) => app === "shop" ? { KEY: {} } : null);
  const crossed: string[] = [];
  const site = (isRoot: boolean, forwardToRoot: (request: Request) => Promise<Response>) => {
    const app = new Hono<{ Bindings: AdminBindings }>();
    secretRoutes(app, {
      ...{ ring, table, store: isRoot ? store : null, forwardToRoot, system },
      site: isRoot ? "cloud" : "edge",
      forward: () => Promise.reject(new Error("there is one site")),
      nowMs: () => performance.now(),
      note: () => {},
    });
    return app;
  };
  const root = site(true, () => Promise.reject(new Error("the root forwards nothing")));
  const edge = site(false, async (request) => {
    crossed.push(`${request.method} ${request.url} ${await request.clone().text()}`);
    return await root.fetch(request, { role: "admin" });
  });
  const ask = async (
    app: typeof root,
    method: string,
    path: string,
    body?: string | Uint8Array<ArrayBuffer>,
  ) => {
    const answer = await app.fetch(
      new Request(`http://site/apps${path}`, { method, body: body ?? null }),
      { role: "admin" },
    );
    return { status: answer.status, text: await answer.text() };
  };
  return { root, edge, ask, crossed };
}

Deno.test("a secret that is set at any site crosses the links sealed, and no answer shows it", async () => {
  const { root, edge, ask, crossed } = await setUp();
  const answers = [
    await ask(edge, "PUT", "/shop/secrets/KEY", VALUE),
    await ask(edge, "GET", "/shop/secrets"),
    await ask(root, "PUT", "/shop/secrets/OTHER?from=dotenv", `${VALUE}\nand a line`),
    await ask(root, "GET", "/shop/secrets"),
  ];
  assert.deepEqual(answers.map(({ status }) => status), [200, 200, 200, 200]);
  const { stamp, ...said } = JSON.parse(answers[0]?.text ?? "");
  assert.match(stamp, /^[0-9a-f]{20}$/);
  assert.deepEqual(said, {
    app: "shop",
    name: "KEY",
    changed: true,
    tier: "everywhere",
    declared: true,
    redacted: true,
  });
  const listed = JSON.parse(answers[3]?.text ?? "") as { name: string; from: string }[];
  assert.deepEqual(listed.map(({ name, from }) => [name, from]), [["KEY", "command"], ["OTHER", "dotenv"]]);
  for (const text of [...answers.map((answer) => answer.text), ...crossed]) assert(!text.includes(VALUE));
  assert.equal(crossed.length, 2);
  assert.equal((await ask(edge, "DELETE", "/shop/secrets/KEY")).status, 200);
  assert.equal((await ask(edge, "DELETE", "/shop/secrets/KEY")).status, 404);
});

Deno.test("a body that is no value is refused where it arrives", async () => {
  const { edge, ask, crossed } = await setUp();
  const rows: [body: string | Uint8Array<ArrayBuffer>, status: number][] = [
    ["", 422],
    [new Uint8Array([0xff, 0xfe]), 422],
    [VALUE.repeat(1_000), 413],
  ];
  for (const [body, status] of rows) {
    assert.equal((await ask(edge, "PUT", "/shop/secrets/KEY", body)).status, status);
  }
  assert.equal((await ask(edge, "PUT", "/shop/secrets/KEY?from=me", VALUE)).status, 422);
  assert.deepEqual(crossed, []);
  assert.equal((await ask(edge, "GET", "/nothing/secrets")).status, 404);
});
