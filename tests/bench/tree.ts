/**
 * A dev cluster of three tiers with emulated links, and the app that the benchmarks of store and handoff use: real
 * processes, real sessions.
 *
 * Life: `startTree` → sessions, statuses → `stop`.
 */
import { join } from "node:path";
import { startCluster, type TestCluster } from "../e2e/cluster.ts";
import { type SiteStatus, siteStatus } from "../examples/board/site_status.ts";
import { quantile } from "./record.ts";

/** Round trips of the built-in topology's links (runtime/dev/topology.ts), as in the papers. */
export const RTT_MS = { core: 2, cloud: 22, sibling: 4, cousin: 44 } as const;
/** All sites, the root first. */
export const SITES = ["cloud", "core-1", "core-2", "edge-1", "edge-2", "edge-3"] as const;

/** An answer to a session, and how long the client waited for it. */
export interface Timed {
  readonly tookMs: number;
  readonly body: string;
  /** From `Server-Timing`. */
  readonly handoff: { readonly how: string; readonly ms: number };
}

/** What one session's client keeps between requests. */
export class BenchSession {
  readonly #tree: Tree;
  token = "";

  constructor(tree: Tree) {
    this.#tree = tree;
  }

  /** @throws Error for any answer but 200. */
  async get(site: string, path: string): Promise<Timed> {
    const url = `${this.#tree.cluster.url(site)}/load${path}`;
    const begunMs = performance.now();
    const answer = await fetch(url, { headers: this.token === "" ? {} : { "sojourn-session": this.token } });
    const body = await answer.text();
    const tookMs = performance.now() - begunMs;
    if (answer.status !== 200) throw new Error(`${url} answered ${answer.status}: ${body.slice(0, 300)}`);
    this.token = answer.headers.get("sojourn-session") ?? this.token;
    const timing = /handoff;desc=(\w+);dur=([\d.]+)/.exec(answer.headers.get("server-timing") ?? "");
    return { tookMs, body, handoff: { how: timing?.[1] ?? "none", ms: Number(timing?.[2] ?? 0) } };
  }
}

/** Row timings that the app took inside the function. */
export const timedInside = (answer: Timed): { ms: number[]; found: number } => JSON.parse(answer.body);

/** The running cluster. */
export class Tree {
  readonly cluster: TestCluster;

  constructor(cluster: TestCluster) {
    this.cluster = cluster;
  }

  session(): BenchSession {
    return new BenchSession(this);
  }

  async status(site: string): Promise<SiteStatus> {
    const { url, pid } = await this.cluster.site(site);
    return await siteStatus({ id: site, parent: null, tier: "", url, pid }, this.cluster.adminToken);
  }

  async statuses(): Promise<SiteStatus[]> {
    return await Promise.all(SITES.map((site) => this.status(site)));
  }

  /** Waits until nothing is on its way up. */
  async settled(): Promise<void> {
    const untilMs = performance.now() + SETTLE_MS_MAX;
    for (;;) {
      const pending = (await this.statuses()).reduce((sum, status) => sum + status.pending, 0);
      if (pending === 0) return;
      if (performance.now() > untilMs) throw new Error(`${pending} rows are still pending`);
      await sleep(20);
    }
  }

  /** Store bytes that all sites have put on their links so far. */
  async storeBytes(): Promise<number> {
    const all = await this.statuses();
    return all.reduce((sum, status) => sum + linkSum(status, "storeBytesOut"), 0);
  }

  /**
   * Store bytes that a piece of work put on all links, beyond what they carry while nothing happens.
   *
   * @param each how many operations the work is; the result is per operation.
   */
  async bytesOf(each: number, work: () => Promise<void>, idleMs = IDLE_MS): Promise<number> {
    const idleFrom = await this.storeBytes(), idleFromMs = performance.now();
    await sleep(idleMs);
    const from = await this.storeBytes(), fromMs = performance.now();
    await work();
    await this.settled();
    const bytes = await this.storeBytes() - from;
    const idle = (from - idleFrom) * (performance.now() - fromMs) / (fromMs - idleFromMs);
    return Math.max(0, bytes - idle) / each;
  }

  stop(): Promise<void> {
    return this.cluster.stop();
  }
}

const SETTLE_MS_MAX = 20_000;
/** Long enough to see a few of the marks that idle links carry (every 250 ms). */
const IDLE_MS = 1_000;

/** One counter over all links of a site, or over the one to `to`. */
export function linkSum(status: SiteStatus, counter: string, to?: string): number {
  return status.links.filter((link) => to === undefined || link.site === to)
    .reduce((sum, link) => sum + (link.counters[counter] ?? 0), 0);
}

/** Starts it; every site's isolate has answered once when it resolves. */
export async function startTree(): Promise<Tree> {
  const app = join(import.meta.dirname ?? ".", "apps", "load");
  const tree = new Tree(await startCluster({ topology: "three-tier", apps: [app] }));
  try {
    for (const site of SITES) await tree.session().get(site, "/hello");
    await tree.session().get("edge-1", "/core/hello");
    await tree.session().get("edge-1", "/root/hello");
    return tree;
  } catch (error) {
    await tree.stop();
    throw error;
  }
}

export const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** Cuts samples into slices of one length, in order: the runs of a figure that is taken within one process. */
export function slices<T>(samples: readonly T[], count: number): T[][] {
  const size = Math.max(1, Math.floor(samples.length / count));
  return Array.from(
    { length: Math.min(count, samples.length) },
    (_, i) => samples.slice(i * size, (i + 1) * size),
  );
}

/** A quantile of each slice. */
export const sliced = (samples: readonly number[], share: number, count: number): number[] =>
  slices(samples, count).map((slice) => quantile(slice, share));
