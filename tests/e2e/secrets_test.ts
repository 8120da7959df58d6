/** Secrets of an app on a running cluster: where their values come, and where they never show. */
import { strict as assert } from "node:assert";
import { join, resolve } from "node:path";
import { ADMIN_ROLES } from "../../runtime/admin/access.ts";
import { ask } from "./client.ts";
import { eventually, startCluster, type TestCluster } from "./cluster.ts";

const ROOT = resolve(import.meta.dirname ?? ".", "..", "..");
/** Planted: each is long enough to be recognised, and like nothing else. */
const VALUES = {
  first: "planted-4f1d-first-value-of-KEY",
  second: "planted-88c0-second-value-of-KEY",
  third: "planted-d201-third-value-of-KEY",
  pepper: "planted-77aa-value-of-PEPPER",
};
const TOPOLOGY = { sites: [{ id: "cloud" }, { id: "edge-1", parent: "cloud", link: { rttMs: 2 } }] };

const APP = `
import { defineApp } from "sojourn";
let calls = 0;
const shown = (read) => { try { return read(); } catch (error) { return error.message; } };
export default defineApp({
  secrets: { KEY: {}, PEPPER: { at: "root" } },
  routes: { "/root/*": { at: "root" } },
  cron: { leaks: "0 0 1 1 *" },
  scheduled: (_event, env) => { throw new Error("with " + env.secrets.PEPPER); },
  fetch(request, env) {
    const { pathname } = new URL(request.url);
    // Answers are the app's own: only what it prints and throws is looked through.
    if (pathname === "/key") return Response.json({ calls: ++calls, key: shown(() => env.secrets.KEY) });
    if (pathname === "/print") console.log("KEY:", env.secrets.KEY, { key: env.secrets.KEY }, btoa(env.secrets.KEY));
    if (pathname === "/print") console.error(new Error("with " + env.secrets.KEY));
    if (pathname === "/throw") throw new TypeError("no use of " + env.secrets.KEY);
    if (pathname === "/reject") void Promise.reject(new Error("nobody takes " + env.secrets.KEY));
    if (pathname === "/host") return fetch("http://undeclared.test/?key=" + env.secrets.KEY);
    return new Response(shown(() => env.secrets.PEPPER));
  },
});`;

async function sojourn(cluster: TestCluster, args: string[], input = "") {
  const child = new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", join(ROOT, "runtime", "main.ts"), ...args, "--data", cluster.data],
    stdin: "piped",
    stdout: "piped",
    stderr: "piped",
  }).spawn();
  const writer = child.stdin.getWriter();
  await writer.write(new TextEncoder().encode(input));
  await writer.close().catch(() => {}); // it has read enough
  const { code, stdout, stderr } = await child.output();
  return { code, out: new TextDecoder().decode(stdout), err: new TextDecoder().decode(stderr) };
}

const keyAt = async (cluster: TestCluster, site: string) => {
  const answer = await ask(`${cluster.url(site)}/vault/key`);
  assert.equal(answer.status, 200, answer.text);
  return JSON.parse(answer.text) as { calls: number; key: string };
};

const keyBecomes = (cluster: TestCluster, site: string, value: string) =>
  eventually(`${site} has ${value}`, async () => (await keyAt(cluster, site)).key === value);

/** A running isolate goes on: no request fails, and what the module holds stays. */
async function change(cluster: TestCluster) {
  const before = await keyAt(cluster, "edge-1");
  let stop = false;
  const seen = new Set<string>();
  const requests = (async () => {
    while (!stop) seen.add((await keyAt(cluster, "edge-1")).key);
  })();
  const { code, out, err } = await sojourn(
    cluster,
    ["secrets", "vault", "set", "KEY", "--to", cluster.url("edge-1")],
    `${VALUES.second}\n`,
  );
  assert.equal(code, 0, err);
  assert.equal(out, "vault KEY set, at all 2 sites\n");
  for (const site of ["cloud", "edge-1"]) {
    assert.equal((await keyAt(cluster, site)).key, VALUES.second, "the very next request has it");
  }
  stop = true;
  await requests;
  assert.deepEqual(seen, new Set([before.key, VALUES.second]));
  assert((await keyAt(cluster, "edge-1")).calls > before.calls, "the isolate is the same");
}

/** A site that is away has it later: the command says so, and is partly done. */
async function waits(cluster: TestCluster) {
  await cluster.control("kill", "edge-1");
  const { code, out, err } = await sojourn(
    cluster,
    ["secrets", "vault", "set", "KEY", "--timeout", "1", "--to", cluster.url("cloud")],
    VALUES.first,
  );
  assert.deepEqual([code, out], [3, "vault KEY set, at 1 of 2 sites\n"], err);
  assert.match(err, /^not there yet: edge-1; /m);
  const at = await sojourn(
    cluster,
    ["secrets", "vault", "set", "KEY", "--no-wait", "--json", "--to", cluster.url("cloud")],
    VALUES.second,
  );
  assert.deepEqual([at.code, JSON.parse(at.out).missing], [0, undefined], at.err);
  await cluster.control("start", "edge-1");
  await keyBecomes(cluster, "edge-1", VALUES.second);
}

