/**
 * Small runs, each about one thing that sites do with each other: short enough to be run again for every crossing
 * at which somebody could crash (crash_survey.ts).
 */
import { HORIZON_MS, PENDING_BYTES_MAX, STEP_ROWS } from "../../store/model/limits.ts";
import { NO_OWNERS } from "../../store/owners/site_owners.ts";
import { type FaultPlan, NO_FAULTS, type Plan, type SitePlan } from "./topology.ts";

/** One of them. */
export interface Scenario {
  readonly name: string;
  readonly seed: number;
  readonly plan: Plan;
}

const site = (id: string, parent: string | null, depth: number, linkMs: number): SitePlan => ({
  id,
  parent,
  depth,
  tier: parent === null ? "root" : id.startsWith("e") ? "edge" : "core",
  skewMs: 0,
  capacityBytes: 1 << 30,
  linkMs: [linkMs, 1.5 * linkMs],
  linkLoss: 0,
  linkBytesPerMs: Infinity,
  commitMs: [0.2, 0.6],
  readMs: [0, 0.2],
  drift: 0,
  owners: NO_OWNERS,
});

const CHAIN = [site("root", null, 0, 0), site("c", "root", 1, 4), site("e1", "c", 2, 1)];
const PAIR = [site("root", null, 0, 0), site("e1", "root", 1, 3), site("e2", "root", 1, 3)];
/** What is written at an edge is pending at the core for a while. */
const FORK = [
  site("root", null, 0, 0),
  site("c", "root", 1, 25),
  site("e1", "c", 2, 1),
  site("e2", "c", 2, 1),
];
/** Two edges whose common ancestor is the root, one of them below a core. */
const APART = [
  site("root", null, 0, 0),
  site("c", "root", 1, 15),
  site("e1", "c", 2, 1),
  site("e2", "root", 1, 2),
];

/** Two sites that keep what is pending at each other; a dead one is known as such within the run. */
const OWNED = APART.map((each): SitePlan => ({
  ...each,
  owners: { ...NO_OWNERS, f: 1, nearMs: 0, beatMs: 20, suspectMs: 60, deadMs: 150 },
}));

const PLAN: Omit<Plan, "sites"> = {
  groups: 2,
  keysPerGroup: 2,
  sumKeys: 1,
  valueBytes: 0,
  sessions: 2,
  requests: 14,
  safetyMs: 220,
  moveChance: 0.2,
  backChance: 0.3,
  edgeShare: 1,
  operationsMax: 2,
  thinkMs: 2,
  openChance: 0.1,
  parallelChance: 0.2,
  oldTokenChance: 0,
  concurrency: 2,
  mergeShare: 0.5,
  ownKeys: false,
  weights: { get: 3, getMany: 1, list: 1, set: 3, delete: 1, atomic: 1, checked: 0.5, sum: 1, expiring: 0 },
  watch: null,
  systemWrites: 1,
  faults: NO_FAULTS,
  linkWindow: 4,
  noticeMs: [0, 20],
  lateChance: 0.5,
  keepChance: 0.5,
  horizonMs: HORIZON_MS,
  pendingBytesMax: PENDING_BYTES_MAX,
  compareRowsBytes: 0,
  stepRows: STEP_ROWS,
  crashes: [],
};

const scenario = (
  name: string,
  sites: readonly SitePlan[],
  more: Partial<Plan> = {},
  faults: Partial<FaultPlan> = {},
): Scenario => ({ name, seed: 1, plan: { ...PLAN, sites, ...more, faults: { ...NO_FAULTS, ...faults } } });

/** All of them. */
export const SCENARIOS: readonly Scenario[] = [
  scenario("fetch", CHAIN, { weights: { ...PLAN.weights, get: 8, list: 4 }, groups: 3 }),
  scenario("feed", PAIR, { moveChance: 0, sessions: 4, watch: { site: "e2", group: 0 } }),
  scenario("push", CHAIN, { weights: { ...PLAN.weights, set: 8, atomic: 4 }, edgeShare: 0.8 }),
  scenario("large messages", CHAIN, {
    valueBytes: 400_000,
    requests: 4,
    keysPerGroup: 4,
    groups: 1,
    weights: { ...PLAN.weights, atomic: 20, list: 3 },
  }),
  scenario("handoff below one core", FORK, { moveChance: 0.8, sessions: 3, requests: 20 }),
  scenario("handoff across the root", APART, { moveChance: 0.8, sessions: 3, requests: 20 }),
  scenario("eviction", FORK, {
    sites: FORK.map((each) => ({ ...each, capacityBytes: 300 })),
    safetyMs: 400,
  }, { evict: 8 }),
  scenario("resync of an edge", APART, { moveChance: 0.5 }, { wipe: 2 }),
  scenario("resync of a core", FORK, { moveChance: 0.5, safetyMs: 500, requests: 24 }, { wipeInner: 1 }),
  scenario("removal", APART, { moveChance: 0.4 }, { remove: 2 }),
  scenario("owners", OWNED, { moveChance: 0.5 }),
  scenario("adoption", OWNED, { moveChance: 0.6, safetyMs: 700, requests: 24, downMs: [200, 500] }, {
    wipe: 1,
    crash: 1,
  }),
  scenario("planned stop", FORK, { moveChance: 0.5, safetyMs: 500, requests: 24 }, { stop: 2 }),
  scenario("cut links", FORK, { moveChance: 0.4, safetyMs: 700, requests: 24 }, { partition: 2, oneWay: 1 }),
  scenario("collection", FORK, {
    weights: { ...PLAN.weights, delete: 5 },
    keysPerGroup: 1,
    safetyMs: 500,
  }, { nap: 2, evict: 3 }),
];
