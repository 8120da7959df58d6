/**
 * The store broken on purpose, each variant in one rule of the protocol. A variant wraps the production code from
 * outside (its ports, its messages, its sessions) and changes nothing in it; a checker that reads the history
 * must catch it, or the checkers are worth nothing.
 */
import type { AttachedSession, OpenReplica, Replica, ReplicaPorts, TokenState } from "../../store/api.ts";
import { openReplica } from "../../store/replica.ts";
import { type Carry, decodeMessage, encodeMessage, type Feed, type Message } from "../../store/message.ts";
import { type Key, packKey } from "../../store/key.ts";
import type { SiteId } from "../../store/ports.ts";
import type { Commit, Storage } from "../../store/ports.ts";
import { holds, prefixRange, type Range } from "../../store/range.ts";
import { simulate } from "./simulation.ts";
import type { Plan } from "./topology.ts";

/** One way to break the store. */
export interface Variant {
  readonly name: string;
  /** The rule that it breaks. */
  readonly rule: string;
  /** A fresh broken store for one run. */
  readonly make: () => OpenReplica;
  /** Makes the runs more likely to need the rule. */
  readonly change?: (plan: Plan) => Plan;
}

/** What caught a variant. */
export interface Caught {
  readonly seed: number;
  readonly checker: string;
  readonly message: string;
}

/** Checkers that read the history; an assert, a crash or a request that hangs does not count as caught. */
const READS_HISTORY = new Set([
  "read-your-writes",
  "monotonic reads",
  "monotonic writes",
  "writes follow reads",
  "causality",
  "integrity",
  "site closure",
  "convergence",
  "durability",
]);

/** Runs seeds of a broken variant until a checker of guarantees reports one. */
export async function hunt(variant: Variant, seeds: number): Promise<Caught | null> {
  for (let seed = 0; seed < seeds; seed++) {
    const options = { seed, open: variant.make() };
    const { violations } = await simulate(
      variant.change === undefined ? options : { ...options, change: variant.change },
    );
    const found = violations.find(({ checker }) => READS_HISTORY.has(checker));
    if (found !== undefined) return { seed, checker: found.checker, message: found.message };
  }
  return null;
}

/** Where a wrapper may put its hands on a replica; each part is optional. */
interface Hooks {
  /** A message on its way out; what comes back is sent, in this order. */
  readonly sends?: (to: SiteId, message: Message, ports: ReplicaPorts) => readonly Message[];
  /** A message on its way in. */
  readonly receives?: (
    from: SiteId,
    message: Message,
    replica: Replica,
    ports: ReplicaPorts,
  ) => readonly Message[];
  readonly storage?: (storage: Storage) => Storage;
  readonly presents?: (token: TokenState, replica: Replica) => TokenState;
  readonly session?: (session: AttachedSession) => Partial<AttachedSession>;
}

/** A store with hooks; `hooks` is called for each process. */
function hooked(hooks: (site: SiteId) => Hooks): OpenReplica {
  return async (config, ports) => {
    const { sends, receives, storage, presents, session } = hooks(config.site);
    const network: ReplicaPorts["network"] = sends === undefined ? ports.network : {
      send: async (to, bytes) => {
        for (const message of sends(to, decodeMessage(bytes), ports)) {
          await ports.network.send(to, encodeMessage(message));
        }
      },
    };
    const inner = await openReplica(config, {
      ...ports,
      network,
      storage: storage === undefined ? ports.storage : storage(ports.storage),
    });
    const change = (token: TokenState) => presents === undefined ? token : presents(token, inner);
    const wrap = (attached: AttachedSession) =>
      session === undefined ? attached : overlaid(attached, session);
    return {
      site: inner.site,
      ready: inner.ready,
      attach: async (token) => wrap(await inner.attach(token === null ? null : change(token))),
      attachAll: async (tokens) => wrap(await inner.attachAll(tokens.map(change))),
      system: inner.system,
      connected: (site, role) => inner.connected(site, role),
      disconnected: (site) => inner.disconnected(site),
      receive: (from, bytes) => {
        if (receives === undefined) return inner.receive(from, bytes);
        for (const message of receives(from, decodeMessage(bytes), inner, ports)) {
          inner.receive(from, encodeMessage(message));
        }
      },
      status: () => inner.status(),
      evict: (range) => inner.evict(range),
      debugCovers: (key) => inner.debugCovers(key),
      close: () => inner.close(),
    };
  };
}

