/** Origins: servers that know nothing of Sojourn, behind stateful sessions whose homes are killed. */
import { strict as assert } from "node:assert";
import { join } from "node:path";
import { connect } from "sojourn/client";
import { WireClient } from "../../examples/compressor/client.ts";
import { runCli } from "../../runtime/cli/mod.ts";
import { agentCommand } from "../../runtime/origins/command.ts";
import { ask } from "./client.ts";
import { eventually, startCluster, type TestCluster } from "./cluster.ts";

const ROOT = join(import.meta.dirname ?? ".", "..", "..");
const link = { rttMs: 2, mbps: 1_000 };
const TOPOLOGY = {
  sites: [
    { id: "cloud" },
    { id: "edge-1", parent: "cloud", link, f: 1, owners: { sites: ["edge-2", "edge-3"] } },
    { id: "edge-2", parent: "cloud", link, f: 1, owners: { sites: ["edge-1", "edge-3"] } },
    { id: "edge-3", parent: "cloud", link, f: 1, owners: { sites: ["edge-1", "edge-2"] } },
  ],
};

/** An HTTP server that charges, holds an answer back when it is told to, and has pages that are much alike. */
function shop() {
  const charged: { readonly cents: string; readonly key: string | null }[] = [];
  let hold: Promise<void> = Promise.resolve();
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen: () => {} }, async (request) => {
    const { pathname } = new URL(request.url);
    if (pathname.startsWith("/pages/")) return new Response(page(pathname));
    charged.push({ cents: await request.text(), key: request.headers.get("idempotency-key") });
    const receipt = `receipt ${charged.length}`;
    await hold;
    return new Response(receipt);
  });
  return {
    ...{ server, charged },
    hold: () => {
      const held = Promise.withResolvers<void>();
      hold = held.promise;
      return held.resolve;
    },
  };
}

const page = (path: string): string =>
  `<title>${path}</title>` +
  Array.from({ length: 300 }, (_, i) => `<li>row ${i * i * 7919 % 1_000_003}`).join("");

/** A TCP server that echoes, and counts who came. */
function echo() {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const counted = { connections: 0 };
  const serving = (async () => {
    for await (const connection of listener) {
      counted.connections++;
      connection.readable.pipeTo(connection.writable).catch(() => {});
    }
  })();
  return { port: listener.addr.port, counted, stop: () => (listener.close(), serving) };
}

