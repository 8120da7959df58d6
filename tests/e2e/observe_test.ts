import { strict as assert } from "node:assert";
import { z } from "zod";
import { type LogLine, logLineSchema } from "../../runtime/observe/log_line.ts";
import { readNdjson } from "../../runtime/observe/ndjson.ts";
import { ask, HeaderClient, NEW_SESSION } from "./client.ts";
import { eventually, startCluster, type TestCluster } from "./cluster.ts";

/** An app that prints what it is asked for. */
const APP = new URL("apps/talker/", import.meta.url).pathname;
/** For all that happens while a stream is read: sites are killed, and start again, on a busy machine. */
const WAIT_MS = 300_000;

/** Lines of a site's stream until one has a text. */
async function readTo(values: AsyncGenerator<unknown>, text: string): Promise<LogLine[]> {
  const found: LogLine[] = [];
  for (;;) {
    const { done, value } = await values.next();
    assert(done !== true, `the stream ended before ${JSON.stringify(text)}: ${JSON.stringify(found)}`);
    if (value === undefined) continue;
    const line = logLineSchema.parse(value);
    found.push(line);
    if (line.text.includes(text)) return found;
  }
}

async function follow(url: string): Promise<AsyncGenerator<unknown>> {
  const answer = await fetch(url, { signal: AbortSignal.timeout(WAIT_MS) });
  assert.equal(answer.status, 200);
  assert(answer.body !== null);
  return readNdjson(answer.body);
}

async function logsOfAllSites(cluster: TestCluster): Promise<void> {
  const values = await follow(
    `${cluster.url("core-2")}/_sojourn/admin/logs?app=talker&follow=1`,
  );
  await ask(`${cluster.url("edge-1")}/talker/first?level=warn`);
  const first = (await readTo(values, "said /first")).at(-1);
  assert.deepEqual([first?.site, first?.app, first?.level, first?.version?.length], [
    "edge-1",
    "talker",
    "warn",
    64,
  ]);
  await ask(`${cluster.url("edge-3")}/talker/second`);
  assert.equal((await readTo(values, "said /second")).at(-1)?.site, "edge-3");

  await cluster.control("kill", "edge-1");
  const notice = (await readTo(values, "does not answer")).at(-1);
  assert.deepEqual([notice?.site, notice?.notice], ["edge-1", "unreachable"]);
  await ask(`${cluster.url("edge-3")}/talker/third`);
  await readTo(values, "said /third");
  await cluster.control("start", "edge-1");
  await cluster.ready("edge-1");
  await ask(`${cluster.url("edge-1")}/talker/fourth`);
  const back = await readTo(values, "said /fourth");
  assert.deepEqual([back[0]?.notice, back.at(-1)?.site], ["back", "edge-1"]);
  await values.return(undefined);
}

async function logsByCommand(cluster: TestCluster): Promise<void> {
  const { stdout, code } = await new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", "runtime/main.ts", "logs", "talker", "--data", cluster.data, "--limit", "1"],
    stderr: "inherit",
  }).output();
  assert.equal(code, 0);
  assert.match(
    new TextDecoder().decode(stdout),
    /^[\d:.]{12} edge-1 +info +talker@[0-9a-f]{8} said \/fourth trace=[0-9a-f]{32}\n$/,
  );
}

const view = z.object({
  sites: z.array(z.object({
    id: z.string(),
    reachable: z.boolean(),
    ageMs: z.number().nullable(),
    lagMs: z.number().nullable(),
    status: z.object({ stableLagMs: z.number().nullable(), pendingBytes: z.number() }).nullable(),
    rates: z.object({
      apps: z.array(z.object({ app: z.string(), requests: z.number(), p50Ms: z.number().nullable() })),
      arrivals: z.object({ new: z.number() }),
      moved: z.array(z.object({
        from: z.string().nullable(),
        nothing: z.number(),
        carry: z.number(),
        wait: z.number(),
      })),
    }).nullable(),
  })),
});

async function overviewOfAllSites(cluster: TestCluster): Promise<void> {
  const client = new HeaderClient();
  await client.fetch(`${cluster.url("edge-1")}/talker/here`, NEW_SESSION);
  await client.fetch(`${cluster.url("edge-2")}/talker/there`);
  const values = await follow(`${cluster.url("edge-3")}/_sojourn/admin/cluster?follow=1`);
  const next = async () => view.parse((await values.next()).value).sites;
  const sites = await next();
  assert.deepEqual(sites.map(({ id, reachable }) => `${id} ${reachable}`), [
    ...["cloud", "core-1", "core-2", "edge-1", "edge-2", "edge-3"].map((id) => `${id} true`),
  ]);
  const there = sites.find(({ id }) => id === "edge-2");
  assert((there?.rates?.apps[0]?.requests ?? 0) > 0);
  const from = there?.rates?.moved.find(({ from }) => from === "edge-1");
  assert.equal((from?.nothing ?? 0) + (from?.carry ?? 0) + (from?.wait ?? 0), 1);
  assert(
    sites.every(({ lagMs, status }) => lagMs !== null && status !== null && status.stableLagMs !== null),
  );

  // Whoever is in between may be down: the sites themselves are asked.
  const awayAre = async (ids: string) =>
    (await next()).filter(({ reachable }) => !reachable).map(({ id }) => id).join() === ids;
  await cluster.control("kill", "core-1");
  await eventually("core-1 alone is away", () => awayAre("core-1"));
  // What only the root does is asked for below the site that is down, too.
  const asked = await ask(`${cluster.url("edge-1")}/_sojourn/admin/blobs/missing`, {
    method: "POST",
    body: JSON.stringify(["0".repeat(64)]),
  });
  assert.deepEqual([asked.status, JSON.parse(asked.text)], [200, ["0".repeat(64)]]);
  await cluster.control("kill", "cloud");
  await eventually("the root is away too, and no living site", () => awayAre("cloud,core-1"));
  const lost = (await next()).filter(({ reachable }) => !reachable);
  assert(lost.every(({ ageMs }) => ageMs !== null), "with what they said last");
  await cluster.control("start", "cloud");
  await cluster.control("start", "core-1");
  await eventually("all are back", () => awayAre(""));
  const chaos = async (action: object) => {
    const url = `${cluster.url("edge-3")}/_sojourn/admin/chaos`;
    assert.equal((await ask(url, { method: "POST", body: JSON.stringify(action) })).status, 200);
  };
  await chaos({ action: "partition", a: ["core-1"] }); // silence, and nobody who says no
  await eventually("core-1 alone is away", () => awayAre("core-1"));
  await chaos({ action: "heal" });
  await eventually("all are back", () => awayAre(""));
  await values.return(undefined);
}

Deno.test("operators see a cluster as it is", async (t) => {
  await using cluster = await startCluster({ apps: [APP] });
  await t.step("logs of all sites, by time, over a kill and a restart", () => logsOfAllSites(cluster));
  await t.step("sojourn logs prints them", () => logsByCommand(cluster));
  await t.step("an overview of all sites, with those that do not answer", () => overviewOfAllSites(cluster));
});