/** A session with some of its methods replaced. */
function overlaid(
  inner: AttachedSession,
  change: (session: AttachedSession) => Partial<AttachedSession>,
): AttachedSession {
  return {
    id: inner.id,
    how: inner.how,
    carried: inner.carried,
    get: (keys) => inner.get(keys),
    list: (range, options) => inner.list(range, options),
    write: (mutations, checks) => inner.write(mutations, checks),
    watch: (ranges, changed) => inner.watch(ranges, changed),
    durable: () => inner.durable(),
    token: (open) => inner.token(open),
    ...change(inner),
  };
}

const ENDED_RANGE: Range = prefixRange(packKey(["s", "ended"]));
const SYSTEM_RANGE: Range = prefixRange(packKey(["s"]));

const withFaults = (faults: Partial<Plan["faults"]>) => (plan: Plan): Plan => ({
  ...plan,
  faults: { ...plan.faults, ...faults },
});

/** Slow links and busy users who move: what makes a carry more than a formality. */
const restless = (plan: Plan): Plan => ({
  ...plan,
  sessions: Math.max(3, plan.sessions),
  requests: 110,
  moveChance: 0.6,
  sites: plan.sites.map((site) => ({
    ...site,
    linkMs: [site.linkMs[0] * 3, site.linkMs[1] * 6] as const,
  })),
});

const acknowledgesEarly: Variant = {
  name: "acknowledge before sync",
  rule: "an answer leaves after what it depends on is on disk",
  make: () => hooked(() => ({ session: () => ({ durable: () => Promise.resolve() }) })),
  change: withFaults({ crash: 6 }),
};

/** Filters the rows of a carry as it arrives. */
const carries = (keep: (carry: Carry, replica: Replica, site: SiteId) => Carry): OpenReplica =>
  hooked((site) => ({
    receives: (_, message, replica) => [message.kind === "carry" ? keep(message, replica, site) : message],
  }));

const carriesFootprint: Variant = {
  name: "carry only the footprint",
  rule: "C1: all rows pending towards the common ancestor",
  make: () => {
    const touched = new Map<string, Set<Key>>();
    const of = (id: Uint8Array) => {
      const set = touched.get(id.join()) ?? new Set<Key>();
      touched.set(id.join(), set);
      return set;
    };
    return hooked(() => {
      const arriving = new Set<string>();
      return {
        presents: (token) => {
          arriving.add(token.session.join());
          return token;
        },
        receives: (_, message) => {
          if (message.kind !== "carry") return [message];
          const keys = new Set([...arriving].flatMap((id) => [...touched.get(id) ?? []]));
          return [{ ...message, rows: message.rows.filter((row) => keys.has(row.key)) }];
        },
        session: (session) => {
          arriving.delete(session.id.join());
          return {
            get: (keys) => {
              for (const key of keys) of(session.id).add(key);
              return session.get(keys);
            },
            list: async (range, options) => {
              const rows = await session.list(range, options);
              for (const row of rows) of(session.id).add(row.key);
              return rows;
            },
            write: (mutations, checks) => {
              for (const { key } of mutations) of(session.id).add(key);
              return session.write(mutations, checks);
            },
          };
        },
      };
    });
  },
  // Few operations a request: a session that touches everything carries everything.
  change: (plan) => ({ ...restless(plan), operationsMax: 2, keysPerGroup: 4, groups: 3, sessions: 5 }),
};

