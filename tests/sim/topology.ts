/**
 * What a run is made of, drawn from its seed (swarm testing: each seed turns some features off and others up,
 * so that rare combinations are reached that an even mix never reaches).
 */
import type { OwnersSettings } from "../../store/presence/choose.ts";
import { NO_OWNERS } from "../../store/owners/site_owners.ts";
import { COMPARE_ROWS_BYTES, HORIZON_MS, PENDING_BYTES_MAX, STEP_ROWS } from "../../store/model/limits.ts";
import type { SiteId } from "../../store/model/ports.ts";
import type { WantedCrash } from "./crash_points.ts";
import { Draws } from "./random.ts";

/** One site of the tree. */
export interface SitePlan {
  readonly id: SiteId;
  readonly parent: SiteId | null;
  readonly depth: number;
  readonly tier: "root" | "core" | "edge";
  readonly skewMs: number;
  readonly capacityBytes: number;
  /** Least and greatest one-way delay to the parent. */
  readonly linkMs: readonly [number, number];
  /** Chance that a message to or from the parent is lost by the network and sent again; not in the liveness phase. */
  readonly linkLoss: number;
  /** How much the link to the parent carries; as much as it takes in the liveness phase. */
  readonly linkBytesPerMs: number;
  /** The same to sites that are neither parent nor child; follows from those by default. */
  readonly peerMs?: readonly [number, number];
  readonly commitMs: readonly [number, number];
  readonly owners: OwnersSettings;
  /** Least and greatest time of a read; null: a few microtasks. */
  readonly readMs: readonly [number, number] | null;
  /** How much faster than time the clock runs: 0.01 gains 10 ms in a second. */
  readonly drift: number;
  /** When it is added to the tree; left out: it is there from the beginning. */
  readonly comesMs?: number;
}

/** How often clients do what, as weights. */
export interface OperationWeights {
  readonly get: number;
  readonly getMany: number;
  readonly list: number;
  readonly set: number;
  readonly delete: number;
  readonly atomic: number;
  readonly checked: number;
  readonly sum: number;
  readonly expiring: number;
}

/** Expected number of each fault in a run. */
export interface FaultPlan {
  readonly crash: number;
  readonly stop: number;
  readonly wipe: number;
  /** Lost disks of inner sites. */
  readonly wipeInner: number;
  readonly partition: number;
  readonly stall: number;
  readonly evict: number;
  readonly nap: number;
  readonly diskFull: number;
  /** All machines are suspended. */
  readonly suspend: number;
  /** One site's wall clock is too far off for its neighbours. */
  readonly leap: number;
  /** The same, with its steady clock. */
  readonly warp: number;
  /** One clock is set, by up to a second. */
  readonly jump: number;
  /** Nothing arrives in one direction of a link for a while. */
  readonly oneWay: number;
  readonly slowLinks: number;
  readonly slowDisk: number;
  /** Rows of a disk change by themselves while its site is down. */
  readonly rot: number;
  /** Edges whose disk is an older copy of itself when they start. */
  readonly back: number;
  /** Crashes at a point of the protocol (crash_points.ts). */
  readonly point: number;
  /** Sites, edges and whole branches, that get another parent. */
  readonly move: number;
  /** Inner sites that are lost for good, whose children get other parents; at most one in a run, as `wipeInner`. */
  readonly adopt: number;
  /** Edges that are lost for good and taken off the tree; some are let in again. */
  readonly remove: number;
  /** Edges that are drained and then taken off the tree, so that nothing is lost; some are let in again. */
  readonly retire: number;
}

/** For runs that say what goes wrong themselves. */
export const NO_FAULTS: FaultPlan = {
  crash: 0,
  stop: 0,
  wipe: 0,
  wipeInner: 0,
  partition: 0,
  stall: 0,
  evict: 0,
  nap: 0,
  suspend: 0,
  diskFull: 0,
  leap: 0,
  warp: 0,
  jump: 0,
  oneWay: 0,
  slowLinks: 0,
  slowDisk: 0,
  rot: 0,
  back: 0,
  point: 0,
  remove: 0,
  retire: 0,
  move: 0,
  adopt: 0,
};