async function rootOnly(cluster: TestCluster) {
  const at = async (site: string, path: string) => (await ask(`${cluster.url(site)}/vault${path}`)).text;
  assert.match(await at("edge-1", "/root/x"), /PEPPER has no value: sojourn secrets vault set PEPPER/);
  const { code, err } = await sojourn(cluster, ["secrets", "vault", "set", "PEPPER"], VALUES.pepper);
  assert.equal(code, 0, err);
  await eventually("the root has it", async () => await at("edge-1", "/root/x") === VALUES.pepper);
  assert.match(await at("edge-1", "/here"), /PEPPER is kept at the root, and this runs below it/);
}

/** All that an operator can see of the cluster. */
async function everything(cluster: TestCluster): Promise<Map<string, string>> {
  const out = new Map([["the log", cluster.log()]]);
  const paths = Object.keys(ADMIN_ROLES).filter((name) => name.startsWith("GET ")).map((name) =>
    "admin" +
    name.slice(4).replace(":app", "vault").replace(":version", "0".repeat(64)).replace(":site", "edge-1")
  );
  for (const site of ["cloud", "edge-1"]) {
    for (const path of ["status", "metrics", "sites", ...paths, "admin/apps/vault/rows?prefix=026b7600"]) {
      const url = `${cluster.url(site)}/_sojourn/${path}`;
      out.set(`${path} at ${site}`, await textOf(url));
    }
  }
  for (
    const args of [["secrets", "vault", "list"], ["secrets", "vault", "list", "--json"], ["cron", "vault"], [
      "apps",
      "--json",
    ]]
  ) {
    const { out: text, err } = await sojourn(cluster, args);
    out.set(args.join(" "), text + err);
  }
  for await (const [path, text] of filesBelow(cluster.data)) out.set(path, text);
  return out;
}

/** An answer's text; of one that goes on for ever, what comes within a second. */
async function textOf(url: string): Promise<string> {
  let text = "";
  try {
    const answer = await fetch(url, { signal: AbortSignal.timeout(1_000) });
    for await (const part of answer.body?.pipeThrough(new TextDecoderStream()) ?? []) text += part;
  } catch (error) {
    if (!(error instanceof DOMException && error.name === "TimeoutError")) throw error;
  }
  return text;
}

async function* filesBelow(folder: string): AsyncGenerator<[string, string]> {
  for await (const entry of Deno.readDir(folder)) {
    const path = join(folder, entry.name);
    if (entry.isDirectory) yield* filesBelow(path);
    else if (entry.isFile) yield [path, new TextDecoder("latin1").decode(await Deno.readFile(path))];
  }
}

async function nothingShows(cluster: TestCluster) {
  for (const path of ["/print", "/throw", "/reject", "/host"]) {
    const { text } = await ask(`${cluster.url("edge-1")}/vault${path}`);
    for (const value of Object.values(VALUES)) {
      if (path !== "/print") assert(!text.includes(value), `${path}: ${text}`);
    }
  }
  const job = await sojourn(cluster, ["cron", "vault", "run", "leaks"]);
  assert.match(job.err, /app_error: with \[secret PEPPER\]/);
  await eventually("the log has what was printed", () => Promise.resolve(/nobody takes/.test(cluster.log())));
  assert.match(cluster.log(), /KEY: \[secret KEY\] \{ key: .{0,2}\[secret KEY\].{0,2} \} \[secret KEY\]/);
  const spelled = Object.values(VALUES).flatMap((value) => [value, btoa(value).replace(/=+$/, "")]);
  for (const [where, text] of await everything(cluster)) {
    for (const value of spelled) assert(!text.includes(value), `${value} shows in ${where}`);
  }
}

Deno.test("secrets of an app come to its isolates, and show nowhere", async (t) => {
  const folder = await Deno.makeTempDir({ prefix: "sojourn-secrets-" });
  const app = join(folder, "vault");
  const topology = join(folder, "topology.json");
  const env = join(app, ".env");
  await Deno.mkdir(app);
  await Deno.writeTextFile(join(app, "app.ts"), APP);
  await Deno.writeTextFile(topology, JSON.stringify(TOPOLOGY));
  await Deno.writeTextFile(env, `KEY=${VALUES.first}\nSTRANGER=not-declared\n`, { mode: 0o600 });
  try {
    await using cluster = await startCluster({ apps: [app], topology });
    await t.step("what .env says is there when the cluster is ready, and only what is declared", async () => {
      for (const site of ["cloud", "edge-1"]) await keyBecomes(cluster, site, VALUES.first);
      assert.match(cluster.log(), /vault does not declare STRANGER in secrets; it is left/);
    });
    await t.step("a value that is set reaches a running isolate", () => change(cluster));
    await t.step("a site that is away is named, and gets it when it is back", () => waits(cluster));
    await t.step("one that is declared at the root stays there", () => rootOnly(cluster));
    await t.step("a change of .env is applied, and a name that leaves it loses its value", async () => {
      await Deno.writeTextFile(env, `KEY=${VALUES.third}\n`);
      await keyBecomes(cluster, "edge-1", VALUES.third);
      await Deno.writeTextFile(env, "# nothing\n");
      await keyBecomes(cluster, "edge-1", "the secret KEY has no value: sojourn secrets vault set KEY");
      await Deno.writeTextFile(env, `KEY=${VALUES.third}\n`);
      await keyBecomes(cluster, "edge-1", VALUES.third);
    });
    await t.step("no log, status, metric, admin answer or file shows a value", () => nothingShows(cluster));
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});
