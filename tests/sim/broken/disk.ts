/** Variants of what is on disk and covered when a site answers. */
import type { Replica } from "../../../store/api.ts";
import type { Commit, SiteId, Storage } from "../../../store/ports.ts";
import { hooked, slowDisks, type Variant, withFaults } from "./hooks.ts";

export const acknowledgesEarly: Variant = {
  name: "acknowledge before sync",
  rule: "an answer leaves after what it depends on is on disk",
  make: () => hooked(() => ({ session: () => ({ durable: () => Promise.resolve() }) })),
  change: slowDisks("commit begins"),
};

export const losesLastCommit: Variant = {
  name: "a position reused after a restart",
  rule: "W1: a position that left the site is never used again",
  make: () => {
    const last = new Map<SiteId, () => Promise<void>>();
    return hooked((site) => ({
      storage: (storage) => ({
        load: async () => {
          await last.get(site)?.();
          last.delete(site);
          return await storage.load();
        },
        get: (key) => storage.get(key),
        getMany: (keys) => storage.getMany(keys),
        scan: (range, options) => storage.scan(range, options),
        journal: (after, upTo, limit) => storage.journal(after, upTo, limit),
        bytes: () => storage.bytes(),
        close: () => {
          last.delete(site);
          return storage.close();
        },
        commit: async (commit) => {
          const undo = await undoOf(storage, commit);
          await storage.commit(commit);
          last.set(site, () => storage.commit(undo));
        },
      }),
    }));
  },
  change: withFaults({ crash: 6, wipe: 0 }),
  from: 45,
};

/** The commit that would take a commit back. */
async function undoOf(storage: Storage, commit: Commit): Promise<Commit> {
  const keys = [...commit.rows.map((row) => row.key), ...commit.drop];
  const before = await storage.getMany(keys);
  const records = await storage.load();
  return {
    rows: before.filter((row) => row !== undefined),
    drop: keys.filter((_, i) => before[i] === undefined),
    records: new Map([...commit.records.keys()].map((name) => [name, records.get(name) ?? null])),
  };
}

export const missesAreAbsent: Variant = {
  name: "a miss answered with nothing",
  rule: "E4: a read answers from coverage only",
  make: () =>
    hooked(() => {
      const replicas: Replica[] = [];
      return {
        presents: (token, replica) => {
          replicas[0] = replica;
          return token;
        },
        session: (session) => ({
          get: async (keys) => {
            const covered = keys.filter((key) => replicas[0]?.debugCovers(key) ?? true);
            const rows = await session.get(covered);
            const byKey = new Map(covered.map((key, i) => [key, rows[i]]));
            return keys.map((key) => byKey.get(key));
          },
        }),
      };
    }),
};
