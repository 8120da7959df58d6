/** Variants of sites that get another parent (store/change/adoption.ts). */
import { type Key, packKey, unpackKey } from "../../../store/model/key.ts";
import {
  type ChildHello,
  encodeMessage,
  type Message,
  type MovedSite,
  type WireRow,
} from "../../../store/wire/message.ts";
import { holds, prefixRange, type Range } from "../../../store/model/range.ts";
import { decodeJson, encodeJson, type Ended, SYSTEM_RANGE } from "../../../store/members/topology.ts";
import type { SiteId } from "../../../store/model/ports.ts";
import { NO_FAULTS, type Plan } from "../topology.ts";
import { hooked, restless, type Variant, withFaults } from "./hooks.ts";

const ENDED_RANGE: Range = prefixRange(packKey(["s", "ended"]));
const KEPT_RANGE: Range = prefixRange(packKey(["s", "kept"]));

/**
 * Two regions, one of them far behind the other, whose edges are near and disks slow: much is pending where a site
 * comes from, and not yet known where it goes.
 */
export function uneven(plan: Plan): Plan {
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
    commitMs: [2, 6] as const,
    owners: { ...any.owners, f: 0 },
  });
  const sites = [site("root", null, 1), site("a", "root", 1), site("b", "root", 60)];
  return {
    ...plan,
    sites: [...sites, site("e1", "a", 0.5), site("e2", "a", 0.5), site("e3", "b", 0.5), site("e4", "b", 0.5)],
    keysPerGroup: 2,
    groups: 1,
    sumKeys: 0,
    valueBytes: 0,
    sessions: 5,
    requests: 600,
    safetyMs: 3000,
    concurrency: 3,
    oldTokenChance: 0,
    moveChance: 0.7,
    backChance: 0.3,
    edgeShare: 1,
    operationsMax: 2,
    thinkMs: 0,
    openChance: 0,
    parallelChance: 0,
    watch: null,
    systemWrites: 0,
    weights: {
      ...plan.weights,
      get: 5,
      set: 4,
      getMany: 0,
      list: 0,
      atomic: 0,
      checked: 0,
      expiring: 0,
      delete: 0,
    },
    faults: { ...NO_FAULTS, move: 8 },
    crashes: [],
  };
}

/** An inner site is lost, and its children go elsewhere at different times. */
const orphaned = (plan: Plan): Plan => {
  const far = restless(withFaults({ wipe: 0, wipeInner: 0, remove: 0, evict: 0 })(plan));
  const sites = far.sites.map((site) => ({
    ...site,
    owners: { ...site.owners, f: 0 },
    linkMs: site.tier === "core" ? [60, 90] as const : [1, 2] as const,
  }));
  return { ...far, sites, concurrency: 3, requests: 300, faults: { ...NO_FAULTS, adopt: 1 } };
};

/** How long what a word speaks of stays behind. */
const BEHIND_MS = 40;

/** Changes the rows of whatever carries any. */
function withRows(message: Message, change: (row: WireRow) => readonly WireRow[]): Message {
  if (message.kind !== "push" && message.kind !== "feed" && message.kind !== "fetched") return message;
  return { ...message, rows: message.rows.flatMap((row) => [...change(row)]) };
}

/** Changes system rows of one kind; `change` gets the value as it was. */
const rewritten =
  (range: Range, change: (value: unknown) => unknown) => (row: WireRow): readonly WireRow[] => {
    const value = holds(range, row.key as Key) ? decodeJson(row.value) : undefined;
    return [value === undefined ? row : { ...row, value: encodeJson(change(value)) }];
  };

export const hearsNoEnd: Variant = {
  name: "a move whose end does not reach the others",
  rule:
    "adoption N1: the old incarnation's end is recorded before the new one is taken, and goes before its rows",
  make: () =>
    hooked(() => {
      let isInner = false;
      return {
        receives: (_, message) => {
          isInner ||= message.kind === "hello";
          const isTold = isInner || message.kind !== "feed" && message.kind !== "fetched";
          return [isTold ? message : withRows(message, (row) => holds(ENDED_RANGE, row.key) ? [] : [row])];
        },
      };
    }),
  change: uneven,
  from: 111,
};

export const settlesAtOnce: Variant = {
  name: "a move that is settled as it begins",
  rule: "adoption F3: stable clocks say nothing of what is still on its way to the new parent",
  make: () =>
    hooked(() => ({
      sends: (_, message) => [
        withRows(
          message,
          rewritten(ENDED_RANGE, (value) => {
            const ended = value as Ended;
            return ended.next === undefined
              ? ended
              : { ...ended, stable: Number.MAX_SAFE_INTEGER, settled: true };
          }),
        ),
      ],
    })),
  change: uneven,
  from: 112,
};

export const adoptsAlone: Variant = {
  name: "an orphan taken in without what its siblings have",
  rule: "adoption F2: all rows that are not known at the root are asked of the lost parent's other children",
  make: () =>
    hooked(() => ({
      sends: (_, message) =>
        message.kind === "hello" && message.moved !== undefined
          ? [{ ...message, moved: { ...message.moved, from: "" } }]
          : [message],
    })),
  change: orphaned,
  from: 27,
};