export interface Plan {
  readonly sites: readonly SitePlan[];
  readonly groups: number;
  readonly keysPerGroup: number;
  readonly sumKeys: number;
  readonly valueBytes: number;
  readonly sessions: number;
  readonly requests: number;
  readonly safetyMs: number;
  /** Chance that a session's next request goes to another site, and that this is the one before the last. */
  readonly moveChance: number;
  readonly backChance: number;
  /** Chance that a request goes to an edge rather than to any site. */
  readonly edgeShare: number;
  readonly operationsMax: number;
  readonly thinkMs: number;
  readonly openChance: number;
  readonly parallelChance: number;
  readonly oldTokenChance: number;
  readonly concurrency: number;
  /** Whether clients keep one token per site and merge, rather than the last one only. */
  readonly mergeShare: number;
  /** Whether each key is written by one session only. */
  readonly ownKeys: boolean;
  readonly weights: OperationWeights;
  /** A site that watches a group of keys; null: none does. */
  readonly watch: { readonly site: SiteId; readonly group: number } | null;
  /** Writes of system rows at the root. */
  readonly systemWrites: number;
  readonly faults: FaultPlan;
  /** For how long a site that crashed is down. */
  readonly downMs?: readonly [number, number];
  /** Crashes that are wanted, beside those that `faults` draws: at the n-th time that a point is passed. */
  readonly crashes: readonly WantedCrash[];
  /** Messages a link holds before its sender is told to wait. */
  readonly linkWindow: number;
  /** How soon an end notices that its link is gone. */
  readonly noticeMs: readonly [number, number];
  /** Chance that a cut lets some of what is under way arrive, in each direction. */
  readonly lateChance: number;
  readonly keepChance: number;
  /** How long deletions are kept (store/model/limits.ts HORIZON_MS); in some runs so short that they go all the time. */
  readonly horizonMs: number;
  /** What may wait for the way to the root at a site: in some runs so little that writes are refused. */
  readonly pendingBytesMax: number;
  /** So little of a range is answered by rows, not digests; a run's ranges are small, so mostly nothing is. */
  readonly compareRowsBytes: number;
  /** So many rows a list looks at before others have the lock: in half of the runs few, so that they change meanwhile. */
  readonly stepRows: number;
  /** Of the requests and faults that the seed draws, only these (`tests/sim/shrink.ts`). */
  readonly only?: { readonly requests?: readonly number[]; readonly faults?: readonly string[] };
}

/** 2–9 sites on 2–4 levels: the target of the store's simulator. */
const SITES_MAX = 9;
const LEVELS_MAX = 4;
/** A clock that is badly wrong, but not yet refused (store/model/limits.ts CLOCK_AHEAD_MS_MAX). */
const FAR_AHEAD_MS = 30_000;
/** Thousands of times worse than real clocks, so that a few seconds are enough to see it. */
const DRIFT_MAX = 0.02;

/** A crowd has this many times more of what one site or user in nine does, and of what befalls them. */
const CROWD_FACTOR_MAX = 8;

/** Some rows: system rows that a site writes of itself count too. */
const PENDING_BYTES_SMALL = 2_500;

/** Draws the plan of a run; `sites`: of so many, instead of a drawn few. */
export function drawPlan(seed: number, sites?: number): Plan {
  const draws = new Draws(`plan ${seed}`);
  const mixed = drawMixed(draws, sites);
  const plan = sites === undefined ? mixed : crowded(mixed, sites / SITES_MAX);
  const drawn = draws.chance(0.2) ? aboutDeletions(plan, draws) : plan;
  const core = draws.fork("core");
  const lossy = core.chance(0.15) ? losingCore(drawn, core) : drawn;
  const rot = draws.fork("rot");
  const rotting = rot.chance(0.2)
    ? { ...lossy, faults: { ...lossy.faults, rot: rot.between(0.5, 4) } }
    : lossy;
  const owned = owning(removing(rotting, draws.fork("remove")), draws.fork("owners"));
  const restored = restoring(owned, draws.fork("back"));
  return moving(retiring(restored, draws.fork("retire")), draws.fork("moves"));
}

/** In some runs sites are drained for good. What they held for others goes with them: these lose no disk meanwhile. */
function retiring(plan: Plan, draws: Draws): Plan {
  const { faults, sites } = plan;
  const f = Math.max(0, ...sites.map(({ owners }) => owners.f));
  // Enough sites must be left to own.
  if (!draws.chance(0.15) || sites.length - 2 < f) return plan;
  const calm = f > 0 ? { wipe: 0, wipeInner: 0, remove: 0, back: 0 } : {};
  return { ...plan, faults: { ...faults, ...calm, retire: 1 } };
}

