/**
 * The dev process's own door: loopback HTTP by which commands and tests stop, kill, pause and start sites. Needs
 * the cluster's admin token; `cluster.json` says where it is.
 */
import type { Cluster } from "./cluster.ts";

/** What one can do to a site. */
const ACTIONS = ["kill", "stop", "start", "restart", "pause", "resume"] as const;
type Action = (typeof ACTIONS)[number];

/** The open door. */
export interface Control {
  readonly url: string;
  close(): Promise<void>;
}

/** Opens the door on a free port. */
export function openControl(cluster: Cluster, changed: () => Promise<void>): Control {
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen: () => {} }, async (request) => {
    if (request.headers.get("authorization") !== `Bearer ${cluster.adminToken}`) {
      return new Response("this needs the cluster's admin token\n", { status: 401 });
    }
    const [, action, id] = new URL(request.url).pathname.split("/");
    const site = cluster.site(id ?? "");
    if (request.method !== "POST" || !isAction(action) || site === undefined) {
      return new Response(`POST /ACTION/SITE, with one of ${ACTIONS.join(", ")}\n`, { status: 404 });
    }
    await act(site.process, action);
    await changed();
    return Response.json({ site: site.id, pid: site.process.pid });
  });
  return { url: `http://127.0.0.1:${server.addr.port}`, close: () => server.shutdown() };
}

const isAction = (word: string | undefined): word is Action => ACTIONS.some((action) => action === word);

async function act(
  site: { kill(): Promise<void>; stop(): Promise<void>; start(): void; signal(signal: Deno.Signal): void },
  action: Action,
): Promise<void> {
  switch (action) {
    case "kill":
      return await site.kill();
    case "stop":
      return await site.stop();
    case "start":
      return site.start();
    case "restart":
      await site.kill();
      return site.start();
    case "pause":
      return site.signal("SIGSTOP");
    case "resume":
      return site.signal("SIGCONT");
  }
}
