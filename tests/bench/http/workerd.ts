/** The peer workerd: a stateless worker, and a Durable Object on its local SQLite. */
import { join } from "node:path";
import { endAll, freePort, type Server, untilUp } from "./server.ts";

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
export async function startWorkerd(modules: string, folder: string): Promise<Server> {
  const binary = join(modules, "@cloudflare", "workerd-linux-64", "bin", "workerd");
  const home = join(folder, `workerd-${crypto.randomUUID()}`);
  await Deno.mkdir(join(home, "do"), { recursive: true });
  const port = freePort();
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
  await untilUp(async () => await (await fetch(`http://127.0.0.1:${port}/hello`)).text());
  return {
    port,
    pids: [child.pid],
    prefix: "",
    stop: () => endAll([child]),
  };
}
