/**
 * The walk of examples/access/README.md: somebody logs in and out, and is asked for the certificate elsewhere at once.
 *
 * W1  After a login, whatever site is next authorises.
 * W2  After a logout, whatever site is next in that session refuses, although the client still shows the certificate
 *     and the site has it as valid.
 * W3  A site that was killed stops nobody at another one; without the root, who is logged in stays so.
 * W4  No site below the root has a password on its disk, not even a hashed one.
 */
import { strict as assert } from "node:assert";
import { join } from "node:path";
import { type Answer, read } from "./client.ts";
import { eventually, type TestCluster } from "./cluster.ts";

const CREDENTIALS = { name: "ann", password: "correct horse" };

/** Keeps every cookie that it is given, also those that it is told to forget. */
class StubbornBrowser {
  readonly #cookies = new Map<string, string>();
  readonly #cluster: TestCluster;

  constructor(cluster: TestCluster) {
    this.#cluster = cluster;
  }

  async ask(site: string, method: "GET" | "POST" | "DELETE", path: string, body?: object): Promise<Answer> {
    const answer = await read(
      await fetch(`${this.#cluster.url(site)}/access${path}`, {
        method,
        headers: { cookie: [...this.#cookies].map(([name, value]) => `${name}=${value}`).join("; ") },
        body: body === undefined ? null : JSON.stringify(body),
      }),
    );
    for (const cookie of answer.headers.getSetCookie()) {
      const [, name = "", value = ""] = /^([^=]+)=([^;]*)/.exec(cookie) ?? [];
      if (value !== "") this.#cookies.set(name, value);
    }
    return answer;
  }

  async logIn(site: string): Promise<void> {
    const answer = await this.ask(site, "POST", "/login", CREDENTIALS);
    assert.equal(answer.status, 200, answer.text);
    assert.equal(answer.headers.get("sojourn-site"), "cloud", "passwords are checked at the root");
  }

  /** Asks a site whether this session may do something; the site itself answers. */
  async mayAt(site: string, permission = "read"): Promise<number> {
    const answer = await this.ask(site, "GET", `/authorize?permission=${permission}`);
    if (answer.status < 500) assert.equal(answer.headers.get("sojourn-site"), site);
    return answer.status;
  }
}

/** Breaks something (docs/chaos.md). */
export async function chaos(cluster: TestCluster, action: object): Promise<void> {
  const url = `${cluster.url("edge-2")}/_sojourn/admin/chaos`;
  const answer = await read(await fetch(url, { method: "POST", body: JSON.stringify(action) }));
  assert.equal(answer.status, 200, answer.text);
}

/** Walks the example over a cluster that runs it. */
export async function walkAccess(cluster: TestCluster): Promise<void> {
  const ann = new StubbornBrowser(cluster);
  assert.equal(await ann.mayAt("edge-1"), 401);
  assert.equal((await ann.ask("edge-1", "POST", "/register", CREDENTIALS)).status, 201);
  assert.equal((await ann.ask("edge-2", "POST", "/register", CREDENTIALS)).status, 409);
  const wrong = await ann.ask("edge-1", "POST", "/login", { ...CREDENTIALS, password: "wrong horse" });
  assert.equal(wrong.status, 401);
  await inAndOut(cluster, ann);
  await othersDie(cluster, ann);
  await passwordsStay(cluster);
}

/**
 * W1, W2: the feed to edge-1 is late, so that what edge-1 has is old when ann comes, on a busy machine too; but not so
 * late that she is sent away.
 */
async function inAndOut(cluster: TestCluster, ann: StubbornBrowser): Promise<void> {
  await chaos(cluster, { action: "delay", a: "cloud", b: "core-1", rttMs: 1_000 });
  for (let round = 0; round < 2; round++) {
    await ann.logIn("edge-3");
    assert.equal(await ann.mayAt("edge-1"), 200, "after the login, edge-1 authorises");
    assert.equal(await ann.mayAt("edge-1", "delete"), 403);
    assert.equal((await ann.ask("edge-3", "POST", "/logout")).status, 200);
    const after = await ann.ask("edge-1", "GET", "/authorize");
    assert.equal(after.status, 401, "after the logout, edge-1 refuses");
    assert.match(after.text, /made void by a logout/);
    assert.equal(await ann.mayAt("edge-3"), 401);
  }
  await chaos(cluster, { action: "heal" });
}

/** W3 */
async function othersDie(cluster: TestCluster, ann: StubbornBrowser): Promise<void> {
  await ann.logIn("edge-1");
  assert.equal(await ann.mayAt("edge-1"), 200);
  await cluster.control("kill", "edge-1");
  assert.equal(await ann.mayAt("edge-2"), 200, "another edge authorises while edge-1 is dead");
  const sent = await ann.ask("edge-2", "POST", "/mail", { to: "ann", text: "hello" });
  assert.equal(sent.status, 201, sent.text);
  assert.match((await ann.ask("edge-3", "GET", "/mail")).text, /"text":"hello"/);
  assert.equal(await ann.mayAt("edge-2"), 200);
  await cluster.control("kill", "cloud");
  assert.equal(await ann.mayAt("edge-2"), 200, "who is logged in stays so without the root");
  assert.equal((await ann.ask("edge-2", "POST", "/login", CREDENTIALS)).status, 503);
  await cluster.control("start", "cloud");
  await cluster.control("start", "edge-1");
  await cluster.ready("cloud");
  await cluster.ready("edge-1");
  await eventually("the links to the root are back", async () => {
    const out = await ann.ask("edge-2", "POST", "/logout");
    assert.ok(out.status === 200 || out.status === 503, out.text);
    return out.status === 200;
  });
  for (const site of ["edge-1", "edge-2", "edge-3"]) assert.equal(await ann.mayAt(site), 401, site);
}

/** W4 */
async function passwordsStay(cluster: TestCluster): Promise<void> {
  const having: string[] = [];
  for (const site of Object.keys(cluster.sites)) {
    const store = join(cluster.data, "sites", site, "data", "store");
    for await (const file of Deno.readDir(store)) {
      const text = new TextDecoder("latin1").decode(await Deno.readFile(join(store, file.name)));
      if (text.includes("pbkdf2-sha256$600000$")) having.push(site);
    }
  }
  assert.deepEqual([...new Set(having)], ["cloud"]);
}
