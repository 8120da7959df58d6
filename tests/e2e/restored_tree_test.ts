/**
 * A tree of real processes is put back from copies of all its sites' data, made while all were stopped: what
 * docs/operating.md tells to do. Stateful sessions go on where the copies have them, those that only an edge has the log
 * of too; whoever has seen what came later is told so.
 */
import { strict as assert } from "node:assert";
import { join } from "node:path";
import { EXIT, runCli } from "../../runtime/cli/mod.ts";
import { ask, HeaderClient } from "./client.ts";
import { PROBE, startCluster, type TestCluster } from "./cluster.ts";

const APP = join(import.meta.dirname ?? ".", "apps", "counter");
const TOPOLOGY = {
  sites: [
    { id: "cloud" },
    { id: "core", parent: "cloud", link: { rttMs: 2 } },
    { id: "edge-1", parent: "core", link: { rttMs: 2 } },
    { id: "edge-2", parent: "core", link: { rttMs: 2 } },
  ],
};
const SITES = TOPOLOGY.sites.map(({ id }) => id);
/** Where each session is begun. With f = 0 its log is there and nowhere else. */
const BEGUN = ["core", "edge-1", "edge-2"];
/** What was asked of each session before the copies were made. */
const BEFORE = 3;
/** Made again when it is absent, and no part of a copy. */
const CACHE = "cache";

const dataOf = (folder: string, site: string) => join(folder, "sites", site, "data");
const note = (cluster: TestCluster, site: string, id: string) => `${cluster.url(site)}/probe/notes/${id}`;

async function call(cluster: TestCluster, site: string, id: string, method: string, ...args: unknown[]) {
  const url = `${cluster.url(site)}/counter/${id}/call/${method}`;
  const { status, text } = await ask(url, { method: "POST", body: JSON.stringify(args) });
  assert.equal(status, 200, `${site} ${id}.${method}: ${status} ${text}`);
  return (JSON.parse(text) as { result: unknown }).result;
}

async function cli(cluster: TestCluster, ...args: readonly string[]): Promise<string> {
  const lines: string[] = [];
  const env: Record<string, string> = {
    SOJOURN_URL: cluster.url("cloud"),
    SOJOURN_TOKEN: cluster.adminToken,
  };
  const code = await runCli([...args, "--json"], {
    out: (line) => void lines.push(line),
    err: (line) => void lines.push(line),
    env: (name) => env[name],
  });
  assert.equal(code, EXIT.done, `${args.join(" ")}: ${lines.join()}`);
  return lines.join("\n");
}

async function homeOf(cluster: TestCluster, id: string): Promise<string> {
  const shown = JSON.parse(await cli(cluster, "sessions", "show", "counter", "counter", id));
  return (shown as { home: string }).home;
}

async function copied(from: string, to: string): Promise<void> {
  await Deno.mkdir(to, { recursive: true, mode: 0o700 });
  for await (const { name, isDirectory } of Deno.readDir(from)) {
    const [source, target] = [join(from, name), join(to, name)];
    if (!isDirectory) await Deno.copyFile(source, target);
    else if (name !== CACHE) await copied(source, target);
  }
}

