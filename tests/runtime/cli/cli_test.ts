import { LogRing } from "../../../runtime/observe/log_ring.ts";
import type { SiteRates } from "../../../runtime/observe/overview.ts";
import assert from "node:assert/strict";
import { join } from "node:path";
import { adminApp } from "../../../runtime/admin/mod.ts";
import { once } from "../../../runtime/cli/deno_deploy.ts";
import type { ValueInput } from "../../../runtime/cli/command.ts";
import { EXIT, runCli } from "../../../runtime/cli/mod.ts";
import { AppTable, Deployments } from "../../../runtime/deploy/mod.ts";
import { encodeSystem } from "../../../store/model/system_value.ts";
import { encodeValue } from "../../../functions/values/value.ts";
import { type Key, packKey } from "../../../store/model/key.ts";
import { memorySecrets } from "../deploy/memory_secrets.ts";
import { MemorySystem } from "../deploy/memory_system.ts";

/** Standard input that has a text, or a terminal at which keys are pressed. */
function inputOf(text: string, terminal?: { raw: boolean[] }): ValueInput {
  const chunks = [new TextEncoder().encode(text)];
  return {
    isTerminal: () => terminal !== undefined,
    setRaw: (raw) => void terminal?.raw.push(raw),
    read(into) {
      const chunk = chunks.shift();
      if (chunk === undefined || chunk.length === 0) return Promise.resolve(null);
      into.set(chunk);
      return Promise.resolve(chunk.length);
    },
  };
}

/** A one-site cluster behind HTTP, a folder for files, and a shell that keeps what it is told. */
async function setUp() {
  const system = new MemorySystem();
  const set = (key: string[] | Key, value: Uint8Array) =>
    system.write([{ kind: "set", key: typeof key === "string" ? key : packKey(key), value }]);
  const site = {
    id: "cloud",
    number: 1,
    parent: null,
    depth: 0,
    tier: "root",
    url: "http://x",
    linkAddress: "",
  };
  await set(["s", "site", "cloud"], encodeSystem(site));
  const apps = await AppTable.open(system);
  const deployments = new Deployments({
    system,
    nowMs: () => Date.UTC(2026, 0, 2),
    evaluate: (bundle) =>
      Promise.resolve(
        new TextDecoder().decode(bundle).includes("throw ")
          ? { ok: false, message: "Error: not at load", stack: "app.ts:1:7" }
          : { ok: true, manifest: { tables: { users: { key: ["name"] } } } },
      ),
  });
  const never = () => Promise.reject(new Error("there is one site"));
  const declared = (app: string) => apps.get(app)?.current.manifest.secrets ?? null;
  const secrets = await memorySecrets(system, declared);
  const services = {
    secrets,
    site: "cloud",
    system,
    apps,
    deployments,
    forward: never,
    forwardTwice: never,
    forwardToRoot: never,
    observed: {
      ring: new LogRing(),
      sites: () => ["cloud"],
      tree: () => [{ id: "cloud", parent: null, tier: "root", url: "http://x" }],
      status: () => ({ site: "cloud" }),
      rates: () => ({}) as SiteRates,
    },
  };
  const admin = adminApp({ ...services, nowMs: () => performance.now(), note: () => {} });
  const server = Deno.serve(
    { port: 0, hostname: "127.0.0.1", onListen: () => {} },
    async (request) =>
      new URL(request.url).pathname === "/_sojourn/healthz"
        ? new Response("{}")
        : await admin.fetch(request, { role: "admin" }),
  );
  const url = `http://127.0.0.1:${server.addr.port}`;
  const folder = await Deno.makeTempDir({ prefix: "sojourn-cli-" });
  const run = async (
    args: string[],
    env: Record<string, string> = { SOJOURN_URL: url },
    input: ValueInput = inputOf(""),
  ) => {
    const out: string[] = [];
    const err: string[] = [];
    const shell = {
      out: (line: string) => void out.push(line),
      err: (line: string) => void err.push(line),
      env: (name: string) => env[name],
      show: (text: string) => void err.push(text),
      input,
    };
    return { code: await runCli(args, shell), out: out.join("\n"), err: err.join("\n") };
  };
  const module = async (name: string, text: string) => {
    await Deno.mkdir(join(folder, name), { recursive: true });
    await Deno.writeTextFile(join(folder, name, "app.ts"), text);
    return join(folder, name);
  };
  const close = async () => {
    apps.close();
    await server.shutdown();
    await Deno.remove(folder, { recursive: true });
  };
  return { run, module, set, folder, url, close };
}

