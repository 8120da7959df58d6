/** Plans that want more of one thing than a seed draws by itself, and those of the broken variants: nothing is broken. */
import { packKey } from "../../store/model/key.ts";
import type { OpenReplica, ReplicaConfig } from "../../store/api/api.ts";
import type { DiskCommit, SiteId } from "../../store/model/ports.ts";
import type { Row } from "../../store/model/row.ts";
import { openReplica } from "../../store/replica.ts";
import { every, otherwise, VARIANTS } from "./broken.ts";
import { APP } from "./deployed.ts";
import type { FaultPlan } from "../sim/topology.ts";
import type { Op } from "./program.ts";
import { faulty, owned, regions, type SitesPlan, star } from "./plan.ts";
import type { SitesOptions } from "./simulation.ts";

type Change = (plan: SitesPlan) => SitesPlan;

const DELAYS_MS = [15, 1, 5, 0.2];
const more = (plan: SitesPlan, faults: Partial<FaultPlan>): SitesPlan =>
  faulty(plan, { ...plan.store.faults, ...faults });

/** Everything goes wrong, often. */
const storm: Change = (plan) => ({
  ...more(star(plan, { delaysMs: DELAYS_MS, commitMs: [5, 30], f: Math.max(1, plan.f) }), {
    ...{ crash: 8, stop: 1, partition: 4, jump: 3 },
  }),
  ...{ classes: ["whole", "retrying", "parking"], devices: 3, plain: 1 },
  ...{ kills: 6, stands: 2, moves: 8, moveAtOnce: 0.3 },
  ...{ roams: 8, cuts: 8, originBreaks: 0.05, originLeaves: 2, echoChance: 0.1 },
  ...{ mistakes: 0.3, hasStandbys: true, idleMs: 100, breaks: 0.04, garbles: 0.03 },
});

/** Clocks are set and processes stand still, while timers are all that there is to do. */
const clocks: Change = (plan) => ({
  ...more(plan, { jump: 8, leap: 1, crash: 3 }),
  ...{ stands: 5, moves: 6, kills: 3, idleMs: 100 },
  ops: ["tick", "jolt", "tick", "jolt", "alarm", "alarm", "get", "all", "slow", "balk"],
});

/** The root is no home where others live, dies as any other, and who can't ask it asks the others. */
const seated: Change = (plan) => ({
  ...more(star(plan, { delaysMs: [...DELAYS_MS, 2], f: 1 }), { crash: 6, partition: 2 }),
  ...{ moves: 6, kills: 2, idleMs: 100, hasSeats: true, devices: 2, callers: 2 },
});

/** Disks are lost, as many as there may be, and processes besides. */
const wipes: Change = (plan) => ({
  ...more(star(plan, { delaysMs: [1, 5, 15, 2], f: 2 }), { wipe: 2, crash: 6 }),
  ...{ moves: 4, hasStandbys: true },
});

/** Sessions are followed, and those who run them die. */
const followed: Change = (plan) => ({
  ...more(plan, { crash: 6 }),
  ...{ hasStandbys: true, kills: 6, moves: 4, idleMs: 60_000, commitMs: [0.1, 0.4] },
});

/** Handlers that throw, and operators. */
const throwing: Change = (plan) => ({
  ...more(plan, { crash: 4 }),
  classes: ["parking", "retrying", "parking"],
  ...{ kills: 4, moves: 4 },
  ops: [...plan.ops, "throw", "balk", "balk", "jolt", "jolt", "kick"],
});

/** They end, and begin anew under the same names: at whichever site, while the homes that they had die. */
const ending: Change = (plan) => {
  const changed = more(star(plan, { delaysMs: DELAYS_MS, f: Math.max(1, plan.f) }), {
    crash: 6,
    partition: 2,
  });
  return {
    ...changed,
    ...{ devices: 3, plain: 1, callers: 3, requests: 8, messages: 5, comeMs: changed.store.safetyMs },
    ...{ moves: 4, moveAtOnce: 0.1, kills: 2, roams: 3, cuts: 3, idleMs: 1_000 },
    ops: [...changed.ops, ...["end", "end", "end", "put", "set", "call"] as const],
  };
};

