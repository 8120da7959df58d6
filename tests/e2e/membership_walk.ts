/** Sites that are taken off the tree, and let in again: the commands, over real processes. */
import { strict as assert } from "node:assert";
import { join } from "node:path";
import { EXIT, runCli } from "../../runtime/cli/mod.ts";
import { ask, HeaderClient } from "./client.ts";
import { eventually, type TestCluster } from "./cluster.ts";

const note = (cluster: TestCluster, site: string, id: string) => `${cluster.url(site)}/probe/notes/${id}`;

async function sojourn(cluster: TestCluster, ...args: string[]) {
  const out: string[] = [], err: string[] = [];
  const env: Record<string, string> = {
    SOJOURN_URL: cluster.url("edge-3"),
    SOJOURN_TOKEN: cluster.adminToken,
  };
  const code = await runCli(args, {
    out: (line) => void out.push(line),
    err: (line) => void err.push(line),
    env: (name) => env[name],
  });
  return { code, out: out.join("\n"), err: err.join("\n") };
}

async function wipe(cluster: TestCluster, site: string): Promise<void> {
  await Deno.remove(join(cluster.data, "sites", site, "data"), { recursive: true });
}

async function refusals(cluster: TestCluster): Promise<void> {
  const rows: [string[], string, RegExp][] = [
    [["remove", "edge-2"], "site_connected", /edge-2 is connected: 0 rows .* would be lost/],
    [["remove", "core-1", "--force"], "site_needed", /has children: edge-1, edge-2\. Remove them first/],
    [["remove", "cloud"], "site_needed", /is the root/],
    [["remove", "nobody"], "site_unknown", /no site is called "nobody"/],
    [["add", "edge-2"], "site_unknown", /no site called "edge-2" was removed/],
  ];
  for (const [args, code, text] of rows) {
    const answer = await sojourn(cluster, "sites", ...args, "--json");
    assert.equal(answer.code, EXIT.failed, args.join(" "));
    const { error } = JSON.parse(answer.out) as { error: { code: string; message: string } };
    assert.equal(error.code, code, args.join(" "));
    assert.match(error.message, text);
  }
  assert.equal((await sojourn(cluster, "sites", "remove")).code, EXIT.usage);
  assert.equal((await sojourn(cluster, "sites", "burn", "edge-2")).code, EXIT.usage);
}

async function freesItsParent(cluster: TestCluster): Promise<void> {
  const kept = new HeaderClient(), lost = new HeaderClient();
  await kept.fetch(note(cluster, "edge-2", "kept"), { method: "PUT", body: "pushed" });
  await lost.fetch(note(cluster, "edge-2", "lost-before"), { method: "PUT", body: "pushed too" });
  await eventually(
    "what was written first is above",
    async () => (await ask(note(cluster, "cloud", "lost-before"))).text === "pushed too",
  );
  await eventually(
    "the root knows it for certain",
    async () => (await kept.fetch(note(cluster, "edge-3", "kept"))).text === "pushed",
  );
  await cluster.control("kill", "core-1");
  const written = await lost.fetch(note(cluster, "edge-2", "lost"), { method: "PUT", body: "not pushed" });
  assert.equal(written.status, 201);
  await cluster.control("kill", "edge-2");
  await wipe(cluster, "core-1");
  await cluster.control("start", "core-1");
  await eventually("the other child has joined", async () => {
    const { children } = JSON.parse((await ask(`${cluster.url("core-1")}/_sojourn/status`)).text) as {
      children: { id: string; ranges: number }[];
    };
    return children.some(({ id, ranges }) => id === "edge-1" && ranges > 0);
  });
  const readyz = await ask(`${cluster.url("core-1")}/_sojourn/readyz`);
  assert.equal(readyz.status, 503, "core-1 waits for edge-2");
  const removed = await sojourn(cluster, "sites", "remove", "edge-2", "--json");
  assert.equal(removed.code, EXIT.done, removed.err);
  const answer = JSON.parse(removed.out) as { site: string; connected: boolean; keptUntilMs: number };
  assert.deepEqual([answer.site, answer.connected], ["edge-2", false]);
  const agoMs = Date.now() - answer.keptUntilMs;
  assert.ok(agoMs >= 0 && agoMs < 600_000, `a time of this test, not ${agoMs} ms ago`);
  await cluster.ready("core-1");
  await eventually("the other region knows the site no more", async () => {
    const sites = JSON.parse((await sojourn(cluster, "sites", "--json")).out) as { id: string }[];
    return !sites.some(({ id }) => id === "edge-2");
  });
  for (const site of ["edge-1", "edge-3"]) {
    const told = await ask(note(cluster, site, "lost"), { headers: { "sojourn-session": lost.token } });
    assert.equal(told.status, 410, `${site}: ${told.text}`);
    assert.match(told.text, /"code":"source_lost".*"site":"edge-2"/);
  }
  assert.equal((await kept.fetch(note(cluster, "edge-1", "kept"))).text, "pushed");
}

