/** Sites run for real, each from its file: no dev flag, no supervisor. */
import { strict as assert } from "node:assert";
import { join, resolve } from "node:path";
import { FreePorts } from "../../runtime/dev/free_port.ts";
import { type Answer, ask } from "./client.ts";
import { eventually } from "./cluster.ts";
import { POLLED_EACH, POLLED_EACH_NAME } from "../../runtime/loop/socket_polls.ts";

const ROOT = resolve(import.meta.dirname ?? ".", "..", "..");
const TOKENS = {
  admin: "admin-token-of-this-test",
  read: "read-token-of-this-test!",
  agent: "agent-token-of-this-test",
};

/** A running `sojourn site`. */
interface RunningSite {
  readonly url: string;
  readonly pid: number;
  log(): string;
  /** Sends a signal and waits for the end. */
  end(signal: Deno.Signal): Promise<number>;
}

/** A folder for two sites, `root` and `edge`. */
class Pair {
  readonly #folder: string;
  readonly #ports: Record<string, { http: number; link: number }>;
  readonly #free: FreePorts;
  readonly #running = new Set<RunningSite>();

  private constructor(
    folder: string,
    free: FreePorts,
    ports: Record<string, { http: number; link: number }>,
  ) {
    this.#folder = folder;
    this.#free = free;
    this.#ports = ports;
  }

  static async make(): Promise<Pair> {
    const free = new FreePorts();
    const two = async () => ({ http: await free.draw(), link: await free.draw() });
    const pair = new Pair(await Deno.makeTempDir(), free, { root: await two(), edge: await two() });
    await pair.write("secret", "the secret of this cluster\n");
    await pair.write("other-secret", "the secret of another cluster\n");
    await pair.write("tokens", `${TOKENS.admin}\nread ${TOKENS.read}\nagent:shop/till ${TOKENS.agent}\n`);
    return pair;
  }

  /** An address that is nobody's. */
  async address(): Promise<string> {
    return `127.0.0.1:${await this.#free.draw()}`;
  }

