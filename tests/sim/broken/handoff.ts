/** Variants of the handoff: what a session brings along, and what it takes for arrived (PROTOCOL, "Handoff"). */
import type { OpenReplica, Replica, TokenState } from "../../../store/api/api.ts";
import type { Key } from "../../../store/model/key.ts";
import type { Carry } from "../../../store/wire/message.ts";
import type { SiteId } from "../../../store/model/ports.ts";
import { deep, hooked, restless, type Variant, withFaults } from "./hooks.ts";

/** Filters the rows of a carry as it arrives. */
const carries = (keep: (carry: Carry, replica: Replica, site: SiteId) => Carry): OpenReplica =>
  hooked((site) => ({
    receives: (_, message, replica) => [message.kind === "carry" ? keep(message, replica, site) : message],
  }));

export const carriesFootprint: Variant = {
  name: "carry only the footprint",
  from: 109,
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

export const carriesCovered: Variant = {
  name: "carry only covered rows",
  from: 7,
  rule: "C4: covered or not",
  make: () =>
    carries((carry, replica) => ({
      ...carry,
      rows: carry.rows.filter((row) => replica.debugCovers(row.key)),
    })),
  change: restless,
};

export const carriesAtOnce: Variant = {
  name: "carry without waiting for need",
  from: 6,
  rule: "C3: wait for what the carried rows may depend on",
  make: () => carries((carry) => ({ ...carry, need: 0 })),
  change: restless,
};

export const carriesSourceOnly: Variant = {
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
  change: deep,
  from: 603,
};

export const carriesPart: Variant = {
  name: "a carry taken in part",
  from: 4,
  rule: "H8: an answer is taken in whole or not at all",
  make: () => carries((carry) => ({ ...carry, rows: carry.rows.slice(Math.ceil(carry.rows.length / 2)) })),
  change: restless,
};

export const trustsPositions: Variant = {
  name: '"nothing" by position alone',
  from: 4,
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

export const takesForSuccessor: Variant = {
  name: "a token of an ended incarnation taken for its successor's",
  rule: "I8: at the same site neither",
  make: () => {
    const issuers = new Map<number, SiteId>();
    return hooked((site) => ({
      presents: (token, replica) => {
        if (issuers.get(token.replica) !== site) return token;
        const { replica: successor, position } = replica.status();
        // Its own position mostly lies where the successor has none (gaps.ts), which would find it out.
        const path = token.path.with(-1, Math.min(token.path.at(-1) ?? 0, position));
        return { ...token, replica: successor, path };
      },
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
  from: 64,
};

/**
 * A token whose clock shows 0 to those who look first: to the guard against clocks that are far ahead, where the token
 * is another incarnation's, and to the clock that would be moved past it.
 */
function withoutClock(token: TokenState, replica: Replica): TokenState {
  let looks = token.replica === replica.status().replica ? 1 : 2;
  return {
    ...token,
    get clock() {
      return looks-- > 0 ? 0 : token.clock;
    },
  };
}

export const keepsClock: Variant = {
  name: "clock not moved by tokens and marks",
  from: 10,
  rule: "I5: the clock is advanced by every row, push, feed and token",
  make: () =>
    hooked(() => ({
      presents: withoutClock,
      receives: (_, message) => [
        message.kind === "feed" || message.kind === "push" || message.kind === "carry" ||
          message.kind === "welcome"
          ? { ...message, clock: 0 }
          : message,
      ],
    })),
  change: (plan) => ({
    ...restless(plan),
    sites: plan.sites.map((site, i) => ({ ...site, skewMs: i % 2 === 0 ? 500 : -500 })),
  }),
};
