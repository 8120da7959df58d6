/** Everything that `sojourn chaos` does, on one cluster: each fault is made, seen from outside, and undone. */
import { strict as assert } from "node:assert";
import type { ChaosState } from "../../runtime/chaos/actions.ts";
import { runCli } from "../../runtime/cli/mod.ts";
import { ask, HeaderClient } from "./client.ts";
import { eventually, startCluster, type TestCluster } from "./cluster.ts";

const note = (cluster: TestCluster, site: string, id: string) => `${cluster.url(site)}/probe/notes/${id}`;
const put = (text: string) => ({ method: "PUT", body: text });

/** `sojourn chaos …`, with what it printed. */
async function chaos(
  cluster: TestCluster,
  ...args: string[]
): Promise<{ code: number; out: string; err: string }> {
  const out: string[] = [], err: string[] = [];
  const shell = { out: (line: string) => out.push(line), err: (line: string) => err.push(line) };
  const code = await runCli(["chaos", ...args, "--data", cluster.data], { ...shell, env: () => undefined });
  return { code, out: out.join("\n"), err: err.join("\n") };
}

/** The same, which has to work and to say how it is undone. */
async function doChaos(cluster: TestCluster, ...args: string[]): Promise<string> {
  const { code, out, err } = await chaos(cluster, ...args);
  assert.equal(code, 0, `chaos ${args.join(" ")}: ${err}`);
  assert.match(out, /^undo: ./m);
  return out;
}

async function inForce(cluster: TestCluster, site = "edge-2"): Promise<ChaosState> {
  return JSON.parse((await ask(`${cluster.url(site)}/_sojourn/admin/chaos`)).text) as ChaosState;
}

const NOTHING: ChaosState = { cuts: [], delays: [], skews: [], disks: [], down: [], paused: [] };

interface Status {
  readonly incarnation: number;
  readonly parent: { readonly connected: boolean } | null;
  readonly coverage: { readonly ranges: number };
  readonly alerts: readonly { readonly code: string; readonly detail: string }[];
  readonly links: readonly {
    readonly site: string;
    readonly connected: boolean;
    readonly counters: { readonly bytesIn: number };
  }[];
}

async function status(cluster: TestCluster, site: string): Promise<Status> {
  return JSON.parse((await ask(`${cluster.url(site)}/_sojourn/status`)).text) as Status;
}

const isConnected = async (cluster: TestCluster, site: string): Promise<boolean> =>
  (await status(cluster, site)).parent?.connected === true;

async function refusals(cluster: TestCluster): Promise<void> {
  const url = `${cluster.url("edge-2")}/_sojourn/admin/chaos`;
  const post = async (body: unknown, headers: Record<string, string> = {}) => {
    const answer = await ask(url, { method: "POST", body: JSON.stringify(body), headers });
    return `${answer.status} ${answer.text}`;
  };
  assert.match(await post({ action: "frob" }), /^422 .*chaos_invalid.*there are kill, restart, pause/);
  assert.match(await post("text"), /^422/);
  assert.match(
    await post({ action: "kill", site: "edge-9" }),
    /^422 .*there are cloud, core-1, core-2, edge-1/,
  );
  assert.match(
    await post({ action: "kill", site: "edge-1", also: 1 }),
    /^422 .*also: no field of this action/,
  );
  assert.match(await post({ action: "delay", a: "edge-1", b: "edge-1", rttMs: 5 }), /^422 .*two ends/);
  assert.match(await post({ action: "delay", a: "edge-1", b: "edge-2", loss: 2 }), /^422 .*loss: .*not 2/);
  assert.match(await post({ action: "wipe", site: "cloud" }), /^422 .*is the root/);
  assert.match(await post({ action: "evict", site: "edge-1", app: "nobody" }), /^422 .*no app is called/);
  assert.match(await post({ action: "kill", site: "edge-1" }, { authorization: "Bearer wrong" }), /^401/);
  assert.match(await post({ action: "kill", site: "edge-1" }, { origin: "http://evil.example" }), /^401/);
  assert.match(await post("x".repeat(100_000)), /^413/);
  const own = `${cluster.url("cloud")}/_sojourn/admin/chaos`;
  const wiped = await ask(own, { method: "POST", body: JSON.stringify({ action: "wipe", site: "cloud" }) });
  assert.equal(wiped.status, 422, "the root neither, at its own door");
  const usage: [string[], RegExp][] = [
    [["frob"], /chaos has kill, restart/],
    [["kill"], /a site is missing/],
    [["delay", "edge-1", "edge-2"], /at least one of rttMs/],
    [["delay", "edge-1", "edge-2", "--loss", "much"], /--loss takes a number/],
    [["kill", "edge-1", "--ms", "5"], /kill takes no --ms/],
    [["disk", "edge-1", "broken"], /full/],
    [["skew", "edge-1"], /--ms is missing/],
    [["heal", "edge-1"], /two ends/],
  ];
  for (const [args, says] of usage) {
    const { code, err } = await chaos(cluster, ...args);
    assert.equal(code, 2, args.join(" "));
    assert.match(err, says);
  }
  assert.equal((await chaos(cluster, "kill", "edge-9")).code, 1);
  assert.deepEqual(await inForce(cluster), NOTHING, "nothing of this did anything");
}