/** Homes are read while they write: their disks take their time, and show some of what a crash may take back. */
const early: Change = (plan) => ({
  ...more(star(plan, { delaysMs: DELAYS_MS, commitMs: [10, 40], f: Math.max(1, plan.f) }), { crash: 8 }),
  ...{ moves: 8, moveAtOnce: 0.3, kills: 4, idleMs: 20, hasStandbys: true },
  ...{ earlyChance: 0.9, arbiterMs: [5, 40] as const },
});

/** Devices hold the logs of some sessions, and disks alone those of others: they ask each other, and their homes die. */
const held: Change = (plan) => ({
  ...more(star(plan, { delaysMs: DELAYS_MS, commitMs: [40, 120], f: plan.f }), { crash: 12, partition: 2 }),
  ...{ classes: ["held", "whole", "held"], devices: 2, plain: 1, callers: 1, deaths: 0, closes: 0 },
  ...{ moves: 4, kills: 3, roams: 2, cuts: 2, idleMs: 60_000, messages: 20 },
  ops: ["echo", "all", "quiet", "echo", "all", "quiet", "tick", "set", "get", "sum", "call"],
});

/** They leave memory all the time, and come back. */
const resting: Change = (plan) => {
  const changed = more(plan, { crash: 4, stop: 1 });
  return {
    ...changed,
    store: { ...changed.store, safetyMs: 12_000 },
    ...{ idleMs: 20, messages: 6, moves: 8, moveAtOnce: 0.3 },
  };
};

/** Programs behind sessions, whose connections break. */
const origins: Change = (plan) => ({
  ...more(plan, { crash: 4 }),
  ...{ originBreaks: 0.1, originLeaves: 5, moves: 4, kills: 3 },
  ops: ["origin", "origin", "post", "swap", "put", "all", "slow"],
});

/** Clients whose networks are bad, and who come and go. */
const roaming: Change = (plan) => ({
  ...plan,
  ...{ devices: 3, roams: 20, cuts: 20, breaks: 0.06, garbles: 0.04, deaths: 0.3, closes: 0.3, moves: 5 },
  ops: [...plan.ops, "kick"],
});

/** One version of the app after the other, while sessions move and their sites die. */
const deployed: Change = (plan) => ({
  ...more(plan, { crash: 4 }),
  ...{ deploys: 6, moves: 6, kills: 3, hasStandbys: true, idleMs: 100, moveAtOnce: 0.3 },
});

/** Sessions that ask each other, go on for a while with what they were told, and are lost; who was asked rests. */
const calling: Change = (plan) => {
  const changed = more(plan, { crash: 4 });
  return {
    ...changed,
    store: { ...changed.store, safetyMs: 6_000 },
    ...{ classes: ["whole", "whole", "whole"], kills: 8, moves: 3, idleMs: 20 },
    ...{ messages: 8, requests: 4, callers: 2, devices: 1, plain: 0 },
    ops: ["call", "call", "long", "long", "all", "slow"],
  };
};

/** Clients who never stay, and what they ask for. */
const restless = (plan: SitesPlan): SitesPlan => ({
  ...plan,
  ...{ callChance: 0.7, devices: 1, plain: 0, callers: 1, messages: 8 },
  ops: ["get", "get", "set", "set", "put", "echo", "quiet"],
  store: { ...plan.store, requests: 80, moveChance: 0.7, backChance: 0.3, edgeShare: 1 },
});

/**
 * Sessions send to queues that are full at times, and whose sites store what they say they could not; their homes die
 * before and after that, and they end.
 */
