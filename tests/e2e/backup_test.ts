/**
 * A tree of real processes is copied while it serves, killed, and restored: what was acknowledged before the copy began is
 * there, all of it fits together, and everything goes on. Whoever has seen more is kept out, and told so.
 */
import { strict as assert } from "node:assert";
import { join } from "node:path";
import { EXIT, runCli } from "../../runtime/cli/mod.ts";
import { restoreCommand } from "../../runtime/site/restore_command.ts";
import { type Answer, ask, HeaderClient } from "./client.ts";
import { eventually, PROBE, startCluster, type TestCluster } from "./cluster.ts";

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
const BELOW = SITES.slice(1);
/** Rows of one atomic write. */
const TOGETHER = 5;

interface Cli {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

async function cli(cluster: TestCluster | null, ...args: readonly string[]): Promise<Cli> {
  const out: string[] = [], err: string[] = [];
  const env: Record<string, string> = cluster === null
    ? {}
    : { SOJOURN_URL: cluster.url("cloud"), SOJOURN_TOKEN: cluster.adminToken };
  const code = await runCli([...args, "--json"], {
    out: (line) => void out.push(line),
    err: (line) => void err.push(line),
    env: (name) => env[name],
  }, [restoreCommand]);
  return { code, out: out.join("\n"), err: err.join("\n") };
}

/** What one client does over and over, one after the other; what fails for now it does again. */
class Doer {
  /** How often it was tried. */
  tried = 0;
  /** Up to where it was answered with success. */
  done = 0;
  /** Tries that the site refused for the moment, as a busy one may. */
  refused = 0;
  readonly errors: string[] = [];
  readonly #act: (n: number) => Promise<{ readonly status: number; readonly text: string }>;
  #stopped = false;
  #running: Promise<void> | null = null;

  constructor(act: (n: number) => Promise<{ readonly status: number; readonly text: string }>) {
    this.#act = act;
  }

  start(): void {
    this.#running = this.#run();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#running;
  }

  async #run(): Promise<void> {
    while (!this.#stopped) {
      this.tried++;
      const { status, text } = await this.#act(this.done + 1).catch((error) => ({
        status: 0,
        text: String(error),
      }));
      if (status === 200 || status === 201) this.done++;
      else if (status === 503) this.refused++;
      else if (!this.#stopped) this.errors.push(`${this.done + 1}: ${status} ${text}`);
    }
  }
}

const note = (cluster: TestCluster, site: string, id: string) => `${cluster.url(site)}/probe/notes/${id}`;
const calling = (cluster: TestCluster, site: string, id: string, method: string, ...args: unknown[]) =>
  ask(`${cluster.url(site)}/counter/${id}/call/${method}`, { method: "POST", body: JSON.stringify(args) });

async function counted(cluster: TestCluster, site: string, id: string, method: string, ...args: unknown[]) {
  const { status, text } = await calling(cluster, site, id, method, ...args);
  assert.equal(status, 200, `${site} ${id}.${method}: ${status} ${text}`);
  return Number((JSON.parse(text) as { result: unknown }).result);
}

/** Rows, atomic writes and stateful sessions at each site, and sessions that call others. */
function doers(cluster: TestCluster): Record<string, Doer> {
  const all: Record<string, Doer> = {};
  for (const site of SITES) {
    const writer = new HeaderClient(), grouped = new HeaderClient();
    all[`row-${site}`] = new Doer((n) =>
      writer.fetch(note(cluster, site, `row-${site}-${n}`), { method: "PUT", body: `${n}` })
    );
    const ids = Array.from({ length: TOGETHER }, (_, i) => `together-${site}-${i}`);
    all[`together-${site}`] = new Doer((n) =>
      grouped.fetch(`${cluster.url(site)}/probe/many-notes`, {
        method: "POST",
        body: JSON.stringify({ ids, text: `${n}` }),
      })
    );
  }
  for (const [i, site] of BELOW.entries()) {
    all[`session-${site}`] = new Doer(() => calling(cluster, site, `of-${site}`, "add", 1));
    const other = BELOW[(i + 1) % BELOW.length] ?? "";
    all[`call-${site}`] = new Doer(() => calling(cluster, site, `asks-${site}`, "meet", `asked-${other}`));
  }
  return all;
}

