/** Variants of wards: what owners hold for a site, and who believes them (PROTOCOL O1–O6). */
import type { Position } from "../../../store/model/row.ts";
import type { Message } from "../../../store/wire/message.ts";
import { encodeMessage } from "../../../store/wire/message.ts";
import { NO_OWNERS } from "../../../store/owners/site_owners.ts";
import { hooked, type Hooks, type Variant } from "./hooks.ts";
import { NO_FAULTS, type Plan } from "../topology.ts";

/** Whoever sends or hears something about a ward gets it changed. */
const wards = (hooks: Hooks) => hooked(() => hooks);

/**
 * Edges with one owner each, whose ways up are slow or cut: much is pending there, and who dies takes it along, were
 * it not for the owner.
 */
export const besieged = (
  faults: Partial<Plan["faults"]>,
  { peerMs, edgeMs }: {
    peerMs: readonly [number, number];
    edgeMs: readonly [number, number, number, number];
  },
) =>
(plan: Plan): Plan => {
  const [any] = plan.sites;
  if (any === undefined) return plan;
  const owners = { ...NO_OWNERS, f: 1, nearMs: 0, beatMs: 20, suspectMs: 80, deadMs: 300 };
  const site = (id: string, parent: string | null, depth: number, linkMs: number) => ({
    ...any,
    id,
    parent,
    depth,
    tier: parent === null ? "root" as const : id.startsWith("e") ? "edge" as const : "core" as const,
    skewMs: 0,
    drift: 0,
    capacityBytes: 1 << 30,
    linkMs: [linkMs, 1.2 * linkMs] as const,
    peerMs,
    owners: { ...owners, sites: ["e1", "e2", "e3", "e4"].filter((other) => other !== id) },
  });
  return {
    ...plan,
    sites: [
      site("root", null, 0, 1),
      site("c", "root", 1, 40),
      site("e1", "root", 1, edgeMs[0]),
      site("e2", "c", 2, edgeMs[1]),
      site("e3", "root", 1, edgeMs[2]),
      site("e4", "c", 2, edgeMs[3]),
    ],
    groups: 2,
    keysPerGroup: 12,
    sumKeys: 0,
    sessions: 10,
    requests: 600,
    safetyMs: 4_000,
    moveChance: 0.6,
    edgeShare: 1,
    operationsMax: 2,
    thinkMs: 0,
    openChance: 0,
    concurrency: 2,
    watch: null,
    weights: { ...plan.weights, get: 3, getMany: 2, list: 0, set: 6, delete: 0, expiring: 0 },
    faults: { ...NO_FAULTS, ...faults },
    crashes: [],
    lateChance: 0,
    noticeMs: [0, 20],
    downMs: [300, 800],
  };
};

/** A disk is lost that is nobody's only copy. */
const losing = besieged({ wipe: 1, partition: 3 }, { peerMs: [60, 80], edgeMs: [150, 150, 150, 150] });
/** Sites go for a while, and their links. */
const cutting = besieged({ crash: 4, partition: 5 }, { peerMs: [1, 2], edgeMs: [5, 2, 50, 2] });

const AHEAD: Position = 1_000;

export const tellsEarly: Variant = {
  name: "answers that do not wait for owners",
  rule: "O2: an answer leaves when what it depends on is on the disks of all owners",
  make: () =>
    wards({
      receives: (_, message) => [
        message.kind === "warded" && message.refused === "none"
          ? { ...message, position: message.position + AHEAD }
          : message,
      ],
    }),
  change: losing,
};

export const settlesEarly: Variant = {
  name: "a configuration in effect before its owners have everything",
  rule: "O3: a new owner has all that is not in the root's journal first",
  make: () =>
    wards({
      receives: (_, message) => [
        message.kind === "warded" && !message.settled && message.refused !== "gap"
          ? { ...message, position: message.position + AHEAD }
          : message,
      ],
    }),
  change: losing,
};

export const dropsPending: Variant = {
  name: "an owner that drops rows which the root does not have",
  rule: "O1: a row is held until it is in the root's journal",
  make: () =>
    wards({
      receives: (_, message) => [
        message.kind === "ward" ? { ...message, reach: message.reach.map(() => message.head) } : message,
      ],
    }),
  change: losing,
};

export const takesGaps: Variant = {
  name: "a ward with a gap",
  rule: "O1: a ward is contiguous: what comes behind a gap is refused",
  make: () =>
    wards({
      receives: (_, message) => [message.kind === "ward" ? { ...message, after: 0 } : message],
    }),
  change: besieged({ wipe: 1, crash: 5, partition: 6 }, { peerMs: [1, 2], edgeMs: [150, 150, 150, 150] }),
  from: 58,
};

export const answersBehind: Variant = {
  name: "an owner that answers behind the token",
  rule: "O4: an owner answers only if its ward reaches the token's position",
  make: () =>
    wards({
      // As if the last batch had not come.
      sends: (_, message) => [
        message.kind === "stoodIn" ? { ...message, rows: message.rows.slice(0, -1) } : message,
      ],
    }),
  change: cutting,
  from: 13,
};

export const standsInAtOnce: Variant = {
  name: "rows of a ward without what they depend on",
  from: 2,
  rule: "C3: an owner's answer names what its source had got from the common ancestor",
  make: () =>
    wards({
      sends: (_, message) => [
        message.kind === "stoodIn" ? { ...message, down: message.down.map(() => 0) } : message,
      ],
    }),
  change: cutting,
};

export const standsInForSourceOnly: Variant = {
  name: "a source stood in for, its parents left out",
  rule: "C2: the same from each inner site on the way up, or its owners",
  make: () =>
    wards({
      // The parent adds nothing to what it is sent by somebody who is no child of its.
      receives: (from, message, _, ports) => {
        if (message.kind !== "ask" || from !== message.to || message.rows.length + message.need === 0) {
          return [message];
        }
        const { id, need, rows } = message;
        const clock = Math.max(0, ...rows.map((row) => row.clock));
        const carry: Message = { kind: "carry", id, outcome: "rows", need, clock, rows };
        void ports.network.send(from, encodeMessage(carry));
        return [];
      },
    }),
  change: cutting,
  from: 73,
};

/** Sessions go from a core to the edges below it, which cover little of what was told there, and it loses its disk, again and again. */
const losingCore = (plan: Plan): Plan => {
  const lost = besieged({ wipeInner: 3 }, { peerMs: [1, 2], edgeMs: [60, 1, 60, 1] })(plan);
  return {
    ...lost,
    sites: lost.sites.map((site) => ({ ...site, linkLoss: 0, linkBytesPerMs: Infinity })),
    keysPerGroup: 60,
    requests: 900,
    safetyMs: 6_000,
    edgeShare: 0.5,
    moveChance: 0.95,
    weights: { ...lost.weights, get: 1, getMany: 0, set: 6 },
  };
};

export const resyncsAlone: Variant = {
  name: "a lost inner disk whose owners are not asked",
  rule: "O5: an inner site takes back what it had told before it passes on what its children push again",
  make: () =>
    wards({
      // Nobody has it; what an open token asks for names a position.
      receives: (_, message) => [
        message.kind === "standIn" && message.position === 0 ? { ...message, position: 1e12 } : message,
      ],
    }),
  change: losingCore,
  from: 18,
};
