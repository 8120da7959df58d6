/**
 * Disks of real sites that change bytes by themselves: 25 of them, inside stored values, while a site is stopped. Nobody is
 * told anything wrong with 200: what another site has comes from there, and what nobody has is refused by name. A disk that
 * has lost what it had synced is set aside below the root.
 */
import { strict as assert } from "node:assert";
import { Buffer } from "node:buffer";
import { join } from "node:path";
import { ask, HeaderClient } from "./client.ts";
import { eventually, startCluster, type TestCluster } from "./cluster.ts";

const TOPOLOGY = {
  sites: [
    { id: "cloud" },
    { id: "core", parent: "cloud", link: { rttMs: 2 } },
    { id: "edge", parent: "core", link: { rttMs: 2 } },
  ],
};
const NOTES = 200, FLIPS = 25;

const ids = Array.from({ length: NOTES }, (_, i) => `note-${i}`);
const text = (id: string) => `${id} says `.padEnd(300, `${id}.`);
const note = (cluster: TestCluster, site: string, id: string) => `${cluster.url(site)}/probe/notes/${id}`;

/** Flips one byte inside of each of some values in a stopped site's files of rows; the notes that it hit. */
async function rot(cluster: TestCluster, site: string): Promise<string[]> {
  const folder = join(cluster.data, "sites", site, "data", "store"), hit: string[] = [];
  for await (const { name } of Deno.readDir(folder)) {
    if (name !== "rows.db" && name !== "root.kv") continue;
    const bytes = Buffer.from(await Deno.readFile(join(folder, name)));
    for (let i = 0; hit.length < FLIPS && i < NOTES; i += 7) {
      const id = ids[i] ?? "";
      let at = bytes.indexOf(text(id).slice(0, 100));
      if (at < 0) continue;
      for (; at >= 0; at = bytes.indexOf(text(id).slice(0, 100), at + 1)) {
        bytes[at + 50] = (bytes[at + 50] ?? 0) ^ 1;
      }
      hit.push(id);
    }
    await Deno.writeFile(join(folder, name), bytes);
  }
  assert.equal(hit.length, FLIPS, `the notes are in ${folder}`);
  return hit;
}

async function whileStopped<T>(cluster: TestCluster, site: string, body: () => Promise<T>): Promise<T> {
  await cluster.control("stop", site);
  const found = await body();
  await cluster.control("start", site);
  await cluster.ready(site);
  return found;
}

/** Reads all notes at a site; those that it refused, by name. Anything else that is not as it was fails. */
async function readAll(cluster: TestCluster, site: string): Promise<string[]> {
  const refused: string[] = [];
  for (const id of ids) {
    const answer = await ask(note(cluster, site, id));
    if (answer.status === 200) assert.equal(answer.text, text(id), `${site} ${id}: a wrong answer with 200`);
    else {
      const problem = JSON.parse(answer.text) as { code: string; retry: string; detail: string };
      assert.equal(
        `${answer.status} ${problem.code} ${problem.retry}`,
        "503 row_damaged operator",
        answer.text,
      );
      assert.ok(problem.detail.includes(`"${id}"`), `${problem.detail} names ${id}`);
      refused.push(id);
    }
  }
  return refused;
}

async function alerts(cluster: TestCluster, site: string, wanted = "disk_damaged"): Promise<string[]> {
  const status = JSON.parse((await ask(`${cluster.url(site)}/_sojourn/status`)).text) as {
    alerts: { code: string; detail: string }[];
  };
  return status.alerts.filter(({ code }) => code === wanted).map(({ detail }) => detail);
}

