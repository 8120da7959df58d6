/** Sites whose links are encrypted, and sites that reach their parent where only HTTP passes. */
import { strict as assert } from "node:assert";
import { join, resolve } from "node:path";
import { FreePorts } from "../../runtime/dev/free_port.ts";
import type { SiteFile } from "../../runtime/site/config.ts";
import { ask, HeaderClient, read } from "./client.ts";
import { eventually, PROBE } from "./cluster.ts";

const ROOT = resolve(import.meta.dirname ?? ".", "..", "..");
const TOKEN = "admin-token-of-this-test";

/** `sojourn …` as a process; what it says goes to `heard`. */
function sojourn(args: string[], heard: (text: string) => void, env: Record<string, string> = {}) {
  const child = new Deno.Command(Deno.execPath(), {
    args: [
      "run",
      "-A",
      "--no-check",
      "--config",
      join(ROOT, "deno.json"),
      join(ROOT, "runtime/main.ts"),
      ...args,
    ],
    env,
    stdin: "null",
    stdout: "piped",
    stderr: "piped",
  }).spawn();
  const pump = async (stream: ReadableStream<Uint8Array<ArrayBuffer>>) => {
    for await (const text of stream.pipeThrough(new TextDecoderStream())) heard(text);
  };
  const ended = Promise.all([child.status, pump(child.stdout), pump(child.stderr)])
    .then(([status]) => status.code);
  return { child, ended };
}

/** Sites of one cluster, as an operator starts them: a file and a process each. */
class Sites {
  readonly #running: ReturnType<typeof sojourn>[] = [];
  readonly #free = new FreePorts();
  log = "";

  private constructor(readonly folder: string) {}

  static async create(): Promise<Sites> {
    const folder = await Deno.makeTempDir({ prefix: "sojourn-links-" });
    await Deno.writeTextFile(join(folder, "secret"), "the secret of this test's cluster\n");
    await Deno.writeTextFile(join(folder, "tokens"), `admin ${TOKEN}\n`);
    return new Sites(folder);
  }

  /** Where a site may listen. */
  async draw(): Promise<{ http: string; link: string }> {
    return { http: `127.0.0.1:${await this.#free.draw()}`, link: `127.0.0.1:${await this.#free.draw()}` };
  }

  /** Starts a site; resolves at once. */
  async start(file: Pick<SiteFile, "id" | "parent" | "listen"> & Partial<SiteFile>): Promise<void> {
    const path = join(this.folder, `${file.id}.json`);
    const rest = {
      data: file.id,
      secretFile: "secret",
      adminTokenFile: "tokens",
      cache: join(ROOT, ".cache", "isolates"),
    };
    await Deno.writeTextFile(path, JSON.stringify({ ...rest, ...file }));
    this.#running.push(sojourn(["site", "--config", path], (text) => this.log += text));
  }

  /** @returns what it said. @throws where it ends with another code than 0. */
  async command(args: string[], env: Record<string, string>): Promise<string> {
    let said = "";
    const code = await sojourn(args, (text) => said += text, { SOJOURN_TOKEN: TOKEN, ...env }).ended;
    assert.equal(code, 0, said);
    return said;
  }

  /** What a command said that did not succeed. */
  async failing(args: string[], env: Record<string, string>): Promise<{ code: number; said: string }> {
    let said = "";
    const code = await sojourn(args, (text) => said += text, { SOJOURN_TOKEN: TOKEN, ...env }).ended;
    assert.notEqual(code, 0, said);
    return { code, said };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const { child } of this.#running.reverse()) {
      child.kill("SIGTERM");
    }
    await Promise.all(this.#running.map(({ ended }) => ended));
    this.#free[Symbol.dispose]();
    await Deno.remove(this.folder, { recursive: true });
  }
}

interface Status {
  readonly parent: { readonly connected: boolean } | null;
}