async function comesBack(cluster: TestCluster): Promise<void> {
  await cluster.control("start", "edge-2");
  const says = (text: RegExp) =>
    eventually(`the log says ${text}`, () => Promise.resolve(text.test(cluster.log())));
  await says(
    /edge-2.*link\.dial_failed.*site edge-2 was removed: `sojourn sites add edge-2` lets it in again/,
  );
  const added = await sojourn(cluster, "sites", "add", "edge-2");
  assert.deepEqual([added.code, added.out], [
    EXIT.done,
    "edge-2 may join again: start it with an empty data folder",
  ]);
  await says(/edge-2.*link\.disconnected.*the disk of site edge-2 is from before its removal/);
  await cluster.control("kill", "edge-2");
  await wipe(cluster, "edge-2");
  await cluster.control("start", "edge-2");
  await cluster.ready("edge-2");
  assert.equal((await ask(note(cluster, "edge-2", "kept"))).text, "pushed");
  const client = new HeaderClient();
  await client.fetch(note(cluster, "edge-2", "anew"), { method: "PUT", body: "from the new disk" });
  assert.equal((await client.fetch(note(cluster, "edge-3", "anew"))).text, "from the new disk");
}

async function byForce(cluster: TestCluster): Promise<void> {
  const forced = await sojourn(cluster, "sites", "remove", "edge-2", "--force", "--json");
  assert.equal(forced.code, EXIT.done, forced.err);
  assert.deepEqual((JSON.parse(forced.out) as { connected: boolean }).connected, true);
  await eventually(
    "its parent has ended the link",
    async () => {
      const { parent } = JSON.parse((await ask(`${cluster.url("edge-2")}/_sojourn/status`)).text) as {
        parent: { connected: boolean };
      };
      return !parent.connected;
    },
  );
}

/** Walks over a cluster of the probe, which has lost edge-2 afterwards. */
export async function walkMembership(cluster: TestCluster, t: Deno.TestContext): Promise<void> {
  await t.step("sites remove refuses what would lose more than is said", () => refusals(cluster));
  await t.step(
    "a removed site no longer holds up its parent, and its sessions are told",
    () => freesItsParent(cluster),
  );
  await t.step(
    "a removed site is refused until it is added, and then with an empty disk",
    () => comesBack(cluster),
  );
  await t.step("a drained site leaves nothing to carry, and comes back", () => drains(cluster));
  await t.step("a connected site goes by force", () => byForce(cluster));
}

async function drains(cluster: TestCluster): Promise<void> {
  const client = new HeaderClient();
  await client.fetch(note(cluster, "edge-1", "drained"), { method: "PUT", body: "written just before" });
  const before = await counters(cluster, "edge-3");
  const away = await sojourn(cluster, "sites", "drain", "edge-1", "--for", "5m", "--json");
  assert.equal(away.code, EXIT.done, away.err);
  const drained = JSON.parse(away.out) as {
    site: string;
    untilMs: number;
    pending: number;
    complete: boolean;
  };
  assert.deepEqual([drained.site, drained.pending, drained.complete], ["edge-1", 0, true]);
  assert.ok(Math.abs(drained.untilMs - Date.now() - 300_000) < 60_000);
  await eventually("its process has ended", async () => {
    const { down } = JSON.parse((await ask(`${cluster.url("edge-2")}/_sojourn/admin/chaos`)).text) as {
      down: string[];
    };
    return down.includes("edge-1"); // its door closes before
  });
  const moved = await client.fetch(note(cluster, "edge-3", "drained"));
  assert.deepEqual([moved.status, moved.text], [200, "written just before"]);
  const after = await counters(cluster, "edge-3");
  for (const name of ["attach_carry", "ask"]) assert.equal(after[name] ?? 0, before[name] ?? 0, name);
  const alerts = async () =>
    (JSON.parse((await ask(`${cluster.url("core-1")}/_sojourn/status`)).text) as {
      alerts: { code: string }[];
    })
      .alerts.map(({ code }) => code);
  assert.ok((await alerts()).includes("site_away"));
  await cluster.control("start", "edge-1");
  await cluster.ready("edge-1");
  await eventually("its parent knows that it is back", async () => !(await alerts()).includes("site_away"));
  assert.equal((await client.fetch(note(cluster, "edge-1", "drained"))).text, "written just before");
  const rows: [string[], string][] = [[["drain", "nobody"], "site_unknown"]];
  for (const [args, code] of rows) {
    const refused = await sojourn(cluster, "sites", ...args, "--json");
    assert.equal((JSON.parse(refused.out) as { error: { code: string } }).error.code, code);
  }
  for (const time of ["", "5", "0m", "x"]) {
    assert.equal((await sojourn(cluster, "sites", "drain", "edge-1", "--for", time)).code, EXIT.usage, time);
  }
}

async function counters(cluster: TestCluster, site: string): Promise<Record<string, number>> {
  const status = await ask(`${cluster.url(site)}/_sojourn/status`);
  return (JSON.parse(status.text) as { counters: Record<string, number> }).counters;
}
