/** Deploying to a running cluster, by the commands that people type. */
import { strict as assert } from "node:assert";
import { join, resolve } from "node:path";
import { FilesApp, walkAssets } from "./assets_walk.ts";
import { ask, HeaderClient } from "./client.ts";
import { eventually, PROBE, startCluster, type TestCluster } from "./cluster.ts";

const ROOT = resolve(import.meta.dirname ?? ".", "..", "..");
const SITES = ["cloud", "core-1", "core-2", "edge-1", "edge-2", "edge-3"];

/** A folder outside the checkout in which tests write apps. */
class Workshop {
  readonly folder = Deno.makeTempDirSync({ prefix: "sojourn-apps-" });

  async write(app: string, files: Record<string, string>): Promise<string> {
    const folder = join(this.folder, app);
    await Deno.mkdir(folder, { recursive: true });
    for (const [name, text] of Object.entries(files)) await Deno.writeTextFile(join(folder, name), text);
    return folder;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Deno.remove(this.folder, { recursive: true });
  }
}

/** Runs a command of the project to its end. */
async function run(args: string[], env: Record<string, string> = {}) {
  const child = new Deno.Command(Deno.execPath(), { args, env, stdin: "null" });
  const { code, stdout, stderr } = await child.output();
  return { code, out: new TextDecoder().decode(stdout), err: new TextDecoder().decode(stderr) };
}

const sojourn = (cluster: TestCluster, args: string[]) =>
  run(["run", "-A", join(ROOT, "runtime", "main.ts"), ...args, "--data", cluster.data]);

const says = (text: string) => `export default { fetch: () => new Response(${JSON.stringify(text)}) };`;

async function deploy(
  cluster: TestCluster,
  ...args: string[]
): Promise<{ version: string; missing: string[] }> {
  const { code, out, err } = await sojourn(cluster, ["deploy", ...args, "--json"]);
  assert.equal(code, 0, out + err);
  return JSON.parse(out);
}

async function everySite(cluster: TestCluster, app: string, text: string, version?: string) {
  for (const site of SITES) {
    const answer = await ask(`${cluster.url(site)}/${app}/`);
    assert.deepEqual([site, answer.status, answer.text], [site, 200, text]);
    if (version !== undefined) assert.equal(answer.headers.get("sojourn-version"), version);
  }
}

/** Deploy, deploy again, go back: each is what every site answers the moment the command ends. */
async function thereAndBack(cluster: TestCluster, workshop: Workshop) {
  const first = await deploy(cluster, await workshop.write("shop", { "app.ts": says("one") }));
  await everySite(cluster, "shop", "one", first.version);
  const again = await sojourn(cluster, ["deploy", join(workshop.folder, "shop")]);
  assert.match(again.out, new RegExp(`^shop ${first.version} \\(unchanged\\)\n`));
  const second = await deploy(
    cluster,
    await workshop.write("shop", { "app.ts": says("two") }),
    "--to",
    cluster.url("edge-2"),
  );
  await everySite(cluster, "shop", "two", second.version);
  const back = await sojourn(cluster, ["rollback", "shop"]);
  assert.equal(back.code, 0, back.err);
  await everySite(cluster, "shop", "one", first.version);
  const { out } = await sojourn(cluster, ["versions", "shop", "--json"]);
  assert.deepEqual(
    JSON.parse(out).map((row: { version: string; current: boolean }) => [row.version, row.current]),
    [[second.version, false], [first.version, true]],
  );
}

/** An app in a folder of its own: its import map, a JSON and a text file, packages, `sojourn`. */
async function outsideApp(cluster: TestCluster, workshop: Workshop) {
  await workshop.write("outside", {
    "deno.json": JSON.stringify({ imports: { "#greeting": "./greeting.ts" } }),
    "greeting.ts": 'export const greeting = "hello";',
    "data.json": '{"who":"world"}',
    "note.txt": "!",
    "app.ts": [
      'import { defineApp } from "sojourn";',
      'import { Hono } from "hono";',
      'import { greeting } from "#greeting";',
      'import data from "./data.json" with { type: "json" };',
      'import note from "./note.txt" with { type: "text" };',
      "const http = new Hono();",
      'http.get("/", (c) => c.text(`${greeting} ${data.who}${note}`));',
      'export default defineApp({ name: "elsewhere", fetch: http.fetch });',
    ].join("\n"),
  });
  await deploy(cluster, join(workshop.folder, "outside", "app.ts"));
  await everySite(cluster, "elsewhere", "hello world!");
}