const mailing: Change = (plan) => ({
  ...more(star(plan, { delaysMs: DELAYS_MS, commitMs: [5, 30], f: Math.max(1, plan.f) }), {
    crash: 6,
    partition: 2,
  }),
  ...{ classes: ["whole", "held", "retrying"], devices: 2, plain: 1, callers: 2, deaths: 0, closes: 0 },
  ...{ moves: 4, moveAtOnce: 0.1, kills: 4, roams: 2, cuts: 2, hasStandbys: true, messages: 20 },
  ops: ["mail", "mail", "mail", "put", "slow", "quiet", "all", "throw", "balk"],
});

/** Rows that are read far from where they were written, by clients and sessions that both move all the time. */
const tokens: Change = (plan) => {
  const { store, ...changed } = faulty(regions(restless({ ...plan, f: 0 }), [5, 40]));
  return {
    ...changed,
    ...{
      classes: ["whole", "whole"],
      devices: 0,
      callers: 0,
      kills: 0,
      stands: 0,
      deploys: 0,
      moves: 8,
      moveAtOnce: 0.3,
    },
    ops: ["get", "get", "set", "set", "slow"],
    store: {
      ...store,
      requests: 120,
      sessions: 4,
      operationsMax: 2,
      concurrency: 2,
      groups: 2,
      keysPerGroup: 3,
    },
  };
};

/** The same, where sessions change hands because their homes die. */
const taken: Change = (plan) => {
  const changed = faulty(regions({ ...tokens(plan), f: 1 }, [2, 8]), { crash: 8 });
  return {
    ...changed,
    ...{ moves: 0, moveAtOnce: 0, callers: 1, requests: 8, idleMs: 60_000, hasStandbys: true },
    ops: ["get", "get", "get", "set"],
    store: { ...changed.store, downMs: [300, 2_000], safetyMs: 4_000 },
  };
};

/** Messages wait in line while others read. */
const queued: Change = (plan) => {
  const { store, ...changed } = faulty(star(restless(plan), { delaysMs: [1, 5, 2], f: 0 }));
  return {
    ...changed,
    ...{
      classes: ["whole", "whole"],
      devices: 3,
      plain: 0,
      callers: 1,
      messages: 20,
      requests: 8,
      kills: 0,
      moves: 2,
    },
    ops: ["slow", "get", "get", "set", "set"],
    store: { ...store, requests: 60, groups: 1, keysPerGroup: 3, sumKeys: 0 },
  };
};

/** The same with rows that are deleted, and forgotten soon. */
const deletions: Change = (plan) => {
  const { store, ...changed } = tokens(plan);
  return {
    ...changed,
    // What a session writes is dated from when it was asked to, which may be past the horizon by now.
    ops: ["get", "get", "get"],
    store: {
      ...{ ...store, horizonMs: 100, keysPerGroup: 2, sumKeys: 0, moveChance: 0.7 },
      weights: { ...store.weights, delete: 6 },
      faults: { ...store.faults, evict: 10, stall: 10, oneWay: 4 },
    },
  };
};

/** Power is cut where little is on disk yet: as tokens leave. */
const unwritten: Change = (plan) => {
  const { store, ...changed } = faulty(star(restless(plan), { delaysMs: [0.2, 0.5, 1, 0.5], f: 0 }), {
    crash: 4,
  });
  const sites = store.sites.map((site) => ({ ...site, commitMs: [8, 20] as const }));
  const crashes = [3, 6, 10, 15, 21, 28].map((nth) => ({ point: "token leaves", nth }));
  const points = ["request leaves", "request arrives"].flatMap((point) =>
    [20, 50, 90, 140].map((nth) => ({ point, nth }))
  );
  return {
    ...changed,
    ...{
      classes: ["whole", "whole"],
      devices: 0,
      callers: 1,
      commitMs: [0.1, 0.4],
      moves: 4,
      hasStandbys: false,
    },
    ops: ["get", "set", "set", "put", "quiet"],
    store: { ...store, sites, keepChance: 0, crashes: [...crashes, ...points], downMs: [20, 200] },
  };
};

