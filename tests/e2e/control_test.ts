/** The control plane of a running cluster: changes of what serves under traffic, and what they leave. */
import { strict as assert } from "node:assert";
import { join, resolve } from "node:path";
import { bundleApp } from "../../runtime/bundle/mod.ts";
import { AdminClient } from "../../runtime/deploy/client.ts";
import { ask, HeaderClient, NEW_SESSION } from "./client.ts";
import { eventually, startCluster, type TestCluster } from "./cluster.ts";

const ROOT = resolve(import.meta.dirname ?? ".", "..", "..");
const SITES = ["cloud", "core-1", "core-2", "edge-1", "edge-2", "edge-3"];
const EDGES = ["edge-1", "edge-2", "edge-3"];

/** A cluster, and apps on their way to it. */
class Control {
  readonly #folder = Deno.makeTempDirSync({ prefix: "sojourn-control-" });
  readonly client: AdminClient;

  constructor(readonly cluster: TestCluster) {
    this.client = new AdminClient({ url: cluster.url("cloud"), token: cluster.adminToken });
  }

  async module(app: string, text: string): Promise<string> {
    const path = join(this.#folder, app, "app.ts");
    await Deno.mkdir(join(this.#folder, app), { recursive: true });
    await Deno.writeTextFile(path, text);
    return path;
  }

  async bundle(app: string, text: string): Promise<Uint8Array<ArrayBuffer>> {
    const bundled = await bundleApp(await this.module(app, text));
    assert(bundled.kind === "bundled", JSON.stringify(bundled));
    return bundled.code;
  }

  async deploy(app: string, text: string, weight?: number): Promise<string> {
    const { version, missing } = await this.client.deploy({
      bundle: await this.bundle(app, text),
      app,
      weight,
      waitMs: 30_000,
    });
    assert.deepEqual(missing, []);
    return version;
  }

  url(site: string, path: string): string {
    return this.cluster.url(site) + path;
  }

  /** Runs a command to its end. */
  async sojourn(...args: string[]) {
    const { code, stdout, stderr } = await this.command(args).output();
    return { code, out: new TextDecoder().decode(stdout), err: new TextDecoder().decode(stderr) };
  }

  command(args: string[]): Deno.Command {
    const main = join(ROOT, "runtime", "main.ts");
    return new Deno.Command(Deno.execPath(), {
      args: ["run", "-A", main, ...args, "--data", this.cluster.data],
      stdin: "null",
      stdout: "piped",
      stderr: "piped",
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Deno.remove(this.#folder, { recursive: true });
  }
}

const traffic = (version: string) => `
  import { Hono } from "hono";
  const app = new Hono();
  app.get("/", (c) => c.text(${JSON.stringify(version)}));
  app.get("/stream", (c) => {
    let timer;
    const lines = new ReadableStream({
      start(controller) {
        let n = 0;
        timer = setInterval(() => controller.enqueue(new TextEncoder().encode(n++ + "\\n")), 50);
      },
      cancel: () => clearInterval(timer),
    });
    return new Response(lines);
  });
  app.get("/socket", (c) => {
    const { socket, response } = Deno.upgradeWebSocket(c.req.raw);
    socket.onmessage = ({ data }) => socket.send(data);
    return response;
  });
  export default app;`;

/** Requests without a pause at every site, until `stop` says what came of them. */
function constantRequests(control: Control) {
  let running = true, done = 0;
  const failed: string[] = [];
  const versions = new Set<string>();
  const loops = SITES.map(async (site) => {
    const client = new HeaderClient();
    while (running) {
      try {
        const { status, text, headers } = await client.fetch(control.url(site, "/traffic/"));
        if (status === 200) versions.add(headers.get("sojourn-version") ?? "");
        else failed.push(`${site}: ${status} ${text}`);
      } catch (error) {
        failed.push(`${site}: ${error}`);
      }
      done++;
      await new Promise((resolve) => setTimeout(resolve, 20)); // so that the machine has time for the deploys
    }
  });
  return async () => {
    running = false;
    await Promise.all(loops);
    return { done, failed, versions };
  };
}

/** A stream and a socket that are to outlive all changes. */
async function longRunning(control: Control) {
  const left = new AbortController();
  const stream = await fetch(control.url("edge-1", "/traffic/stream"), { signal: left.signal });
  let lines = "";
  let cut: unknown;
  const reading = (async () => {
    const texts = stream.body?.pipeThrough(new TextDecoderStream()) ?? [];
    for await (const text of texts) lines += text;
    if (!left.signal.aborted) cut = "the stream ended";
  })().catch((error) => left.signal.aborted || (cut = error));
  const socket = new WebSocket(control.url("edge-3", "/traffic/socket").replace("http", "ws"));
  await new Promise((resolve, reject) => Object.assign(socket, { onopen: resolve, onerror: reject }));
  const echo = (text: string) =>
    new Promise<string>((resolve, reject) => {
      socket.onmessage = ({ data }) => resolve(data);
      socket.onclose = ({ code }) => reject(new Error(`the socket was closed: ${code}`));
      socket.send(text);
    });
  return {
    echo,
    lines: () => lines.split("\n").length,
    async close() {
      const closed = new Promise((resolve) => socket.onclose = resolve);
      socket.close();
      await closed;
      left.abort();
      await reading;
      assert.equal(cut, undefined);
    },
  };
}

/** From the last byte of a bundle to when every site serves it, as clients of all sites see it. */
async function deployTimed(control: Control, text: string): Promise<number> {
  const bundle = await control.bundle("traffic", traffic(text));
  const begunMs = performance.now(); // the upload itself is loopback: it counts in
  const deployed = control.client.deploy({ bundle, app: "traffic", waitMs: 30_000 });
  await Promise.all(
    SITES.map((site) =>
      eventually(
        `${site} serves ${text}`,
        async () => (await ask(control.url(site, "/traffic/"))).text === text,
      )
    ),
  );
  const ms = performance.now() - begunMs;
  assert.deepEqual((await deployed).missing, []);
  return ms;
}

/** Five redeploys and a rollback drop nothing. */
async function underTraffic(control: Control) {
  await control.deploy("traffic", traffic("v0"));
  const stop = constantRequests(control);
  const long = await longRunning(control);
  const times: number[] = [];
  for (let i = 1; i <= 5; i++) {
    times.push(await deployTimed(control, `v${i}`));
    assert.equal(await long.echo(`${i}`), `${i}`);
  }
  assert.equal((await control.sojourn("rollback", "traffic")).code, 0);
  assert.equal(await long.echo("back"), "back");
  const before = long.lines();
  await eventually("the stream goes on", () => Promise.resolve(long.lines() > before + 1));
  await long.close();
  const { done, failed, versions } = await stop();
  assert.deepEqual(failed, [], `of ${done}`);
  assert.equal(versions.size, 6);
  console.log(`${done} requests, 0 failed; to all sites: ${times.map(Math.round).join(", ")} ms`);
}

const says = (text: string) =>
  `export default { routes: { "/root": { at: "root" } }, fetch: () => new Response(${
    JSON.stringify(text)
  }) };`;

/** Sessions keep their version while the weight grows, wherever they go, and new ones are decided by their id. */
async function rollout(control: Control) {
  const one = await control.deploy("gradual", says("one"));
  const clients = Array.from({ length: 40 }, () => new HeaderClient());
  const seen = async (client: HeaderClient, site: string, path = "/gradual/") => {
    // Nothing is done in it by which a session would begin.
    const init = client.token === "" ? NEW_SESSION : {};
    const { status, text, headers } = await client.fetch(control.url(site, path), init);
    assert.equal(status, 200, text);
    return { text, version: headers.get("sojourn-version") };
  };
  for (const client of clients.slice(0, 20)) await seen(client, "edge-1");
  const two = await control.deploy("gradual", says("two"), 0);
  const preview = { headers: { "sojourn-version": two } };
  assert.equal((await ask(control.url("edge-2", "/gradual/"), preview)).text, "two");
  assert.equal((await ask(control.url("edge-2", "/gradual/"))).text, "one");
  const short = { headers: { "sojourn-version": two.slice(0, 12) } };
  assert.equal((await ask(control.url("edge-2", "/gradual/"), short)).status, 404);
  const has = new Set<HeaderClient>();
  for (const weight of [20, 50, 80]) {
    const changed = await control.sojourn("rollout", "gradual", two.slice(0, 12), `${weight}%`);
    assert.equal(changed.code, 0, changed.err);
    for (const [i, client] of clients.entries()) {
      const first = await seen(client, EDGES[i % 3] ?? "");
      const moved = await seen(client, EDGES[(i + 1) % 3] ?? "");
      const above = await seen(client, "edge-3", "/gradual/root");
      assert.deepEqual([moved, above], [first, first], "the same at every site");
      if (first.version === two) has.add(client);
      else assert(!has.has(client), `a session lost the version at ${weight} %`);
    }
  }
  assert(has.size > 20 && has.size < 40, `${has.size} of 40 at 80 %`);
  const shown = await control.sojourn("rollout", "gradual");
  assert.match(shown.out, new RegExp(`^80 % of the sessions of gradual get ${two.slice(0, 12)}`));
  assert.equal((await control.sojourn("rollout", "gradual", "abort")).code, 0);
  for (const site of SITES) assert.equal((await seen(new HeaderClient(), site)).version, one, site);
  assert.equal((await control.sojourn("rollout", "gradual", "finish")).code, 1);
  assert.equal((await control.sojourn("rollout", "gradual", two, "101%")).code, 2);
}

/** A host of an app's own at every site, and never before the platform's paths. */
async function hosts(control: Control) {
  await control.deploy("shop", says("shop"));
  const added = await control.sojourn("routes", "shop", "add", "Shop.Example:8000", "--json");
  assert.equal(added.code, 0, added.err);
  assert.deepEqual(JSON.parse(added.out).hosts, ["shop.example"]);
  const at = async (site: string, path: string, host = "shop.example") => {
    const { hostname, port } = new URL(control.cluster.url(site));
    const connection = await Deno.connect({ hostname, port: Number(port) });
    const request = `GET ${path} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`;
    await connection.write(new TextEncoder().encode(request));
    return await new Response(connection.readable).text();
  };
  for (const site of SITES) assert.match(await at(site, "/gradual/"), /\r\nshop/, site);
  assert.match(await at("edge-1", "/x", "SHOP.example.:80"), /\r\nshop/);
  assert.match(await at("edge-1", "/root"), /sojourn-site: cloud[\s\S]*\r\nshop/i, "a route above");
  assert.match(await at("edge-1", "/_sojourn/healthz"), /"site":"edge-1"/);
  const taken = await control.sojourn("routes", "gradual", "add", "shop.example");
  assert.equal(taken.code, 1);
  assert.match(taken.err, /^host_taken: shop\.example is taken by app shop/m);
  assert.equal((await control.sojourn("routes", "shop", "remove", "shop.example")).code, 0);
  assert.match(await at("edge-2", "/gradual/"), /\r\none/);
}

const people = (indexes: string, list: string) => `
  import { defineApp, table } from "sojourn";
  import { z } from "zod";
  export default defineApp({
    tables: { people: table({
      schema: z.object({ id: z.string(), town: z.string() }), key: ["id"], indexes: { ${indexes} },
    }) },
    async fetch(request, env) {
      const { people } = env.tables;
      const [, id, town] = new URL(request.url).pathname.split("/");
      if (request.method === "PUT") {
        await people.put({ id, town });
        return new Response();
      }
      const ids = async (list) => {
        const found = [];
        for await (const { key } of list) found.push(key[0]);
        return found;
      };
      const byKey = await ids(people.list());
      const byTown = ${list};
      return Response.json({ byKey, byTown });
    },
  });`;
const OLD = people("", "null");
const NEW = people('byTown: ["town"]', 'await ids(people.list({ index: "byTown" }))');

/**
 * What is seen by key is found by a new index: rows from before, and those that the old version puts while the
 * index is filled and while it serves beside the new one.
 */
async function newIndex(control: Control) {
  await control.deploy("people", OLD);
  let running = true, written = 0;
  const failed: string[] = [];
  const writers = EDGES.map(async (site) => {
    const client = new HeaderClient();
    for (let i = 0; running; i++) {
      const { status, text } = await client.fetch(control.url(site, `/people/${site}-${i}/t${i % 7}`), {
        method: "PUT",
      });
      if (status === 200) written++;
      else failed.push(text);
      await new Promise((resolve) => setTimeout(resolve, 30));
    }
  });
  await eventually("there are rows", () => Promise.resolve(written > 30));
  const version = await control.deploy("people", NEW, 30);
  const preview = { "sojourn-version": version };
  const lost: string[] = [];
  const look = async (site: string) => {
    const { text } = await ask(control.url(site, "/people/"), { headers: preview });
    const { byKey, byTown } = JSON.parse(text) as { byKey: string[]; byTown: string[] };
    const found = new Set(byTown); // listed after: it may have more
    lost.push(...byKey.filter((id) => !found.has(id)).map((id) => `${id} at ${site}`));
    return byKey.length;
  };
  const begun = written;
  do for (const site of SITES) await look(site); while (written < begun + 30);
  await control.client.endRollout("people", "finish", 30_000);
  for (const site of SITES) await look(site);
  running = false;
  await Promise.all(writers);
  assert.deepEqual(failed, []);
  for (const site of SITES) {
    await eventually(`${site} has all rows`, async () => await look(site) === written);
  }
  assert.deepEqual(lost, []);
}

/** A site that is cut off while an index is filled: what it wrote meanwhile is found when it has been heard. */
async function newIndexAway(control: Control) {
  await control.deploy("away", OLD);
  const cut = await control.sojourn("chaos", "partition", "edge-3");
  assert.equal(cut.code, 0, cut.err);
  const put = (path: string) => ask(control.url("edge-3", path), { method: "PUT" });
  try {
    assert.equal((await put("/away/ann/rome")).status, 200);
    const bundle = await control.bundle("away", NEW);
    const { missing } = await control.client.deploy({ bundle, app: "away", waitMs: 1000 });
    assert(missing.includes("edge-3"), `${missing}`);
    assert.equal((await put("/away/bob/oslo")).status, 200, "it goes on with the version that it has");
  } finally {
    assert.equal((await control.sojourn("chaos", "heal")).code, 0);
  }
  for (const site of ["edge-3", "edge-1", "cloud"]) {
    await eventually(`${site} finds all rows`, async () => {
      const { text } = await ask(control.url(site, "/away/"));
      const { byTown } = JSON.parse(text) as { byTown: string[] | null };
      return byTown?.length === 2;
    });
  }
}

const upgraded = `
  import { defineApp, table } from "sojourn";
  import { z } from "zod";
  export default defineApp({
    tables: { people: table({
      schema: z.object({ id: z.string(), town: z.string(), at: z.object({ zip: z.number() }) }),
      key: ["id"], indexes: { byTown: ["town"] },
      UPGRADE
    }) },
    async fetch(request, env) {
      const { people } = env.tables;
      const [, id] = new URL(request.url).pathname.split("/");
      const one = await people.get([id]);
      const { rows } = await people.list({ index: "byTown", prefix: [one.value.town], limit: 1000 });
      return Response.json([one.value, rows.some((row) => row.value.id === id)]);
    },
  });`;

/** A row of an older version goes through \`upgrade\`; without one it is \`row_invalid\`. */
async function upgrade(control: Control) {
  await control.deploy("people", upgraded.replace("UPGRADE", ""));
  const without = await ask(control.url("edge-2", "/people/edge-1-0"));
  assert.equal(without.status, 422);
  assert.equal(JSON.parse(without.text).code, "row_invalid");
  const upgrade = "upgrade: (old) => ({ ...old, at: { zip: 0 } }),";
  await control.deploy("people", upgraded.replace("UPGRADE", upgrade));
  for (const site of SITES) {
    const { text } = await ask(control.url(site, "/people/edge-1-0"));
    assert.deepEqual(JSON.parse(text), [{ id: "edge-1-0", town: "t0", at: { zip: 0 } }, true], site);
  }
}

/** Nothing of a deleted app is left, whoever was writing; a crash in between is gone on from. */
async function deletion(control: Control) {
  let running = true;
  const writing = Promise.allSettled(EDGES.map(async (site) => {
    for (let i = 0; running; i++) {
      await ask(control.url(site, `/people/late-${site}-${i}/x`), { method: "PUT" });
    }
  }));
  try {
    await deletedUnderWrites(control);
  } finally {
    running = false;
    await writing;
  }
  await control.deploy("people", OLD);
  for (const site of SITES) {
    const { text } = await ask(control.url(site, "/people/"));
    assert.deepEqual(JSON.parse(text).byKey, [], `a new app starts empty at ${site}`);
  }
  assert.equal((await control.sojourn("apps", "delete", "nobody", "--yes")).code, 1);
}

async function deletedUnderWrites(control: Control) {
  await control.deploy("people", OLD);
  const asked = await control.sojourn("apps", "delete", "people");
  assert.equal(asked.code, 2);
  assert.match(asked.err, /needs --yes/);
  const deleted = await control.sojourn("apps", "delete", "people", "--yes", "--json");
  assert.equal(deleted.code, 0, deleted.out + deleted.err);
  const { rows, missing } = JSON.parse(deleted.out);
  assert(rows > 100, `${rows} rows`);
  assert.deepEqual(missing, []);
  for (const site of SITES) {
    const answer = await ask(control.url(site, "/people/x"));
    assert.deepEqual([answer.status, JSON.parse(answer.text).code], [404, "app_unknown"], site);
  }
}

/** A site that is away keeps a deletion open, over a crash of the root too. */
async function deletionResumed(control: Control) {
  const { cluster } = control;
  assert.equal((await ask(control.url("edge-3", "/people/ann/rome"), { method: "PUT" })).status, 200);
  await cluster.control("kill", "edge-3");
  const partly = await control.sojourn("apps", "delete", "people", "--yes", "--timeout", "2");
  assert.equal(partly.code, 3, partly.err);
  assert.match(partly.err, /edge-3 did not answer/);
  const bundle = await control.bundle("people", OLD);
  const again = () => control.client.deploy({ bundle, app: "people", waitMs: 10_000 });
  await assert.rejects(again, /still being removed/);
  await cluster.control("restart", "cloud");
  await cluster.control("start", "edge-3");
  await cluster.ready("cloud");
  await cluster.ready("edge-3");
  await eventually("the name is free", async () => (await again()).missing.length === 0);
  for (const site of SITES) {
    assert.deepEqual(JSON.parse((await ask(control.url(site, "/people/"))).text).byKey, [], site);
  }
}

/** Ctrl-C while the root evaluates: nothing is deployed, and the command says so. */
async function interrupted(control: Control) {
  const path = await control.module(
    "slow",
    `const until = Date.now() + 3000; while (Date.now() < until);\n${says("slow")}`,
  );
  const child = control.command(["deploy", path, "--to", control.url("edge-1", "")]).spawn();
  let told = "";
  for await (const text of child.stderr.pipeThrough(new TextDecoderStream())) {
    const before = told.includes("uploading");
    told += text;
    if (!before && told.includes("uploading")) child.kill("SIGINT");
  }
  const [{ code }] = await Promise.all([child.status, child.stdout.cancel()]);
  assert.equal(code, 1, told);
  assert.match(told, /interrupted: nothing was changed\n$/);
  await control.deploy("after", says("after"));
  assert(!(await control.client.apps()).some(({ app }) => app === "slow"));
}

Deno.test("the control plane changes what serves and drops nothing", async (t) => {
  await using cluster = await startCluster();
  await using control = new Control(cluster);
  await t.step("five redeploys and a rollback under traffic", () => underTraffic(control));
  await t.step("a gradual rollout", () => rollout(control));
  await t.step("hosts", () => hosts(control));
  await t.step("a new index has every row", () => newIndex(control));
  await t.step("a new index while a site is cut off", () => newIndexAway(control));
  await t.step("upgrade", () => upgrade(control));
  await t.step("Ctrl-C", () => interrupted(control));
  await t.step("deletion under writes", () => deletion(control));
  await t.step("deletion with a site away, over a crash", () => deletionResumed(control));
});