/** The app of the README does what the README says. */
async function readmeApp(cluster: TestCluster, workshop: Workshop) {
  const readme = await Deno.readTextFile(join(ROOT, "README.md"));
  const [, app = ""] = /```ts[^\n]*\n([\s\S]*?)```/.exec(readme) ?? [];
  await deploy(cluster, await workshop.write("cafe", { "app.ts": app }));
  const client = new HeaderClient();
  const mocha = await client.fetch(`${cluster.url("edge-2")}/cafe/orders/ann/mocha`, { method: "POST" });
  assert.equal(mocha.status, 201, mocha.text);
  await client.fetch(`${cluster.url("edge-3")}/cafe/orders/ann/latte`, { method: "POST" });
  const { text } = await client.fetch(`${cluster.url("cloud")}/cafe/orders/ann`);
  const { rows } = JSON.parse(text) as { rows: { value: { drink: string } }[] };
  assert.deepEqual(rows.map((row) => row.value.drink), ["latte", "mocha"]);
}

const BAD: Readonly<Record<string, { module: string; error: RegExp }>> = {
  "does not parse": { module: "export default {", error: /app\.ts:1:\d+/ },
  "imports what is not there": { module: `import "./gone.ts"; ${says("")}`, error: /gone\.ts/ },
  "imports what it may not": {
    module: `import { readFileSync } from "node:fs"; export const f = readFileSync; ${says("")}`,
    error: /node:fs/,
  },
  "fetches at load": {
    module: `await fetch("http://127.0.0.1:1"); ${says("")}`,
    error: /while a request runs/,
  },
  "reads the store at load": {
    module: `const kv = await Deno.openKv(); await kv.get(["x"]); ${says("")}`,
    error: /while a (request|module)|no request|no_request/i,
  },
  "throws at load": {
    module: `const lives: number = 9;\nif (lives > 0) throw new RangeError("nine lives"); ${says("")}`,
    error: /nine lives[\s\S]*firm\/app\.ts:2:/,
  },
  "never ends loading": { module: `for (;;); ${says("")}`, error: /did not load/ },
  "has no handler": { module: "export default { vars: {} };", error: /fetch/ },
  "has no default export": { module: "export const x = 1;", error: /default/ },
  "declares nonsense": {
    module: 'export default { fetch: () => new Response(), routes: { "/x": { at: "moon" } } };',
    error: /routes[\s\S]*moon/,
  },
};

/** The old version keeps serving, and the command says why. */
async function badBundles(cluster: TestCluster, workshop: Workshop, t: Deno.TestContext) {
  const good = await deploy(cluster, await workshop.write("firm", { "app.ts": says("still here") }));
  for (const [name, { module, error }] of Object.entries(BAD)) {
    await t.step(`a bundle that ${name} is refused`, async () => {
      const folder = await workshop.write("firm", { "app.ts": module });
      const { code, out, err } = await sojourn(cluster, ["deploy", folder, "--json"]);
      assert.equal(code, 1, out);
      assert.equal(JSON.parse(out).error.code, "deploy_invalid");
      assert.match(err, error);
      const answer = await ask(`${cluster.url("edge-1")}/firm/`);
      assert.deepEqual([answer.text, answer.headers.get("sojourn-version")], ["still here", good.version]);
    });
  }
}

const users = (key: string, indexes: string) => `
  import { defineApp, table } from "sojourn";
  import { z } from "zod";
  export default defineApp({
    tables: { users: table({
      schema: z.object({ id: z.string(), town: z.string() }), key: [${key}], indexes: { ${indexes} },
    }) },
    async fetch(request, env) {
      const { pathname } = new URL(request.url);
      if (request.method === "PUT") {
        const [, id = "", town = ""] = pathname.split("/");
        await env.tables.users.put({ id, town });
      }
      ${
  indexes === "" ? "const { rows } = await env.tables.users.list({});" : `
      const { rows } = await env.tables.users.list({ index: "byTown", prefix: [pathname.slice(1)] });`
}
      return Response.json(rows.map((row) => row.value.id));
    },
  });`;

