/** The peer Redis: a cluster of three that syncs its log before each answer, behind an HTTP server in Node. */
import { join } from "node:path";
import { nodeOf } from "./peers.ts";
import { endAll, freePort, type Server, untilUp } from "./server.ts";

/** Where Debian puts it. */
const BINARY = "/usr/bin/redis-server";
const SLOTS = 16_384;

const SERVER = `
import { createServer } from "node:http";
import Redis from "ioredis";
const [port, ...ports] = process.argv.slice(2).map(Number);
const cluster = new Redis.Cluster(ports.map((port) => ({ host: "127.0.0.1", port })));
createServer((request, response) => {
  const session = new URL(request.url, "http://localhost").searchParams.get("s");
  cluster.incr("counter:" + session).then(
    (n) => response.end(String(n)),
    (error) => {
      response.statusCode = 500;
      response.end(String(error));
    },
  );
}).listen(port, "127.0.0.1");
`;

/** Whether this machine has a Redis. */
export async function hasRedis(say: (line: string) => void): Promise<boolean> {
  try {
    return (await Deno.stat(BINARY)).isFile;
  } catch {
    say(`there is no ${BINARY}: Redis' figures are left out`);
    return false;
  }
}

/** One command in Redis' inline form; its answer's first line. */
async function command(port: number, line: string): Promise<string> {
  using connection = await Deno.connect({ hostname: "127.0.0.1", port });
  await connection.write(new TextEncoder().encode(`${line}\r\n`));
  const buffer = new Uint8Array(16_384);
  const count = await connection.read(buffer) ?? 0;
  const answer = new TextDecoder().decode(buffer.subarray(0, count));
  if (answer.startsWith("-")) throw new Error(`redis: ${line}: ${answer}`);
  return answer;
}

/** Starts three servers, makes them a cluster, and the HTTP server before them. */
export async function startRedis(modules: string, folder: string): Promise<Server> {
  const children: Deno.ChildProcess[] = [];
  const quiet = { stdin: "null", stdout: "null", stderr: "null" } as const;
  const ports = [freePort(), freePort(), freePort()];
  try {
    for (const port of ports) {
      const home = join(folder, `redis-${crypto.randomUUID()}`);
      await Deno.mkdir(home, { recursive: true });
      const settings = {
        port,
        "cluster-port": freePort(),
        bind: "127.0.0.1",
        dir: home,
        "cluster-enabled": "yes",
        appendonly: "yes",
        appendfsync: "always",
        "no-appendfsync-on-rewrite": "no",
      };
      const args = Object.entries(settings).flatMap(([name, value]) => [`--${name}`, String(value)]);
      // An empty value of its own: no snapshots.
      children.push(new Deno.Command(BINARY, { args: [...args, "--save", ""], ...quiet }).spawn());
    }
    for (const port of ports) await untilUp(() => command(port, "PING"));
    await makeCluster(ports);
    const script = join(modules, "..", "incr.mjs");
    await Deno.writeTextFile(script, SERVER);
    const httpPort = freePort();
    children.push(
      new Deno.Command(nodeOf(modules), { args: [script, String(httpPort), ...ports.map(String)], ...quiet })
        .spawn(),
    );
    await untilUp(async () => {
      const answer = await fetch(`http://127.0.0.1:${httpPort}/?s=first`);
      const text = await answer.text();
      if (!answer.ok) throw new Error(text);
    });
    return {
      port: httpPort,
      pids: children.map((child) => child.pid),
      prefix: "",
      stop: () => endAll(children),
    };
  } catch (error) {
    await endAll(children);
    throw error;
  }
}

/** A third of the slots to each, and each known to the first. */
async function makeCluster(ports: readonly number[]): Promise<void> {
  const share = Math.ceil(SLOTS / ports.length);
  const [first = 0] = ports;
  for (const [i, port] of ports.entries()) {
    const last = Math.min(SLOTS, (i + 1) * share) - 1;
    await command(port, `CLUSTER ADDSLOTSRANGE ${i * share} ${last}`);
    if (port === first) continue;
    const bus = /(\d+)/.exec((await command(port, "CONFIG GET cluster-port")).split("\r\n").at(-2) ?? "")
      ?.[1];
    await command(first, `CLUSTER MEET 127.0.0.1 ${port} ${bus}`);
  }
  for (const port of ports) {
    await untilUp(async () => {
      const info = await command(port, "CLUSTER INFO");
      if (!info.includes("cluster_state:ok")) throw new Error("the redis cluster is not whole");
      if (!info.includes(`cluster_known_nodes:${ports.length}`)) throw new Error("redis nodes are missing");
    });
  }
}