/** In some runs disks go back, no more of them than a site has owners: these know what it had told. */
function restoring(plan: Plan, draws: Draws): Plan {
  const { faults, sites } = plan;
  const f = Math.max(0, ...sites.map(({ owners }) => owners.f));
  if (f === 0 || !draws.chance(0.2)) return plan;
  return {
    ...plan,
    faults: { ...faults, back: draws.integer(1, f), wipe: 0, wipeInner: 0, remove: 0, nap: 0 },
  };
}

/** In some runs sites get other parents, in some of those because one is lost for good. */
function moving(plan: Plan, draws: Draws): Plan {
  const { faults } = plan;
  // Where more than one inner disk is lost, some moves wait for an operator (docs/decisions/18-another-parent.md).
  if (!draws.chance(0.25) || faults.wipeInner > 1) return plan;
  const move = draws.integer(1, 4);
  const f = Math.max(0, ...plan.sites.map(({ owners }) => owners.f));
  // One that is lost for good counts among the disks that owners make up for, and among the sites that may own. So does
  // one that is drained: what it holds for others goes with it.
  const gone = Math.ceil(faults.remove) + faults.retire;
  const mayLose = f === 0 || (Math.ceil(faults.wipe) + gone < f && plan.sites.length - gone - 2 >= f);
  const adopt = mayLose && draws.chance(0.4) && faults.wipeInner === 0 ? 1 : 0;
  return { ...plan, faults: { ...faults, move, adopt } };
}

/** In some runs sites look for owners: all with one f, timeouts in the measure of a run. */
function owning(plan: Plan, draws: Draws): Plan {
  if (!draws.chance(0.4)) return plan;
  const f = draws.integer(1, Math.min(3, plan.sites.length - 1));
  const pace = draws.pick([20, 60]);
  // Each of them hears from all others: in a crowd a few do, at a pace that leaves room for what else happens.
  const beatMs = Math.max(
    pace * Math.max(1, plan.sites.length / SITES_MAX),
    variationMs(plan) / BEATS_TO_SPARE,
  );
  const chance = Math.min(1, SITES_MAX / plan.sites.length);
  const times = { beatMs, suspectMs: 4 * beatMs, deadMs: 15 * beatMs };
  const settings = { ...NO_OWNERS, f, nearMs: draws.pick([0, 2, 10]), ...times };
  const areas = ["x", "y", null];
  const sites = plan.sites.map((site) =>
    chance === 1 || draws.chance(chance)
      ? { ...site, owners: { ...settings, area: draws.pick(areas) } }
      : site
  );
  const downMs: Pick<Plan, "downMs"> = draws.chance(0.4) ? { downMs: [300, 2500] } : {};
  return surviving({ ...plan, ...downMs, sites }, f, draws);
}

/**
 * By how much an answer may come later than the one before it, between any two sites (simulation.ts `qualityOf`): who
 * is silent for less than that can't be suspected, or sites would suspect each other for ever, now and then.
 */
function variationMs({ sites }: Plan): number {
  return Math.max(...sites.map(({ linkMs: [least, greatest] }) => 4 * (greatest - least)));
}

/** Of the four after which a site is suspected: one is the question's own, and the detector looks twice a beat. */
const BEATS_TO_SPARE = 2.5;

/** Mostly no more disks are lost than a site has owners: then nothing that it acknowledged may be. */
function surviving(plan: Plan, f: number, draws: Draws): Plan {
  const { faults } = plan;
  if (faults.wipeInner > 0) return { ...plan, faults: { ...faults, wipe: 0, remove: 0 } };
  // Enough sites must be left to own.
  const removed = Math.max(0, plan.sites.length - 1 - f);
  if (draws.chance(0.3)) return { ...plan, faults: { ...faults, remove: Math.min(faults.remove, removed) } };
  const wipe = draws.integer(0, f);
  const remove = draws.integer(0, Math.min(f - wipe, removed));
  // What is older than the horizon is given up (store/wards/recovery.ts Y2).
  return { ...plan, faults: { ...faults, wipe, remove, nap: 0 } };
}