/** Writes at one site and reads at another, in one session, both ways. */
async function travel(client: HeaderClient, from: string, to: string): Promise<void> {
  const noted = await client.fetch(`${from}/probe/notes/x`, { method: "PUT", body: "from there" });
  assert.equal(noted.status, 201, noted.text);
  const seen = await client.fetch(`${to}/probe/notes/x`);
  assert.match(seen.text, /from there/);
}

/** `openssl` with words; null where there is none. */
async function openssl(folder: string, words: string): Promise<boolean> {
  const made = await new Deno.Command("openssl", { args: words.split(" "), cwd: folder, stderr: "piped" })
    .output();
  assert(made.success, new TextDecoder().decode(made.stderr));
  return made.success;
}

const hasOpenssl = await new Deno.Command("openssl", { args: ["version"], stdout: "null", stderr: "null" })
  .output().then(({ success }) => success, () => false);

/** An authority, and a certificate of it for this machine. */
async function certify(folder: string): Promise<void> {
  const key = "-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2";
  await openssl(folder, `req -x509 ${key} -keyout ca.key -out ca.pem -subj /CN=authority`);
  await openssl(folder, `req ${key.replace(" -days 2", "")} -keyout site.key -out site.csr -subj /CN=site`);
  await Deno.chmod(join(folder, "site.key"), 0o644);
  await Deno.writeTextFile(join(folder, "names"), "subjectAltName=DNS:localhost,IP:127.0.0.1\n");
  await openssl(
    folder,
    "x509 -req -in site.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -out site.pem -extfile names",
  );
}

Deno.test({
  name: `links: TLS under the cluster's own authority${hasOpenssl ? "" : " (skipped: no openssl here)"}`,
  ignore: !hasOpenssl,
  fn: async () => {
    await using sites = await Sites.create();
    await certify(sites.folder);
    const [cloud, edge, indoors, stranger] = [
      await sites.draw(),
      await sites.draw(),
      await sites.draw(),
      await sites.draw(),
    ];
    const tls = { cert: "site.pem", key: "site.key", ca: "ca.pem" };
    const parent = { id: "cloud", url: `tls://${cloud.link}` };
    await sites.start({ id: "edge", parent, listen: edge, tls });
    await sites.start({ id: "cloud", parent: null, listen: cloud, tls });
    // Listens in the clear, dials over https.
    const overHttps = { id: "cloud", url: `wss://${cloud.http}/_sojourn/link` };
    await sites.start({ id: "indoors", parent: overHttps, listen: indoors, tls: { ca: "ca.pem" } });
    // Without the authority it does not believe the certificate, and says nothing to whoever shows it.
    await sites.start({ id: "stranger", parent, listen: stranger });

    const caCerts = [await Deno.readTextFile(join(sites.folder, "ca.pem"))];
    using client = Deno.createHttpClient({ caCerts });
    const get = async (url: string, init: RequestInit = {}) =>
      await read(await fetch(url, { ...init, client }));
    await eventually(
      "the edge is ready",
      async () => (await get(`https://${edge.http}/_sojourn/readyz`)).status === 200,
    );
    const cert = { DENO_CERT: join(sites.folder, "ca.pem") };
    await sites.command(["deploy", PROBE, "--to", `https://${edge.http}`], cert);

    const noted = await get(`https://${edge.http}/probe/notes/x`, { method: "PUT", body: "sealed" });
    assert.equal(noted.status, 201, noted.text);
    assert.match(noted.headers.getSetCookie().join(), /^__Host-sojourn_session=.*; Secure/);
    const session = noted.headers.get("sojourn-session") ?? "";
    const seen = await get(`https://${cloud.http}/probe/notes/x`, {
      headers: { "sojourn-session": session },
    });
    assert.match(seen.text, /sealed/);
    await eventually(
      "the site indoors is ready",
      async () => (await ask(`http://${indoors.http}/_sojourn/readyz`)).status === 200,
    );
    const inside = await ask(`http://${indoors.http}/probe/notes/x`, {
      headers: { "sojourn-session": session },
    });
    assert.match(inside.text, /sealed/);
    const listed = JSON.parse((await get(`https://${cloud.http}/_sojourn/sites`)).text) as { url: string }[];
    assert.deepEqual(listed.map(({ url }) => url), [
      `https://${cloud.http}`,
      `https://${edge.http}`,
      `http://${indoors.http}`,
    ]);
    await eventually(
      "the stranger said why",
      () => Promise.resolve(/dial_failed.*stranger|stranger.*dial_failed/.test(sites.log)),
    );
    assert.match(sites.log, /dial_failed.*tls\.ca in the site file/, "and what to do about it");
    assert.equal((await ask(`http://${stranger.http}/_sojourn/readyz`)).status, 503);
    const { said } = await sites.failing(["sites", "--to", `https://${edge.http}`], {});
    assert.match(said, /DENO_CERT=FILE names the authority/);

    // A new authority, and a certificate of it: while the old one is trusted too, nobody has to start anew.
    const before = await serialOf(sites, edge.http);
    assert.match(
      sites.log,
      /file_open_to_others.*site\.key/,
      "openssl lets nobody else read it, the test does",
    );
    const old = await Deno.readTextFile(join(sites.folder, "ca.pem"));
    await certify(sites.folder);
    await Deno.writeTextFile(
      join(sites.folder, "ca.pem"),
      old + await Deno.readTextFile(join(sites.folder, "ca.pem")),
    );
    for (const { http } of [cloud, edge]) {
      await eventually("the new certificate is shown", async () => await serialOf(sites, http) !== before);
    }
    await sites.command(["sites", "--to", `https://${edge.http}`], {
      DENO_CERT: join(sites.folder, "ca.pem"),
    });
    const late = await sites.draw();
    await sites.start({ id: "late", parent, listen: late, tls: { ca: "ca.pem" } });
    await eventually(
      "a site that believes the new authority has a link",
      async () => (await ask(`http://${late.http}/_sojourn/readyz`)).status === 200,
    );
    assert.doesNotMatch(sites.log, /certificates_unread|edge .*link\.disconnected/);
  },
});