/** The same while rows are read that are on no disk for long: of sessions that their homes tell others of at once. */
const unread: Change = (plan) => {
  const { store, ...changed } = unwritten(plan);
  const sites = store.sites.map((site) => ({ ...site, commitMs: [30, 60] as const }));
  return {
    ...changed,
    ops: ["get", "get", "get", "set"],
    store: {
      ...{ ...store, sites, requests: 120, sessions: 4, concurrency: 3, operationsMax: 2 },
      ...{ groups: 1, keysPerGroup: 3, sumKeys: 0 },
      crashes: Array.from({ length: 16 }, (_, i) => ({ point: "request leaves", nth: 13 * (i + 1) })),
    },
  };
};

/**
 * Homes die together with those that keep their logs, come back alone, and die again while others are sent the log, over
 * lines that take their time for it.
 */
const owners: Change = (plan) => {
  const changed = faulty(star(plan, { delaysMs: [1, 2, 2, 3], commitMs: [1, 10], f: 1 }), { crash: 14 });
  const padding = `pad:${"x".repeat(1_500)}` as Op;
  const sites = changed.store.sites.map((site) => ({ ...site, linkBytesPerMs: 40 }));
  return {
    ...changed,
    ...{ classes: ["whole"], devices: 2, plain: 0, callers: 1, messages: 30, requests: 6, idleMs: 60_000 },
    ...{ moves: 0, moveAtOnce: 0, kills: 0, stands: 0, hasStandbys: false, deploys: 0, batchBytes: 100 },
    ops: ["echo", "all", "quiet", padding, padding],
    store: { ...changed.store, sites, requests: 10, crashes: [], downMs: [30, 2_500], safetyMs: 4_000 },
  };
};

/** New owners are on record at once, and have what they are sent much later: their homes die in between. */
const recorded: Change = (plan) => {
  const changed = faulty(star(plan, { delaysMs: [1, 1, 2], commitMs: [60, 120], f: 1 }), { crash: 7 });
  return {
    ...changed,
    ...{ classes: ["whole"], devices: 2, plain: 0, callers: 1, messages: 80, requests: 6, idleMs: 60_000 },
    ...{ moves: 0, moveAtOnce: 0, kills: 0, stands: 0, hasStandbys: false, deploys: 0, batchBytes: 100 },
    // More entries, in packets of their own, than are sent at once to an owner.
    ...{ arbiterMs: [0.1, 0.2] as const, ops: [`pad:${"x".repeat(200)}` as Op, "all"] },
    store: { ...changed.store, requests: 4, crashes: [], downMs: [2_500, 4_000], safetyMs: 10_000 },
  };
};

/** A site that has become the home of the only session, where much was said before, dies when its owners are on record. */
const afterRecords = (): NonNullable<SitesOptions["passes"]> => {
  let home: SiteId | null = null, said = 0, isTaken = false, isArmed = false;
  return (site, point) => {
    if (point === "isolate says" && site !== home) {
      [home, isTaken, said] = [site, said > MUCH, said > MUCH ? 0 : said];
    } else if (point === "isolate says") said++;
    else if (point === "arbiter commit ends" && isTaken) [isTaken, isArmed] = [false, true];
    if (!isArmed || site !== home || site === "root") return "goes on";
    isArmed = false;
    return "crashes";
  };
};
/** More than one owner is sent at once. */
const MUCH = 20;

/** Homes die with writes that their log alone has, each of a row that nobody else writes. */
const unapplied: Change = (plan) => {
  const changed = faulty(star(plan, { delaysMs: [1, 5, 2], commitMs: [1, 4], f: 1 }));
  return {
    ...changed,
    ...{ classes: ["whole"], devices: 2, plain: 0, callers: 1, messages: 20, requests: 4, idleMs: 60_000 },
    ...{ moves: 0, moveAtOnce: 0, kills: 0, stands: 0, hasStandbys: false, deploys: 0 },
    ops: ["set", "set", "quiet"],
    store: {
      ...changed.store,
      requests: 2,
      groups: 3,
      keysPerGroup: 60,
      sumKeys: 0,
      safetyMs: 2_500,
      crashes: [],
    },
  };
};