const carriesCovered: Variant = {
  name: "carry only covered rows",
  rule: "C4: covered or not",
  make: () =>
    carries((carry, replica) => ({
      ...carry,
      rows: carry.rows.filter((row) => replica.debugCovers(row.key)),
    })),
  change: restless,
};

const carriesAtOnce: Variant = {
  name: "carry without waiting for need",
  rule: "C3: wait for what the carried rows may depend on",
  make: () => carries((carry) => ({ ...carry, need: 0 })),
  change: restless,
};

const carriesSourceOnly: Variant = {
  name: "carry from the source only",
  rule: "C2: the same from each inner site on the way up",
  make: () =>
    hooked(() => {
      const below = new Map<string, readonly Key[]>();
      return {
        receives: (_, message) => {
          if (message.kind === "ask" && message.rows.length + message.need > 0) {
            below.set(`${message.to} ${message.id}`, message.rows.map((row) => row.key));
          }
          return [message];
        },
        sends: (to, message) => {
          if (message.kind !== "carry" && message.kind !== "ask") return [message];
          const keys = below.get(`${message.kind === "ask" ? message.to : to} ${message.id}`);
          return [
            keys === undefined
              ? message
              : { ...message, rows: message.rows.filter((row) => keys.includes(row.key)) },
          ];
        },
      };
    }),
  change: restless,
};

/** How long the second half of a cut batch stays behind. */
const CUT_MS = 25;

const cutsBatches: Variant = {
  name: "a batch cut in the middle",
  rule: "I1: a batch closes at a head and is applied at once",
  make: () =>
    hooked(() => {
      const held = new Map<SiteId, Message[]>();
      return {
        sends: (to, message, ports) => {
          const queue = held.get(to);
          if (queue !== undefined) {
            queue.push(message);
            return [];
          }
          if (message.kind !== "push" || message.more || message.rows.length < 2) return [message];
          const half = Math.ceil(message.rows.length / 2);
          const rest: Message[] = [{ ...message, rows: message.rows.slice(half) }];
          held.set(to, rest);
          ports.clock.after(CUT_MS, () => {
            held.delete(to);
            for (const each of rest) void ports.network.send(to, encodeMessage(each));
          });
          return [{ ...message, upTo: 0, stable: 0, rows: message.rows.slice(0, half) }];
        },
      };
    }),
  change: restless,
};

const answersOutOfStream: Variant = {
  name: "a miss answered outside the feed",
  rule: "I3: a fetch reply follows the feed up to the head that it was read at",
  make: () =>
    hooked(() => {
      const held = new Map<SiteId, Message[]>();
      return {
        sends: (to, message, ports) => {
          if (message.kind !== "feed") return [message];
          const queue = held.get(to);
          if (queue !== undefined) {
            queue.push(message);
            return [];
          }
          const feeds: Message[] = [message];
          held.set(to, feeds);
          ports.clock.after(CUT_MS, () => {
            held.delete(to);
            for (const each of feeds) void ports.network.send(to, encodeMessage(each));
          });
          return [];
        },
      };
    }),
  change: restless,
};

const EVICT_AFTER_MS = 50;

const evictsCovered: Variant = {
  name: "a parent that evicts what a child covers",
  rule: "I3: a range that a child covers is never dropped by its parent",
  make: () =>
    hooked(() => ({
      receives: (from, message, replica, ports) => {
        if (message.kind !== "fetch" || holds(SYSTEM_RANGE, message.range.start)) return [message];
        // Some time after it was served, what the child covers is forgotten and evicted.
        const { range } = message;
        ports.clock.after(EVICT_AFTER_MS, () => {
          replica.receive(from, encodeMessage({ kind: "drop", range }));
          void replica.evict(range);
        });
        return [message];
      },
    })),
};