const FOLDER = () => Deno.makeTempDir({ prefix: "sojourn-backup-" });
const siteFile = (data: string, site: string) => join(data, "sites", site, "site.json");
const dataOf = (data: string, site: string) => join(data, "sites", site, "data");

async function killed(cluster: TestCluster): Promise<void> {
  for (const site of SITES) await cluster.control("kill", site);
  await cluster.stop();
}

for (const f of [0, 1]) {
  Deno.test(`a tree that was copied under load and killed is restored, and goes on with all of it (f = ${f})`, (t) =>
    restores(f, t));
}

async function restores(f: number, t: Deno.TestContext): Promise<void> {
  const folder = await FOLDER(), data = join(folder, "data"), copies = join(folder, "copies");
  const topology = join(folder, "topology.json"), oldSecret = join(folder, "old-secret");
  await Deno.writeTextFile(topology, JSON.stringify(TOPOLOGY));
  const start = () => startCluster({ topology, apps: [APP, PROBE], data, f });
  const before: Record<string, number> = {}, after: Record<string, number> = {};
  const refusals: Record<string, number> = {};
  const later = new HeaderClient();
  let cut = "";

  await t.step("every site is copied as of moments that fit together, while all write", async () => {
    await using cluster = await start();
    for (const site of BELOW) {
      assert.equal(await counted(cluster, site, `of-${site}`, "add", 1), 1);
      assert.equal(await counted(cluster, site, `asks-${site}`, "add", 0), 0);
      assert.equal(await counted(cluster, site, `asked-${site}`, "add", 0), 0);
    }
    const all = doers(cluster);
    for (const doer of Object.values(all)) doer.start();
    await eventually(
      "all of them get on",
      () => Promise.resolve(Object.values(all).every(({ done }) => done > 3)),
    );
    for (const [name, { done }] of Object.entries(all)) before[name] = done;
    const { code, out, err } = await cli(cluster, "backup", copies, "--tree");
    for (const [name, { tried, refused }] of Object.entries(all)) {
      after[name] = tried;
      refusals[name] = refused;
    }
    assert.equal(code, EXIT.done, out + err);
    const made = JSON.parse(out) as { cut: string; files: { site: string; file: string; sha256: string }[] };
    cut = made.cut;
    assert.deepEqual(made.files.map(({ site }) => site).sort(), [...SITES].sort());
    for (const { file, sha256 } of made.files) {
      assert.equal(((await Deno.stat(file)).mode ?? 0) & 0o777, 0o600, file);
      const verified = await cli(null, "restore", file, "--verify", "--secret", join(data, "secret"));
      assert.equal(verified.code, EXIT.done, verified.err);
      const said = JSON.parse(verified.out) as { signed: boolean; sha256: string; cut: string };
      assert.deepEqual([said.signed, said.sha256, said.cut], [true, sha256, cut]);
    }
    // Requests wait for the moment, and none of them fails for it.
    await eventually(
      "all of them go on",
      () => Promise.resolve(Object.entries(all).every(([name, { done }]) => done > (after[name] ?? 0))),
    );
    assert.deepEqual(Object.values(all).flatMap(({ errors }) => errors), []);
    const written = await later.fetch(note(cluster, "edge-1", "later"), { method: "PUT", body: "later" });
    assert.equal(written.status, 201, written.text);
    const stopping = Object.values(all).map((doer) => doer.stop());
    await killed(cluster);
    await Promise.all(stopping);
    for (const site of SITES) {
      const left = await Array.fromAsync(
        Deno.readDir(join(dataOf(data, site), "backup")),
        ({ name }) => name,
      );
      assert.deepEqual(left, [], `${site} keeps no copies of what was fetched`);
    }
  });

  await t.step("it is not restored under the secret of before, nor over what is there", async () => {
    await Deno.copyFile(join(data, "secret"), oldSecret);
    const restore = (...more: string[]) =>
      cli(
        null,
        "restore",
        join(copies, "edge-1.sojourn"),
        "--config",
        siteFile(data, "edge-1"),
        "--secret",
        oldSecret,
        ...more,
      );
    assert.match((await restore("--replace")).err, /^secret_of_before: /);
    await Deno.writeTextFile(join(data, "secret"), crypto.randomUUID());
    assert.match((await restore()).err, /^folder_not_empty: .*--replace/);
    assert.ok(
      (await Deno.stat(join(dataOf(data, "edge-1"), "store", "rows.db"))).isFile,
      "nothing has changed",
    );
  });

  await t.step("restored, all that was acknowledged before is there, and fits together", async () => {
    for (const site of SITES) {
      const { code, out, err } = await cli(
        null,
        ...["restore", join(copies, `${site}.sojourn`), "--config", siteFile(data, site)],
        ...["--secret", oldSecret, "--replace"],
      );
      assert.equal(code, EXIT.done, err);
      const { aside } = JSON.parse(out) as { aside: string };
      assert.ok((await Deno.stat(join(aside, "store"))).isDirectory, "what was there is still somewhere");
    }
    await using cluster = await start();
    const seen = await later.fetch(note(cluster, "edge-1", "later"));
    assert.match(`${seen.status} ${seen.text}`, /^401 .*"code":"token_foreign"/, "who saw more begins anew");
    for (const site of SITES) {
      const least = before[`row-${site}`] ?? 0, most = after[`row-${site}`] ?? 0;
      const there = await prefixOf(cluster, site, most);
      assert.ok(there >= least, `${site}: row ${there} is the last, and ${least} had been acknowledged`);
      const texts = JSON.parse((await shown(`${cluster.url(site)}/probe/many-notes/together-${site}-`)).text);
      const [[text = "", count = 0] = [], ...others] = Object.entries(texts as Record<string, number>);
      assert.deepEqual([count, others], [TOGETHER, []], `${site}: atomic writes are whole`);
      const [low, high] = [before[`together-${site}`] ?? 0, after[`together-${site}`] ?? 0];
      assert.ok(Number(text) >= low && Number(text) <= high, `${site}: ${low} ≤ ${text} ≤ ${high}`);
    }
    for (const [i, site] of BELOW.entries()) {
      // One was added before the others began.
      const count = await counted(cluster, site, `of-${site}`, "get") - 1;
      const [low, high] = [before[`session-${site}`] ?? 0, after[`session-${site}`] ?? 0];
      assert.ok(count >= low && count <= high, `${site}: ${low} ≤ ${count} ≤ ${high}`);
      // Whoever asks has what it was answered: the other has been asked as often, or once more, or in vain.
      const other = BELOW[(i + 1) % BELOW.length] ?? "";
      const asks = await counted(cluster, site, `asks-${site}`, "get");
      const asked = await counted(cluster, other, `asked-${other}`, "get") / 10;
      assert.ok(asks >= (before[`call-${site}`] ?? 0), `${site}: ${asks} calls`);
      assert.ok(
        asked >= asks && asked <= asks + 1 + (refusals[`call-${site}`] ?? 0),
        `${site} has asked ${asks} times, and ${other} was asked ${asked}`,
      );
      assert.equal(
        await counted(cluster, other, `of-${site}`, "add", 1),
        count + 2,
        "it goes on, from elsewhere too",
      );
      assert.equal(await counted(cluster, site, `asks-${site}`, "meet", `asked-${other}`), (asked + 1) * 10);
    }
    const written = await new HeaderClient().fetch(note(cluster, "edge-2", "anew"), {
      method: "PUT",
      body: "x",
    });
    assert.equal(written.status, 201, written.text);
    await eventually(
      "it is at the root",
      async () => (await ask(note(cluster, "cloud", "anew"))).text === "x",
    );
    const wrong = cluster.log().split("\n").filter((line) =>
      /disk_lost|disk_went_back|site_failed|child_removed|number_unknown|source_lost/.test(line)
    );
    assert.deepEqual(wrong, []);
    assert.equal(
      cluster.log().match(/ restored .*/g)?.filter((line) => line.includes(cut)).length,
      SITES.length,
    );
  });

  await t.step("the data does not start under the secret of before, and says why", async () => {
    await Deno.copyFile(oldSecret, join(data, "secret"));
    const child = await new Deno.Command(Deno.execPath(), {
      args: ["run", "-A", "runtime/main.ts", "site", "--config", siteFile(data, "edge-1")],
      stdout: "null",
      stderr: "piped",
    }).output();
    assert.equal(child.code, EXIT.failed);
    assert.match(new TextDecoder().decode(child.stderr), /was in force before .* was restored from a backup/);
  });
  await Deno.remove(folder, { recursive: true });
}