/** A table's key stays; a new index shows the rows that were there before it. */
async function tables(cluster: TestCluster, workshop: Workshop) {
  await deploy(cluster, await workshop.write("people", { "app.ts": users('"id"', "") }));
  const put = (path: string) => ask(`${cluster.url("edge-1")}/people/${path}`, { method: "PUT" });
  for (const path of ["ann/rome", "bob/oslo", "cid/rome"]) assert.equal((await put(path)).status, 200);
  await eventually("the root has the rows", async () => {
    const answer = await ask(`${cluster.url("cloud")}/people/`);
    return answer.text === '["ann","bob","cid"]';
  });
  const changed = await workshop.write("people", { "app.ts": users('"town", "id"', "") });
  const refused = await sojourn(cluster, ["deploy", changed]);
  assert.equal(refused.code, 1);
  assert.match(refused.err, /table users has the key \[id\] and cannot get the key \[town, id\]/);
  await deploy(cluster, await workshop.write("people", { "app.ts": users('"id"', 'byTown: ["town"]') }));
  for (const site of ["cloud", "edge-1", "edge-3"]) {
    assert.equal((await ask(`${cluster.url(site)}/people/rome`)).text, '["ann","cid"]', site);
  }
}

/** A site that is down is missing, exit 3, and has the version when it is back. */
async function siteDown(cluster: TestCluster, workshop: Workshop) {
  await cluster.control("kill", "edge-3");
  const folder = await workshop.write("late", { "app.ts": says("late") });
  const { code, out } = await sojourn(cluster, ["deploy", folder, "--json", "--timeout", "2"]);
  assert.equal(code, 3, out);
  // A busy machine may keep others from it for two seconds, too.
  const { missing, sites } = JSON.parse(out) as { missing: string[]; sites: unknown[] };
  assert.ok(missing.includes("edge-3"), out);
  assert.equal(missing.length + sites.length, SITES.length, out);
  await cluster.control("start", "edge-3");
  await eventually(
    "edge-3 serves it",
    async () => (await ask(`${cluster.url("edge-3")}/late/`)).text === "late",
  );
}

/** `deno deploy`, told where our entry is, is `sojourn deploy`. */
async function denoDeploy(cluster: TestCluster, workshop: Workshop) {
  const folder = await workshop.write("native", { "app.ts": says("by deno deploy") });
  const entry = new URL("../../runtime/cli/deno_deploy.ts", import.meta.url).href;
  const env = {
    DENO_DEPLOY_CLI_SPECIFIER: entry,
    SOJOURN_URL: cluster.url("core-1"),
    SOJOURN_TOKEN: cluster.adminToken,
  };
  const { code, out, err } = await run(["deploy", folder, "--json"], env);
  assert.equal(code, 0, err);
  assert.deepEqual(JSON.parse(out).missing, []);
  await everySite(cluster, "native", "by deno deploy");
}

Deno.test("apps are deployed, refused and rolled back on a running cluster", async (t) => {
  await using workshop = new Workshop();
  await using files = await FilesApp.make();
  await using cluster = await startCluster({ apps: [PROBE, files.folder] });
  await t.step("deploy, redeploy, roll back", () => thereAndBack(cluster, workshop));
  await t.step("an app outside the checkout", () => outsideApp(cluster, workshop));
  await t.step("the app of the README", () => readmeApp(cluster, workshop));
  await t.step("bad bundles", (step) => badBundles(cluster, workshop, step));
  await t.step("a changed key is refused, a new index is filled", () => tables(cluster, workshop));
  await t.step("deno deploy drives the same code", () => denoDeploy(cluster, workshop));
  await t.step("a site that is down is missing", () => siteDown(cluster, workshop));
  await t.step("static files and source maps", (step) => walkAssets(cluster, files, step));
});
