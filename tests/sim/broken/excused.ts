/**
 * Variants that hide behind what checkers let pass: a lost disk, a deletion that nobody knows the end of, a value that
 * may have expired, a write that may be refused, a watcher that had nothing to hear.
 */
import { StoreUnavailable } from "../../../store/api/api.ts";
import type { Key } from "../../../store/model/key.ts";
import type { SiteId, Storage } from "../../../store/model/ports.ts";
import { WARD_RECORD } from "../../../store/wards/ward.ts";
import { NO_FAULTS, type Plan } from "../topology.ts";
import { deep, hooked, type Variant, withFaults } from "./hooks.ts";
import { besieged } from "./wards.ts";

/** Users who write many values that last a moment only. */
const passing = (plan: Plan): Plan => ({
  ...plan,
  weights: { ...plan.weights, expiring: 6, delete: 0 },
  faults: NO_FAULTS,
});

/** Sets that expire get another time. */
const expiring = (change: (expiresAtMs: number) => number) =>
  hooked(() => ({
    session: (session) => ({
      write: (mutations, checks) =>
        session.write(
          mutations.map((mutation) =>
            mutation.kind === "set" && mutation.expiresAtMs !== undefined
              ? { ...mutation, expiresAtMs: change(mutation.expiresAtMs) }
              : mutation
          ),
          checks,
        ),
    }),
  }));

export const expiresNever: Variant = {
  name: "what expires is shown for ever",
  rule: "a row reads as absent from its time on",
  make: () => expiring(() => 0),
  change: passing,
  checkers: ["expiry"],
};

export const expiresAtOnce: Variant = {
  name: "what expires is gone at once",
  rule: "a row reads as present until its time",
  make: () => expiring(() => 1),
  change: passing,
};

export const keepsExpiring: Variant = {
  name: "what expires is not pushed",
  rule: "I1: a push has all that its branch wrote",
  make: () =>
    hooked(() => ({
      sends: (_, message) => [
        message.kind === "push"
          ? { ...message, rows: message.rows.filter(({ expiresAtMs }) => expiresAtMs === 0) }
          : message,
      ],
    })),
  // Nothing else: an older value would show in its place.
  change: (plan) => ({
    ...passing(plan),
    sumKeys: 0,
    weights: { ...plan.weights, expiring: 6, set: 0, delete: 0, atomic: 0, checked: 0 },
  }),
};

/** Two writers for each key, at one site or another, each on condition that the other was not there. */
const contested = (plan: Plan): Plan => ({
  ...plan,
  groups: 1,
  keysPerGroup: 1,
  sumKeys: 0,
  sessions: 5,
  requests: 110,
  concurrency: 3,
  moveChance: 0.1,
  weights: { ...plan.weights, checked: 10, delete: 1 },
  faults: NO_FAULTS,
  sites: plan.sites.map((site) => ({ ...site, readMs: [1, 3] as const })),
});

export const ignoresConditions: Variant = {
  name: "a condition that is not looked at",
  rule: "a conditional write is made only where what it was conditional on is still so",
  make: () => hooked(() => ({ session: (session) => ({ write: (mutations) => session.write(mutations) }) })),
  change: contested,
  checkers: ["conditions"],
};

export const refusesConditions: Variant = {
  name: "a condition that holds, and is taken for broken",
  rule: "a conditional write is refused only where something has changed",
  make: () =>
    hooked(() => {
      let times = 0;
      return {
        session: (session) => ({
          write: (mutations, checks = []) =>
            checks.length > 0 && times++ % 3 === 0
              ? Promise.resolve({ ok: false })
              : session.write(mutations, checks),
        }),
      };
    }),
  change: (plan) => ({ ...contested(plan), sessions: 1, concurrency: 1 }),
  checkers: ["conditions"],
};

/** So long a deletion takes, so that some are under way when their process dies. */
const SLOW_MS = 20;