/** The serial number of what a site shows. */
async function serialOf(sites: Sites, at: string): Promise<string> {
  const { stdout } = await new Deno.Command("sh", {
    args: [
      "-c",
      `openssl s_client -connect ${at} -servername localhost </dev/null 2>/dev/null | openssl x509 -noout -serial`,
    ],
    cwd: sites.folder,
  }).output();
  return new TextDecoder().decode(stdout).trim();
}

Deno.test("links: a parent that is reached where only HTTP passes", async () => {
  await using sites = await Sites.create();
  const [cloud, edge, other] = [await sites.draw(), await sites.draw(), await sites.draw()];
  const overHttp = (listen: { http: string }) => `ws://${listen.http}/_sojourn/link`;
  const parent = { id: "cloud", url: overHttp(cloud) };
  await sites.start({ id: "cloud", parent: null, listen: cloud });
  for (const [id, listen] of [["edge", edge], ["other", other]] as const) {
    await sites.start({ id, parent, listen, advertise: { link: overHttp(listen) } });
  }
  for (const { http } of [edge, other]) {
    await eventually(
      "a child is ready",
      async () => (await ask(`http://${http}/_sojourn/readyz`)).status === 200,
    );
  }
  await sites.command(["deploy", PROBE, "--to", `http://${edge.http}`], {});
  const client = new HeaderClient();
  await travel(client, `http://${edge.http}`, `http://${other.http}`);
  await travel(client, `http://${other.http}`, `http://${cloud.http}`);
  const headers = { authorization: `Bearer ${TOKEN}` };
  const status = JSON.parse((await ask(`http://${edge.http}/_sojourn/status`, { headers })).text) as Status;
  assert.equal(status.parent?.connected, true);
  assert.equal((await ask(`http://${cloud.http}/_sojourn/link`)).status, 404, "no path of clients");
});
