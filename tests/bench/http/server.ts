/** Starting and stopping what is measured, each in fresh processes. */
import { join } from "node:path";
import { startCluster } from "../../e2e/cluster.ts";

/** A running contender. */
export interface Server {
  readonly port: number;
  /** Processes whose CPU time is the contender's. */
  readonly pids: readonly number[];
  /** Path prefix of its handlers. */
  readonly prefix: string;
  stop(): Promise<void>;
}

const here = import.meta.dirname ?? ".";

/** An edge of Sojourn under a root 20 ms away, with the app that the benchmarks use; both count as its CPU. */
export async function startSojourn(): Promise<Server> {
  const cluster = await startCluster({
    topology: join(here, "edge.json"),
    apps: [join(here, "..", "apps", "load")],
  });
  const answer = await fetch(`${cluster.url("edge")}/load/set`);
  await answer.text();
  return {
    port: Number(new URL(cluster.url("edge")).port),
    pids: Object.values(cluster.sites).map((site) => site.pid),
    prefix: "/load",
    stop: () => cluster.stop(),
  };
}

/** A Deno program beside it: bare `Deno.serve`, Hono, or `Deno.openKv` on a file. */
export async function startPeer(kind: "bare" | "hono" | "kv", folder: string): Promise<Server> {
  const child = new Deno.Command(Deno.execPath(), {
    args: [
      "run",
      "-A",
      "--unstable-kv",
      join(here, "peer_server.ts"),
      kind,
      join(folder, `peer-${crypto.randomUUID()}.db`),
    ],
    stdin: "piped",
    stdout: "piped",
    stderr: "null",
  }).spawn();
  const reader = child.stdout.getReader();
  const { value } = await reader.read();
  const port = Number(new TextDecoder().decode(value ?? new Uint8Array()).trim());
  return {
    port,
    pids: [child.pid],
    prefix: "",
    stop: async () => {
      await child.stdin.close();
      await reader.cancel();
      await child.status;
    },
  };
}

/** Version of the peer; from npm, for benchmarks only. */
const WORKERD = "1.20261117.1";

/** Installs workerd into a folder kept between runs; null where that fails. */
export async function installWorkerd(say: (line: string) => void): Promise<string | null> {
  const folder = join(here, "..", "..", "..", ".cache", "bench", `workerd-${WORKERD}`);
  const binary = join(folder, "node_modules", "@cloudflare", "workerd-linux-64", "bin", "workerd");
  try {
    await Deno.stat(binary);
    return binary;
  } catch {
    say(`installing workerd ${WORKERD} from npm`);
  }
  await Deno.mkdir(folder, { recursive: true });
  try {
    const { success } = await new Deno.Command("npm", {
      args: ["install", "--prefix", folder, "--ignore-scripts", `workerd@${WORKERD}`],
      stdout: "null",
      stderr: "null",
    }).output();
    if (success && await Deno.stat(binary)) return binary;
  } catch {
    // No npm, or no such platform: the peer stays out.
  }
  say("workerd could not be installed: its figures are left out");
  return null;
}

const WORKER = `
export class Counter {
  constructor(state) { this.sql = state.storage.sql; this.sql.exec("CREATE TABLE IF NOT EXISTS c (n INTEGER)"); }
  async fetch() {
    const rows = [...this.sql.exec("SELECT n FROM c")];
    const n = (rows[0]?.n ?? 0) + 1;
    this.sql.exec(rows.length ? "UPDATE c SET n = ?" : "INSERT INTO c VALUES (?)", n);
    return new Response(String(n));
  }
}
export default {
  async fetch(request, env) {
    const url = new URL(request.url);
    if (url.pathname === "/hello") return new Response("Hello");
    return await env.COUNTER.get(env.COUNTER.idFromName(url.searchParams.get("s") ?? "")).fetch(request);
  },
};`;

/** workerd with a Durable Object on its local SQLite. */
export async function startWorkerd(binary: string, folder: string): Promise<Server> {
  const home = join(folder, `workerd-${crypto.randomUUID()}`);
  await Deno.mkdir(join(home, "do"), { recursive: true });
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const { port } = listener.addr;
  listener.close();
  await Deno.writeTextFile(join(home, "worker.js"), WORKER);
  await Deno.writeTextFile(
    join(home, "config.capnp"),
    `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [(name = "main", worker = .mainWorker), (name = "disk", disk = (path = "${
      join(home, "do")
    }", writable = true))],
  sockets = [(name = "http", address = "127.0.0.1:${port}", http = (), service = "main")],
);
const mainWorker :Workerd.Worker = (
  modules = [(name = "worker", esModule = embed "worker.js")],
  compatibilityDate = "2026-01-01",
  durableObjectNamespaces = [(className = "Counter", uniqueKey = "counter", enableSql = true)],
  durableObjectStorage = (localDisk = "disk"),
  bindings = [(name = "COUNTER", durableObjectNamespace = "Counter")],
);
`,
  );
  const child = new Deno.Command(binary, {
    args: ["serve", join(home, "config.capnp")],
    stdin: "null",
    stdout: "null",
    stderr: "null",
  }).spawn();
  for (let tries = 0;; tries++) {
    try {
      await (await fetch(`http://127.0.0.1:${port}/hello`)).text();
      break;
    } catch (error) {
      if (tries === 100) throw error;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
  return {
    port,
    pids: [child.pid],
    prefix: "",
    stop: async () => {
      child.kill("SIGTERM");
      await child.status;
    },
  };
}