/** Homes are cut off while they fetch what a sum or a write with checks looks at, and make it when they are back. */
const severed: Change = (plan) => {
  const changed = faulty(star(plan, { delaysMs: [1, 5, 15, 2], commitMs: [1, 4], f: 1 }), {
    ...{ stall: 10, partition: 6, evict: 20, crash: 2 },
  });
  return {
    ...changed,
    ...{ classes: ["whole", "whole"], devices: 2, plain: 0, callers: 1, messages: 20, requests: 8 },
    ...{ moves: 2, moveAtOnce: 0, kills: 0, stands: 0, deploys: 0, hasStandbys: false, idleMs: 100 },
    ops: ["sum", "sum", "swap", "swap", "get"],
    store: { ...changed.store, groups: 2, keysPerGroup: 2, sumKeys: 4, safetyMs: 4_000, crashes: [] },
  };
};

/**
 * Homes die before they make sums and writes with checks that their logs have, and the next ones when these are on their
 * disks and nobody has heard of them.
 */
const chained: Change = (plan) => {
  const changed = faulty(star(plan, { delaysMs: [1, 5, 25, 10], commitMs: [1, 4], f: 1 }), {
    evict: 20,
    stall: 12,
    crash: 4,
  });
  return {
    ...changed,
    ...{ classes: ["whole"], devices: 1, plain: 0, callers: 2, messages: 12, requests: 12, idleMs: 60_000 },
    ...{ moves: 0, moveAtOnce: 0, kills: 0, stands: 0, deploys: 0, hasStandbys: false, hasSeats: true },
    ops: ["sum"],
    store: {
      ...{ ...changed.store, requests: 20, groups: 1, keysPerGroup: 1, sumKeys: 4, crashes: [] },
      ...{ safetyMs: 8_000, downMs: [200, 3_000] },
    },
  };
};

/**
 * Every other time that an edge has written what it can't write again; then, soon, who goes on with the session; and each
 * time that isolates have said so much.
 */
const asItSums = (): Pick<SitesOptions, "passes" | "open"> => {
  let sums = 0, isAt: SiteId | null = null, heir: { site: SiteId | null; left: number } | null = null;
  const says = every("isolate says", 5)();
  return {
    open: hearing(({ parent, site }) => {
      if (parent !== null && ++sums % 2 === 0) isAt = site;
    }),
    passes: (site, point) => {
      if (isAt !== null && site === isAt && point === "commit ends") {
        isAt = null;
        heir = { site: null, left: HEIR_LIVES };
        return "crashes";
      }
      if (heir?.site === null && point === "isolate says") heir.site = site;
      if (heir !== null && site === heir.site && point === "timer due" && --heir.left === 0) {
        heir = null;
        return "crashes";
      }
      return says(site, point);
    },
  };
};
/** So many timers are due there before it dies. */
const HEIR_LIVES = 40;

/**
 * Homes lose their disks with sums and writes with checks, soon after these are on them: some are on the way to others then,
 * or at owners, and some are nowhere else.
 */
const bereft: Change = (plan) => {
  const changed = faulty(star(plan, { delaysMs: [1, 5, 25, 10], commitMs: [1, 4], f: 1 }), {
    ...{ evict: 20, partition: 2, crash: 1 },
  });
  return {
    ...changed,
    ...{
      classes: ["whole", "whole"],
      devices: 2,
      plain: 0,
      callers: 1,
      messages: 12,
      requests: 8,
      idleMs: 60_000,
    },
    ...{ moves: 1, moveAtOnce: 0, kills: 0, stands: 0, deploys: 0, hasStandbys: false },
    ops: ["sum", "swap", "swap", "put"],
    store: {
      ...{ ...changed.store, requests: 20, groups: 1, keysPerGroup: 2, sumKeys: 4, crashes: [] },
      ...{ safetyMs: 4_000, downMs: [20, 1_500] },
    },
  };
};