Deno.test("an older copy of one site beside a tree that lives is kept out of it, serves nobody, and says so", async () => {
  const folder = await FOLDER(), data = join(folder, "data"), copy = join(folder, "edge-1.sojourn");
  const topology = join(folder, "topology.json"), secret = join(folder, "new-secret");
  await Deno.writeTextFile(topology, JSON.stringify(TOPOLOGY));
  await Deno.writeTextFile(secret, crypto.randomUUID());
  await using cluster = await startCluster({ topology, apps: [APP, PROBE], data });
  assert.equal(await counted(cluster, "edge-1", "held", "add", 1), 1);
  const made = await cli(cluster, "backup", copy, "--site", "edge-1");
  assert.equal(made.code, EXIT.done, made.err);
  assert.match((await cli(cluster, "backup", copy, "--site", "edge-1")).err, /^file_exists: /);
  assert.match((await cli(cluster, "backup", `${copy}-2`, "--site", "edge-9")).err, /^site_unknown: /);
  assert.equal(await counted(cluster, "edge-1", "held", "add", 1), 2, "the copy has not seen this");
  await cluster.control("stop", "edge-1");
  const alone = join(data, "sites", "edge-1", "alone.json");
  const config = JSON.parse(await Deno.readTextFile(siteFile(data, "edge-1")));
  await Deno.writeTextFile(
    alone,
    JSON.stringify({ ...config, data: "alone", secretFile: secret, chaos: false }),
  );
  const restored = await cli(null, "restore", copy, "--config", alone, "--secret", join(data, "secret"));
  assert.equal(restored.code, EXIT.done, restored.err);
  const child = new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", "--config", "deno.json", "runtime/main.ts", "site", "--config", alone],
    ...{ stdin: "null", stdout: "null", stderr: "piped" },
  }).spawn();
  const ended = child.output();
  const url = (JSON.parse(await Deno.readTextFile(alone)) as { listen: { http: string } }).listen.http;
  try {
    await eventually(
      "it says why it serves nobody",
      async () => /not_ready.*restored from a backup/.test((await ask(`http://${url}/_sojourn/readyz`)).text),
    );
    await eventually("its parent has refused it", () => Promise.resolve(/link\.refused/.test(cluster.log())));
    const asked = await ask(`http://${url}/counter/held/call/add`, { method: "POST", body: "[1]" });
    assert.match(`${asked.status} ${asked.text}`, /^503 .*"code":"not_ready"/);
  } finally {
    child.kill("SIGTERM");
  }
  const said = new TextDecoder().decode((await ended).stderr);
  assert.match(said, /restored_waits/);
  assert.match(said, /link\.dial_failed/);
  await cluster.control("start", "edge-1");
  await cluster.ready("edge-1");
  assert.equal(await counted(cluster, "edge-1", "held", "add", 1), 3, "nobody's log has changed");
  await cluster.stop();
  await Deno.remove(folder, { recursive: true });
});