/** Deletions, long absences and lost disks together: what collects tombstones, and what could let a row live again. */
const aboutDeletions = (plan: Plan, draws: Draws): Plan => ({
  ...plan,
  keysPerGroup: Math.min(plan.keysPerGroup, 2),
  groups: Math.min(plan.groups, 2),
  moveChance: 0.6,
  weights: { ...plan.weights, delete: 3 },
  faults: {
    ...plan.faults,
    nap: draws.between(1, 5),
    wipe: draws.between(0, 3),
    partition: draws.between(0, 4),
    evict: draws.between(0, 10),
  },
  // Also as it is, since naps take all clocks past it.
  horizonMs: draws.fork("horizon").pick([HORIZON_MS, 100, 400]),
});

/** Inner sites lose their disks, several at a time in some runs, with or without edges below them. */
const losingCore = (plan: Plan, draws: Draws): Plan => ({
  ...plan,
  faults: { ...plan.faults, wipe: draws.pick([0, plan.faults.wipe, 3]), wipeInner: draws.pick([1, 2, 4]) },
});

/** In some runs sites are removed, in some of those while their parent's disk is lost. */
function removing(plan: Plan, draws: Draws): Plan {
  if (!draws.chance(0.12)) return plan;
  const drawn = draws.chance(0.3) ? losingCore(plan, draws) : plan;
  return { ...drawn, faults: { ...drawn.faults, remove: draws.between(1, 3) } };
}

/** More users, requests and faults where there are more sites. */
function crowded(plan: Plan, times: number): Plan {
  const factor = Math.min(CROWD_FACTOR_MAX, Math.max(1, times));
  const faults = Object.fromEntries(
    Object.entries(plan.faults).map((
      [name, expected],
    ) => [name, name === "nap" ? expected : expected * factor]),
  );
  return {
    ...plan,
    sessions: Math.round(plan.sessions * factor),
    requests: Math.round(plan.requests * factor),
    faults: { ...plan.faults, ...faults },
  };
}

/**
 * One of these at most. Where a wall clock leaps as both clocks of a neighbour do, nobody could tell that they are wrong;
 * and one that is wrong after all were suspended is as good as any.
 */
function drawClockFaults(draws: Draws): Pick<FaultPlan, "leap" | "warp" | "suspend"> {
  const which = draws.unit(), count = draws.integer(1, 3);
  return {
    leap: which < 0.25 ? count : 0,
    warp: which >= 0.25 && which < 0.31 ? count : 0,
    suspend: which >= 0.31 && which < 0.41 ? count : 0,
  };
}

function drawMixed(draws: Draws, count?: number): Plan {
  const some = (probability: number, least: number, greatest: number) =>
    draws.chance(probability) ? draws.between(least, greatest) : 0;
  const faulty = draws.chance(0.85);
  const fault = (probability: number, greatest: number) => faulty ? some(probability, 0.5, greatest) : 0;
  const rare = draws.fork("rare");
  /** What few runs have, some of them in plenty. */
  const rarely = (probability: number, greatest: number) =>
    rare.chance(probability) && faulty ? rare.between(0.5, greatest) : 0;
  const keysPerGroup = draws.integer(1, 4);
  const sites = drawSites(draws, count);
  const groups = draws.integer(1, 3);
  return {
    sites,
    groups,
    keysPerGroup,
    sumKeys: draws.chance(0.4) ? draws.integer(1, 2) : 0,
    // The last makes messages that are split (store/model/limits.ts MESSAGE_BYTES_TARGET).
    valueBytes: draws.chance(0.8) ? 0 : draws.chance(0.93) ? draws.integer(100, 3000) : 400_000,
    sessions: draws.integer(1, 5),
    requests: draws.integer(20, 110),
    safetyMs: draws.integer(600, 3000),
    moveChance: draws.pick([0.1, 0.4, 0.7]),
    backChance: draws.pick([0, 0.3, 0.7]),
    edgeShare: draws.pick([0.5, 0.8, 1]),
    operationsMax: draws.integer(1, 4),
    thinkMs: draws.pick([0, 2, 20]),
    openChance: draws.pick([0, 0, 0.2]),
    parallelChance: draws.pick([0, 0, 0.5]),
    oldTokenChance: draws.pick([0, 0, 0.1]),
    concurrency: draws.integer(1, 3),
    mergeShare: draws.pick([0, 0.5, 1]),
    ownKeys: false,
    weights: {
      get: 4,
      getMany: some(0.6, 1, 3),
      list: some(0.6, 1, 3),
      set: draws.between(2, 6),
      delete: some(0.5, 0.5, 2),
      atomic: some(0.5, 0.5, 2),
      checked: some(0.3, 0.5, 1.5),
      sum: 1.5,
      expiring: some(0.15, 0.5, 2),
    },
    faults: {
      crash: fault(0.5, 4),
      stop: fault(0.3, 2),
      wipe: fault(0.25, 2),
      wipeInner: 0,
      partition: fault(0.4, 3),
      stall: fault(0.4, 4),
      evict: some(0.6, 1, 20),
      nap: fault(0.25, 3),
      diskFull: fault(0.1, 1.5),
      point: fault(0.5, 7),
      ...drawClockFaults(draws.fork("leaps")),
      jump: rarely(0.2, 4),
      oneWay: rarely(0.25, 4),
      slowLinks: rarely(0.15, 2),
      slowDisk: rarely(0.2, 3),
      rot: 0,
      back: 0,
      remove: 0,
      retire: 0,
      move: 0,
      adopt: 0,
    },
    watch: draws.chance(0.2) ? { site: draws.pick(sites).id, group: draws.integer(0, groups - 1) } : null,
    systemWrites: draws.chance(0.3) ? draws.integer(1, 10) : 0,
    linkWindow: draws.pick([1, 4, 64]),
    noticeMs: rare.pick([[0, 60], [0, 60], [0, 2], [20, 1_500]]),
    lateChance: rare.pick([0, 0.5, 1]),
    keepChance: draws.pick([0, 0.5, 1]),
    crashes: [],
    horizonMs: HORIZON_MS,
    pendingBytesMax: draws.fork("pending").chance(0.15) ? PENDING_BYTES_SMALL : PENDING_BYTES_MAX,
    stepRows: draws.fork("steps").chance(0.5) ? draws.fork("step").integer(1, 4) : STEP_ROWS,
    compareRowsBytes: draws.fork("compare").chance(0.7) ? 0 : COMPARE_ROWS_BYTES,
  };
}

