/**
 * One run of the board on a cluster: load, let the clients live, kill sites under them, come to rest, judge.
 */
import { type Audit, audit } from "./audit.ts";
import { counterOf } from "./answers.ts";
import { check, type Verdict } from "./checker.ts";
import type { Edge } from "./client.ts";
import { type Emulated, type EmulatorOptions, run } from "./emulator.ts";
import { BoardData, type DataOptions, type Datum } from "./generator.ts";
import { type Killed, type Killer, type Kills, killSites } from "./kills.ts";
import { load, type Loaded, type Send } from "./loader.ts";
import { ADMIN_TOKEN } from "./operated_app.ts";
import { settle, type SiteAddress, type SiteStatus } from "./site_status.ts";
import { probeUnread, type Unread } from "./unread.ts";
import { cpuMs } from "../../bench/cpu.ts";

/** A running cluster that serves the board. */
export interface BoardCluster extends Killer {
  readonly adminToken: string;
  /** As it is now: a site that was restarted has another process. */
  sites(): Promise<readonly SiteAddress[]>;
}

export interface TrialOptions {
  readonly data: Omit<DataOptions, "nowMs">;
  readonly emulator: Omit<EmulatorOptions, "edges">;
  readonly kills: Kills;
  readonly say: (line: string) => void;
}

/** What an edge holds, against the root. */
export interface Share {
  readonly site: string;
  readonly bytes: number;
  readonly share: number;
}

/** What came of it. */
export interface Trial {
  readonly loaded: Loaded;
  readonly emulated: Emulated;
  readonly verdict: Verdict;
  readonly audit: Audit;
  /** CPU of each site and its isolates while the clients lived; less for a site that was killed meanwhile. */
  readonly cpu: readonly { readonly site: string; readonly ms: number }[];
  readonly shares: readonly Share[];
  readonly unread: Unread | null;
  readonly killed: readonly Killed[];
  readonly statuses: readonly SiteStatus[];
}

const SETTLE_MS = 120_000;

/** Runs a trial. */
export async function trial(cluster: BoardCluster, options: TrialOptions): Promise<Trial> {
  const { say } = options;
  const sites = await cluster.sites();
  const root = sites.find((site) => site.parent === null);
  const edges = sites.filter((site) => !sites.some((other) => other.parent === site.id));
  if (root === undefined || edges.length === 0) throw new Error("the cluster has no root or no edges");
  const sums = new Map<string, number>();
  const data = new BoardData({ ...options.data, nowMs: Date.now() });
  const loaded = await load(remember(data.data(), sums), sendTo(root), ADMIN_TOKEN);
  say(`loaded ${loaded.rows} rows (${megabytes(loaded.bytes)}) in ${(loaded.tookMs / 1000).toFixed(1)} s`);
  await settle(sites, cluster.adminToken, SETTLE_MS);

  const cpuBefore = await cpuMs(sites.map((site) => site.pid));
  const [emulated, killed] = await Promise.all([
    run({ ...options.emulator, edges: edges.map(edgeOf) }),
    killSites(cluster, sites, options.kills, { durationMs: options.emulator.durationMs, say }),
  ]);
  const now = await cluster.sites();
  const cpuAfter = await cpuMs(now.map((site) => site.pid));
  const cpu = now.map((site, i) => {
    const same = sites[i]?.pid === site.pid;
    return { site: site.id, ms: (cpuAfter[i] ?? 0) - (same ? cpuBefore[i] ?? 0 : 0) };
  });
  say(`${emulated.samples.length} requests in ${(emulated.tookMs / 1000).toFixed(1)} s; checking`);
  const statuses = await settle(now, cluster.adminToken, SETTLE_MS);
  const verdict = check(emulated.history);
  const found = await audit(emulated.history, sums, sendTo(root), ADMIN_TOKEN);
  const unread = await probeUnread(now, cluster.adminToken);
  return {
    loaded,
    emulated,
    verdict,
    audit: found,
    cpu,
    shares: sharesOf(statuses),
    unread,
    killed,
    statuses,
  };
}

/** The app at one site, by its path form. */
export const sendTo = (site: SiteAddress): Send => (path, init) =>
  fetch(new URL(`/board${path}`, site.url), init);

const edgeOf = (site: SiteAddress): Edge => ({ id: site.id, send: sendTo(site) });

const megabytes = (bytes: number): string => `${(bytes / 2 ** 20).toFixed(1)} MB`;

function* remember(data: Iterable<Datum>, sums: Map<string, number>): Iterable<Datum> {
  for (const datum of data) {
    if (datum.kind === "sum") {
      sums.set(counterOf(datum.key), (sums.get(counterOf(datum.key)) ?? 0) + datum.by);
    }
    yield datum;
  }
}

function sharesOf(statuses: readonly SiteStatus[]): Share[] {
  const root = statuses.find((status) => status.parent === null)?.coverage.bytes ?? NaN;
  return statuses.map(({ site, coverage }) => ({
    site,
    bytes: coverage.bytes,
    share: coverage.bytes / root,
  }));
}
