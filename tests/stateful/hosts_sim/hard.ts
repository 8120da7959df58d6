/** Plans in which rules meet. */
import { type HostsPlan, LIES } from "./plan.ts";

type Change = (plan: HostsPlan) => HostsPlan;

/** Slow disks, so that hosts are ahead of them; homes that change all the time; nothing else. */
export const contested: Change = (plan) => ({
  ...plan,
  ...{ sites: 3, f: 0, clients: 2, plain: 0, messages: 60, bytes: 0, requests: 10, safetyMs: 4_000 },
  ...{ crashes: 5, wipes: 0, partitions: 4, breaks: 8, late: 0.5, commitMs: [60, 160], lie: "none" },
  ...{ kills: 0, idleMs: 1e6, moves: 0, restarts: 0, forgets: 0, leaves: 0, aways: 0, deploys: 0 },
  ...{ forces: 0, strangers: 0, idleCommits: 0 },
});
export const wiped: Change = (plan) => ({ ...contested(plan), wipes: 5, requests: 60 });

const three: Change = (plan) => ({ ...contested(plan), clients: 3, requests: 60 });

/** One host, or a few: what one alone was told, or lacks, shows where there are no others. */
const few = (plan: HostsPlan) => ({ clients: Math.max(1, plan.clients - plan.plain) });

export const forced: Change = (plan) => ({
  ...three(plan),
  ...few(plan),
  ...{ f: plan.f, forces: 6, crashes: 6, partitions: 12, aways: 6, safetyMs: 20_000, messages: 100 },
});
export const forcedAndLost: Change = (plan) => ({
  ...three(plan),
  ...{
    forces: 4,
    crashes: 8,
    wipes: 6,
    partitions: 6,
    aways: 4,
    absences: 2,
    safetyMs: 20_000,
    messages: 100,
  },
});
const fewerDisks: Change = (plan) => ({
  ...three(plan),
  ...few(plan),
  ...{ sites: 4, refits: 20, crashes: 12, wipes: 12, partitions: 1, breaks: 2, slowMs: 800 },
  ...{ safetyMs: 8_000, messages: 120 },
});

/** By name. */
export const HARD_PLANS: Readonly<Record<string, Change>> = {
  contested,
  wiped,
  "the only disk and a host are lost, and a host is slow": (plan) => ({
    ...three(plan),
    ...{ crashes: 8, wipes: 8, aways: 6, absences: 2, slowMs: 2_500, breaks: 4 },
  }),
  "the only disk and a host are lost, disks are fast": (plan) => ({
    ...three(plan),
    ...{ crashes: 10, wipes: 10, aways: 10, slowMs: 400, commitMs: [0.1, 0.4] },
  }),
  "hosts come back with old logs while homes move": (plan) => ({
    ...three(plan),
    ...{
      f: plan.f,
      moves: 10,
      crashes: 3,
      aways: 4,
      absences: 6,
      relapses: 3,
      restarts: 6,
      commitMs: [5, 60],
    },
  }),
  "forced openings while a host comes back": forced,
  "forced openings, and disks that are lost": forcedAndLost,
  "hosts hold the log, and do not, by turns": (plan) => ({
    ...three(plan),
    ...{ deploys: 12, wipes: 5, aways: 4, moves: 4, kills: 4, commitMs: plan.commitMs },
  }),
  "bases that hosts can't hold": (plan) => ({
    ...three(plan),
    ...{ stateBytes: 300 << 10, idleMs: 60, deploys: 4, moves: 4, wipes: 5, commitMs: plan.commitMs },
    ...{ messages: 40, breaks: 12, restarts: 3 },
  }),
  "more or fewer disks": fewerDisks,
  "clocks are set": (plan) => ({
    ...three(plan),
    ...{ jumps: 12, wipes: 5, aways: 4, moves: 4, idleMs: 100, safetyMs: 8_000, commitMs: plan.commitMs },
  }),
  "a liar, and the only disk is lost": (plan) => ({
    ...three(plan),
    ...{ wipes: 8, crashes: 8, aways: 4, restarts: 4, lie: LIES[plan.messages % LIES.length] ?? "nothing" },
  }),
  "all at once": (plan) => ({
    ...three(plan),
    ...{
      f: plan.f,
      sites: 4,
      clients: 4,
      plain: 1,
      crashes: 6,
      wipes: plan.f === 0 ? 6 : 1,
      moves: 4,
      kills: 3,
    },
    ...{ aways: 4, restarts: 4, leaves: 1, deploys: 3, strangers: 6, idleMs: plan.idleMs, idleCommits: 0.3 },
    ...{ slowMs: 300, commitMs: plan.commitMs, bytes: plan.bytes, safetyMs: 8_000 },
  }),
};