const losesLastCommit: Variant = {
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

const trustsPositions: Variant = {
  name: '"nothing" by position alone',
  rule: "N2, N3: a position that is pending proves nothing",
  make: () =>
    hooked(() => {
      let down: readonly number[] = [];
      return {
        receives: (_, message) => {
          if (message.kind === "feed") down = [...message.down, message.upTo];
          return [message];
        },
        session: (session) => ({
          token: (open) => {
            const token = session.token(open);
            return { ...token, path: token.path.map((position, depth) => position ?? down[depth] ?? 0) };
          },
        }),
      };
    }),
  change: restless,
};

const dropsRows = (kinds: readonly Message["kind"][], drops: (key: Key) => boolean): OpenReplica =>
  hooked(() => ({
    sends: (_, message) =>
      "rows" in message && kinds.includes(message.kind)
        ? [{ ...message, rows: message.rows.filter((row) => !drops(row.key)) }]
        : [message],
  }));

const forgetsEnds: Variant = {
  name: "ended incarnation ignored",
  rule: "I8: the end of an incarnation travels with or before any newer stable clock",
  make: () => dropsRows(["feed", "fetched"], (key) => holds(ENDED_RANGE, key)),
  change: (plan) => restless(withFaults({ wipe: 6 })(plan)),
};

const takesForSuccessor: Variant = {
  name: "a token of an ended incarnation taken for its successor's",
  rule: "I8: at the same site neither",
  make: () => {
    const issuers = new Map<number, SiteId>();
    return hooked((site) => ({
      presents: (token, replica) =>
        issuers.get(token.replica) === site ? { ...token, replica: replica.status().replica } : token,
      session: (session) => ({
        token: (open) => {
          const token = session.token(open);
          issuers.set(token.replica, site);
          return token;
        },
      }),
    }));
  },
  change: (plan) => ({ ...withFaults({ wipe: 6 })(plan), moveChance: 0.1 }),
};

const stableAlone: Variant = {
  name: "stable ignoring children",
  rule: "I4: the minimum of the own clock and each child's stable",
  make: () =>
    hooked(() => ({
      sends: (_, message) => {
        if (message.kind === "push") return [{ ...message, stable: message.clock }];
        if (message.kind === "feed") {
          return [{ ...message, stable: [...message.stable.slice(0, -1), message.clock] } satisfies Feed];
        }
        return [message];
      },
    })),
  change: restless,
};

const acknowledgesPushes: Variant = {
  name: "a push acknowledged before it is on disk",
  rule: "I6: a push is acknowledged with the head after it was applied and committed",
  make: () =>
    hooked(() => {
      const pushed = new Map<SiteId, number>();
      return {
        receives: (from, message) => {
          if (message.kind === "push" && !message.more) pushed.set(from, message.upTo);
          if (message.kind === "hello") pushed.delete(from);
          return [message];
        },
        sends: (to, message) => {
          if (message.kind !== "feed") return [message];
          return [{ ...message, acked: Math.max(message.acked, pushed.get(to) ?? 0) }];
        },
      };
    }),
  change: withFaults({ crash: 8 }),
};

const losesDeletions: Variant = {
  name: "deletions left out of the feed",
  rule: "a deletion is a row",
  make: () =>
    hooked(() => ({
      sends: (_, message) =>
        message.kind === "feed"
          ? [{ ...message, rows: message.rows.filter((row) => row.value !== null) }]
          : [message],
    })),
  change: (plan) => ({ ...plan, weights: { ...plan.weights, delete: 2 } }),
};

/** All of them. */
export const VARIANTS: readonly Variant[] = [
  acknowledgesEarly,
  carriesFootprint,
  carriesCovered,
  carriesAtOnce,
  carriesSourceOnly,
  cutsBatches,
  answersOutOfStream,
  evictsCovered,
  losesLastCommit,
  trustsPositions,
  forgetsEnds,
  takesForSuccessor,
  stableAlone,
  acknowledgesPushes,
  losesDeletions,
];
