/** Sites that get another parent: the command, over real processes; the old parent there, and lost for good. */
import { strict as assert } from "node:assert";
import { EXIT, runCli } from "../../runtime/cli/mod.ts";
import { AdminClient } from "../../runtime/deploy/client.ts";
import { ask, HeaderClient } from "./client.ts";
import { eventually, startCluster, type TestCluster } from "./cluster.ts";

const note = (cluster: TestCluster, site: string, id: string) => `${cluster.url(site)}/probe/notes/${id}`;

const sojourn = (cluster: TestCluster, ...args: string[]) => sojournAt(cluster, "edge-3", ...args);

async function sojournAt(cluster: TestCluster, site: string, ...args: string[]) {
  const out: string[] = [], err: string[] = [];
  const env: Record<string, string> = {
    SOJOURN_URL: cluster.url(site),
    SOJOURN_TOKEN: cluster.adminToken,
  };
  const code = await runCli(args, {
    out: (line) => void out.push(line),
    err: (line) => void err.push(line),
    env: (name) => env[name],
  });
  return { code, out: out.join("\n"), err: err.join("\n") };
}

async function chaos(cluster: TestCluster, ...args: readonly string[]): Promise<void> {
  const said: string[] = [];
  const shell = { out: (text: string) => said.push(text), err: (text: string) => said.push(text) };
  const code = await runCli(["chaos", ...args, "--data", cluster.data], { ...shell, env: () => undefined });
  assert.equal(code, EXIT.done, `chaos ${args.join(" ")}: ${said.join("\n")}`);
}

async function parents(cluster: TestCluster): Promise<Record<string, string | null>> {
  const { out } = await sojourn(cluster, "sites", "--json");
  const sites = JSON.parse(out) as { id: string; parent: string | null }[];
  return Object.fromEntries(sites.map(({ id, parent }) => [id, parent]));
}

async function refusals(cluster: TestCluster): Promise<void> {
  const rows: [string[], string, RegExp][] = [
    [["move", "edge-1", "edge-1"], "site_needed", /edge-1 cannot be its own parent/],
    [["move", "core-1", "edge-1"], "site_needed", /edge-1 stands below core-1/],
    [["move", "cloud", "edge-1"], "site_needed", /cloud is the root/],
    [["move", "nobody", "core-2"], "site_unknown", /no site is called "nobody"/],
    [["move", "edge-1", "nobody"], "site_unknown", /no site is called "nobody"/],
    [["move", "edge-1", "Core 2"], "query_invalid", /take ids of sites, not "Core 2"/],
    [["move", "edge-1", "core-2", "--lost", "core-1"], "site_connected", /core-1 is there: it is not lost/],
    [["move", "edge-1", "core-2", "--lost", "gone"], "site_unknown", /no site is called "gone"/],
  ];
  for (const [args, code, text] of rows) {
    const answer = await sojourn(cluster, "sites", ...args, "--json");
    assert.equal(answer.code, EXIT.failed, args.join(" "));
    const { error } = JSON.parse(answer.out) as { error: { code: string; message: string } };
    assert.equal(error.code, code, args.join(" "));
    assert.match(error.message, text);
  }
  assert.equal((await sojourn(cluster, "sites", "move", "edge-1")).code, EXIT.usage);
}

/** The old parent is there, and the site starts again under the new one. */
async function asPlanned(cluster: TestCluster): Promise<void> {
  const client = new HeaderClient();
  await client.fetch(note(cluster, "edge-2", "planned"), { method: "PUT", body: "before" });
  const moved = await sojourn(cluster, "sites", "move", "edge-2", "core-2", "--json");
  assert.equal(moved.code, EXIT.done, moved.err + moved.out);
  const { from, to, joined } = JSON.parse(moved.out) as { from: string; to: string; joined: boolean };
  assert.deepEqual([from, to, joined], ["core-1", "core-2", true]);
  assert.equal((await client.fetch(note(cluster, "edge-2", "planned"))).text, "before");
  await client.fetch(note(cluster, "edge-2", "planned"), { method: "PUT", body: "after" });
  assert.equal((await client.fetch(note(cluster, "edge-1", "planned"))).text, "after");
  await cluster.control("restart", "edge-2");
  await cluster.ready("edge-2");
  assert.equal((await client.fetch(note(cluster, "edge-2", "planned"))).text, "after");
  assert.equal((await parents(cluster))["edge-2"], "core-2");
  const back = await sojourn(cluster, "sites", "move", "edge-2", "core-1");
  assert.deepEqual([back.code, back.out], [EXIT.done, "edge-2 is under core-1 now; it was under core-2"]);
}

