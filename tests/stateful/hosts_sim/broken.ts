/** Sessions whose hosts hold the log, broken on purpose, each in one rule. */
import { HostOwners } from "../../../functions/homes/host_owners.ts";
import type { HostsOptions, HostsPlan } from "./simulation.ts";
import type { Violation } from "./check.ts";

export interface Variant {
  readonly name: string;
  readonly wrongs?: HostsOptions["wrongs"];
  /** Makes the production code wrong, until the result is called. */
  readonly patch?: () => () => void;
  readonly change?: (plan: HostsPlan) => HostsPlan;
  readonly caughtBy: readonly Violation["checker"][];
}

/** Slow disks, so that hosts are ahead of them; homes that change all the time. */
export const contested = (plan: HostsPlan): HostsPlan => ({
  ...plan,
  lie: "none",
  ...{ sites: 3, f: 0, clients: 2, messages: 60, requests: 10, safetyMs: 4_000 },
  ...{ crashes: 5, wipes: 0, partitions: 4, breaks: 8, late: 0.5, commitMs: [60, 160] },
});
const wiped = (plan: HostsPlan): HostsPlan => ({ ...contested(plan), wipes: 5, requests: 60 });

/** Another member in place of one of HostOwners. */
function replaced<K extends keyof HostOwners>(member: K, other: PropertyDescriptor): () => void {
  const own = Object.getOwnPropertyDescriptor(HostOwners.prototype, member) ?? {};
  Object.defineProperty(HostOwners.prototype, member, { configurable: true, ...other });
  return () => void Object.defineProperty(HostOwners.prototype, member, own);
}

export const VARIANTS: readonly Variant[] = [
  {
    name: "unacknowledged outputs are missing from a checkpoint",
    wrongs: { forgetsKept: true },
    change: (plan) => ({ ...contested(plan), checkpointEvery: 4, commitMs: [0.1, 0.4] }),
    caughtBy: ["fault", "liveness"],
  },
  {
    name: "outputs leave before the log that made them",
    wrongs: { logLater: true },
    change: contested,
    caughtBy: ["contradicted"],
  },
  {
    name: "hosts are not asked",
    wrongs: { asksNobody: true },
    change: contested,
    caughtBy: ["contradicted", "fault"],
  },
  {
    name: "one host that answers is enough",
    wrongs: { asksOne: true },
    change: contested,
    caughtBy: ["contradicted", "fault"],
  },
  {
    name: "of a host's log the end is left out",
    wrongs: { takesLess: true },
    change: contested,
    caughtBy: ["contradicted", "fault"],
  },
  {
    name: "a host promises after it has answered",
    wrongs: { promisesLater: true },
    change: (plan) => ({ ...contested(plan), partitions: 12, crashes: 1, breaks: 60 }),
    caughtBy: ["contradicted", "fault", "lost"],
  },
  {
    name: "a host promises nothing",
    wrongs: { promisesNothing: true },
    change: (plan) => ({ ...contested(plan), partitions: 12, crashes: 1, breaks: 60 }),
    caughtBy: ["contradicted", "fault", "lost"],
  },
  {
    name: "a host drops what it holds when another home begins",
    wrongs: { cutsEarly: true },
    change: contested,
    caughtBy: ["contradicted", "fault"],
  },
  {
    name: "a host is told ahead before it is on record",
    wrongs: { aheadAtOnce: true },
    change: contested,
    caughtBy: ["contradicted", "fault"],
  },
  {
    name: "a message counts as in the log when it is in a record to another host",
    wrongs: { acksForOthers: true },
    change: (plan) => ({
      ...contested(plan),
      late: 0,
      partitions: 0,
      messages: 400,
      crashes: 12,
      breaks: 150,
    }),
    caughtBy: ["lost", "fault"],
  },
  {
    name: "others are told before anybody has the log",
    wrongs: { tellsAtOnce: true },
    change: (plan) => ({ ...contested(plan), requests: 60 }),
    caughtBy: ["contradicted"],
  },
  {
    name: "others do not wait for hosts where hosts are enough",
    patch: () => replaced("held", { get: () => Infinity }),
    change: (plan) => ({ ...wiped(plan), commitMs: [0.1, 0.4] }),
    caughtBy: ["contradicted", "fault"],
  },
  {
    name: "a host leaves the record before the disks have what it was told",
    patch: () => {
      const { wanted } = HostOwners.prototype;
      return replaced("wanted", {
        value(this: HostOwners, of: Parameters<typeof wanted>[0]) {
          return wanted.call(this, { ...of, kept: Infinity });
        },
      });
    },
    change: (plan) => ({ ...contested(plan), crashes: 12, breaks: 60 }),
    caughtBy: ["contradicted", "fault"],
  },
  {
    name: "a home drops a host from the record by itself",
    patch: () => {
      const { drop } = HostOwners.prototype;
      return replaced("drop", {
        value(this: HostOwners, host: string) {
          drop.call(this, host);
          this.recorded([]);
        },
      });
    },
    change: (plan) => ({ ...wiped(plan), crashes: 12, wipes: 12, breaks: 40 }),
    caughtBy: ["contradicted", "fault"],
  },
];
