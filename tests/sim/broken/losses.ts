/** Variants of what follows the loss of disks: who is waited for, and what is known of who was there. */
import { unpackKey } from "../../../store/model/key.ts";
import { encodeMessage, type Message, type WireRow } from "../../../store/wire/message.ts";
import type { ReplicaPorts } from "../../../store/api/api.ts";
import type { SiteId } from "../../../store/model/ports.ts";
import { decodeJson } from "../../../store/members/topology.ts";
import type { FaultPlan, Plan, SitePlan } from "../topology.ts";
import { deep, hooked, type Variant, withFaults } from "./hooks.ts";

/**
 * Two inner sites in a row below a slow link, so that much of what their edges wrote is known nowhere above when
 * both lose their disks.
 */
function losing(plan: Plan): Plan {
  const calm = { crash: 0, stop: 0, point: 0, evict: 0, remove: 0, nap: 0, wipe: 0 };
  const tree = withFaults({ ...calm, wipeInner: 4 })(deep(plan));
  const sites = tree.sites.map((site) => ({
    ...site,
    linkMs: site.id === "c1" ? [60, 150] as const : [1, 2] as const,
  }));
  return { ...tree, sites, safetyMs: 3_000 };
}

export const blankHasPushed: Variant = {
  name: "a blank child that counts as one that has pushed",
  rule: "I8: a resync closes only when those below have closed",
  make: () =>
    hooked((site) => {
      let parent = "";
      let isBlank = false;
      return {
        sends: (to, message) => {
          if (message.kind === "hello") {
            isBlank = message.replica === 0;
            parent = to;
          }
          return [message];
        },
        receives: (from, message, _, ports) => {
          if (message.kind === "welcome" && isBlank && from === parent && site !== "") {
            const nothing = { upTo: 0, stable: 0, floor: 0, clock: 0, rows: [], more: false } as const;
            void ports.network.send(parent, encodeMessage({ kind: "push", ...nothing }));
          }
          return [message];
        },
      };
    }),
  change: losing,
  from: 155,
};

export const forgetsChildren: Variant = {
  name: "a blank site that does not ask who its children were",
  rule: "I8: an inner site that lost its disk passes nothing on before each of its children has pushed again",
  make: () =>
    hooked((site) => ({
      receives: (_, message) => {
        if (message.kind !== "fetched" && message.kind !== "feed") return [message];
        // A number that it passes on to a child comes behind the row that says whose it is: without that it stops.
        const kinds = message.kind === "fetched" ? ["site", "replica"] : ["site"];
        return [{ ...message, rows: message.rows.filter((row) => !namesChildOf(row, site, kinds)) }];
      },
    })),
  change: losing,
  from: 14,
};

/** Whether a row of one of these kinds tells that a site joined below another. */
function namesChildOf(row: WireRow, parent: string, kinds: readonly string[]): boolean {
  const [space, kind] = unpackKey(row.key);
  if (space !== "s" || typeof kind !== "string" || !kinds.includes(kind)) return false;
  const value = decodeJson(row.value) as { parent?: unknown; path?: readonly string[] } | undefined;
  return value?.parent === parent || value?.path?.at(-2) === parent;
}

/**
 * Edges that are cut off now and then and lose their disks, under a root that keeps deletions for a moment only:
 * what was carried from a lost disk is often older than what others collect.
 */
function forgetful(plan: Plan): Plan {
  const [any] = plan.sites;
  if (any === undefined) return plan;
  const site = (id: string, parent: string | null): SitePlan => ({
    ...any,
    id,
    parent,
    depth: parent === null ? 0 : 1,
    tier: parent === null ? "root" : "edge",
    skewMs: 0,
    linkMs: [1, 3],
    commitMs: [0.5, 1],
  });
  const quiet = Object.fromEntries(Object.keys(plan.faults).map((name) => [name, 0])) as unknown as FaultPlan;
  return {
    ...plan,
    sites: [site("root", null), site("e1", "root"), site("e2", "root"), site("e3", "root")],
    watch: null,
    groups: 1,
    keysPerGroup: 3,
    sumKeys: 0,
    sessions: 5,
    requests: 110,
    safetyMs: 2_500,
    moveChance: 0.6,
    edgeShare: 1,
    horizonMs: 120,
    weights: { ...plan.weights, delete: 2, sum: 0, atomic: 0, checked: 0, expiring: 0 },
    faults: { ...quiet, wipe: 12, partition: 14, evict: 4 },
  };
}

/** How long what was carried stays at its new site before it is pushed. */
const HELD_MS = 900;

export const hidesFloors: Variant = {
  name: "floors that leave out what is pending",
  rule: "I9: the watermark stays below the oldest version that the root does not have",
  make: () =>
    hooked(() => {
      const held = new Map<SiteId, Message[]>();
      const send = (to: SiteId, message: Message, ports: ReplicaPorts) =>
        void ports.network.send(to, encodeMessage(message));
      return {
        receives: (_, message, __, ports) => {
          if (message.kind === "carry" && message.rows.length > 0 && !held.has("root")) {
            held.set("root", []);
            ports.clock.after(HELD_MS, () => {
              const pushes = held.get("root") ?? [];
              held.delete("root");
              for (const push of pushes) send("root", push, ports);
            });
          }
          return [message];
        },
        sends: (to, message) => {
          if (message.kind !== "push") return [message];
          const push = { ...message, floor: message.clock };
          if (held.get(to)?.push(push) !== undefined) return [];
          return [push];
        },
      };
    }),
  change: forgetful,
  from: 238,
};

/** What a site holds in these runs before it is full. */
const FULL_BYTES = 150;

export const dropsWhenFull: Variant = {
  name: "a full site that throws away what it is pushed",
  rule: "bounded: what a full site does not take stays with who has it",
  make: () =>
    hooked(() => ({
      receives: (_, message, replica) =>
        message.kind === "push" && replica.status().pendingBytes > FULL_BYTES
          ? [{ ...message, rows: [] }]
          : [message],
    })),
  change: deep,
};