Deno.test("deploy, versions, rollback: from a folder to a version that serves", async () => {
  const { run, module, close } = await setUp();
  const app = await module("shop", "export default { fetch: () => new Response('1') };");
  const first = await run(["deploy", app, "--json"]);
  assert.equal(first.code, EXIT.done, first.err);
  const deployed = JSON.parse(first.out);
  assert.deepEqual(Object.keys(deployed), ["app", "version", "sites", "missing"]);
  assert.deepEqual([deployed.app, deployed.sites[0].id, deployed.missing], ["shop", "cloud", []]);
  assert.match((await run(["deploy", app])).out, /^shop [0-9a-f]{64} \(unchanged\)/);

  await module("shop", "export default { fetch: () => new Response('2') };");
  const second = JSON.parse((await run(["deploy", app, "--json"])).out);
  assert.notEqual(second.version, deployed.version);
  assert.match((await run(["rollback", "shop"])).out, new RegExp(`^shop ${deployed.version}`));
  const versions = JSON.parse((await run(["versions", "shop", "--json"])).out);
  assert.deepEqual(versions.map((row: { version: string; current: boolean }) => [row.version, row.current]), [
    [second.version, false],
    [deployed.version, true],
  ]);
  assert.match((await run(["apps"])).out, /^app .*\nshop +[0-9a-f]{12} +2 +2026-01-02T00:00:00Z$/);
  assert.match((await run(["sites"])).out, /\ncloud +root +- +up +http:/);
  assert.equal((await run(["tables", "shop"])).out, "users");
  await close();
});

Deno.test("a refused deploy exits 1 and says why and where", async () => {
  const { run, module, close } = await setUp();
  const bad = await module("bad", "throw new Error('not at load');");
  const refused = await run(["deploy", bad, "--json"]);
  assert.equal(refused.code, EXIT.failed);
  assert.deepEqual(JSON.parse(refused.out).error, {
    code: "deploy_invalid",
    message: "Error: not at load",
    place: "app.ts:1:7",
  });
  const broken = await run(["deploy", await module("broken", "export default {")]);
  assert.equal(broken.code, EXIT.failed);
  assert.match(broken.err, /deploy_invalid[\s\S]*app\.ts:1/);
  await close();
});

Deno.test("kv and tables show rows in the open", async () => {
  const { run, module, set, close } = await setUp();
  await run(["deploy", await module("shop", "export default { fetch: () => new Response() };")]);
  await set(["a", "shop", "kv", "count"], encodeValue(3n));
  await set(["a", "shop", "kv", "guests", "ann"], encodeValue({ at: new Date(0), tags: new Set(["x"]) }));
  await set(["r", "shop", "t", "users", "ann"], encodeValue({ name: "ann" }));
  assert.equal((await run(["kv", "get", "shop", "count"])).out, '["count"]  {"$bigint":"3"}');
  const row = JSON.parse((await run(["kv", "list", "shop", "guests", "--json"])).out);
  assert.deepEqual(row.key, ["guests", "ann"]);
  assert.deepEqual(row.value, { at: "1970-01-01T00:00:00.000Z", tags: { $set: ["x"] } });
  assert.equal((await run(["tables", "shop", "users"])).out, '["ann"]  {"name":"ann"}');
  assert.equal((await run(["tables", "list", "shop", "users"])).out, '["ann"]  {"name":"ann"}');
  const slip = await run(["tables", "shop", "user"]);
  assert.deepEqual([slip.code, slip.out], [EXIT.done, ""]);
  assert.match(slip.err, /^note: shop declares no table called user; it has: users$/);
  assert.equal((await run(["tables", "get", "shop", "users", "ann"])).out, '["ann"]  {"name":"ann"}');
  const absent = await run(["kv", "get", "shop", '["guests","bob"]', "--json"]);
  assert.deepEqual([absent.code, absent.err], [EXIT.failed, 'row_absent: ["guests","bob"] is absent']);
  assert.equal(JSON.parse(absent.out).error.code, "row_absent");
  await close();
});