async function processes(cluster: TestCluster): Promise<void> {
  const before = await cluster.site("edge-3");
  await doChaos(cluster, "kill", "edge-3");
  assert.deepEqual((await inForce(cluster)).down, ["edge-3"]);
  await assert.rejects(ask(`${cluster.url("edge-3")}/_sojourn/healthz`), "it stays down");
  assert.match(await doChaos(cluster, "restart", "edge-3"), /^edge-3 was down and starts again/);
  await cluster.ready("edge-3");
  assert.notEqual((await cluster.site("edge-3")).pid, before.pid);
  await doChaos(cluster, "pause", "edge-3");
  assert.deepEqual((await inForce(cluster)).paused, ["edge-3"]);
  const silent = fetch(`${cluster.url("edge-3")}/_sojourn/healthz`, { signal: AbortSignal.timeout(300) });
  await assert.rejects(silent, { name: "TimeoutError" });
  await doChaos(cluster, "resume", "edge-3");
  await cluster.ready("edge-3");
  // A site that is to end answers first.
  const url = cluster.url("edge-3");
  const body = JSON.stringify({ action: "kill", site: "edge-3" });
  const last = await ask(`${url}/_sojourn/admin/chaos`, { method: "POST", body });
  assert.equal(last.status, 202, last.text);
  await eventually("it is down", async () => (await inForce(cluster)).down.length === 1);
  await doChaos(cluster, "restart", "edge-3");
  await cluster.ready("edge-3");
}

/** Bytes that a site has from others, by any link. */
async function heard(cluster: TestCluster, site: string): Promise<number> {
  return (await status(cluster, site)).links.reduce((sum, link) => sum + link.counters.bytesIn, 0);
}

async function partition(cluster: TestCluster): Promise<void> {
  const client = new HeaderClient();
  const at = (id: string) => note(cluster, "edge-1", id);
  assert.equal((await client.fetch(at("covered"), put("0"))).status, 201);
  assert.equal((await client.fetch(at("covered"))).text, "0");
  assert.match(
    await doChaos(cluster, "partition", "edge-1,edge-1"),
    /5 links cut/,
    "a name said twice is one",
  );
  assert.equal((await inForce(cluster)).cuts.length, 5);
  assert.equal((await inForce(cluster, "edge-1")).cuts.length, 5, "the cut-off site is no exception");
  const bytes = await heard(cluster, "edge-1");
  for (let i = 1; i <= 20; i++) {
    assert.equal((await client.fetch(at("covered"), put(`${i}`))).status, 201);
    assert.equal((await client.fetch(at("covered"))).text, `${i}`, "it goes on with what it covers");
  }
  const missed = await client.fetch(at("not-covered"));
  assert.match(missed.text, /store_unreachable/, "what it does not cover it cannot know");
  const forwarded = ask(`${cluster.url("edge-1")}/probe/root/where`, { signal: AbortSignal.timeout(500) });
  assert.notEqual(await forwarded.then((answer) => answer.status, () => "silence"), 200, "no request passes");
  // Somebody else's session dials edge-1 as a peer, from a site that never had a link to it.
  const elsewhere = ask(note(cluster, "edge-3", "covered"), {
    headers: { "sojourn-session": client.token },
    signal: AbortSignal.timeout(60_000),
  });
  assert.match((await elsewhere).text, /source_unreachable/, "never silently stale");
  await eventually("the silence is noticed", async () => !await isConnected(cluster, "edge-1"));
  const change = await ask(`${cluster.url("edge-1")}/_sojourn/admin/apps/probe/rollback`, { method: "POST" });
  assert.match(
    `${change.status} ${change.text}`,
    /^503 .*store_unreachable.*the root cannot be reached over core-1/,
  );
  assert.equal(await heard(cluster, "edge-1"), bytes, "no byte has arrived meanwhile");
  assert.equal((await ask(note(cluster, "edge-3", "covered"))).text, "0");
  // It holds for processes that did not live when it was made, at both ends.
  for (const site of ["core-1", "edge-1"]) {
    await doChaos(cluster, "restart", site);
    await cluster.ready(site);
  }
  await eventually("its parent has joined the others", () => isConnected(cluster, "core-1"));
  assert.equal((await client.fetch(at("covered"))).text, "20");
  assert.equal(await heard(cluster, "edge-1"), 0);
  await doChaos(cluster, "heal");
  assert.deepEqual(await inForce(cluster), NOTHING);
  await eventually(
    "what was written on the island has arrived",
    async () => (await ask(note(cluster, "edge-3", "covered"))).text === "20",
  );
}

