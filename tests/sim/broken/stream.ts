/** Variants of push, feed, fetch and joining: what neighbours tell each other (PROTOCOL, "Invariants"). */
import type { OpenReplica } from "../../../store/api/api.ts";
import { type Key, packKey } from "../../../store/model/key.ts";
import { encodeMessage, type Feed, type Message } from "../../../store/wire/message.ts";
import type { SiteId } from "../../../store/model/ports.ts";
import { isWardTalk } from "../../../store/wire/ward_message.ts";
import { holds, prefixRange, type Range } from "../../../store/model/range.ts";
import { hooked, restless, slowDisks, type Variant, withFaults } from "./hooks.ts";

const ENDED_RANGE: Range = prefixRange(packKey(["s", "ended"]));
const SYSTEM_RANGE: Range = prefixRange(packKey(["s"]));

/** How long the second half of a cut batch stays behind. */
const CUT_MS = 25;

export const cutsBatches: Variant = {
  name: "a batch cut in the middle",
  from: 5,
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

export const answersOutOfStream: Variant = {
  name: "a miss answered outside the feed",
  from: 5,
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

export const evictsCovered: Variant = {
  name: "a parent that evicts what a child covers",
  from: 4,
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

const dropsRows = (kinds: readonly Message["kind"][], drops: (key: Key) => boolean): OpenReplica =>
  hooked(() => ({
    sends: (_, message) =>
      "rows" in message && !isWardTalk(message) && kinds.includes(message.kind)
        ? [{ ...message, rows: message.rows.filter((row) => !drops(row.key)) }]
        : [message],
  }));

export const forgetsEnds: Variant = {
  name: "ended incarnation ignored",
  rule: "I8: the end of an incarnation travels with or before any newer stable clock",
  make: () => dropsRows(["feed", "fetched"], (key) => holds(ENDED_RANGE, key)),
  change: (plan) => restless(withFaults({ wipe: 6 })(plan)),
  from: 59,
};

export const removesWithoutEnd: Variant = {
  name: "a site removed without an end",
  from: 7,
  rule: "removal R1: the incarnation of a removed site ends, for all sites, at what its branch had pushed",
  make: forgetsEnds.make,
  change: (plan) => restless(withFaults({ wipe: 0, wipeInner: 0, remove: 4 })(plan)),
};

export const stableAlone: Variant = {
  name: "stable ignoring children",
  from: 6,
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

export const acknowledgesPushes: Variant = {
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
  // The feed has left, the push that it acknowledges is still to be committed.
  change: slowDisks("feed leaves"),
  from: 16,
};

export const losesDeletions: Variant = {
  name: "deletions left out of the feed",
  from: 4,
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

export const skipsFeed: Variant = {
  name: "a reconnect that skips what it missed",
  from: 24,
  rule: "I2: the feed goes on from the child's cursor",
  make: () =>
    hooked(() => {
      // No further than its parent has told: beyond that the parent stops, as one whose disk is an older copy.
      let told = 0;
      return {
        sends: (_, message) => {
          if (message.kind === "feed") told = Math.max(told, message.upTo);
          return [message];
        },
        receives: (_, message) =>
          message.kind === "hello" && message.cursor > 0
            ? [{ ...message, cursor: Math.max(message.cursor, told) }]
            : [message],
      };
    }),
  change: withFaults({ partition: 6, crash: 3 }),
};

export const skipsPush: Variant = {
  name: "a welcome that acknowledges too much",
  from: 7,
  rule: "I7: a row is kept and pushed until the parent acknowledged it",
  make: () =>
    hooked(() => {
      // No more than the child has: beyond that it stops, as one whose disk is an older copy.
      let sent = 0;
      return {
        sends: (_, message) => {
          if (message.kind === "push") sent = Math.max(sent, message.upTo);
          return [message];
        },
        receives: (_, message) =>
          message.kind === "welcome" && message.pushed > 0
            ? [{ ...message, pushed: Math.max(message.pushed, sent) }]
            : [message],
      };
    }),
  change: withFaults({ partition: 6, crash: 3 }),
};

export const sharesNumbers: Variant = {
  name: "one number for two incarnations",
  from: 7,
  rule: "the root hands a fresh number to every incarnation of every site",
  make: () => {
    let first: number | null = null;
    return hooked(() => ({
      sends: (_, message) => {
        if (message.kind !== "number" || message.replica === 0) return [message];
        first ??= message.replica;
        return [{ ...message, replica: first }];
      },
    }));
  },
  change: restless,
};