Deno.test("a list goes on where the one before it ended, over pages and keys of every kind", async () => {
  const { run, module, set, close } = await setUp();
  await run(["deploy", await module("shop", "export default { fetch: () => new Response() };")]);
  for (let i = 0; i < 230; i++) {
    const key = packKey([
      "a",
      "shop",
      "kv",
      "n",
      i % 3 === 0 ? BigInt(i) : i % 3 === 1 ? new Uint8Array([i]) : `${i}`,
    ]);
    await set(key, encodeValue(i));
  }
  const keys: string[] = [];
  for (let cursor: string[] = [];;) {
    const { out, err } = await run(["kv", "list", "shop", "n", "--limit", "110", "--json", ...cursor]);
    keys.push(...out.split("\n").map((line) => JSON.stringify(JSON.parse(line).key)));
    const [, next] = /^there are more: --cursor '(.*)'$/.exec(err) ?? [];
    if (next === undefined) break;
    cursor = ["--cursor", next];
  }
  assert.equal(new Set(keys).size, 230);
  assert.equal(keys.length, 230);
  assert.equal((await run(["kv", "get", "shop", keys[0] ?? ""])).code, EXIT.done);
  assert.equal((await run(["kv", "list", "shop", "m"])).out, "");
  assert.equal((await run(["kv", "list", "shop", "--limit", "500", "--json"])).out.split("\n").length, 230);
  await close();
});

Deno.test("commands find the cluster by its file", async () => {
  const { run, folder, url, close } = await setUp();
  const data = join(folder, "data");
  assert.match((await run(["apps", "--data", data], {})).err, /^cluster_unknown: no cluster is known/);
  await Deno.mkdir(data);
  const write = (sites: unknown) =>
    Deno.writeTextFile(join(data, "cluster.json"), JSON.stringify({ pid: 1, adminToken: "t", sites }));
  await write([{ id: "cloud" }]);
  assert.match(
    (await run(["apps", "--data", data], {})).err,
    /cluster_file_invalid[\s\S]*sites\[0\]\.parent/,
  );
  const site = { parent: null, tier: "root", pid: 1 };
  await write([{ ...site, id: "gone", url: "http://127.0.0.1:1" }, { ...site, id: "cloud", url }]);
  assert.deepEqual(await run(["apps", "--data", data, "--json"], {}), {
    code: EXIT.done,
    out: "[]",
    err: "",
  });
  await close();
});

Deno.test("a command line that is none exits 2", async (t) => {
  const { run, close } = await setUp();
  const cases: [string[], RegExp][] = [
    [["nonsense"], /"nonsense" is no command/],
    [["deploy"], /an argument is missing/],
    [["apps", "more"], /apps has delete, not more/],
    [["apps", "--loud"], /Unknown option '--loud'/],
    [["apps", "--json=yes"], /--json/],
    [["deploy", "x", "--app", "Shop"], /--app takes a name like guestbook/],
    [["rollback", "shop", "--timeout", "soon"], /--timeout takes a whole number from 0 to 600, not soon/],
    [["kv", "put", "shop"], /kv has get and list, not put/],
    [["kv", "get", "shop", "[1,"], /is no key/],
    [["apps", "--to", "here"], /"here" is no URL/],
    [["logs", "--level", "loud"], /--level takes one of debug, info, warn, error, not loud/],
    [["logs", "--since", "yesterday"], /--since takes 90s, 10m, 2h, 1d, or a date .*, not yesterday/],
    [["logs", "--limit", "many"], /--limit takes a whole number from 0 to 5000, not many/],
  ];
  for (const [args, says] of cases) {
    await t.step(args.join(" "), async () => {
      const { code, err, out } = await run(args);
      assert.deepEqual([code, out], [EXIT.usage, ""]);
      assert.match(err, says);
      const told = await run([...args, "--json"]);
      assert.equal(told.code, EXIT.usage);
      assert.equal(JSON.parse(told.out).error.code, "usage");
    });
  }
  await close();
});

Deno.test("every command has help, and what is not built says so", async () => {
  const { run, close } = await setUp();
  const help = await run(["--help"]);
  assert.equal(help.code, EXIT.done);
  const built = [
    "deploy",
    "apps",
    "versions",
    "rollback",
    "rollout",
    "routes",
    "sites",
    "kv",
    "tables",
    "secrets",
    "sessions",
    "queues",
    "logs",
    "chaos",
  ];
  for (const name of built) {
    assert.match(help.out, new RegExp(`^  ${name} `, "m"));
    assert.match((await run([name, "--help"])).out, new RegExp(`^sojourn ${name}`));
    assert.deepEqual(await run(["help", name]), await run([name, "--help"]));
  }
  for (
    const name of [
      "why",
    ]
  ) {
    assert.doesNotMatch(help.out, new RegExp(`^  ${name} `, "m"));
    const { code, err, out } = await run([name, "anything", "--json"]);
    assert.equal(code, EXIT.failed);
    assert.match(err, /^not_available: /);
    assert.equal(JSON.parse(out).error.code, "not_available");
  }
  await close();
});

