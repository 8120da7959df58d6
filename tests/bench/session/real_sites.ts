/** Real sites for the benchmark of stateful sessions: a home with f owners beside it, and its isolates. */
import { join } from "node:path";
import { startCluster, type TestCluster } from "../../e2e/cluster.ts";
import type { BenchContext } from "../bench.ts";
import { Connection } from "../http/load.ts";

const here = import.meta.dirname ?? ".";
const APP = join(here, "..", "apps", "stateful");
/** The root's round trip does not matter once a session is open; that between a home and its owners does. */
export const EDGE_RTT_MS = 2;
const ROOT_RTT_MS = 10;
/** How long a home that may only be slow is not heard of until another may be. A killed process is known at once. */
const SUSPECT_MS = 1_000;

/** Three edges below one core. Without owners a home writes to its own disk alone. */
export async function startSites(
  f: 0 | 1,
  folder: string,
  env: Record<string, string> = {},
): Promise<TestCluster> {
  const link = (rttMs: number) => ({ rttMs, mbps: 1_000 });
  const edges = ["edge-1", "edge-2", "edge-3"];
  const topology = {
    sites: [
      { id: "cloud" },
      { id: "core-1", parent: "cloud", link: link(ROOT_RTT_MS) },
      ...edges.map((id) => ({
        ...{ id, parent: "core-1", link: link(EDGE_RTT_MS / 2) },
        ...(f === 0 ? {} : { f, owners: { sites: edges.filter((other) => other !== id) } }),
      })),
    ],
  };
  const file = join(folder, `topology-${crypto.randomUUID()}.json`);
  await Deno.writeTextFile(file, JSON.stringify(topology));
  return await startCluster({
    topology: file,
    apps: [APP],
    main: join(here, "weighed_main.ts"),
    env: {
      WEIGHED: folder,
      SOJOURN_OWNERS_SUSPECTMS: `${SUSPECT_MS}`,
      SOJOURN_OWNERS_DEADMS: "20000",
      ...env,
    },
  });
}

/** Does something at a cluster: one that there is, which stays, or one of its own with so many owners. */
export async function atSites<T>(
  given: TestCluster | 0 | 1,
  context: BenchContext,
  work: (cluster: TestCluster) => Promise<T>,
  env: Record<string, string> = {},
): Promise<T> {
  if (typeof given !== "number") return await work(given);
  const cluster = await startSites(given, context.folder, env);
  try {
    return await work(cluster);
  } catch (error) {
    context.say(lastLinesOf(cluster));
    throw error;
  } finally {
    await cluster.stop();
  }
}

/** What the sites said before something failed. */
export const lastLinesOf = (cluster: TestCluster): string =>
  `the sites said:\n${cluster.log().split("\n").slice(-30).join("\n")}`;

/** A connection to a site's stateful app: requests one after the other. */
export async function connect(cluster: TestCluster, site: string): Promise<Asker> {
  const { hostname, port } = new URL(cluster.url(site));
  return new Asker(new Connection(await Deno.connect({ hostname, port: Number(port) })));
}

/** See {@link connect}. */
export class Asker {
  readonly #connection: Connection;

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  /** Milliseconds that a request took. @throws Error for another answer than 200. */
  async ask(path: string): Promise<number> {
    const begun = performance.now();
    const status = await this.#status(path);
    if (status !== 200) throw new Error(`${path} was answered ${status}`);
    return performance.now() - begun;
  }

  /**
   * The same, asked again until it is answered: an isolate that was killed may take the first request with it, and the site
   * can't tell that it was not this one that brought it down (502 `isolate_killed`).
   */
  async insist(path: string, msMax = 30_000): Promise<number> {
    const begun = performance.now();
    for (;;) {
      const status = await this.#status(path);
      const ms = performance.now() - begun;
      if (status === 200) return ms;
      if (status < 500 || ms > msMax) {
        throw new Error(`${path} was answered ${status} after ${ms.toFixed(0)} ms`);
      }
    }
  }

  async #status(path: string): Promise<number> {
    return (await this.#connection.ask(`GET /stateful${path} HTTP/1.1\r\nhost: localhost\r\n\r\n`)).status;
  }

  close(): void {
    this.#connection.close();
  }
}

/** Asks until there is an answer; milliseconds since `begun`. */
export async function untilAnswered(url: string, begun: number, msMax = 30_000): Promise<number> {
  for (;;) {
    const status = await fetch(url).then(async (answer) => {
      await answer.text();
      return answer.status;
    }, () => 0);
    if (status === 200) return performance.now() - begun;
    if (performance.now() - begun > msMax) throw new Error(`${url} was answered ${status} for ${msMax} ms`);
  }
}

/** The processes below a site in which stateful sessions run. */
export function statefulIsolates(site: number): number[] {
  return childrenOf(site).filter((pid) => {
    try {
      return Deno.readTextFileSync(`/proc/${pid}/cmdline`).includes("stateful");
    } catch {
      return false; // it has ended
    }
  });
}

/** Linux: the fields of a process behind its name, the first being its state; null: there is none. */
function statOf(pid: number): string[] | null {
  try {
    const text = Deno.readTextFileSync(`/proc/${pid}/stat`);
    return text.slice(text.lastIndexOf(")") + 2).split(" ");
  } catch {
    return null;
  }
}

/** It has not ended, whether its parent has asked for its status or not. */
export const isRunning = (pid: number): boolean => (statOf(pid)?.[0] ?? "Z") !== "Z";

/** The one that was started last. */
export const youngest = (pids: readonly number[]): number =>
  pids.reduce((one, other) => Number(statOf(other)?.[19]) > Number(statOf(one)?.[19]) ? other : one);

/** Linux. */
export function childrenOf(parent: number): number[] {
  const out: number[] = [];
  for (const { name } of Deno.readDirSync("/proc")) {
    const pid = Number(name);
    if (!Number.isInteger(pid)) continue;
    if (Number(statOf(pid)?.[1]) === parent) out.push(pid); // null: it ended between the listing and the read
  }
  return out;
}

const LIVE_MS_MAX = 30_000;

/** Bytes that a site of such a cluster holds, in V8's heap and outside it, without its garbage. */
export async function liveOf(site: number, folder: string): Promise<number> {
  const file = join(folder, `heap-${site}.json`);
  Deno.kill(site, "SIGUSR2");
  const untilMs = performance.now() + LIVE_MS_MAX;
  for (;;) {
    const text = await Deno.readTextFile(file).catch(() => null);
    if (text !== null) {
      await Deno.remove(file);
      const { heap, external } = JSON.parse(text) as { heap: number; external: number };
      return heap + external;
    }
    if (performance.now() > untilMs) throw new Error(`site ${site} does not say what it holds`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** Bytes of memory of processes, shared pages counted in parts. */
export function memoryOf(pids: readonly number[]): number {
  return pids.reduce((sum, pid) => {
    const text = Deno.readTextFileSync(`/proc/${pid}/smaps_rollup`);
    return sum + 1024 * Number(/^Pss:\s+(\d+) kB/m.exec(text)?.[1] ?? 0);
  }, 0);
}