Deno.test("bytes that a disk changes by itself are nobody's answer: fetched again, or refused by name", async () => {
  const folder = await Deno.makeTempDir({ prefix: "sojourn-rot-" });
  const topology = join(folder, "topology.json");
  await Deno.writeTextFile(topology, JSON.stringify(TOPOLOGY));
  const cluster = await startCluster({ topology });
  try {
    for (const id of ids) {
      const answer = await ask(note(cluster, "edge", id), { method: "PUT", body: text(id) });
      assert.equal(answer.status, 201, answer.text);
    }
    await eventually("the root has them all", async () => {
      const last = await ask(note(cluster, "cloud", ids.at(-1) ?? ""));
      return last.status === 200;
    });
    for (const site of ["core", "edge"]) assert.deepEqual(await readAll(cluster, site), []);
    // Longer than a site that has nothing to say is silent: what it covers is known above by then.
    await new Promise((resolve) => setTimeout(resolve, 1_500));

    await whileStopped(cluster, "edge", () => rot(cluster, "edge"));
    assert.deepEqual(await readAll(cluster, "edge"), [], "the core has them");
    assert.match((await alerts(cluster, "edge")).join(), /25 rows damaged on disk, 0 of which are refused/);
    assert.deepEqual(await readAll(cluster, "edge"), []);

    await whileStopped(cluster, "core", () => rot(cluster, "core"));
    for (const site of ["core", "edge"]) {
      assert.deepEqual(await readAll(cluster, site), [], "the root has them");
    }

    const hit = await whileStopped(cluster, "cloud", () => rot(cluster, "cloud"));
    assert.deepEqual(
      (await readAll(cluster, "cloud")).toSorted(),
      hit.toSorted(),
      "nobody is above the root",
    );
    assert.match((await alerts(cluster, "cloud")).join(), /25 rows are damaged on disk, and refused/);
    const refused = await readAll(cluster, "edge");
    assert.ok(refused.every((id) => hit.includes(id)), "and no others");
    const [healed = ""] = hit;
    const put = await ask(note(cluster, "edge", healed), { method: "PUT", body: text(healed) });
    assert.equal(put.status, 201);
    await eventually("what was written anew is there", async () => {
      return (await ask(note(cluster, "cloud", healed))).text === text(healed);
    });
    assert.deepEqual(
      (await readAll(cluster, "cloud")).toSorted(),
      hit.filter((id) => id !== healed).toSorted(),
    );
    const metrics = (await ask(`${cluster.url("cloud")}/_sojourn/metrics`)).text;
    assert.match(metrics, /rows_damaged\S* 25/, metrics.slice(0, 200));
  } finally {
    await cluster.stop();
    await Deno.remove(folder, { recursive: true });
  }
});

const DATABASE = ["rows.db", "rows.db-wal"];

async function copied(from: string, to: string): Promise<void> {
  await Deno.mkdir(to, { recursive: true });
  for (const name of DATABASE) await Deno.copyFile(join(from, name), join(to, name));
}

Deno.test("a site whose disk went back goes on as after its loss, and who saw what it lost is told", async () => {
  const folder = await Deno.makeTempDir({ prefix: "sojourn-back-" });
  const topology = join(folder, "topology.json");
  await Deno.writeTextFile(topology, JSON.stringify(TOPOLOGY));
  const cluster = await startCluster({ topology });
  try {
    const data = join(cluster.data, "sites", "edge", "data"), store = join(data, "store");
    const client = new HeaderClient();
    const put = async (text: string) =>
      (await client.fetch(note(cluster, "edge", "it"), { method: "PUT", body: text })).status;
    assert.equal(await put("one"), 201);
    await eventually("the root has it", async () => (await ask(note(cluster, "cloud", "it"))).text === "one");
    await cluster.control("kill", "core");
    await copied(store, join(folder, "before"));
    assert.equal(await put("two"), 201);
    await cluster.control("kill", "edge");
    await copied(join(folder, "before"), store);
    await Deno.remove(join(store, "rows.db-shm")).catch(() => {});

    await cluster.control("start", "core");
    await cluster.ready("core");
    const meanwhile = await ask(note(cluster, "cloud", "it"), {
      headers: { "sojourn-session": client.token },
    });
    assert.equal(meanwhile.status, 503, meanwhile.text);

    await cluster.control("start", "edge").catch(() => {});
    await cluster.ready("edge");
    assert.match(cluster.log(), /disk_lost.*the disk went back/);
    assert.match(
      (await alerts(cluster, "edge", "disk_lost")).join(),
      /^store\.lost was set aside.*the disk went back/,
    );
    assert.match((await ask(`${cluster.url("edge")}/_sojourn/metrics`)).text, /disk_folders_lost\S* 1/);
    assert.ok((await Deno.stat(join(data, "store.lost", "rows.db"))).isFile);
    for (const site of ["edge", "cloud"]) {
      await eventually(`${site} tells who saw it`, async () => {
        const answer = await ask(note(cluster, site, "it"), { headers: { "sojourn-session": client.token } });
        assert.notEqual(answer.status, 200, answer.text);
        return answer.status === 410;
      });
      assert.equal((await ask(note(cluster, site, "it"))).text, "one");
    }
  } finally {
    await cluster.stop();
    await Deno.remove(folder, { recursive: true });
  }
});