async function delay(cluster: TestCluster): Promise<void> {
  const toRoot = async () => {
    const beganMs = performance.now();
    assert.equal((await ask(`${cluster.url("edge-2")}/probe/root/where`)).status, 200);
    return performance.now() - beganMs;
  };
  await toRoot();
  await doChaos(cluster, "delay", "edge-2", "core-1", "--rtt-ms", "300");
  assert.ok(await toRoot() >= 300, "there and back over the slow link");
  await doChaos(cluster, "delay", "core-1", "edge-2", "--mbps", "500");
  assert.deepEqual((await inForce(cluster)).delays, [
    { a: "core-1", b: "edge-2", rttMs: 300, jitterMs: 0, loss: 0, mbps: 500 },
  ]);
  await doChaos(cluster, "heal", "edge-2", "core-1");
  assert.deepEqual(await inForce(cluster), NOTHING);
  await eventually("it is quick again", async () => await toRoot() < 300);
}

async function evict(cluster: TestCluster): Promise<void> {
  const client = new HeaderClient();
  const url = note(cluster, "edge-2", "given-back");
  assert.equal((await client.fetch(url, put("here"))).status, 201);
  assert.equal((await client.fetch(url)).text, "here");
  const before = (await status(cluster, "edge-2")).coverage.ranges;
  const said = await doChaos(cluster, "evict", "edge-2", "--app", "probe", "--table", "notes");
  assert.match(said, /gave probe's notes back/);
  assert.ok((await status(cluster, "edge-2")).coverage.ranges < before, said);
  assert.equal((await client.fetch(url)).text, "here", "it is fetched again");
  assert.match(await doChaos(cluster, "evict", "edge-2"), /everything that may go/);
}

const HOUR_MS = 3_600_000;

/** A clock leaps, before and over a start: its site goes on as all others do, and says that it does not believe it. */
async function skewed(cluster: TestCluster, site: string, ms: number): Promise<void> {
  const client = new HeaderClient();
  const url = note(cluster, site, `dated-${ms}`);
  assert.equal((await client.fetch(url, put("before"))).status, 201);
  await doChaos(cluster, "skew", site, "--ms", String(ms));
  assert.deepEqual((await inForce(cluster)).skews, [{ site, ms }]);
  const isDoubted = async () =>
    (await status(cluster, site)).alerts.some(({ code }) => code === "clock_doubted");
  await eventually("it says that it does not believe its clock", isDoubted);
  const goesOn = async (text: string) => {
    assert.equal((await client.fetch(url, put(text))).status, 201);
    const headers = { "sojourn-session": client.token };
    const moved = await ask(note(cluster, "edge-3", `dated-${ms}`), { headers });
    assert.equal(`${moved.status} ${moved.text}`, `200 ${text}`);
    for (const each of ["cloud", "core-1", "edge-1", "edge-2", "edge-3"]) {
      const { alerts } = await status(cluster, each);
      assert.deepEqual(alerts.filter(({ code }) => code === "clock_ahead"), [], each);
    }
  };
  await goesOn("with a wrong clock");
  await doChaos(cluster, "restart", site);
  await cluster.ready(site);
  for (const each of ["core-1", "edge-1", "edge-2", "edge-3"]) {
    await eventually(`${each} has joined again`, () => isConnected(cluster, each));
  }
  await goesOn("after a start with a wrong clock");
  await doChaos(cluster, "skew", site, "--ms", "0");
  await goesOn("with a clock that is right again");
  await eventually("and says so", async () => !await isDoubted());
}

/** What others accept, and no site believes by itself. */
const DOUBTED_MS = 45_000;

async function vouched(cluster: TestCluster): Promise<void> {
  const isDoubted = async () =>
    (await status(cluster, "edge-2")).alerts.some(({ code }) => code === "clock_doubted");
  await doChaos(cluster, "skew", "edge-2", "--ms", String(DOUBTED_MS));
  await eventually("it says that it does not believe its clock", isDoubted);
  const vouch = async (...args: string[]) => {
    const out: string[] = [];
    const shell = { out: (line: string) => out.push(line), err: (line: string) => out.push(line) };
    const words = ["sites", "clock", ...args, "--data", cluster.data];
    return `${await runCli(words, { ...shell, env: () => undefined })} ${out.join()}`;
  };
  assert.match(
    await vouch("edge-2"),
    /^0 edge-2 goes by its clock, which is 4[45][0-9.]* s ahead of what it went by$/,
  );
  assert.equal(await isDoubted(), false);
  assert.equal(await vouch("edge-2"), "0 edge-2 had no doubt of its clock");
  assert.match(await vouch("nobody"), /^1 site_unknown/);
  assert.match(await vouch(), /^2 /);
  assert.equal(await isConnected(cluster, "edge-2"), true);
  await doChaos(cluster, "skew", "edge-2", "--ms", "0");
  await eventually("it believes its clock, which is right", async () => !await isDoubted());
}

async function disk(cluster: TestCluster, state: "full" | "fail"): Promise<void> {
  const client = new HeaderClient();
  const acknowledged: string[] = [];
  const url = (id: string) => note(cluster, "edge-3", id);
  for (let i = 0; i < 5; i++) {
    const id = `${state}-${i}`;
    assert.equal((await client.fetch(url(id), put(id))).status, 201);
    acknowledged.push(id);
  }
  await doChaos(cluster, "disk", "edge-3", state);
  assert.deepEqual((await inForce(cluster)).disks, [{ site: "edge-3", state }]);
  const refused = await client.fetch(url(`${state}-lost`), put("not acknowledged"));
  assert.equal(refused.status, 503);
  assert.match(refused.text, /"code":"disk_failed"/);
  assert.equal(refused.headers.get("sojourn-session"), null, "what is on no disk is in no token");
  const readyz = await ask(`${cluster.url("edge-3")}/_sojourn/readyz`);
  assert.equal(readyz.status, 503);
  assert.match(readyz.text, /"code":"disk_failed"/);
  assert.deepEqual((await status(cluster, "edge-3")).alerts.map((alert) => alert.code), ["disk_failed"]);
  assert.equal((await client.fetch(url(`${state}-0`))).status, 503, "nothing is answered any more");
  await doChaos(cluster, "disk", "edge-3", "ok");
  await cluster.ready("edge-3");
  for (const id of acknowledged) {
    assert.equal((await client.fetch(url(id))).text, id, "nothing acknowledged is lost");
  }
  assert.equal((await client.fetch(url(`${state}-after`), put("x"))).status, 201);
  assert.deepEqual(await inForce(cluster), NOTHING);
}

async function wipe(cluster: TestCluster): Promise<void> {
  const client = new HeaderClient();
  const url = note(cluster, "edge-2", "kept-above");
  assert.equal((await client.fetch(url, put("kept above"))).status, 201);
  await eventually(
    "it is above",
    async () => (await ask(note(cluster, "cloud", "kept-above"))).status === 200,
  );
  const before = await status(cluster, "edge-2");
  assert.match(await doChaos(cluster, "wipe", "edge-2"), /new incarnation/);
  await cluster.ready("edge-2");
  assert.notEqual((await status(cluster, "edge-2")).incarnation, before.incarnation);
  await eventually(
    "it has fetched the row again",
    async () => (await client.fetch(url)).text === "kept above",
  );
}

Deno.test("chaos breaks a dev cluster as it says, and undoes it", async (t) => {
  await using cluster = await startCluster();
  await t.step("what cannot be done is refused, and does nothing", () => refusals(cluster));
  await t.step("kill, restart, pause and resume", () => processes(cluster));
  await t.step("a partition cuts every byte, holds over a restart, and heals", () => partition(cluster));
  await t.step("delay slows a link until it is healed", () => delay(cluster));
  await t.step("evict gives coverage back, and reads fetch it again", () => evict(cluster));
  await t.step("an operator vouches for a clock that has leapt", () => vouched(cluster));
  for (const site of ["edge-1", "core-1", "cloud"]) {
    await t.step(`a clock that leaps ahead at ${site} parts nobody`, () => skewed(cluster, site, HOUR_MS));
    await t.step(`a clock that leaps back at ${site} parts nobody`, () => skewed(cluster, site, -HOUR_MS));
  }
  await t.step(
    "a full disk stops the site, which comes back whole (runtime/site/site.ts S2)",
    () => disk(cluster, "full"),
  );
  await t.step("a failing disk stops the site, which comes back whole", () => disk(cluster, "fail"));
  await t.step("wipe makes a new incarnation", () => wipe(cluster));
});

Deno.test("chaos is refused where the configuration lacks it", async () => {
  await using cluster = await startCluster({ topology: "single", env: { SOJOURN_CHAOS: "false" } });
  const body = JSON.stringify({ action: "pause", site: "cloud" });
  const answer = await ask(`${cluster.url("cloud")}/_sojourn/admin/chaos`, { method: "POST", body });
  assert.equal(answer.status, 403);
  assert.match(answer.text, /"code":"chaos_refused"/);
  const { code, err } = await chaos(cluster, "pause", "cloud");
  assert.equal(code, 1);
  assert.match(err, /chaos_refused: .*cloud lacks "chaos": true/);
});