Deno.test("arguments that arrive twice are taken once", () => {
  assert.deepEqual(once(["a", "--json", "a", "--json"]), ["a", "--json"]);
  assert.deepEqual(once(["a", "b"]), ["a", "b"]);
  assert.deepEqual(once([]), []);
});

Deno.test("secrets are set from standard input, listed without values, and deleted", async () => {
  const { run, module, close } = await setUp();
  const value = "correct horse battery";
  const set = await run(["secrets", "shop", "set", "KEY"], undefined, inputOf(`${value}\n`));
  assert.equal(set.code, EXIT.done, set.err);
  assert.equal(set.out, "shop KEY set, kept at the root");
  assert.equal(set.err, "note: no app is called shop yet; the value waits for it");
  await run(["deploy", await module("shop", "export default { fetch: () => new Response('1') };")]);
  // The line's end is not the value's.
  const again = await run(["secrets", "shop", "set", "KEY", "--json"], undefined, inputOf(value));
  assert.equal(JSON.parse(again.out).changed, false);
  assert.match(again.err, /does not declare KEY/);
  const short = await run(["secrets", "shop", "set", "PIN"], undefined, inputOf("1234"));
  assert.match(short.err, /fewer than 8 characters/);
  const list = await run(["secrets", "shop", "list", "--json"]);
  assert.deepEqual(
    JSON.parse(list.out).map((row: Record<string, unknown>) => [row.name, row.tier, row.declared]),
    [["KEY", "root", false], ["PIN", "root", false]],
  );
  const shown = await run(["secrets", "shop", "list"]);
  assert.match(shown.out, /^secret +set +kept at\nKEY +1970-01-01T00:00:01Z +root +not declared\nPIN /);
  for (const { out, err } of [set, again, short, list, shown]) assert(!`${out}${err}`.includes(value));
  assert.equal((await run(["secrets", "shop", "delete", "PIN"])).out, "shop PIN deleted");
  assert.equal((await run(["secrets", "shop", "delete", "PIN"])).code, EXIT.failed);
  await close();
});

Deno.test("a secret that is typed is not shown, and whatever is no value changes nothing (secret_input.ts I1, I2)", async (t) => {
  const { run, close } = await setUp();
  const typing = async (keys: string) => {
    const terminal: { raw: boolean[] } = { raw: [] };
    const done = await run(["secrets", "shop", "set", "KEY", "--json"], undefined, inputOf(keys, terminal));
    return { ...done, raw: terminal.raw };
  };
  await t.step("a line with a correction", async () => {
    const { code, out, err, raw } = await typing("typed valüx\x7f\x7fue\rnot this");
    assert.equal(code, EXIT.done, err);
    assert.deepEqual(raw, [true, false]);
    assert(!`${out}${err}`.includes("typed"));
    const same = await run(["secrets", "shop", "set", "KEY", "--json"], undefined, inputOf("typed value"));
    assert.equal(JSON.parse(same.out).changed, false);
  });
  for (
    const [says, keys] of [["Ctrl-C", "half a value\x03"], ["Ctrl-D", "\x04"], ["only Enter", "\r"]] as const
  ) {
    await t.step(says, async () => {
      const { code, err, raw } = await typing(keys);
      assert.equal(code, EXIT.failed);
      assert.match(err, /KEY is unchanged/);
      assert.deepEqual(raw, [true, false]);
    });
  }
  await close();
});

Deno.test("arguments of secrets that are wrong are usage, and a value among them is not repeated", async () => {
  const { run, close } = await setUp();
  const rows = [
    ["secrets"],
    ["secrets", "shop"],
    ["secrets", "shop", "set"],
    ["secrets", "shop", "show", "KEY"],
    ["secrets", "Shop", "list"],
    ["secrets", "shop", "list", "KEY"],
    ["secrets", "shop", "set", "KEY=s3cr3t-value"],
    ["secrets", "shop", "set", "KEY", "s3cr3t-value"],
    ["secrets", "set", "KEY", "s3cr3t-value"],
  ];
  for (const args of rows) {
    const { code, err, out } = await run(args, undefined, inputOf("value"));
    assert.equal(code, EXIT.usage, args.join(" "));
    assert(!`${err}${out}`.includes("s3cr3t-value"), err);
  }
  await close();
});