/** Apps of this repository, with the ports of this test's servers. */
async function appsFor(folder: string, ports: Readonly<Record<string, number>>): Promise<string[]> {
  const apps = {
    till: "tests/e2e/apps/till",
    forwarder: "examples/forwarder",
    compressor: "examples/compressor",
  };
  for (const [name, source] of Object.entries(apps)) {
    await Deno.mkdir(join(folder, name));
    for await (const { name: file } of Deno.readDir(join(ROOT, source))) {
      if (!file.endsWith(".ts")) continue;
      const text = await Deno.readTextFile(join(ROOT, source, file));
      const port = ports[name] ?? 0;
      await Deno.writeTextFile(
        join(folder, name, file),
        text.replace(/127\.0\.0\.1:(9|9100|9200)"/, `127.0.0.1:${port}"`),
      );
    }
  }
  return Object.keys(apps).map((name) => join(folder, name, "app.ts"));
}

const charge = (cluster: TestCluster, site: string, cents: number) =>
  ask(`${cluster.url(site)}/till/t1/charges`, { method: "POST", body: `${cents}` });

/** Runs `sojourn agent`; its first line, and a way to end it. */
async function startAgent(cluster: TestCluster, ...args: readonly string[]) {
  const stop = new AbortController();
  const first = Promise.withResolvers<Record<string, unknown>>();
  const shell = {
    out: (line: string) => first.resolve(JSON.parse(line)),
    err: (line: string) => first.reject(new Error(line)),
    env: (name: string) => name === "SOJOURN_TOKEN" ? cluster.adminToken : undefined,
    interrupted: () => stop.signal,
  };
  const running = runCli(["agent", "--json", ...args], shell, [agentCommand]);
  return {
    first: await first.promise,
    stop: async () => {
      stop.abort();
      assert.equal(await running, 0);
    },
  };
}

const homeOf = async (cluster: TestCluster, app: string): Promise<string | undefined> => {
  const lines: string[] = [];
  const shell = { out: (line: string) => lines.push(line), err: () => {}, env: () => undefined };
  await runCli(["sessions", "list", app, "--json", "--data", cluster.data], shell);
  return (JSON.parse(lines.join("\n")) as { home: string; ended: boolean }[]).find(({ ended }) => !ended)
    ?.home;
};

/** How many hold the log of an app's session, beside disks. */
async function heldBy(cluster: TestCluster, app: string): Promise<number> {
  const lines: string[] = [];
  const shell = { out: (line: string) => lines.push(line), err: () => {}, env: () => undefined };
  await runCli(["sessions", "list", app, "--json", "--data", cluster.data], shell);
  const all = JSON.parse(lines.join("\n")) as { owners: string[]; ended: boolean }[];
  return all.find(({ ended }) => !ended)?.owners.filter((owner) => owner.startsWith("@")).length ?? 0;
}

/** Sends numbered lines by TCP, and reads them back: as many as come until `enough`. */
async function echoed(port: number, until: (lines: number) => Promise<boolean>): Promise<string> {
  const connection = await Deno.connect({ hostname: "127.0.0.1", port });
  let sent = "", got = "";
  const reading = (async () => {
    for await (const text of connection.readable.pipeThrough(new TextDecoderStream())) got += text;
  })().catch(() => {});
  const writer = connection.writable.getWriter();
  for (let i = 0; !(await until(got.split("\n").length - 1)); i++) {
    const line = `line ${i}\n`;
    sent += line;
    await writer.write(new TextEncoder().encode(line));
    await new Promise((resolve) => setTimeout(resolve, 5)); // the pace of a program, not a wait
  }
  await eventually("all is echoed", () => Promise.resolve(got.length >= sent.length));
  await writer.close().catch(() => {});
  await reading;
  assert.equal(got, sent);
  return got;
}

Deno.test("servers that know nothing of Sojourn see each request and byte once when homes die", async (t) => {
  const { server, charged, hold } = shop();
  const tcp = echo();
  const folder = await Deno.makeTempDir({ prefix: "sojourn-origin-" });
  const { port } = server.addr;
  const topology = join(folder, "topology.json");
  await Deno.writeTextFile(topology, JSON.stringify(TOPOLOGY));
  const apps = await appsFor(folder, { till: port, forwarder: tcp.port, compressor: port });
  try {
    const reach = [`127.0.0.1:${port}`, `127.0.0.1:${tcp.port}`];
    await using cluster = await startCluster({ topology, apps, reach });
    await t.step("a request reaches an HTTP origin by way of the root", async () => {
      const answer = await charge(cluster, "edge-1", 100);
      assert.deepEqual([answer.status, answer.text], [200, '["receipt 1"]']);
      assert.equal(charged.length, 1);
    });
    await t.step("only the origin is reached so", async () => {
      const url = `${cluster.url("edge-1")}/till/t1/elsewhere`;
      const answer = await ask(url, { method: "POST", body: `http://127.0.0.1:${port + 1}/` });
      assert.equal(answer.status, 502);
      assert.match(answer.text, /fetchHosts/);
    });
    await t.step("an HTTP origin is charged once when the home dies while it thinks", async () => {
      const release = hold();
      const asked = charge(cluster, "edge-1", 200).catch(() => null); // its connection dies with the site
      await eventually("the origin has the charge", () => Promise.resolve(charged.length === 2));
      await cluster.control("kill", "edge-1");
      await asked;
      // Whoever is asked for the till next goes on with the charge that was open, and then does this one.
      const next = charge(cluster, "edge-2", 300);
      release();
      const answer = await next;
      assert.deepEqual([answer.status, answer.text], [200, '["receipt 1","receipt 2","receipt 3"]']);
      assert.deepEqual(charged.map(({ cents }) => cents), ["100", "200", "300"], "nothing twice");
      assert.equal(new Set(charged.map(({ key }) => key)).size, 3);
      await cluster.control("start", "edge-1");
    });
    const of = ["--app", "forwarder", "--session", "line"];
    await t.step(
      "a TCP program and its server keep their connections when the site between them dies",
      async () => {
        const agent = await startAgent(
          cluster,
          ...of,
          "--listen",
          "127.0.0.1:0",
          "--to",
          cluster.url("edge-2"),
        );
        let killed = -1;
        await echoed(Number(agent.first.port), async (lines) => {
          if (lines >= 50 && killed < 0) {
            assert.equal(await homeOf(cluster, "forwarder"), "edge-2");
            killed = lines;
            await cluster.control("kill", "edge-2");
          }
          return killed >= 0 && lines >= killed + 300;
        });
        assert.equal(tcp.counted.connections, 1);
        await agent.stop();
        await cluster.control("start", "edge-2");
        await Promise.all(["edge-1", "edge-2"].map((site) => cluster.ready(site)));
      },
    );
    await t.step("agents at both ends hold the log, and go on when the home dies", async () => {
      const shared = ["--app", "forwarder", "--session", "shared"];
      const origin = await startAgent(
        cluster,
        ...shared,
        "--origin",
        `tcp://127.0.0.1:${tcp.port}`,
        "--to",
        cluster.url("edge-3"),
      );
      assert.match(String(origin.first.text), /standing for tcp:/);
      const client = await startAgent(
        cluster,
        ...shared,
        "--listen",
        "127.0.0.1:0",
        "--to",
        cluster.url("edge-3"),
      );
      const before = tcp.counted.connections;
      let killed = -1;
      await echoed(Number(client.first.port), async (lines) => {
        if (lines >= 50 && killed < 0 && await heldBy(cluster, "forwarder") === 2) {
          assert.equal(await homeOf(cluster, "forwarder"), "edge-3");
          killed = lines;
          await cluster.control("kill", "edge-3");
        }
        return killed >= 0 && lines >= killed + 200;
      });
      assert.equal(tcp.counted.connections, before + 1);
      await client.stop();
      await origin.stop();
      await cluster.control("start", "edge-3");
      await cluster.ready("edge-3");
    });
    await t.step("compression goes on where it was when the home dies", async () => {
      const client = await connect({ sites: `${cluster.url("edge-1")}/compressor` });
      const wire = await WireClient.open(client, "w1");
      for (const [i, path] of ["/pages/1", "/pages/2", "/pages/3", "/pages/4"].entries()) {
        if (i === 2) await cluster.control("kill", "edge-1");
        const { head, body } = await wire.ask("GET", path, [], null);
        assert.deepEqual([head.status, new TextDecoder().decode(body)], [200, page(path)]);
      }
      assert.ok(wire.sent * 2.5 < wire.plain, `${wire.plain} bytes came as ${wire.sent}`);
      wire.close();
      await client.close();
    });
  } finally {
    await server.shutdown();
    await tcp.stop();
    await Deno.remove(folder, { recursive: true });
  }
});
