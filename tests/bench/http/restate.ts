/** The peer Restate: a virtual object with a counter, its server on one node, its handler in Node. */
import { join } from "node:path";
import { nodeOf } from "./peers.ts";
import { endAll, freePort, type Server, untilUp } from "./server.ts";

const OBJECT = `
import * as restate from "@restatedev/restate-sdk";
const add = async (ctx) => {
  const n = ((await ctx.get("n")) ?? 0) + 1;
  ctx.set("n", n);
  return n;
};
const counter = restate.object({ name: "counter", handlers: { add } });
await restate.serve({ services: [counter], port: Number(process.argv[2]) });
`;

/** Its listeners bound to this machine; on default settings otherwise. */
const config = (folder: string, ports: { node: number; admin: number; ingress: number }): string => `
node-name = "bench"
cluster-name = "bench"
bind-address = "127.0.0.1:${ports.node}"
advertised-address = "http://127.0.0.1:${ports.node}"
base-dir = "${folder}"
disable-telemetry = true
[admin]
bind-address = "127.0.0.1:${ports.admin}"
advertised-admin-endpoint = "http://127.0.0.1:${ports.admin}"
[ingress]
bind-address = "127.0.0.1:${ports.ingress}"
`;

/** Starts the server and the handler, and makes them known to each other. */
export async function startRestate(modules: string, folder: string): Promise<Server> {
  // Short: its Unix sockets lie below, and their paths may have 107 characters.
  const home = join(folder, `r${crypto.randomUUID().slice(0, 8)}`);
  await Deno.mkdir(home, { recursive: true });
  const ports = { node: freePort(), admin: freePort(), ingress: freePort() };
  const handlerPort = freePort();
  await Deno.writeTextFile(join(home, "restate.toml"), config(join(home, "data"), ports));
  const script = join(modules, "..", "counter.mjs"); // beside node_modules, where its import is found
  await Deno.writeTextFile(script, OBJECT);
  const quiet = { stdin: "null", stdout: "null", stderr: "null" } as const;
  const handler = new Deno.Command(nodeOf(modules), {
    args: [script, String(handlerPort)],
    env: { RESTATE_LOGGING: "ERROR", NODE_ENV: "production" },
    ...quiet,
  }).spawn();
  const server = new Deno.Command(
    join(modules, "@restatedev", "restate-server-linux-x64", "bin", "restate-server"),
    { args: ["--config-file", join(home, "restate.toml")], env: { RUST_LOG: "error" }, ...quiet },
  ).spawn();
  const children = [handler, server];
  try {
    await untilUp(async () => {
      const answer = await fetch(`http://127.0.0.1:${ports.admin}/deployments`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ uri: `http://127.0.0.1:${handlerPort}` }),
      });
      const text = await answer.text();
      if (!answer.ok) throw new Error(`restate took no deployment: ${text.slice(0, 300)}`);
    });
    await untilUp(async () => {
      const answer = await fetch(`http://127.0.0.1:${ports.ingress}/counter/first/add`);
      const text = await answer.text();
      if (!answer.ok) throw new Error(`restate does not answer: ${text.slice(0, 300)}`);
    });
  } catch (error) {
    await endAll(children);
    throw error;
  }
  return {
    port: ports.ingress,
    pids: children.map((child) => child.pid),
    prefix: "",
    stop: () => endAll(children),
  };
}
