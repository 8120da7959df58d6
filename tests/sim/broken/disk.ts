/** Variants of what is on disk and covered when a site answers. */
import type { OpenReplica, Replica } from "../../../store/api/api.ts";
import type { Key } from "../../../store/model/key.ts";
import { DamagedRows, type DiskCommit, type SiteId, type Storage } from "../../../store/model/ports.ts";
import { GAPS_RECORD } from "../../../store/core/core.ts";
import { Gaps } from "../../../store/model/gaps.ts";
import type { Position } from "../../../store/model/row.ts";
import { hooked, slowDisks, type Variant, withFaults } from "./hooks.ts";
import { besieged } from "./wards.ts";

export const acknowledgesEarly: Variant = {
  name: "acknowledge before sync",
  from: 4,
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
  from: 76,
};

/** The same storage, whose reads of records and commits are seen. */
const watched = (
  storage: Storage,
  { loaded, committed }: {
    readonly loaded: (records: Map<string, Uint8Array>) => void;
    readonly committed: (commit: DiskCommit) => void;
  },
): Storage => ({
  load: async () => {
    const records = await storage.load();
    loaded(records);
    return records;
  },
  get: (key) => storage.get(key),
  getMany: (keys) => storage.getMany(keys),
  scan: (range, options) => storage.scan(range, options),
  journal: (after, upTo, limit) => storage.journal(after, upTo, limit),
  bytes: () => storage.bytes(),
  close: () => storage.close(),
  commit: (commit) => {
    committed(commit);
    return storage.commit(commit);
  },
});

export const goesOnFromOlder: Variant = {
  name: "a disk that went back is gone on from",
  rule:
    "H13: what neighbours, owners and tokens have had of a site's journal is on its disk, or that is an older copy",
  make: () =>
    hooked(() => {
      let gaps = new Gaps();
      const known = (value: Uint8Array | null | undefined) => {
        if (value) gaps = Gaps.decode(value);
      };
      const had = (position: Position, replica: Replica): Position =>
        gaps.around(position)?.from ?? Math.min(position, replica.status().position);
      return {
        storage: (storage) =>
          watched(storage, {
            loaded: (records) => known(records.get(GAPS_RECORD)),
            committed: ({ records }) => known(records.get(GAPS_RECORD)),
          }),
        receives: (_, message, replica) => {
          if (message.kind === "welcome") return [{ ...message, pushed: had(message.pushed, replica) }];
          if (message.kind === "warded") return [{ ...message, position: had(message.position, replica) }];
          return [message];
        },
        presents: (token, replica) => {
          if (token.replica !== replica.status().replica) return token;
          const path = token.path.map((position, depth, { length }) =>
            depth + 1 === length && position !== null ? had(position, replica) : position
          );
          return { ...token, path };
        },
      };
    }),
  change: besieged({ back: 1, crash: 2 }, { peerMs: [2, 4], edgeMs: [60, 10, 20, 5] }),
  from: 10,
};

/** Each start knows of what it has left out itself only (JG1): for scenes, since seeds start hardly one copy twice. */
export const forgetsGaps = (): OpenReplica =>
  hooked(() => ({
    storage: (storage) =>
      watched(storage, { loaded: (records) => void records.delete(GAPS_RECORD), committed: () => {} }),
  }));

/** The commit that would take a commit back. */
async function undoOf(storage: Storage, commit: DiskCommit): Promise<DiskCommit> {
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

export const leavesOutDamaged: Variant = {
  name: "a damaged row is left out",
  from: 30,
  rule: "S4, G1: what is damaged is never answered with none",
  make: () =>
    hooked(() => ({
      storage: (storage) => {
        const rest = async <T>(look: () => Promise<T>, without: (keys: ReadonlySet<Key>) => Promise<T>) => {
          const gone = new Set<Key>();
          try {
            return await look();
          } catch (error) {
            if (!(error instanceof DamagedRows)) throw error;
            for (const key of error.keys) gone.add(key);
            return await without(gone);
          }
        };
        const one = async (key: Key) => await rest(() => storage.get(key), () => Promise.resolve(undefined));
        const each = async (keys: readonly Key[]) => await Promise.all(keys.map(one));
        return {
          load: () => storage.load(),
          get: one,
          getMany: each,
          scan: (range, options) =>
            rest(() => storage.scan(range, options), async (gone) => {
              await storage.commit({ rows: [], drop: [...gone], records: new Map() });
              return await storage.scan(range, options);
            }),
          journal: (after, upTo, limit) =>
            rest(() => storage.journal(after, upTo, limit), async (gone) => {
              await storage.commit({ rows: [], drop: [...gone], records: new Map() });
              return await storage.journal(after, upTo, limit);
            }),
          bytes: () => storage.bytes(),
          close: () => storage.close(),
          commit: (commit) => storage.commit(commit),
        };
      },
    })),
  change: withFaults({ rot: 6, crash: 2 }),
};
