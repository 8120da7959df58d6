/** The dev command itself: what it refuses, redeploying on change, data that stays, children that never outlive it. */
import { strict as assert } from "node:assert";
import { join, resolve } from "node:path";
import { readCluster } from "../../runtime/cli/cluster.ts";
import { ask, HeaderClient } from "./client.ts";
import { eventually, startCluster } from "./cluster.ts";

const ROOT = resolve(import.meta.dirname ?? ".", "..", "..");

interface Ended {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

/** Runs `sojourn …` to its end. */
async function run(...args: string[]): Promise<Ended> {
  const main = join(ROOT, "runtime", "main.ts");
  const { code, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", "--config", join(ROOT, "deno.json"), main, ...args],
  }).output();
  const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes);
  return { code, out: text(stdout), err: text(stderr) };
}

const isAlive = (pid: number): boolean => {
  try {
    return !Deno.readTextFileSync(`/proc/${pid}/stat`).includes(") Z ");
  } catch {
    return false;
  }
};

Deno.test("dev and site refuse bad arguments and files, and say what is wrong", async () => {
  const folder = await Deno.makeTempDir();
  const taken = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  try {
    const topology = join(folder, "topology.json");
    await Deno.writeTextFile(topology, JSON.stringify({ sites: [{ id: "a" }, { id: "b" }] }));
    const site = join(folder, "site.json");
    await Deno.writeTextFile(site, JSON.stringify({ id: "a", parent: null, colour: "red" }));
    const spoiled = join(folder, "spoiled", "sites", "cloud", "data", "store");
    await Deno.mkdir(spoiled, { recursive: true });
    await Deno.writeTextFile(join(spoiled, "precious"), "not ours");
    const rows: [string[], number, RegExp][] = [
      [
        ["dev", "--topology", "single", "--port", "0", "--data", join(folder, "spoiled")],
        1,
        /it holds other files \(precious\)[^]*cloud cannot start: it ended 3 times/,
      ],
      [
        ["dev", "--topology", topology],
        1,
        /sites: found \["a","b"\]; expected exactly one site without a parent/,
      ],
      [["dev", "--topology", join(folder, "none.json")], 1, /cannot read the topology.*single, three-tier/],
      [["dev", "nobody-has-this-app"], 2, /no module, no folder with app\.ts, and no name in examples/],
      [["dev", "--port", "much"], 2, /--port takes a port/],
      [
        ["dev", "--port", String(taken.addr.port), "--ephemeral"],
        1,
        /port \d+ of 127\.0\.0\.1, for cloud, is taken/,
      ],
      [["dev", "--nonsense"], 2, /nonsense/],
      [["site"], 2, /--config FILE is missing/],
      [["site", "--config", site], 1, /colour: is no field here/],
      [["site", "--config", join(folder, "none.json")], 1, /cannot read the site file/],
    ];
    for (const [args, code, message] of rows) {
      const ended = await run(...args);
      assert.match(ended.err, message, args.join(" "));
      assert.equal(ended.code, code, args.join(" "));
    }
  } finally {
    taken.close();
    await Deno.remove(folder, { recursive: true });
  }
});