/** Who asks more than once, and for one parent right after another, gets the last of them. */
async function inARow(cluster: TestCluster): Promise<void> {
  const client = new AdminClient({ url: cluster.url("edge-2"), token: cluster.adminToken });
  const move = (to: string) => client.call("POST", `/sites/edge-2/move?to=${to}`);
  const isBelow = async (to: string, text: string) => {
    await new HeaderClient().fetch(note(cluster, "edge-2", "in-a-row"), { method: "PUT", body: text });
    await eventually(`edge-2 is below ${to}, and pushes`, async () => {
      assert.equal((await parents(cluster))["edge-2"], to);
      assert.equal((await ask(note(cluster, "cloud", "in-a-row"))).text, text);
      return true;
    });
  };
  await Promise.all([move("core-2"), move("core-2")]);
  await isBelow("core-2", "asked twice");
  for (const to of ["cloud", "core-2", "cloud", "core-1"]) await move(to);
  await isBelow("core-1", "asked for others before");
}

const MANY = 2_000, AT_ONCE = 200;
const OLD = "as it was ".repeat(10), NEW = "as it is ".repeat(10);

async function write(cluster: TestCluster, rows: readonly number[], text: string): Promise<void> {
  for (let i = 0; i < rows.length; i += AT_ONCE) {
    const ids = rows.slice(i, i + AT_ONCE).map((row) => `many-${String(row).padStart(5, "0")}`);
    const body = JSON.stringify({ ids, text });
    assert.equal(
      (await ask(`${cluster.url("cloud")}/probe/many-notes`, { method: "POST", body })).status,
      201,
    );
  }
}

/** Waits until a site shows so many of the rows as they are now, and all others as they were. */
async function shows(cluster: TestCluster, site: string, news: number): Promise<void> {
  const wanted = { ...(news < MANY ? { [OLD]: MANY - news } : {}), ...(news > 0 ? { [NEW]: news } : {}) };
  await eventually(`${site} shows ${news} new rows`, async () => {
    const { text } = await ask(`${cluster.url(site)}/probe/many-notes/many-`);
    assert.deepEqual(JSON.parse(text), wanted);
    return true;
  });
}

/** What the store had over the link to a parent, both ways, and how many rows it did not need to have. */
async function cost(cluster: TestCluster, site: string, parent: string) {
  const { links, counters } = JSON.parse((await ask(`${cluster.url(site)}/_sojourn/status`)).text) as {
    links: { site: string; counters: { storeBytesIn: number; storeBytesOut: number } }[];
    counters: Record<string, number>;
  };
  const link = links.find((link) => link.site === parent)?.counters;
  const bytes = (link?.storeBytesIn ?? 0) + (link?.storeBytesOut ?? 0);
  return { bytes, same: counters.same_rows ?? 0 };
}

/** Changes rows while the site is cut off from its parent, and moves it; the bytes that it took. */
async function movedWith(
  cluster: TestCluster,
  { at, from, to, changed, same }: {
    readonly at: string;
    readonly from: string;
    readonly to: string;
    readonly changed: readonly number[];
    readonly same: number;
  },
): Promise<number> {
  await chaos(cluster, "partition", "edge-2", from);
  await write(cluster, changed, NEW);
  const before = await cost(cluster, "edge-2", to);
  const moved = await sojournAt(cluster, at, "sites", "move", "edge-2", to, "--json");
  assert.equal(moved.code, EXIT.done, moved.err + moved.out);
  await eventually("what it had is compared", async () => {
    return (await cost(cluster, "edge-2", to)).same - before.same >= same;
  });
  await shows(cluster, "edge-2", changed.length);
  const bytes = (await cost(cluster, "edge-2", to)).bytes - before.bytes;
  await chaos(cluster, "heal");
  return bytes;
}

