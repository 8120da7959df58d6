/** Sites that die, lose their disks or their parents under running sessions. */
import { strict as assert } from "node:assert";
import { join } from "node:path";
import { ask, CookieClient, HeaderClient } from "./client.ts";
import { eventually, type TestCluster } from "./cluster.ts";

const note = (cluster: TestCluster, site: string, id: string) => `${cluster.url(site)}/probe/notes/${id}`;

async function put(
  cluster: TestCluster,
  client: HeaderClient,
  site: string,
  id: string,
  body: string,
): Promise<void> {
  const answer = await client.fetch(note(cluster, site, id), { method: "PUT", body });
  assert.equal(answer.status, 201, `${site} ${id}: ${answer.text}`);
}

async function wipe(cluster: TestCluster, site: string): Promise<void> {
  await cluster.control("kill", site);
  await Deno.remove(join(cluster.data, "sites", site, "data"), { recursive: true });
}

async function goesOnAlone(cluster: TestCluster): Promise<void> {
  const client = new HeaderClient();
  await put(cluster, client, "edge-1", "alone", "0");
  await client.fetch(note(cluster, "edge-1", "alone"));
  await cluster.control("kill", "core-1");
  for (let i = 1; i <= 10; i++) {
    await put(cluster, client, "edge-1", "alone", String(i));
    assert.equal((await client.fetch(note(cluster, "edge-1", "alone"))).text, String(i));
  }
  const missed = await client.fetch(note(cluster, "edge-1", "never-read-here"));
  assert.equal(missed.status, 503, "what is not covered cannot be known");
  assert.equal((JSON.parse(missed.text) as { code: string }).code, "store_unreachable");
  const forwarded = await client.fetch(`${cluster.url("edge-1")}/probe/root/where`);
  assert.equal(forwarded.status, 503, "what runs at the root cannot be reached");
  await cluster.control("start", "core-1");
  await eventually(
    "the other region sees the last write",
    async () => (await ask(note(cluster, "edge-3", "alone"))).text === "10",
  );
  assert.equal((await client.fetch(note(cluster, "edge-1", "never-read-here"))).status, 404);
}

async function rootComesBack(cluster: TestCluster): Promise<void> {
  const client = new HeaderClient();
  const acknowledged: string[] = [];
  await put(cluster, client, "edge-2", "r0", "v0");
  for (let round = 1; round <= 3; round++) {
    await cluster.control("kill", "cloud");
    for (let i = 0; i < 5; i++) {
      const id = `r${round}-${i}`;
      await put(cluster, client, "edge-2", id, id);
      acknowledged.push(id);
    }
    await cluster.control("start", "cloud");
    await cluster.ready("cloud");
  }
  for (const id of acknowledged) {
    await eventually(
      `${id} has reached the other region`,
      async () => (await ask(note(cluster, "edge-3", id))).text === id,
    );
  }
}

async function wipedEdge(cluster: TestCluster): Promise<void> {
  const client = new HeaderClient();
  await put(cluster, client, "edge-1", "wiped", "kept above");
  await eventually(
    "the row is above",
    async () => (await ask(note(cluster, "cloud", "wiped"))).text === "kept above",
  );
  const before = await incarnation(cluster, "edge-1");
  await wipe(cluster, "edge-1");
  await cluster.control("start", "edge-1");
  await cluster.ready("edge-1");
  assert.notEqual(await incarnation(cluster, "edge-1"), before);
  for (const site of ["edge-1", "edge-2", "edge-3"]) {
    await eventually(`${site} serves the session of the disk that is gone`, async () => {
      const answer = await client.fetch(note(cluster, site, "wiped"));
      assert.equal(answer.text, "kept above");
      return answer.status === 200;
    });
  }
}

async function incarnation(cluster: TestCluster, site: string): Promise<number> {
  return (JSON.parse((await ask(`${cluster.url(site)}/_sojourn/status`)).text) as { incarnation: number })
    .incarnation;
}

async function lostWrite(cluster: TestCluster): Promise<void> {
  const client = new HeaderClient(), browser = new CookieClient();
  await put(cluster, client, "edge-1", "doomed-before", "x");
  // Killed, not paused: what stands in a paused site's sockets is not lost, and would be served, rightly.
  await cluster.control("kill", "core-1");
  await put(cluster, client, "edge-1", "doomed", "only at edge-1");
  const its = await browser.fetch(note(cluster, "edge-1", "doomed"), { method: "PUT", body: "a browser's" });
  assert.equal(its.status, 201, its.text);
  await wipe(cluster, "edge-1");
  await cluster.control("start", "core-1");
  await cluster.ready("core-1");
  await cluster.control("start", "edge-1");
  await cluster.ready("edge-1");
  for (const site of ["edge-1", "edge-2", "edge-3"]) {
    let text = "";
    await eventually(`${site} says what may be lost`, async () => {
      const answer = await ask(note(cluster, site, "doomed"), {
        headers: { "sojourn-session": client.token },
      });
      text = `${answer.status} ${answer.text}`;
      assert.ok(answer.status !== 200 && answer.status !== 404, `never silently stale: ${text}`);
      return answer.status === 410;
    });
    assert.match(text, /"code":"source_lost".*"mayBeLost":\{"site":"edge-1"/);
    const [, from = "", to = ""] = /"from":(\d+),"to":(\d+)/.exec(text) ?? [];
    const isOfThisTest = (ms: number) => Math.abs(Date.now() - ms) < 600_000;
    assert.ok(isOfThisTest(Number(from)) && isOfThisTest(Number(to)), `Unix milliseconds: ${text}`);
  }
  const over = await ask(note(cluster, "edge-2", "doomed"), {
    headers: { "sojourn-session": client.token, "sojourn-session-reset": "1" },
  });
  assert.equal(over.status, 404, "a session that starts over goes on");
  const told = await browser.fetch(note(cluster, "edge-2", "doomed"));
  assert.match(`${told.status} ${told.text}`, /^410 .*"code":"source_lost".*"retry":"reset"/);
  assert.equal((await browser.fetch(note(cluster, "edge-2", "doomed"))).status, 410, "until it is asked to");
  const page = await browser.fetch(note(cluster, "edge-2", "doomed"), {
    headers: { accept: "text/html,*/*" },
  });
  assert.match(`${page.status} ${page.text}`, /^410 <!doctype html>.*action="\/_sojourn\/session\/reset"/s);
  const reset = await browser.fetch(`${cluster.url("edge-2")}/_sojourn/session/reset`, { method: "POST" });
  assert.equal(reset.status, 204);
  assert.equal(
    (await browser.fetch(note(cluster, "edge-2", "doomed"))).status,
    404,
    "a browser's goes on, too",
  );
}

/** Walks over a cluster of the probe, which is whole again afterwards. */
export async function walkFaults(cluster: TestCluster, t: Deno.TestContext): Promise<void> {
  await t.step("an edge goes on without its parent", () => goesOnAlone(cluster));
  await t.step("nothing is lost while the root is killed again and again", () => rootComesBack(cluster));
  await t.step("an edge that lost its disk fetches again", () => wipedEdge(cluster));
  await t.step("a write that only a lost disk had is 410 source_lost", () => lostWrite(cluster));
}