Deno.test("a second dev on the same data is refused, and leaves the first one alone", async () => {
  const folder = await Deno.makeTempDir();
  try {
    const held = await Deno.open(join(folder, "lock"), { create: true, write: true });
    await held.write(new TextEncoder().encode("4711\n"));
    await held.lock(true);
    const ended = await run("dev", "--topology", "single", "--port", "0", "--data", folder);
    assert.equal(ended.code, 1);
    assert.match(
      ended.err,
      /^process 4711 runs a cluster on .* already; stop it first, or give --data another/,
    );
    assert.deepEqual([...Deno.readDirSync(folder)].map(({ name }) => name), ["lock"], "nothing was written");
    held.close();
    const file = join(folder, "lock");
    const inFile = await run("dev", "--topology", "single", "--port", "0", "--data", file);
    assert.equal(inFile.code, 1);
    assert.match(inFile.err, /^cannot use --data /);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

Deno.test("commands find a cluster whose data does not stay, but none in its place, and not after its end", async () => {
  const folder = await Deno.makeTempDir();
  try {
    const list = () => run("sites", "--data", folder);
    {
      await using first = await startCluster({ topology: "single", found: folder });
      assert.notEqual(first.data, folder);
      assert.deepEqual([...Deno.readDirSync(folder)].map(({ name }) => name), ["cluster.json"]);
      const listed = await list();
      assert.match(listed.out, /cloud/, listed.err);
      const { pid } = first;
      await using second = await startCluster({ topology: "single", found: folder });
      const isTold = () =>
        /another cluster runs in this folder: commands find this one by --data \//.test(second.log());
      await eventually("the second is told", () => Promise.resolve(isTold()));
      assert.equal((await readCluster(folder))?.pid, pid);
      assert.match((await run("sites", "--data", second.data)).out, /cloud/);
    }
    const none = await list();
    assert.match(none.err, /no cluster is known/);
    assert.deepEqual([...Deno.readDirSync(folder)], []);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

Deno.test("dev redeploys an app when its files change, and keeps the old version when they are bad", async () => {
  const folder = await Deno.makeTempDir({ prefix: "app-" }); // the folder's name is the app's
  try {
    const module = join(folder, "app.ts");
    const write = (says: string) =>
      Deno.writeTextFile(module, `export default { fetch: () => new Response(${JSON.stringify(says)}) };`);
    await write("one");
    await using cluster = await startCluster({ topology: "single", apps: [module] });
    const name = folder.split("/").at(-1)?.toLowerCase() ?? "";
    const apps = JSON.parse((await ask(`${cluster.url("cloud")}/_sojourn/admin/apps`)).text) as {
      app: string;
    }[];
    const app = apps[0]?.app ?? name;
    const says = async () => (await ask(`${cluster.url("cloud")}/${app}/`)).text;
    assert.equal(await says(), "one");
    await write("two");
    await eventually("the change is deployed", async () => await says() === "two");
    await Deno.writeTextFile(module, "export default {");
    await eventually(
      "the bad change is reported",
      () => Promise.resolve(cluster.log().includes("keeps serving")),
    );
    assert.equal(await says(), "two");
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

Deno.test("a cluster that is run again over its data has its rows, and no site outlives it", async () => {
  const data = await Deno.makeTempDir();
  try {
    const client = new HeaderClient();
    let pids: number[];
    {
      const cluster = await startCluster({ data });
      const put = await client.fetch(`${cluster.url("edge-1")}/probe/notes/kept`, {
        method: "PUT",
        body: "still here",
      });
      assert.equal(put.status, 201, put.text);
      await eventually(
        "the row has reached the root",
        async () => (await ask(`${cluster.url("cloud")}/probe/notes/kept`)).text === "still here",
      );
      const file = await readCluster(data);
      pids = file?.sites.map((site) => site.pid) ?? [];
      assert.equal(pids.length, 6);
      assert.ok(pids.every(isAlive));
      // No time to say anything to its sites: they notice by themselves.
      Deno.kill(cluster.pid, "SIGKILL");
      await cluster.stop();
    }
    await eventually("every site has ended", () => Promise.resolve(!pids.some(isAlive)));
    await using cluster = await startCluster({ data });
    for (const site of ["cloud", "edge-1", "edge-3"]) {
      const got = await client.fetch(`${cluster.url(site)}/probe/notes/kept`);
      assert.equal(got.text, "still here", site);
    }
    for (const path of ["secret", "admin-token", "cluster.json"]) {
      assert.equal(((await Deno.stat(join(data, path))).mode ?? 0) & 0o777, 0o600, path);
    }
  } finally {
    await Deno.remove(data, { recursive: true });
  }
});