/** Rows that it covered stay, and come only where they differ. */
async function withItsRows(cluster: TestCluster): Promise<void> {
  const before = await cost(cluster, "edge-2", "core-1");
  await write(cluster, [...Array(MANY).keys()], OLD);
  await shows(cluster, "edge-2", 0);
  const all = (await cost(cluster, "edge-2", "core-1")).bytes - before.bytes;
  const few = await movedWith(cluster, {
    // Asked of a site that reaches it past its parent only.
    ...{ at: "edge-3", from: "core-1", to: "core-2", changed: [7, 700, 1_500] },
    same: 0.95 * MANY, // those that differ come with some of their neighbours
  });
  const half = await movedWith(cluster, {
    ...{ at: "edge-2", from: "core-2", to: "core-1", changed: [...Array(MANY / 2).keys(), 1_500] },
    same: 0.4 * MANY,
  });
  assert.ok(few < all / 8, `${all} bytes for all rows, ${few} for three`);
  assert.ok(half > all / 3 && half < all, `${all} bytes for all rows, ${half} for half of them`);
}

/** The old parent is gone for good, with its disk; what was written meanwhile goes up another way. */
async function asOrphans(cluster: TestCluster): Promise<void> {
  const clients = { "edge-1": new HeaderClient(), "edge-2": new HeaderClient() };
  for (const [site, client] of Object.entries(clients)) {
    await client.fetch(note(cluster, site, `of-${site}`), { method: "PUT", body: "pushed" });
    await eventually(
      "it is at the root",
      async () => (await ask(note(cluster, "cloud", `of-${site}`))).text === "pushed",
    );
  }
  await cluster.control("kill", "core-1");
  for (const [site, client] of Object.entries(clients)) {
    const written = await client.fetch(note(cluster, site, `of-${site}`), { method: "PUT", body: "alone" });
    assert.equal(written.status, 201);
  }
  for (const site of Object.keys(clients)) {
    const moved = await sojourn(cluster, "sites", "move", site, "core-2", "--lost", "core-1", "--json");
    assert.equal(moved.code, EXIT.done, moved.err + moved.out);
  }
  for (const [site, client] of Object.entries(clients)) {
    await eventually("what was written meanwhile is at the root", async () => {
      return (await ask(note(cluster, "cloud", `of-${site}`))).text === "alone";
    });
    // A session that began before it, where something may have been lost with core-1, is told so at most.
    const seen = await client.fetch(note(cluster, site, `of-${site}`));
    assert.ok(seen.status === 410 || seen.text === "alone", `${site}: ${seen.status} ${seen.text}`);
    const anew = new HeaderClient();
    await anew.fetch(note(cluster, site, `anew-${site}`), { method: "PUT", body: "goes on" });
    assert.equal((await anew.fetch(note(cluster, "edge-3", `anew-${site}`))).text, "goes on");
  }
  await eventually("the lost one may be removed", async () => {
    return (await sojourn(cluster, "sites", "remove", "core-1", "--json")).code === EXIT.done;
  });
  await eventually("nobody knows it any more", async () => !("core-1" in await parents(cluster)));
  const { "edge-1": first, "edge-2": second } = await parents(cluster);
  assert.deepEqual([first, second], ["core-2", "core-2"]);
}

Deno.test("sites get another parent, and clients go on", async (t) => {
  await using cluster = await startCluster({ apps: ["tests/e2e/apps/probe"] });
  await t.step("what cannot be is refused", () => refusals(cluster));
  await t.step("planned: nothing is lost, and a restart keeps the new parent", () => asPlanned(cluster));
  await t.step("asked for again and again: the last counts", () => inARow(cluster));
  await t.step("its rows stay, and come where they differ", () => withItsRows(cluster));
  await t.step("orphans: their writes go up under another parent", () => asOrphans(cluster));
});
