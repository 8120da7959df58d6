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
    // As a site by itself does; a dev cluster says more.
    env: { SOJOURN_ANSWERHEADERS: "asked" },
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

/** A port of this machine that was free a moment ago. */
export function freePort(): number {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const { port } = listener.addr;
  listener.close();
  return port;
}

/** Waits until something answers; peers say nothing themselves. */
export async function untilUp(ask: () => Promise<unknown>, secondsMax = 60): Promise<void> {
  const endMs = performance.now() + secondsMax * 1000;
  for (;;) {
    try {
      await ask();
      return;
    } catch (error) {
      if (performance.now() > endMs) throw error;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
}

/** Ends processes that this benchmark started. */
export async function endAll(children: readonly Deno.ChildProcess[]): Promise<void> {
  for (const child of children) {
    try {
      child.kill("SIGKILL");
    } catch {
      // It has ended already.
    }
  }
  await Promise.all(children.map((child) => child.status));
}