Deno.test("a root that is restored once more under one secret takes nobody who went on with the first, and says so", async (t) => {
  const folder = await FOLDER(), data = join(folder, "data"), copies = join(folder, "copies");
  const topology = join(folder, "topology.json"), oldSecret = join(folder, "old-secret");
  const sites = ["cloud", "core"];
  await Deno.writeTextFile(
    topology,
    JSON.stringify({ sites: TOPOLOGY.sites.filter(({ id }) => sites.includes(id)) }),
  );
  const start = () => startCluster({ topology, apps: [PROBE], data });
  const restore = (site: string) =>
    cli(
      null,
      ...["restore", join(copies, `${site}.sojourn`), "--config", siteFile(data, site)],
      ...["--secret", oldSecret, "--replace"],
    );
  const put = async (cluster: TestCluster, client: HeaderClient, site: string, id: string) => {
    const { status, text } = await client.fetch(note(cluster, site, id), { method: "PUT", body: id });
    assert.equal(status, 201, text);
  };

  {
    await using cluster = await start();
    await put(cluster, new HeaderClient(), "core", "before");
    const { code, err } = await cli(cluster, "backup", copies, "--tree");
    assert.equal(code, EXIT.done, err);
    await cluster.stop();
  }
  await Deno.copyFile(join(data, "secret"), oldSecret);
  await Deno.writeTextFile(join(data, "secret"), crypto.randomUUID());
  for (const site of sites) assert.equal((await restore(site)).code, EXIT.done);

  await using cluster = await start();
  const seen = new HeaderClient();
  await put(cluster, seen, "core", "since");
  const { text } = await seen.fetch(note(cluster, "cloud", "since"));
  assert.equal(text, "since", "its token names a position in the root's journal");
  await cluster.control("kill", "cloud");

  await t.step("where its data is there it is not restored under that secret", async () => {
    assert.match((await restore("cloud")).err, /^secret_of_before: /);
  });

  await t.step("on a blank disk it is another root", async () => {
    await Deno.remove(dataOf(data, "cloud"), { recursive: true });
    const { code, err } = await restore("cloud");
    assert.equal(code, EXIT.done, err);
    await cluster.control("start", "cloud");
    await cluster.ready("cloud");
    await eventually(
      "who had more of it is no child",
      () => Promise.resolve(/child_removed .*why=ahead/.test(cluster.log())),
    );
    const lost = await seen.fetch(note(cluster, "cloud", "since"));
    assert.match(`${lost.status} ${lost.text}`, /^410 .*"code":"source_lost"/);
    const absent = await shown(note(cluster, "cloud", "since"));
    assert.equal(absent.status, 404, "who has seen nothing sees what there is");
    assert.equal((await shown(note(cluster, "cloud", "before"))).text, "before");
    await put(cluster, new HeaderClient(), "cloud", "anew");
    const apart = await ask(note(cluster, "core", "anew"));
    assert.notEqual(apart.status, 200, "nothing of the second comes to who went on with the first");
  });
  await cluster.stop();
  await Deno.remove(folder, { recursive: true });
});

/** What a site answers; one that is busy, or has just come back, is asked again. */
async function shown(url: string): Promise<Answer> {
  let answer = await ask(url);
  await eventually(`${url} is answered`, async () => {
    if (answer.status === 503) answer = await ask(url);
    return answer.status !== 503;
  });
  return answer;
}

/** The last of a writer's rows that is there; all before it are there, and none after it. */
async function prefixOf(cluster: TestCluster, site: string, most: number): Promise<number> {
  let last = 0;
  for (let n = 1; n <= most + 1; n++) {
    const { status, text } = await shown(note(cluster, site, `row-${site}-${n}`));
    if (status === 404) continue;
    assert.equal(status, 200, text);
    assert.equal(n, last + 1, `${site}: row ${n} is there, and ${last + 1} is not`);
    last = n;
  }
  return last;
}