Deno.test("a tree that is put back from copies of all its sites goes on with every stateful session (f = 0)", async (t) => {
  const folder = await Deno.makeTempDir();
  const topology = join(folder, "topology.json"),
    data = join(folder, "data"),
    copies = join(folder, "copies");
  await Deno.writeTextFile(topology, JSON.stringify(TOPOLOGY));
  const start = () => startCluster({ topology, apps: [APP, PROBE], data });
  const later = new HeaderClient();

  await t.step("sessions are begun, and every site is copied while all are stopped", async () => {
    await using cluster = await start();
    for (const site of BEGUN) {
      for (let i = 1; i <= BEFORE; i++) assert.equal(await call(cluster, site, `of-${site}`, "add", 1), i);
      assert.equal(await call(cluster, site, `of-${site}`, "keep", "tea"), `tea ${BEFORE}`);
      assert.equal(await homeOf(cluster, `of-${site}`), site);
      const written = await later.fetch(note(cluster, site, `at-${site}`), { method: "PUT", body: "before" });
      assert.equal(written.status, 201, written.text);
    }
    await cluster.stop();
    for (const site of SITES) await copied(dataOf(data, site), dataOf(copies, site));
  });

  await t.step("the tree goes on after that", async () => {
    await using cluster = await start();
    for (const site of BEGUN) {
      assert.equal(await call(cluster, site, `of-${site}`, "add", 10), BEFORE + 10);
    }
    const written = await later.fetch(note(cluster, "edge-1", "at-edge-1"), { method: "PUT", body: "later" });
    assert.equal(written.status, 201, written.text);
    assert.equal((await later.fetch(note(cluster, "edge-1", "at-edge-1"))).text, "later");
  });

  await t.step(
    "put back into empty folders, each session is as the copies have it, and goes on",
    async () => {
      for (const site of SITES) {
        await Deno.remove(dataOf(data, site), { recursive: true });
        await copied(dataOf(copies, site), dataOf(data, site));
      }
      // No token that names what the copies lack is taken.
      await Deno.writeTextFile(join(data, "secret"), crypto.randomUUID());
      await using cluster = await start();
      const seen = await later.fetch(note(cluster, "edge-1", "at-edge-1"));
      assert.match(
        `${seen.status} ${seen.text}`,
        /^401 .*"code":"token_foreign"/,
        "who saw more begins anew",
      );
      for (const [i, site] of BEGUN.entries()) {
        assert.equal(await homeOf(cluster, `of-${site}`), site);
        assert.equal(await call(cluster, site, `of-${site}`, "add", 1), BEFORE + 1);
        // From another site too, and what it wrote into rows is there.
        const other = BEGUN[(i + 1) % BEGUN.length] ?? "";
        assert.equal(await call(cluster, other, `of-${site}`, "add", 1), BEFORE + 2);
        assert.equal(await call(cluster, other, `of-${site}`, "got"), `tea ${BEFORE}`);
        assert.equal((await ask(note(cluster, other, `at-${site}`))).text, "before");
      }
      const written = await new HeaderClient().fetch(note(cluster, "edge-2", "anew"), {
        method: "PUT",
        body: "x",
      });
      assert.equal(written.status, 201, written.text);
      assert.equal((await ask(note(cluster, "cloud", "at-edge-1"))).text, "before");
    },
  );

  await t.step(
    "with the root's copy alone, a session whose log is lost is not begun anew in silence",
    async () => {
      for (const site of SITES) await Deno.remove(dataOf(data, site), { recursive: true });
      await copied(dataOf(copies, "cloud"), dataOf(data, "cloud"));
      // No token that names what the copy lacks is taken.
      await Deno.writeTextFile(join(data, "secret"), crypto.randomUUID());
      await using cluster = await start();
      const seen = await later.fetch(note(cluster, "edge-1", "at-edge-1"));
      assert.match(
        `${seen.status} ${seen.text}`,
        /^401 .*"code":"token_foreign"/,
        "who saw more begins anew",
      );
      assert.equal((await ask(note(cluster, "edge-1", "at-edge-1"))).text, "before");
      for (const site of BEGUN) {
        const url = `${cluster.url(site)}/counter/of-${site}/call/add`;
        const { status, text } = await ask(url, { method: "POST", body: "[1]" });
        assert.match(`${status} ${text}`, /^503 .*"code":"stateful_unreachable"/);
      }
      assert.equal(await call(cluster, "edge-1", "another", "add", 1), 1);
      await cli(cluster, "sessions", "delete", "counter", "counter", "of-edge-1");
      assert.equal(await call(cluster, "edge-1", "of-edge-1", "add", 1), 1);
    },
  );
  await Deno.remove(folder, { recursive: true });
});