export const hidesAskedDeletions: Variant = {
  name: "a row is gone whose deletion was asked for and never made",
  from: 4,
  rule: "what a process had not written when it died has not happened",
  make: () => {
    const asked = new Map<SiteId, Set<Key>>(), hidden = new Set<Key>();
    return hooked((site) => {
      for (const key of asked.get(site) ?? []) hidden.add(key);
      const open = new Set<Key>();
      asked.set(site, open);
      let pause = () => Promise.resolve();
      return {
        receives: (_, message, __, { clock }) => {
          pause = () => new Promise((resolve) => void clock.after(SLOW_MS, resolve));
          return [message];
        },
        session: (session) => ({
          write: async (mutations, checks) => {
            const keys = mutations.flatMap((one) => one.kind === "delete" ? [one.key] : []);
            for (const key of keys) open.add(key);
            if (keys.length > 0) await pause();
            const result = await session.write(mutations, checks);
            for (const key of keys) open.delete(key);
            return result;
          },
          get: async (keys) => {
            const rows = await session.get(keys);
            return rows.map((row) => row !== undefined && hidden.has(row.key) ? undefined : row);
          },
          list: async (range, options) => {
            const rows = await session.list(range, options);
            return rows.filter(({ key }) => !hidden.has(key));
          },
        }),
      };
    });
  },
  change: (plan) => ({
    ...withFaults({ ...NO_FAULTS, crash: 6 })(plan),
    weights: { ...plan.weights, get: 6, delete: 4, expiring: 0, list: 0, sum: 0 },
    requests: 110,
  }),
};

/** A disk that comes back without what it held for others. */
const withoutWards = (storage: Storage): Storage => ({
  load: async () => {
    const records = await storage.load();
    for (const name of [...records.keys()]) if (name.startsWith(WARD_RECORD)) records.delete(name);
    return records;
  },
  get: (key) => storage.get(key),
  getMany: (keys) => storage.getMany(keys),
  scan: (range, options) => storage.scan(range, options),
  journal: (after, upTo, limit) => storage.journal(after, upTo, limit),
  bytes: () => storage.bytes(),
  commit: (commit) => storage.commit(commit),
  close: () => storage.close(),
});

export const forgetsWards: Variant = {
  name: "owners that forget what they hold when they start again",
  from: 128,
  rule: "O1: what an owner has taken is on its disk",
  make: () => hooked(() => ({ storage: withoutWards })),
  // More disks are lost than a site has owners, one after another.
  change: besieged(
    { wipe: 3, crash: 10, partition: 3 },
    { peerMs: [1, 2], edgeMs: [150, 150, 150, 150] },
  ),
};

/** Edges below two inner sites, one of which loses its disk, and who get another parent all the while. */
const wandering = (plan: Plan): Plan => ({
  ...deep(plan),
  faults: { ...NO_FAULTS, wipeInner: 1, move: 6 },
  safetyMs: 4_000,
});

export const losesSessions: Variant = {
  name:
    "a session is told of a loss wherever a disk was once lost above its source, and both have long gone on",
  rule: "I8: what a site tells under another number does not rest on what a lost disk had",
  make: () => {
    const numbers = new Map<SiteId, number[]>(), blank = new Map<SiteId, number>();
    const hasLost = () => blank.values().some((times) => times > 1);
    return hooked((site) => ({
      sends: (_, message) => {
        if (message.kind === "hello" && message.replica === 0 && site.startsWith("c")) {
          blank.set(site, (blank.get(site) ?? 0) + 1);
        }
        return [message];
      },
      session: (session) => ({
        token: (open) => {
          const token = session.token(open), known = numbers.get(site) ?? [];
          if (!known.includes(token.replica)) numbers.set(site, [...known, token.replica]);
          return token;
        },
      }),
      arrives: ({ replica }) => {
        for (const [source, known] of numbers) {
          if (source === site || !["e1", "e2"].includes(source) || known.at(-1) !== replica) continue;
          if (known.length > 2 && hasLost()) {
            throw new StoreUnavailable("source_lost", `it came from ${source}`);
          }
        }
      },
    }));
  },
  change: wandering,
  checkers: ["source_lost"],
};

export const tellsNoWatcher: Variant = {
  name: "a watcher that is never told",
  rule: "who watches a range is told of each change in it",
  make: () => hooked(() => ({ system: () => ({ watch: () => () => {} }) })),
  change: (plan) => {
    const site = plan.sites.at(-1)?.id ?? "root";
    return { ...plan, watch: { site, group: 0 }, faults: NO_FAULTS };
  },
};

export const EXCUSED_VARIANTS: readonly Variant[] = [
  expiresNever,
  expiresAtOnce,
  keepsExpiring,
  ignoresConditions,
  refusesConditions,
  hidesAskedDeletions,
  forgetsWards,
  losesSessions,
  tellsNoWatcher,
];
