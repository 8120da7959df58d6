/**
 * The paper's emulated deployment (SessionStore, figure 2): a cloud, two cores, three edges; 1 Gbit/s; the network
 * below has the shape of the tree, so that two edges under different cores are t1 + t2 + t2 + t1 apart.
 */
import type { SiteId } from "../../../store/model/ports.ts";

/** Sites in the order of the paper's figure, each after its parent. */
export const PARENTS: ReadonlyMap<SiteId, SiteId | null> = new Map([
  ["cloud", null],
  ["core-1", "cloud"],
  ["core-2", "cloud"],
  ["edge-1", "core-1"],
  ["edge-2", "core-1"],
  ["edge-3", "core-2"],
]);

export const SITES: readonly SiteId[] = [...PARENTS.keys()];
export const TIERS: Readonly<Record<SiteId, string>> = {
  "cloud": "root",
  "core-1": "core",
  "core-2": "core",
  "edge-1": "edge",
  "edge-2": "edge",
  "edge-3": "edge",
};

/** Round trips of the two kinds of link: edge to core, core to cloud. */
const T1_MS = 2;
const T2_MS = 20;
/** 1 Gbit/s. */
export const BYTES_PER_MS = 125_000;

/**
 * What a commit takes, ours and a baseline's alike: the sync of the disk in the runs that docs/benchmarks.md shows
 * took 0.15 to 0.3 ms. Its bytes take no time: 1 Gbit/s is less than a disk's rate.
 */
export const COMMIT_MS = 0.2;

const up = (site: SiteId): SiteId[] => {
  const parent = PARENTS.get(site);
  return parent === null || parent === undefined ? [site] : [site, ...up(parent)];
};

/** The sites that a packet between two sites passes, both ends included. */
export function route(from: SiteId, to: SiteId): SiteId[] {
  const rising = up(from), falling = up(to);
  const meets = rising.findIndex((site) => falling.includes(site));
  const top = rising[meets] ?? "";
  return [...rising.slice(0, meets + 1), ...falling.slice(0, falling.indexOf(top)).reverse()];
}

/** One way between two neighbours. */
export const oneWayMs = (a: SiteId, b: SiteId): number =>
  (a === "cloud" || b === "cloud" ? T2_MS : T1_MS) / 2;

/** There and back between any two sites. */
export function roundTripMs(a: SiteId, b: SiteId): number {
  const path = route(a, b);
  return path.slice(1).reduce((sum, site, i) => sum + 2 * oneWayMs(path[i] ?? "", site), 0);
}
