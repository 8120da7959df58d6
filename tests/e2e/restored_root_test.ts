/** The root is put back from a copy that is older than what became of a stateful session since, on real processes. */
import { strict as assert } from "node:assert";
import { join } from "node:path";
import { EXIT, runCli } from "../../runtime/cli/mod.ts";
import { ask } from "./client.ts";
import { eventually, startCluster, type TestCluster } from "./cluster.ts";

const APP = join(import.meta.dirname ?? ".", "apps", "counter");
const EDGES = ["edge-1", "edge-2", "edge-3", "edge-4"];
const TOPOLOGY = {
  sites: [
    { id: "cloud" },
    ...EDGES.map((id) => ({ id, parent: "cloud", link: { rttMs: 2, mbps: 1_000 }, f: 1 })),
  ],
};

/** For longer than a root waits for who is gone (functions/sessions/log/limits.ts, HEARD_MS_MAX). */
const ASKED_AGAIN = 15, ASK_MS = 1_000;

interface Answer {
  readonly status: number;
  readonly text: string;
}

const call = (cluster: TestCluster, site: string): Promise<Answer> =>
  ask(`${cluster.url(site)}/counter/one/call/add`, { method: "POST", body: "[1]" });

/** What is on record of it: home and owners. */
async function recordOf(cluster: TestCluster): Promise<{ readonly home: string; readonly owners: string[] }> {
  const out: string[] = [];
  const env: Record<string, string> = {
    SOJOURN_URL: cluster.url("cloud"),
    SOJOURN_TOKEN: cluster.adminToken,
  };
  const code = await runCli(["sessions", "show", "counter", "counter", "one", "--json"], {
    out: (line) => void out.push(line),
    err: (line) => void out.push(line),
    env: (name) => env[name],
  });
  assert.equal(code, EXIT.done, out.join());
  return JSON.parse(out.join("\n"));
}

async function copied(from: string, to: string, isWanted: (name: string) => boolean = () => true) {
  await Deno.mkdir(to, { recursive: true, mode: 0o700 });
  for await (const { name, isDirectory } of Deno.readDir(from)) {
    if (!isWanted(name)) continue;
    const [source, target] = [join(from, name), join(to, name)];
    if (isDirectory) await copied(source, target);
    else await Deno.copyFile(source, target);
  }
}

/** Of what belongs to these disks nothing is left in a folder of data. */
async function cleared(data: string, isWanted: (name: string) => boolean): Promise<void> {
  for await (const { name } of Deno.readDir(data)) {
    if (isWanted(name)) await Deno.remove(join(data, name), { recursive: true });
  }
}

/** Folders of these disks, and the counts of their commits beside them. */
const isOf = (...disks: readonly string[]) => (name: string) =>
  disks.some((disk) => name === disk || name.startsWith(`${disk}.`));

Deno.test("a session that changed hands since an older copy of the root was made has one home, and loses nothing", async (t) => {
  const folder = await Deno.makeTempDir();
  const topology = join(folder, "topology.json"), data = join(folder, "data"), copy = join(folder, "copy");
  const root = join(data, "sites", "cloud", "data");
  await Deno.writeTextFile(topology, JSON.stringify(TOPOLOGY));
  {
    await using cluster = await startCluster({ topology, apps: [APP], data });
    let last = 0;
    const add = async (site: string) => {
      const { status, text } = await call(cluster, site);
      assert.equal(status, 200, `${site}: ${status} ${text}`);
      const { result } = JSON.parse(text) as { result: number };
      assert.equal(result, last + 1, site);
      last = result;
    };
    /** One that is refused may have been run all the same. */
    const adds = async (site: string): Promise<string | null> => {
      const { status, text } = await call(cluster, site);
      if (status !== 200) return `${status} ${text}`;
      const { result } = JSON.parse(text) as { result: number };
      assert.ok(result > last, `${site}: ${result} after ${last}`);
      last = result;
      return null;
    };
    const addsAt = async (site: string) =>
      await eventually(`it is served at ${site}`, async () => {
        const refusal = await adds(site);
        if (refusal !== null) throw new Error(refusal);
        return true;
      });
    await add("edge-1");
    await add("edge-1");
    const before = await recordOf(cluster);
    assert.equal(before.home, "edge-1");
    await cluster.control("stop", "cloud");
    await copied(root, copy);
    await cluster.control("start", "cloud");
    await cluster.ready("cloud");
    const others = EDGES.filter((site) => !before.owners.includes(site));
    const [next = ""] = others;
    for (const site of before.owners) {
      await cluster.control("kill", site);
      await addsAt(next);
      await eventually("it has others for owners", async () => {
        const { owners } = await recordOf(cluster);
        return owners.length === 2 && !owners.includes(site);
      });
    }
    const after = await recordOf(cluster);
    assert.ok(after.owners.every((site) => others.includes(site)), after.owners.join());
    let read = 0;
    /** All of these are logged, in any order, since the last time. */
    const logs = async (...events: readonly RegExp[]) => {
      for (const event of events) {
        await eventually(`${event} is logged`, () => Promise.resolve(event.test(cluster.log().slice(read))));
      }
      read = cluster.log().length;
    };

    await t.step("the disks of its stateful sessions are put back", async () => {
      await cluster.control("stop", "cloud");
      await cleared(root, isOf("arbiter", "homes"));
      await copied(copy, root, isOf("arbiter", "homes"));
      await cluster.control("start", "cloud");
      for (const site of before.owners) await cluster.control("start", site);
      await cluster.ready("cloud");
      for (const site of [...before.owners, ...others]) await addsAt(site);
      await logs(/arbiter_behind/, /arbiter_rebuilt/);
      assert.equal((await recordOf(cluster)).home, after.home);
    });

    await t.step("the arbiter's disk is lost", async () => {
      await cluster.control("stop", "cloud");
      await cleared(root, isOf("arbiter"));
      await cluster.control("start", "cloud");
      await cluster.ready("cloud");
      for (const site of [...before.owners, ...others]) await addsAt(site);
      await logs(/arbiter_behind/, /arbiter_rebuilt/);
      assert.equal((await recordOf(cluster)).home, after.home);
    });

    await t.step(
      "all of its disks are put back, and sites that had more of it are no children any more",
      async () => {
        await cluster.control("stop", "cloud");
        await cleared(root, () => true);
        await copied(copy, root);
        await cluster.control("start", "cloud");
        await cluster.ready("cloud");
        await logs(/child_removed .*why=ahead/, /arbiter_behind/);
        // Longer than a site that is gone is waited for. Whoever is served has all that was acknowledged.
        for (let i = 0; i < ASKED_AGAIN; i++) {
          for (const site of before.owners) await adds(site);
          await addsAt(after.home);
          await new Promise((resolve) => setTimeout(resolve, ASK_MS));
        }
      },
    );
  }
  await Deno.remove(folder, { recursive: true });
});
