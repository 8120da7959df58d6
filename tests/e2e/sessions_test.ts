/** Sessions that move between the sites of a running cluster, and sites that come and go: for a moment, or for good. */
import { strict as assert } from "node:assert";
import { ask, CookieClient, HeaderClient } from "./client.ts";
import { eventually, startCluster, type TestCluster } from "./cluster.ts";
import { walkFaults } from "./faults_walk.ts";
import { walkMembership } from "./membership_walk.ts";

const SITES = ["cloud", "core-1", "core-2", "edge-1", "edge-2", "edge-3"];

async function everyAppAnswers(cluster: TestCluster): Promise<void> {
  for (const site of SITES) {
    const answer = await ask(`${cluster.url(site)}/guestbook/`);
    assert.equal(answer.status, 200);
    assert.equal(answer.headers.get("sojourn-site"), site);
    assert.match(answer.headers.get("sojourn-version") ?? "", /^[0-9a-f]{64}$/);
    assert.match(answer.text, /Guestbook/);
    const named = await ask(`${cluster.url(site)}/_sojourn/sites`);
    assert.deepEqual((JSON.parse(named.text) as { id: string }[]).map(({ id }) => id).sort(), SITES);
  }
}

async function cookieMoves(cluster: TestCluster): Promise<void> {
  const browser = new CookieClient();
  const path = ["edge-1", "edge-2", "edge-3", "core-2", "cloud", "edge-1"];
  for (const [round, site] of path.entries()) {
    const put = await browser.fetch(`${cluster.url(site)}/probe/notes/c${round}`, {
      method: "PUT",
      body: `by ${site}`,
    });
    assert.equal(put.status, 201, put.text);
    for (const next of path.slice(round, round + 2)) {
      const got = await browser.fetch(`${cluster.url(next)}/probe/notes/c${round}`);
      assert.equal(got.text, `by ${site}`, `${next} shows what was written at ${site}`);
      assert.equal(got.headers.get("sojourn-site"), next);
      assert.match(got.headers.get("server-timing") ?? "", /^handoff;.*store;.*app;/);
    }
  }
}

async function headerMoves(cluster: TestCluster): Promise<void> {
  const client = new HeaderClient();
  for (let round = 0; round < 10; round++) {
    const [from, to] = round % 2 === 0 ? ["edge-1", "edge-3"] : ["edge-3", "edge-2"];
    await client.fetch(`${cluster.url(from ?? "")}/probe/notes/h`, { method: "PUT", body: `round ${round}` });
    const got = await client.fetch(`${cluster.url(to ?? "")}/probe/notes/h`);
    assert.equal(got.text, `round ${round}`);
    assert.equal(got.headers.getSetCookie().length, 0, "a client of the header gets no cookie");
  }
}

async function tokensMerge(cluster: TestCluster): Promise<void> {
  const first = new HeaderClient();
  await first.fetch(`${cluster.url("edge-1")}/probe/notes/m0`, { method: "PUT", body: "start" });
  const second = new HeaderClient();
  second.token = first.token;
  await first.fetch(`${cluster.url("edge-1")}/probe/notes/m1`, { method: "PUT", body: "one" });
  await second.fetch(`${cluster.url("edge-3")}/probe/notes/m2`, { method: "PUT", body: "two" });
  for (const note of ["m1", "m2"]) {
    const got = await ask(`${cluster.url("edge-2")}/probe/notes/${note}`, {
      headers: { "sojourn-session": `${first.token}, ${second.token}` },
    });
    assert.equal(got.status, 200, `${note}: ${got.text}`);
  }
}

async function edgeResumes(cluster: TestCluster): Promise<void> {
  const client = new HeaderClient();
  const url = cluster.url("edge-1");
  for (let i = 0; i < 20; i++) {
    const put = await client.fetch(`${url}/probe/notes/k${i}`, { method: "PUT", body: `value ${i}` });
    assert.equal(put.status, 201, put.text);
  }
  const before = await cluster.site("edge-1");
  await cluster.control("kill", "edge-1");
  await assert.rejects(ask(`${url}/_sojourn/healthz`));
  await cluster.control("start", "edge-1");
  await cluster.ready("edge-1");
  assert.notEqual((await cluster.site("edge-1")).pid, before.pid);
  for (const site of ["edge-1", "edge-2"]) {
    for (let i = 0; i < 20; i++) {
      const got = await client.fetch(`${cluster.url(site)}/probe/notes/k${i}`);
      assert.equal(got.text, `value ${i}`, `k${i} at ${site} after the restart`);
    }
  }
}