/** The first time after a while that an edge has written what it can't write again, it loses its disk some points later. */
const withSums = (): Pick<SitesOptions, "passes" | "open"> => {
  let sums = 0, points = 0, loser: { readonly site: SiteId; left: number } | null = null;
  return {
    open: hearing(({ parent, site }) => {
      if (parent !== null && ++sums === SUMS_KEPT) loser = { site, left: points % POINTS_LEFT };
    }),
    passes: (site, point) => {
      points++;
      return point !== "turn begins" && site === loser?.site && loser.left-- === 0
        ? "loses its disk"
        : "goes on";
    },
  };
};
/** So many are written before, and so many points are passed at most between the write and the loss. */
const SUMS_KEPT = 4, POINTS_LEFT = 60;

/** Hears of each commit with what is written once. */
function hearing(hears: (config: ReplicaConfig) => void): OpenReplica {
  const isMark = ({ known, key }: Row) => known > 0 && key.startsWith(MARKS);
  return (config, ports) => {
    const { storage } = ports;
    const commit = (step: DiskCommit) => {
      if (step.rows.some(isMark)) hears(config);
      return storage.commit(step);
    };
    return openReplica(config, { ...ports, storage: otherwise(storage, { commit }) });
  };
}

/** Of what is written once (functions/sessions/serve/own_store.ts, O2). */
const MARKS = packKey(["a", APP, "e"]);

/** Deletions are forgotten after a moment, and all clocks jump past it. */
const forgetting: Change = (plan) => {
  const changed = more(restless(plan), { crash: 5, nap: 2, partition: 2 });
  return { ...changed, store: { ...changed.store, horizonMs: 400, downMs: [300, 2_500] } };
};

/** Minutes pass, past all that is kept for whoever asks again, and past the horizon. */
const waiting: Change = (plan) => ({
  ...more(calling(plan), { crash: 5, nap: 3 }),
  ops: ["call", "call", "long", "put", "set", "get", "all"],
});

/** Sessions ask each other, and their only site is away for minutes before they have written down what they were told. */
const late: Change = (plan) => {
  const changed = owned(more(calling(plan), { crash: 10, nap: 6 }), 0);
  return {
    ...changed,
    store: { ...changed.store, downMs: [300, 2_500] },
    ops: ["call", "call", "quiet", "long"],
  };
};

/** One after the other is suspended past the horizon while the others go on, and goes on as if nothing had been. */
const dozing: Change = (plan) => ({
  ...more(star(restless(plan), { delaysMs: [1, 5, 15, 2], f: Math.max(1, plan.f) }), { crash: 2, jump: 1 }),
  ...{ dozes: 4, callers: 2, moves: 3, idleMs: 1_000, callChance: 0.5, hasStandbys: true },
  ops: ["get", "get", "set", "set", "put", "swap", "post", "call", "tick", "alarm", "sum", "all"],
});

/** Sites get other parents, in some runs because one is lost for good. */
const uprooted: Change = (plan) => {
  const changed = more(regions({ ...restless(plan), f: 1 }, [10, 60]), { move: 8 });
  const store = {
    ...changed.store,
    requests: 160,
    sessions: 5,
    concurrency: 3,
    safetyMs: 3_000,
    operationsMax: 2,
  };
  return { ...changed, callChance: 0.3, devices: 0, store };
};
const orphaned: Change = (plan) => more(regions({ ...restless(plan), f: 1 }), { adopt: 1, move: 2 });

/** Sites are lost and taken off the tree; some are let in again. */
const removed: Change = (plan) =>
  more(star(restless(plan), { delaysMs: [1, 5, 15, 2, 3], f: 1 }), { remove: 1, crash: 1 });

/** Disks are older copies of themselves: of the store; those of homes are known by what is beside them, and set aside. */
const older: Change = (plan) =>
  more(star(restless(plan), { delaysMs: [1, 5, 15, 2], f: 1 }), { back: 1, crash: 1, partition: 2 });

