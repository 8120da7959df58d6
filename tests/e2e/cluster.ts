/**
 * A dev cluster for tests: the real command, six processes, ports of its own, data that goes when it stops.
 *
 * Life: `startCluster` (resolves at `ready`) → … → `stop`, which a test calls in `finally` or by `await using`.
 */
import { strict as assert } from "node:assert";
import { join, resolve } from "node:path";
import { readCluster } from "../../runtime/cli/cluster.ts";

/** A site, as `cluster.json` names it. */
export interface ClusterSite {
  readonly id: string;
  readonly url: string;
  readonly pid: number;
}

/** A running cluster. */
export interface TestCluster {
  /** By id, as they were at `ready`; `site` tells the present process id. */
  readonly sites: Readonly<Record<string, ClusterSite>>;
  readonly adminToken: string;
  readonly data: string;
  /** Of the dev command. */
  readonly pid: number;
  /** From spawn to `ready`. */
  readonly readyMs: number;
  url(site: string): string;
  site(id: string): Promise<ClusterSite>;
  /** Kills (SIGKILL; stays down), stops, starts, restarts, pauses or resumes a site. */
  control(action: "kill" | "stop" | "start" | "restart" | "pause" | "resume", site: string): Promise<void>;
  /** Waits until a site answers `readyz` with 200. */
  ready(site: string): Promise<void>;
  /** What the sites and the command wrote to standard error so far. */
  log(): string;
  stop(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** What to start. */
export interface ClusterOptions {
  /** Name or file; three-tier by default. */
  readonly topology?: string;
  /** Owners of each site. */
  readonly f?: number;
  /** `host:port` that apps may reach although it is private. */
  readonly reach?: readonly string[];
  /** Modules, folders or names in examples/. */
  readonly apps?: readonly string[];
  /** Folder that stays; without one the data goes when the cluster stops. */
  readonly data?: string;
  /** Where commands find one whose data does not stay; without one nobody has to. */
  readonly found?: string;
  /** Another command line than Sojourn's, for sites that are broken on purpose. */
  readonly main?: string;
  /** Over the sites' environment: `SOJOURN_LIMITS_CPUMS: "200"`. */
  readonly env?: Readonly<Record<string, string>>;
}

const ROOT = resolve(import.meta.dirname ?? ".", "..", "..");
/** The app that most tests look at. */
export const PROBE = join(ROOT, "tests", "e2e", "apps", "probe");
const LAST_LINES = 3;
/** Nine workers may share two cores; alone it takes two seconds. */
const READY_MS_MAX = 90_000;

/** Starts a cluster and waits for `ready`. */
export async function startCluster(options: ClusterOptions = {}): Promise<TestCluster> {
  const begunMs = performance.now();
  const unseen = options.data === undefined && options.found === undefined ? await Deno.makeTempDir() : null;
  const found = options.found ?? unseen ?? "";
  const child = new Deno.Command(Deno.execPath(), {
    args: [
      "run",
      "-A",
      "--config",
      join(ROOT, "deno.json"),
      options.main ?? join(ROOT, "runtime", "main.ts"),
      "dev",
      ...(options.apps ?? [PROBE]),
      ...["--json", "--verbose", "--port", "0"],
      ...(options.data === undefined ? ["--ephemeral", "--data", found] : ["--data", options.data]),
      ...(options.topology === undefined ? [] : ["--topology", options.topology]),
      ...(options.f === undefined ? [] : ["--f", `${options.f}`]),
      ...(options.reach === undefined ? [] : ["--reach", options.reach.join(",")]),
    ],
    env: { ...options.env },
    stdin: "null",
    stdout: "piped",
    stderr: "piped",
  }).spawn();
  let errors = "";
  const logged = pump(child.stderr, (text) => errors += text);
  const lines = lineReader(child.stdout);
  const giveUp = setTimeout(() => child.kill("SIGKILL"), READY_MS_MAX);
  let ready: Record<string, unknown> | null = null, said = "";
  while (ready === null) {
    const line = await lines.next();
    if (line === null) break;
    said += `${line}\n`;
    const event = JSON.parse(line) as Record<string, unknown>;
    if (event.event === "ready") ready = event;
  }
  clearTimeout(giveUp);
  if (ready === null) {
    await logged;
    const { code, signal } = await child.status;
    const end = signal === null ? `it ended with ${code}` : `it was given up after ${READY_MS_MAX / 1000} s`;
    // The last first: a report may show no more than the beginning.
    const last = [said, errors].map((text) => text.trimEnd().split("\n").slice(-LAST_LINES).join("\n"));
    throw new Error(
      `the cluster did not get ready, ${end}:\n${last.join("\n")}\nthe whole:\n${errors}${said}`,
    );
  }
  const rest = lines.drain();
  const readyMs = performance.now() - begunMs;
  const data = String(ready.data);
  const stop = async () => {
    try {
      child.kill("SIGINT");
    } catch {
      // It has ended already.
    }
    await Promise.all([child.status, logged, rest]);
    if (unseen !== null) await Deno.remove(unseen, { recursive: true }).catch(() => {}); // it was stopped before
  };
  try {
    return await describe({ data, readyMs, pid: child.pid, log: () => errors, stop });
  } catch (error) {
    await stop();
    throw error;
  }
}

async function describe(
  known: Pick<TestCluster, "data" | "readyMs" | "pid" | "log" | "stop">,
): Promise<TestCluster> {
  const { data } = known;
  const read = async () => {
    const file = await readCluster(data);
    assert(file !== null, `${data} has no cluster file`);
    return file;
  };
  const file = await read();
  const { controlUrl } = JSON.parse(await Deno.readTextFile(join(data, "cluster.json"))) as {
    controlUrl: string;
  };
  const sites = Object.fromEntries(file.sites.map(({ id, url, pid }) => [id, { id, url, pid }]));
  const url = (id: string) => {
    const site = sites[id];
    assert(site !== undefined, `no site is called ${id}`);
    return site.url;
  };
  return {
    sites,
    adminToken: file.adminToken,
    ...known,
    url,
    site: async (id) => {
      const found = (await read()).sites.find((site) => site.id === id);
      assert(found !== undefined, `no site is called ${id}`);
      return { id, url: found.url, pid: found.pid };
    },
    control: async (action, site) => {
      const answer = await fetch(`${controlUrl}/${action}/${site}`, {
        method: "POST",
        headers: { authorization: `Bearer ${file.adminToken}` },
      });
      const text = await answer.text();
      assert(answer.ok, text);
    },
    ready: (site) =>
      eventually(`${site} is ready`, async () => (await status(`${url(site)}/_sojourn/readyz`)) === 200),
    [Symbol.asyncDispose]: known.stop,
  };
}

async function status(url: string): Promise<number> {
  const answer = await fetch(url);
  await answer.body?.cancel();
  return answer.status;
}

/** How long a test waits for what is to come, on a machine that does ten other things: a restart takes a second. */
const EVENTUALLY_MS = 60_000;
const POLL_MS = 20;

/** Waits until a condition holds; what throws does not hold yet. */
export async function eventually(what: string, holds: () => Promise<boolean>): Promise<void> {
  const untilMs = performance.now() + EVENTUALLY_MS;
  let last: unknown;
  while (performance.now() < untilMs) {
    try {
      if (await holds()) return;
      last = undefined;
    } catch (error) {
      last = error;
    }
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
  throw new Error(`not within ${EVENTUALLY_MS} ms: ${what}${last === undefined ? "" : ` (${last})`}`);
}

async function pump(
  stream: ReadableStream<Uint8Array<ArrayBuffer>>,
  take: (text: string) => void,
): Promise<void> {
  for await (const text of stream.pipeThrough(new TextDecoderStream())) take(text);
}

function lineReader(stream: ReadableStream<Uint8Array<ArrayBuffer>>) {
  const reader = stream.pipeThrough(new TextDecoderStream()).getReader();
  let buffer = "";
  const next = async (): Promise<string | null> => {
    for (;;) {
      const end = buffer.indexOf("\n");
      if (end >= 0) {
        const line = buffer.slice(0, end);
        buffer = buffer.slice(end + 1);
        return line;
      }
      const { done, value } = await reader.read();
      if (done) return null;
      buffer += value;
    }
  };
  const drain = async () => {
    while (await next() !== null);
  };
  return { next, drain };
}
