/** What a seed does: drawn, and biased by who wants something in particular. */
import type { OwnersSettings } from "../../store/presence/choose.ts";
import { HORIZON_MS } from "../../store/model/limits.ts";
import { NO_OWNERS } from "../../store/owners/site_owners.ts";
import { Draws } from "../sim/random.ts";
import { drawPlan, type FaultPlan, NO_FAULTS, type Plan, type SitePlan } from "../sim/topology.ts";
import type { ClassName, Op } from "./program.ts";
import type { WirePlan } from "./wire.ts";

export interface SitesPlan extends WirePlan {
  /** The tree, its clients of rows, and what befalls sites, disks, links and clocks. */
  readonly store: Plan;
  readonly f: number;
  readonly classes: readonly ClassName[];
  readonly devices: number;
  readonly plain: number;
  /** When the last of these has come, where they take their time. */
  readonly comeMs?: number;
  readonly callers: number;
  /** Of each device, at most. */
  readonly messages: number;
  /** Of each caller. */
  readonly requests: number;
  /** That a request of a client of rows calls a stateful session. */
  readonly callChance: number;
  readonly kills: number;
  /** Processes that stand still while others go on. */
  readonly stands: number;
  /** Machines that are suspended alone, past all that others remember of them. */
  readonly dozes?: number;
  /** Copies of the arbiter's disk that are put back. */
  readonly arbiters: number;
  /** Other versions of the app. */
  readonly deploys: number;
  readonly moves: number;
  /** That a session is moved as soon as it was opened somewhere. */
  readonly moveAtOnce: number;
  readonly roams: number;
  readonly cuts: number;
  readonly originBreaks: number;
  readonly originLeaves: number;
  readonly deaths: number;
  readonly closes: number;
  readonly echoChance: number;
  readonly mistakes: number;
  readonly hasStandbys: boolean;
  /** Homes rest at the root only where nobody else can have them (functions/sessions/home/seats.ts), and sites ask each other. */
  readonly hasSeats?: boolean;
  /** That a session is made anew while its epoch is asked for. */
  readonly isAhead: boolean;
  readonly idleMs: number;
  /** Of a log, what goes in one packet. */
  readonly batchBytes: number;
  /** Of the disks that homes have. */
  readonly commitMs: readonly [number, number];
  /** Of the arbiter's, where it is another. */
  readonly arbiterMs?: readonly [number, number];
  /** That reads of homes' disks, and the arbiter's, see some of a commit that is under way; left out: they don't. */
  readonly earlyChance?: number;
  readonly ops: readonly Op[];
}

const OPS: readonly Op[] = [
  ...["echo", "echo", "all", "all", "origin", "origin", "quiet"] as const,
  ...["slow", "tick", "jolt", "put", "put", "swap", "post", "post", "balk"] as const,
  ...["get", "get", "get", "set", "set", "set", "sum", "alarm"] as const,
];

/** Draws what a seed does; `alone`: with what a few of them have, which a plan of hard.ts or a variant has in its own measure. */
export function drawSitesPlan(seed: number, alone = true): SitesPlan {
  const draws = new Draws(`sites plan ${seed}`);
  const n = draws.integer(2, 6);
  const f = Math.min(n - 1, draws.pick([0, 1, 1, 1, 1, 2]));
  const some = (chance: number, most: number) => draws.chance(chance) ? draws.integer(1, most) : 0;
  const classes: readonly ClassName[] = ["whole", "whole", "retrying", "parking"];
  const plan: SitesPlan = {
    store: drawStore(seed, n, draws.fork("store")),
    ...{ f, classes: Array.from({ length: draws.integer(1, 3) }, () => draws.pick(classes)) },
    ...{ devices: draws.integer(0, 3), plain: draws.integer(0, 1), callers: draws.integer(0, 2) },
    ...{
      messages: draws.integer(3, 25),
      requests: draws.integer(1, 8),
      callChance: draws.pick([0.2, 0.5, 0.8]),
    },
    ...{ kills: some(0.4, 3), stands: some(0.2, 2) },
    ...{ moves: some(0.5, 5), moveAtOnce: draws.pick([0, 0, 0.3]) },
    ...{ roams: some(0.5, 6), cuts: some(0.5, 6), originBreaks: draws.pick([0, 0.01, 0.05]) },
    ...{ originLeaves: some(0.2, 2), deaths: draws.pick([0, 0, 0.3]), closes: draws.pick([0, 0, 0.3]) },
    ...{ echoChance: draws.pick([0, 0.02, 0.1]), mistakes: draws.pick([0, 0, 0.3]) },
    ...{ hasStandbys: draws.chance(0.6), isAhead: draws.chance(0.7) },
    ...{ idleMs: draws.pick([100, 1_000, 60_000]), batchBytes: draws.pick([100, 1_000, 1 << 20]) },
    commitMs: draws.pick([[0.1, 0.4], [1, 4], [5, 30]] as const),
    ...{
      delayMs: draws.integer(0, 20),
      breaks: draws.pick([0, 0.01, 0.04]),
      garbles: draws.pick([0, 0, 0.03]),
    },
    ops: [
      ...OPS,
      ...(draws.chance(0.4) ? ["throw" as const] : []),
      ...(draws.chance(0.1) ? ["kick" as const] : []),
      ...(draws.chance(0.3) ? ["soon" as const, "soon" as const] : []),
      ...(draws.chance(0.3) ? ["call" as const, "call" as const, "long" as const] : []),
    ],
    ...{ deploys: some(0.3, 3), arbiters: 0 },
  };
  return owned(alone ? rarely(plan, draws.fork("rare")) : plan, f);
}