/** Sites are drained and taken off the tree, so that nothing is lost and nobody is told of a loss; some come back. */
const retired: Change = (plan) =>
  more(star(restless(plan), { delaysMs: [1, 5, 15, 2, 3], f: 1 }), { retire: 1, crash: 1, stop: 1 });

/** All but three sites are added to the tree one after the other, while sessions move and those who keep their logs die. */
const growing: Change = (plan) => {
  const changed = more(star(restless(plan), { delaysMs: [1, 5, 15, 2, 3, 0.2], f: Math.min(2, plan.f) }), {
    ...{ crash: 4, partition: 2, stop: 1 },
  });
  const { store, store: { sites, safetyMs } } = changed;
  const adds = sites.map((site, i) => i < 3 ? site : { ...site, comesMs: (i - 2) * safetyMs / 5 });
  return {
    ...changed,
    ...{ store: { ...store, sites: adds }, moves: 8, moveAtOnce: 0.3, callers: 2, devices: 2, idleMs: 100 },
    ...{ hasStandbys: true, roams: 6 },
  };
};

/** Inner sites lose their disks. */
const hollow: Change = (plan) => more(regions({ ...restless(plan), f: 1 }), { wipeInner: 1, crash: 1 });

/** The arbiter's disk is put back from a copy, while sessions change hands. */
const restored: Change = (plan) => ({
  ...more(star(restless(plan), { delaysMs: [1, 5, 15, 2], f: 1 }), { crash: 3 }),
  ...{ arbiters: 2, moves: 6, moveAtOnce: 0.3 },
});

/** Clocks leap beyond what others accept, and nobody believes them. */
const leaping: Change = (plan) => more(restless(plan), { leap: 2, jump: 3, crash: 2 });

/** They are wrong for long, and sites are down while minutes pass: how long they were nobody there knows. */
const overslept: Change = (plan) => {
  const changed = more(restless(plan), { leap: 3, nap: 3, crash: 5 });
  return { ...changed, store: { ...changed.store, downMs: [300, 2_500] } };
};

/** They leap so that nobody can tell. */
const warping: Change = (plan) => more(restless(plan), { warp: 2, jump: 3, crash: 2 });

export const HARD: Readonly<Record<string, Change>> = {
  ...{
    storm,
    clocks,
    seated,
    wipes,
    followed,
    throwing,
    ending,
    early,
    held,
    resting,
    origins,
    roaming,
    deployed,
    calling,
    mailing,
  },
  ...{
    tokens,
    taken,
    queued,
    deletions,
    unwritten,
    unread,
    owners,
    recorded,
    unapplied,
    severed,
    chained,
    bereft,
  },
  ...{
    forgetting,
    waiting,
    late,
    dozing,
    uprooted,
    orphaned,
    growing,
    removed,
    retired,
    older,
    hollow,
    leaping,
    overslept,
    warping,
    restored,
  },
};

/** Who dies when, beside what is drawn. */
const DEATHS: Readonly<Record<string, () => Pick<SitesOptions, "passes" | "open">>> = {
  recorded: () => ({ passes: afterRecords() }),
  unapplied: () => ({ passes: every("isolate says", 17)() }),
  mailing: () => ({ passes: every("isolate says", 29)() }),
  chained: asItSums,
  bereft: withSums,
};

/** What a run is given for the plan of such a name, fresh for each run. @throws RangeError where there is none. */
export function optionsOf(name: string): Pick<SitesOptions, "change" | "passes" | "open"> {
  const change = HARD[name], dies = DEATHS[name];
  if (change !== undefined) return { change, ...dies?.() };
  const variant = VARIANTS.find((one) => one.name.includes(name));
  if (variant === undefined) {
    throw new RangeError(`no plan is called ${name}: ${Object.keys(HARD).join(", ")}, or a variant's name`);
  }
  return { change: variant.change, ...(variant.passes === undefined ? {} : { passes: variant.passes() }) };
}