export const speaksFirst: Variant = {
  name: "a site that moved says it has kept everything before that has gone up",
  from: 18,
  rule: "adoption F3: its word stands behind all that it kept, and comes in the same step",
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
          if (message.kind !== "push" || !message.rows.some((row) => holds(KEPT_RANGE, row.key))) {
            return [message];
          }
          const rest: Message[] = [message];
          held.set(to, rest);
          ports.clock.after(BEHIND_MS, () => {
            held.delete(to);
            for (const each of rest) void ports.network.send(to, encodeMessage(each));
          });
          const words = message.rows.filter((row) => holds(SYSTEM_RANGE, row.key));
          return [{ ...message, upTo: 0, stable: 0, rows: words, more: false }];
        },
      };
    }),
  change: uneven,
};

/**
 * Two edges that are far from any parent, and two that are near, all of which go below the root or a core and back:
 * the near ones learn of a move long before the rows of a far one have followed it.
 */
const straggling = (plan: Plan): Plan => {
  const tree = uneven(plan);
  const linkMs = (id: SiteId) => id === "e1" || id === "e2" ? 60 : 1;
  const sites = tree.sites.filter(({ id }) => id !== "a").map((site) => ({
    ...site,
    parent: site.parent === "a" ? "root" : site.parent,
    depth: site.parent === "a" ? 1 : site.depth,
    linkMs: [linkMs(site.id), 1.2 * linkMs(site.id)] as const,
  }));
  return { ...tree, sites, sessions: 12 };
};

export const readsOldPaths: Variant = {
  name: "a token of before a move read along the path of after it",
  rule: "N3: a position counts in the journal that it was given in",
  make: () =>
    hooked(() => {
      const next = new Map<number, number>();
      return {
        receives: (_, message) => {
          if (message.kind !== "push" && message.kind !== "feed" && message.kind !== "fetched") {
            return [message];
          }
          for (const row of message.rows) {
            const ended = holds(ENDED_RANGE, row.key)
              ? decodeJson(row.value) as Ended | undefined
              : undefined;
            if (ended?.next !== undefined) next.set(Number(unpackKey(row.key)[2]), ended.next);
          }
          return [message];
        },
        presents: (token) => ({ ...token, replica: next.get(token.replica) ?? token.replica }),
      };
    }),
  change: straggling,
  from: 36,
};

/**
 * Sessions go to and fro between two regions and the sites below, which cover little; what is at one of the two stays
 * away from the root for long, and inner sites below it go to the other.
 */
const leaving = (plan: Plan): Plan => {
  const tree = uneven(plan);
  const [any] = tree.sites;
  if (any === undefined) return plan;
  const site = (id: string, parent: string | null, depth: number, linkMs: number) => ({
    ...any,
    id,
    parent,
    depth,
    tier: parent === null ? "root" as const : id.startsWith("e") ? "edge" as const : "core" as const,
    linkMs: [linkMs, 1.2 * linkMs] as const,
    commitMs: [5, 10] as const,
  });
  return {
    ...tree,
    sites: [
      site("root", null, 0, 1),
      site("a", "root", 1, 200),
      site("b", "root", 1, 1),
      site("c", "a", 2, 25),
      site("d", "a", 2, 25),
      site("e1", "c", 3, 1),
      site("e2", "c", 3, 1),
      site("e3", "d", 3, 1),
    ],
    edgeShare: 0,
    sessions: 4,
    requests: 200,
    safetyMs: 4000,
    groups: 12,
    keysPerGroup: 3,
    operationsMax: 1,
    moveChance: 0.8,
    weights: { ...tree.weights, get: 0.3, set: 4 },
    faults: { ...NO_FAULTS, move: 8 },
  };
};

/** The part of a hello that says where the site comes from, left out. */
const withoutFrom = (message: ChildHello & { readonly moved: MovedSite }): ChildHello => ({
  ...message,
  moved: { ...message.moved, from: "" },
});

/** Seeds need thousands for it: it is shown by a scene (tests/store/session/said_once_test.ts). */
export const saysOnce: Variant = {
  name: "a site on its way that says what it depends on once, and not what it has come to depend on since",
  rule: "moving M1: what a hello says holds when its welcome is taken",
  make: () =>
    hooked(() => {
      /** By parent: the number under which it was told that nothing is needed. */
      const said = new Map<SiteId, number>();
      return {
        sends: (to, message) => {
          if (message.kind !== "hello" || message.moved === undefined) return [message];
          if (message.moved.from === "") said.set(to, message.replica);
          return [
            said.get(to) === message.replica ? withoutFrom({ ...message, moved: message.moved }) : message,
          ];
        },
      };
    }),
};

export const speaksForItself: Variant = {
  name: "an inner site on its way that says nothing of what sites below it depend on",
  rule: "moving M2: what sessions below have seen of journals above counts",
  make: () =>
    hooked(() => {
      let isInner = false;
      return {
        receives: (_, message) => {
          isInner ||= message.kind === "hello";
          return [message];
        },
        sends: (_, message) =>
          isInner && message.kind === "hello" && message.moved !== undefined
            ? [withoutFrom({ ...message, moved: message.moved })]
            : [message],
      };
    }),
  change: leaving,
  from: 65,
};