async function comesBackByItself(cluster: TestCluster): Promise<void> {
  const before = await cluster.site("edge-3");
  Deno.kill(before.pid, "SIGKILL");
  await eventually("edge-3 has another process", async () => {
    const answer = await ask(`${cluster.url("edge-3")}/_sojourn/status`);
    return answer.status === 200 &&
      (JSON.parse(answer.text) as { parent: { connected: boolean } }).parent.connected;
  });
}

async function startsInAnyOrder(cluster: TestCluster): Promise<void> {
  for (const site of ["cloud", "core-1", "edge-1"]) await cluster.control("stop", site);
  for (const site of ["edge-1", "core-1", "cloud"]) {
    await cluster.control("start", site);
    await eventually(
      `${site} listens`,
      async () => (await ask(`${cluster.url(site)}/_sojourn/healthz`)).status === 200,
    );
    // Their disks are valid: each is ready without the parent that has not started.
    await cluster.ready(site);
    const readyz = JSON.parse((await ask(`${cluster.url(site)}/_sojourn/readyz`)).text) as {
      parent?: string;
    };
    if (site !== "cloud") assert.equal(readyz.parent, "unreachable");
  }
  const client = new HeaderClient();
  await eventually("the tree is whole again", async () => {
    await client.fetch(`${cluster.url("edge-1")}/probe/notes/o`, { method: "PUT", body: "whole" });
    return (await client.fetch(`${cluster.url("edge-3")}/probe/notes/o`)).text === "whole";
  });
}

async function sourceUnreachable(cluster: TestCluster): Promise<void> {
  const client = new HeaderClient();
  await client.fetch(`${cluster.url("edge-1")}/probe/notes/u0`, { method: "PUT", body: "before" });
  // Both the source and what is between are stopped as if the network were gone: nothing can be carried or waited for.
  await cluster.control("pause", "core-1");
  await client.fetch(`${cluster.url("edge-1")}/probe/notes/u1`, { method: "PUT", body: "only at edge-1" });
  const begunMs = performance.now();
  const answer = await client.fetch(`${cluster.url("edge-3")}/probe/notes/u1`);
  const tookMs = performance.now() - begunMs;
  await cluster.control("resume", "core-1");
  assert.equal(answer.status, 503, answer.text);
  assert.equal((JSON.parse(answer.text) as { code: string }).code, "source_unreachable");
  assert.ok(answer.headers.get("retry-after"));
  assert.ok(tookMs > 1_500 && tookMs < 20_000, `refused after ${tookMs} ms`);
  await eventually(
    "the session goes on once its source is back",
    async () => (await client.fetch(`${cluster.url("edge-3")}/probe/notes/u1`)).text === "only at edge-1",
  );
}

Deno.test("a cluster serves its apps and keeps sessions whole", async (t) => {
  await using cluster = await startCluster({ apps: ["guestbook", "tests/e2e/apps/probe"] });
  await t.step("every app answers at each site", () => everyAppAnswers(cluster));
  await t.step("a session reads its writes at the next site by cookie", () => cookieMoves(cluster));
  await t.step("a session reads its writes at the next site by header", () => headerMoves(cluster));
  await t.step("two tokens of one session are merged", () => tokensMerge(cluster));
  await t.step("an edge resumes after SIGKILL", () => edgeResumes(cluster));
  await t.step("a site that ends by itself is started again", () => comesBackByItself(cluster));
  await t.step("sites start in any order", () => startsInAnyOrder(cluster));
  await t.step("an unreachable source is a 503 after two seconds", () => sourceUnreachable(cluster));
  await t.step(
    "sessions survive what happens to sites, or are told what may be lost",
    (step) => walkFaults(cluster, step),
  );
  await t.step(
    "a site is taken off the tree, and let in again",
    (step) => walkMembership(cluster, step),
  );
});