/**
 * Some runs have one of what else plans of hard.ts want more of (hard.ts): minutes that pass at once, a clock that leaps,
 * sites that move, a disk that is lost where owners make up for it; some, disks that rot or go back, or both clocks of a
 * site that are wrong by the same. Drawn apart: all else stays as it is.
 */
function rarely(plan: SitesPlan, draws: Draws): SitesPlan {
  if (draws.fork("early").chance(0.3)) plan = { ...plan, earlyChance: 0.5 };
  const { f } = plan, disks = draws.fork("disks");
  const rare: readonly Partial<FaultPlan>[] = [
    { nap: 2 },
    { leap: 1 },
    { move: 3 },
    ...(f > 0 ? [{ wipe: 1 }] : []),
  ];
  const spoiled: readonly Partial<FaultPlan>[] = [
    { rot: 3 },
    { warp: 1, leap: 0 },
    // No more disks than a site has owners, and what these have of it is remembered (tests/sim/topology.ts).
    ...(f > 0 ? [{ back: 1, wipe: 0, nap: 0 }] : []),
  ];
  if (draws.chance(0.25)) plan = withFaults(plan, draws.pick(rare));
  return disks.chance(0.15) ? withFaults(plan, disks.pick(spoiled)) : plan;
}

const withFaults = ({ store, ...plan }: SitesPlan, faults: Partial<FaultPlan>): SitesPlan => ({
  ...plan,
  store: { ...store, faults: { ...store.faults, ...faults } },
});

/** The tree and the faults: a short run, with the faults of the store that few runs have. */
function drawStore(seed: number, n: number, draws: Draws): Plan {
  const plan = drawPlan(seed, n);
  const requests = draws.integer(5, 60), safetyMs = draws.integer(1_000, 4_000);
  const some = (chance: number, most: number) => draws.chance(chance) ? draws.integer(1, most) : 0;
  const faults: FaultPlan = {
    ...NO_FAULTS,
    ...{ crash: some(0.6, 4), stop: some(0.2, 2), point: some(0.4, 5) },
    ...{ partition: some(0.3, 3), stall: some(0.2, 3), oneWay: some(0.2, 3), slowLinks: some(0.15, 2) },
    ...{ slowDisk: some(0.2, 3), diskFull: some(0.1, 1), evict: some(0.3, 10), jump: some(0.15, 3) },
  };
  const downMs = draws.pick([[2, 400], [2, 400], [300, 2_500]] as const);
  return { ...plan, requests, safetyMs, faults, downMs, watch: null, crashes: [], horizonMs: HORIZON_MS };
}

const BEAT_MS = 50;

/** The same plan with so many owners of everything that must survive a site. */
export function owned(plan: SitesPlan, f: number): SitesPlan {
  const { sites } = plan.store;
  // Who answers at times so much later than at others must not be taken for dead (tests/sim/topology.ts).
  const variationMs = Math.max(...sites.map(({ linkMs: [least, greatest] }) => 4 * (greatest - least)));
  const beatMs = Math.max(BEAT_MS, variationMs / 2.5);
  const owners: OwnersSettings = {
    ...NO_OWNERS,
    f,
    nearMs: 0,
    beatMs,
    suspectMs: 5 * beatMs,
    deadMs: 24 * beatMs,
  };
  return { ...plan, f, store: { ...plan.store, sites: sites.map((site) => ({ ...site, owners })) } };
}

/** The same plan on a tree of one level with such delays between a site and the middle, and such disks. */
export function star(
  plan: SitesPlan,
  { delaysMs, commitMs = plan.commitMs, f = plan.f }: {
    readonly delaysMs: readonly number[];
    readonly commitMs?: readonly [number, number];
    readonly f?: number;
  },
): SitesPlan {
  const [first = 1] = delaysMs;
  const sites = delaysMs.map((delayMs, i): SitePlan => {
    const leastMs = first + delayMs;
    return {
      ...{ id: i === 0 ? "root" : `s${i}`, parent: i === 0 ? null : "root", depth: i === 0 ? 0 : 1 },
      ...{
        tier: i === 0 ? "root" : "edge",
        skewMs: 0,
        capacityBytes: 1 << 30,
        linkMs: [leastMs, 1.5 * leastMs],
      },
      ...{ linkLoss: 0, linkBytesPerMs: Infinity, peerMs: [leastMs, 1.5 * leastMs], commitMs: [0.1, 0.4] },
      ...{ owners: NO_OWNERS, readMs: null, drift: 0 },
    };
  });
  return owned({ ...plan, commitMs, store: { ...plan.store, sites } }, f);
}

/** The same plan on a tree with two regions, an edge or two in each. */
export function regions(plan: SitesPlan, linkMs: readonly [number, number] = [1, 3]): SitesPlan {
  const site = (id: string, parent: string | null, depth: number): SitePlan => ({
    ...{ id, parent, depth, tier: parent === null ? "root" : depth === 1 ? "core" : "edge", skewMs: 0 },
    ...{ capacityBytes: 1 << 30, linkMs, linkLoss: 0, linkBytesPerMs: Infinity, commitMs: [0.5, 2] },
    ...{ owners: NO_OWNERS, readMs: null, drift: 0 },
  });
  const cores = ["c1", "c2"].map((id) => site(id, "root", 1));
  const edges = ["c1", "c1", "c2", "c2"].map((core, i) => site(`e${i + 1}`, core, 2));
  return owned(
    { ...plan, store: { ...plan.store, sites: [site("root", null, 0), ...cores, ...edges] } },
    plan.f,
  );
}

/** The same plan with such faults of sites, disks, links and clocks, and no others. */
export const faulty = (plan: SitesPlan, faults: Partial<FaultPlan> = {}): SitesPlan => ({
  ...plan,
  store: { ...plan.store, faults: { ...NO_FAULTS, ...faults } },
});
