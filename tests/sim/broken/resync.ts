/** Variants of what a site compares that has rows from under another parent (store/tree/resync.ts). */
import { Reader, Writer } from "../../../store/model/codec.ts";
import type { Key } from "../../../store/model/key.ts";
import { encodeMessage, type Message } from "../../../store/wire/message.ts";
import type { SiteId, Storage } from "../../../store/model/ports.ts";
import { holds, type Range } from "../../../store/model/range.ts";
import { NO_FAULTS, type Plan } from "../topology.ts";
import { hooked, type Variant } from "./hooks.ts";

/** Two regions whose edges move between them all the time, and so have much that they had before. */
export function wandering(plan: Plan): Plan {
  const [any] = plan.sites;
  if (any === undefined) return plan;
  const site = (id: string, parent: string | null, linkMs: number) => ({
    ...any,
    id,
    parent,
    depth: parent === null ? 0 : parent === "root" ? 1 : 2,
    tier: parent === null ? "root" as const : id.startsWith("e") ? "edge" as const : "core" as const,
    skewMs: 0,
    drift: 0,
    capacityBytes: 1 << 30,
    linkMs: [linkMs, 1.5 * linkMs] as const,
    commitMs: [1, 3] as const,
    owners: { ...any.owners, f: 0 },
  });
  const inner = [site("root", null, 1), site("a", "root", 5), site("b", "root", 10)];
  return {
    ...plan,
    sites: [...inner, site("e1", "a", 1), site("e2", "a", 1), site("e3", "b", 1), site("e4", "b", 1)],
    keysPerGroup: 5,
    groups: 3,
    sumKeys: 1,
    valueBytes: 0,
    sessions: 5,
    requests: 500,
    safetyMs: 3000,
    concurrency: 3,
    moveChance: 0.4,
    edgeShare: 1,
    operationsMax: 3,
    thinkMs: 0,
    watch: null,
    systemWrites: 0,
    compareRowsBytes: 0,
    weights: { ...plan.weights, list: 5, get: 3, set: 4, delete: 2 },
    faults: { ...NO_FAULTS, move: 10 },
    crashes: [],
  };
}

/** The keys of what a disk holds, as it was told. */
class Keys {
  readonly #keys = new Set<Key>();

  follow(storage: Storage): Storage {
    return following(storage, async (commit) => {
      await storage.commit(commit);
      for (const key of commit.drop) this.#keys.delete(key);
      for (const { key } of commit.rows) this.#keys.add(key);
    });
  }

  within(range: Range): string {
    return [...this.#keys].filter((key) => holds(range, key)).sort().join("\u0100");
  }
}

const following = (storage: Storage, commit: Storage["commit"], load = () => storage.load()): Storage => ({
  load,
  commit,
  get: (key) => storage.get(key),
  getMany: (keys) => storage.getMany(keys),
  scan: (range, options) => storage.scan(range, options),
  journal: (after, upTo, limit) => storage.journal(after, upTo, limit),
  bytes: () => storage.bytes(),
  close: () => storage.close(),
});

export const comparesKeys: Variant = {
  name: "digests of keys without versions",
  rule: "resync: a digest is of the versions that stand at the keys",
  make: () => {
    /** By child and question. */
    const asked = new Map<string, string>();
    return hooked((site) => {
      const keys = new Keys();
      return {
        storage: (storage) => keys.follow(storage),
        sends: (to, message) => {
          if (message.kind === "compare") asked.set(`${site} ${message.id}`, keys.within(message.range));
          if (message.kind !== "compared" && message.kind !== "fetched") return [message];
          const theirs = asked.get(`${to} ${message.id}`);
          if (theirs !== keys.within(message.range) || theirs === "") return [message];
          return [{ kind: "compared", id: message.id, range: message.range, parts: [] }];
        },
      };
    });
  },
  change: wandering,
};

/** How long an answer stays behind. */
const BEHIND_MS = 30;

export const comparesBehind: Variant = {
  name: "a comparison that is not as of the feed's head",
  rule: "resync Y1: what is the same is covered as of the head that the feed had reached",
  make: () =>
    hooked(() => ({
      sends: (to: SiteId, message: Message, ports) => {
        if (message.kind !== "compared") return [message];
        ports.clock.after(BEHIND_MS, () => void ports.network.send(to, encodeMessage(message)));
        return [];
      },
    })),
  change: wandering,
};

const STALE = "stale/", COVERED = "cover/";

export const servesStale: Variant = {
  name: "rows from under another parent served as they are",
  from: 13,
  rule: "resync T2: a stale row is on disk and nowhere else",
  make: () =>
    hooked(() => ({
      storage: (storage) =>
        following(storage, (commit) => storage.commit(commit), async () => {
          const records = await storage.load();
          for (const [name, value] of records) {
            if (!name.startsWith(STALE)) continue;
            records.delete(name);
            records.set(
              COVERED + name.slice(STALE.length),
              new Writer(32).uint(0).key(new Reader(value).key()).done(),
            );
          }
          return records;
        }),
    })),
  change: (plan) => {
    const wander = wandering(plan);
    return { ...wander, faults: { ...wander.faults, crash: 10 } };
  },
};