  async write(name: string, text: string): Promise<void> {
    await Deno.writeTextFile(join(this.#folder, name), text, { mode: 0o600 });
  }

  async read(name: string): Promise<string> {
    return await Deno.readTextFile(join(this.#folder, name));
  }

  async start(
    id: "root" | "edge",
    more: Record<string, unknown> = {},
    env: Record<string, string> = {},
    main = join("runtime", "main.ts"),
  ): Promise<RunningSite> {
    const mine = this.#ports[id], root = this.#ports.root;
    assert.ok(mine !== undefined && root !== undefined);
    const file = {
      id,
      parent: id === "root" ? null : { id: "root", url: `tcp://127.0.0.1:${root.link}` },
      listen: { http: `127.0.0.1:${mine.http}`, link: `127.0.0.1:${mine.link}` },
      data: `data-${id}`,
      secretFile: "secret",
      adminTokenFile: "tokens",
      cache: join(ROOT, ".cache", "isolates"),
      ...more,
    };
    await this.write(`${id}.json`, JSON.stringify(file));
    const child = new Deno.Command(Deno.execPath(), {
      args: [
        ...["run", "-A", "--config", join(ROOT, "deno.json"), join(ROOT, main)],
        ...["site", "--config", join(this.#folder, `${id}.json`)],
      ],
      env: { [POLLED_EACH_NAME]: `${POLLED_EACH}`, ...env },
      stdin: "null",
      stdout: "null",
      stderr: "piped",
    }).spawn();
    let log = "";
    const logged = (async () => {
      for await (const text of child.stderr.pipeThrough(new TextDecoderStream())) log += text;
    })();
    const site: RunningSite = {
      url: `http://127.0.0.1:${env.SOJOURN_LISTEN_HTTP?.split(":")[1] ?? mine.http}`,
      pid: child.pid,
      log: () => log,
      end: async (signal) => {
        try {
          child.kill(signal);
        } catch {
          // It has ended already.
        }
        const { code } = await child.status;
        await logged;
        this.#running.delete(site);
        return code;
      },
    };
    this.#running.add(site);
    return site;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const site of [...this.#running]) await site.end("SIGKILL");
    this.#free[Symbol.dispose]();
    await Deno.remove(this.#folder, { recursive: true });
  }
}

const codeOf = (answer: Answer): string => (JSON.parse(answer.text) as { code: string }).code;
const bearer = (token: string) => ({ headers: { authorization: `Bearer ${token}` } });
const readyz = async (site: RunningSite): Promise<Answer> => await ask(`${site.url}/_sojourn/readyz`);
const ready = (site: RunningSite) =>
  eventually("the site is ready", async () => (await readyz(site)).status === 200);

Deno.test("a site for real says who may ask what, and ends in order", async () => {
  await using pair = await Pair.make();
  const root = await pair.start("root", {}, { SOJOURN_LOG: "json" });
  await ready(root);
  const rows: [string, RequestInit, number, string | null][] = [
    ["/_sojourn/healthz", {}, 200, null],
    ["/_sojourn/sites", {}, 200, null],
    ["/_sojourn/status", {}, 401, "admin_token_invalid"],
    ["/_sojourn/status", bearer("nobody's token at all"), 401, "admin_token_invalid"],
    ["/_sojourn/status", bearer(TOKENS.read), 200, null],
    ["/_sojourn/metrics", {}, 401, "admin_token_invalid"],
    ["/_sojourn/metrics", bearer(TOKENS.admin), 200, null],
    ["/_sojourn/admin/apps", {}, 401, "admin_token_invalid"],
    ["/_sojourn/admin/apps", bearer(TOKENS.read), 200, null],
    ["/_sojourn/admin/deploy", { method: "POST", ...bearer(TOKENS.read) }, 403, "admin_role"],
    ["/_sojourn/agent/check?app=shop&class=till", bearer(TOKENS.agent), 200, null],
    ["/_sojourn/agent/check?app=shop&class=cart", bearer(TOKENS.agent), 403, "admin_role"],
    ["/_sojourn/agent/check?app=shop&class=till", bearer(TOKENS.read), 403, "admin_role"],
    ["/_sojourn/agent/check?app=shop&class=till", {}, 401, "admin_token_invalid"],
    ["/_sojourn/admin/apps", bearer(TOKENS.agent), 403, "admin_role"],
    ["/_sojourn/status", bearer(TOKENS.agent), 403, "admin_role"],
    ["/", {}, 404, "not_found"],
    ["/nobody/", {}, 404, "app_unknown"],
  ];
  for (const [path, init, status, code] of rows) {
    const answer = await ask(root.url + path, init);
    assert.equal(answer.status, status, `${path}: ${answer.text}`);
    if (code !== null) assert.equal(codeOf(answer), code, path);
  }
  const lines = root.log().trim().split("\n").map((line) =>
    JSON.parse(line) as { event: string; site: string }
  );
  assert.deepEqual(lines.map(({ event }) => event).slice(0, 2), ["listening", "ready"]);
  assert.equal(await root.end("SIGTERM"), 0);
  assert.match(root.log(), /"event":"stopped"/);
});

Deno.test("a site in which something is thrown where nobody waits stops in order, says so, and starts again (runtime/site/site.ts S3; runtime/site/faults.ts F2)", async () => {
  await using pair = await Pair.make();
  const main = join("tests", "e2e", "fault_main.ts");
  for (
    const [signal, what] of [["SIGUSR2", "rejected on request"], ["SIGALRM", "thrown on request"]] as const
  ) {
    const root = await pair.start("root", {}, { SOJOURN_LOG: "json" }, main);
    await ready(root);
    assert.equal(await root.end(signal), 70, root.log());
    type Line = { event: string; level: string; error?: string };
    const lines = root.log().trim().split("\n").map((line) => JSON.parse(line) as Line);
    assert.deepEqual(lines.map(({ event }) => event).slice(-3), ["unexpected", "stopping", "stopped"]);
    const [said] = lines.filter(({ event }) => event === "unexpected");
    assert.equal(said?.level, "error");
    assert.match(said?.error ?? "", new RegExp(`${what}\\n +at .*fault_main\\.ts`));
  }
});

Deno.test("a blank site waits for its parent; one with a valid disk does not", async () => {
  await using pair = await Pair.make();
  let edge = await pair.start("edge");
  await eventually("the blank edge listens", async () => {
    const answer = await readyz(edge);
    assert.equal(codeOf(answer), "not_ready");
    return answer.status === 503 && answer.headers.has("retry-after");
  });
  assert.equal(codeOf(await ask(`${edge.url}/any/`)), "not_ready");
  const root = await pair.start("root");
  await ready(edge);
  assert.deepEqual(JSON.parse((await readyz(edge)).text), { site: "edge", parent: "connected" });
  assert.equal(await root.end("SIGINT"), 0);
  assert.equal(await edge.end("SIGTERM"), 0);
  assert.match(edge.log(), /link\.disconnected other=root role=parent planned=true/);
  edge = await pair.start("edge");
  await ready(edge);
  assert.deepEqual(JSON.parse((await readyz(edge)).text), { site: "edge", parent: "unreachable" });
});

Deno.test("a disk has one owner, and a cluster one secret (runtime/site/site.ts S1)", async () => {
  await using pair = await Pair.make();
  const root = await pair.start("root");
  await ready(root);
  const second = await pair.start("root", {
    listen: { http: await pair.address(), link: await pair.address() },
  });
  await eventually(
    "the second owner is refused",
    () => Promise.resolve(/process \d+ holds it/.test(second.log())),
  );
  assert.equal(await second.end("SIGTERM"), 1);
  const stranger = await pair.start("edge", { secretFile: "other-secret" });
  await eventually(
    "the stranger is refused at the root",
    () => Promise.resolve(/link\.refused/.test(root.log())),
  );
  assert.equal((await readyz(stranger)).status, 503);
  const status = JSON.parse((await ask(`${root.url}/_sojourn/status`, bearer(TOKENS.admin))).text) as {
    refused: number;
    children: unknown[];
  };
  assert.ok(status.refused > 0);
  assert.deepEqual(status.children, []);
});

Deno.test("of two sites with one id the second is refused while the first is there", async () => {
  await using pair = await Pair.make();
  const root = await pair.start("root");
  const first = await pair.start("edge");
  await ready(root);
  await ready(first);
  const says = (site: RunningSite, text: RegExp) =>
    eventually(`the log says ${text}`, () => Promise.resolve(text.test(site.log())));
  const connected = async (site: RunningSite) => {
    const status = await ask(`${site.url}/_sojourn/status`, bearer(TOKENS.read));
    return (JSON.parse(status.text) as { parent: { connected: boolean } }).parent.connected;
  };
  const second = await pair.start("edge", { data: "data-second" }, {
    SOJOURN_LISTEN_HTTP: await pair.address(),
    SOJOURN_LISTEN_LINK: await pair.address(),
  });
  await says(
    second,
    /link\.dial_failed.*site edge is connected with another disk: do two sites have this id\?/,
  );
  await says(root, /link\.refused.*site edge is connected with another disk/);
  assert.equal((await readyz(second)).status, 503);
  assert.equal(await connected(first), true, "the first is not disturbed");
  // While the first is away the second is what a site with a lost disk would be; then the first has to wait.
  await first.end("SIGKILL");
  await ready(second);
  const again = await pair.start("edge");
  await says(again, /link\.dial_failed.*site edge is connected with another disk/);
  assert.deepEqual([await connected(second), await connected(again)], [true, false]);
  await second.end("SIGKILL");
  await eventually("the first is connected again", () => connected(again));
});

Deno.test("a site that runs takes another f from its file, and finds out who lives and who does not (runtime/site/owners_fields.ts F1)", async () => {
  await using pair = await Pair.make();
  const root = await pair.start("root");
  const edge = await pair.start("edge", { f: 0 });
  await ready(root);
  await ready(edge);
  interface Seen {
    readonly f: number;
    readonly watched: readonly { readonly site: string; readonly standing: string }[];
    readonly alerts: readonly { readonly code: string }[];
  }
  const seen = async (): Promise<Seen> =>
    JSON.parse((await ask(`${edge.url}/_sojourn/status`, bearer(TOKENS.read))).text) as Seen;
  const stands = (standing: string) =>
    eventually(`the root is ${standing}`, async () => (await seen()).watched[0]?.standing === standing);
  const reload = async (change: Record<string, unknown>, says: RegExp) => {
    await pair.write("edge.json", JSON.stringify({ ...JSON.parse(await pair.read("edge.json")), ...change }));
    Deno.kill(edge.pid, "SIGHUP");
    await eventually(`the log says ${says}`, () => Promise.resolve(says.test(edge.log())));
  };
  assert.deepEqual([(await seen()).f, (await seen()).watched], [0, []]);
  await reload({ f: 2 }, /not_reloaded.*cannot keep tuples of edge at f = 2.*n = 2 sites/);
  await reload({ f: 1, owners: { suspectMs: 1 } }, /not_reloaded.*suspectMs: found 1/);
  assert.equal((await seen()).f, 0);
  // Slow enough for a machine that stands still now and then.
  await reload({ owners: { beatMs: 200, suspectMs: 3_000, deadMs: 4_000 } }, / reloaded f=1/);
  assert.doesNotMatch(edge.log(), /taken at a restart/);
  await reload(
    { capacityBytes: 2_000_000 },
    /! reloaded f=1.*capacityBytes: changed, and taken at a restart/,
  );
  await reload(
    { owners: { sites: ["elsewhere"] } },
    /not_reloaded.*elsewhere as owners: no such site.*edge, root/,
  );
  assert.equal((await seen()).f, 1);
  await stands("alive");
  Deno.kill(root.pid, "SIGSTOP");
  await stands("dead");
  assert.ok((await seen()).alerts.some(({ code }) => code === "site_dead"));
  Deno.kill(root.pid, "SIGCONT");
  await stands("alive");
});