function drawSites(draws: Draws, wanted?: number): SitePlan[] {
  const drawn = draws.integer(2, SITES_MAX);
  const count = wanted ?? drawn;
  const levels = draws.integer(2, LEVELS_MAX);
  const parents: (number | null)[] = [null];
  const depths = [0];
  /** Sites that may have children. */
  const open = [0];
  for (let i = 1; i < count; i++) {
    // The newest open site as a parent makes chains, which deep trees need.
    const parent = draws.chance(0.4) ? open.at(-1) ?? 0 : draws.pick(open);
    parents.push(parent);
    const depth = (depths[parent] ?? 0) + 1;
    depths.push(depth);
    if (depth + 1 < levels) open.push(i);
  }
  const inner = new Set(parents);
  const skewed = draws.chance(0.6);
  // Streams of their own, so that what was added later moves no draw of the rest.
  const farAhead = draws.fork("far ahead");
  const isFar = farAhead.chance(0.05);
  const slow = draws.pick([1, 1, 5]);
  const name = (index: number) => index === 0 ? "root" : `s${index}`;
  const small = draws.chance(0.3);
  const poor = draws.fork("poor");
  const isLossy = poor.chance(0.15);
  const isNarrow = poor.chance(0.15);
  const isDrifting = poor.chance(0.25);
  const readMs = poor.chance(0.2) ? poor.pick([[0, 0.3], [0, 3], [2, 4]] as const) : null;
  return parents.map((parent, index) => {
    const base = draws.pick([0.2, 1, 5, 20]) * (draws.chance(0.2) ? slow : 1);
    const commit = draws.pick([0.1, 0.5, 4]);
    return {
      id: name(index),
      parent: parent === null ? null : name(parent),
      depth: depths[index] ?? 0,
      tier: index === 0 ? "root" : inner.has(index) ? "core" : "edge",
      skewMs: (skewed ? draws.integer(-500, 500) : 0) + (isFar && farAhead.chance(0.3) ? FAR_AHEAD_MS : 0),
      capacityBytes: small ? draws.integer(200, 4000) : 1 << 30,
      linkMs: [base, base * draws.pick([1.2, 3])],
      linkLoss: isLossy ? poor.pick([0, 0.02, 0.2]) : 0,
      linkBytesPerMs: isNarrow ? poor.pick([Infinity, 1_000, 50]) : Infinity,
      readMs,
      drift: isDrifting ? poor.between(-DRIFT_MAX, DRIFT_MAX) : 0,
      commitMs: [commit, commit * draws.pick([1, 4])],
      owners: NO_OWNERS,
    };
  });
}
