import { strict as assert } from "node:assert";
import { Problem } from "../../functions/vocabulary/problem.ts";
import { Dashboard, DASHBOARD_PATH } from "./files.ts";

const dashboard = new Dashboard(
  () => [{ url: "http://127.0.0.1:8001/x" }, { url: "no url" }],
  () => new Set(["shop.example"]),
);

async function ask(
  path: string,
  init: RequestInit = {},
  host = "127.0.0.1:8000",
): Promise<Response | string> {
  try {
    return await dashboard.answer(new Request(`http://${host}${path}`, init), path);
  } catch (error) {
    if (error instanceof Problem) return error.code;
    throw error;
  }
}

Deno.test("only the parts of the page are files (D1)", async () => {
  const names = [];
  for await (const { name } of Deno.readDir(new URL("page/", import.meta.url))) names.push(name);
  for (const name of names) {
    const answer = await ask(`${DASHBOARD_PATH}/${name}`);
    assert(answer instanceof Response, name);
    assert.equal(answer.status, 200);
    assert.equal(answer.headers.get("x-content-type-options"), "nosniff");
    await answer.body?.cancel();
  }
  const others = [
    "../files.ts",
    "..%2ffiles.ts",
    "files.ts",
    "page/main.js",
    "main.js/",
    "constructor",
    ".",
    "//main.js",
  ];
  for (const name of others) assert.equal(await ask(`${DASHBOARD_PATH}/${name}`), "not_found", name);
  assert.equal(await ask(DASHBOARD_PATH, { method: "POST" }), "method_not_allowed");
});

Deno.test("the page is sandboxed, loads only its own, and cannot be framed (D2)", async () => {
  const page = await ask(DASHBOARD_PATH);
  assert(page instanceof Response);
  const rules = page.headers.get("content-security-policy")?.split("; ") ?? [];
  assert.deepEqual(rules.filter((rule) => rule.includes("unsafe") || rule.includes("*")), []);
  for (
    const rule of [
      "default-src 'none'",
      "script-src 'self'",
      "connect-src 'self' http://127.0.0.1:8001",
      "frame-ancestors 'none'",
      "require-trusted-types-for 'script'",
    ]
  ) assert(rules.includes(rule), rule);
  const sandbox = rules.find((rule) => rule.startsWith("sandbox")) ?? "";
  assert.match(sandbox, /^sandbox allow-scripts/);
  assert(!sandbox.includes("allow-same-origin"));
  assert.equal(page.headers.get("x-frame-options"), "DENY");
  const text = await page.text();
  assert.deepEqual([...text.matchAll(/(?:src|href)="(?!\/_sojourn\/dashboard\/)[^"]*"/g)], []);
  assert(!/<script(?![^>]* src=)|<style| on\w+=| style=/.test(text), "something inline");
});

Deno.test("what has not changed is not sent again", async () => {
  const first = await ask(`${DASHBOARD_PATH}/main.js`);
  assert(first instanceof Response);
  await first.body?.cancel();
  const etag = first.headers.get("etag") ?? "";
  const again = await ask(`${DASHBOARD_PATH}/main.js`, { headers: { "if-none-match": etag } });
  assert(again instanceof Response);
  assert.deepEqual([again.status, again.body], [304, null]);
});

Deno.test("an app's host has no dashboard (D3)", async () => {
  assert.equal(await ask(DASHBOARD_PATH, {}, "shop.localhost:8000"), "not_found");
  assert.equal(await ask(DASHBOARD_PATH, {}, "shop.example"), "not_found");
  assert.equal(await ask(DASHBOARD_PATH, {}, "Shop.example.:8000"), "not_found");
  const here = await ask(DASHBOARD_PATH, {}, "localhost:8000");
  assert(here instanceof Response);
  await here.body?.cancel();
});
