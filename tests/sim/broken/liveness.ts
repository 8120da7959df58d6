/**
 * Variants that never come to an end: nothing that they show is wrong, but something never arrives. They are caught
 * in the liveness phase, by what a history lacks, or after it, by clocks that stand still.
 */
import type { SiteId } from "../../../store/model/ports.ts";
import { NO_FAULTS, type Plan } from "../topology.ts";
import { hooked, type Variant } from "./hooks.ts";

export const neverAcknowledges: Variant = {
  name: "pushes that are never acknowledged",
  rule: "I2: acknowledgements travel in the feed",
  make: () =>
    hooked(() => ({ sends: (_, message) => [message.kind === "feed" ? { ...message, acked: 0 } : message] })),
  checkers: ["liveness"],
};

export const neverFetches: Variant = {
  name: "a miss that is never answered",
  rule: "I3: a fetch is answered in the feed",
  make: () => hooked(() => ({ sends: (_, message) => message.kind === "fetched" ? [] : [message] })),
  checkers: ["liveness"],
};

export const neverConverges: Variant = {
  name: "one row in five that is never fed",
  from: 10,
  rule: "I2: a feed has all covered rows past the cursor",
  make: () =>
    hooked(() => ({
      sends: (_, message) =>
        message.kind === "feed"
          ? [{ ...message, rows: message.rows.filter((row) => row.clock % 5 !== 0) }]
          : [message],
    })),
  // One user a key, and no atomic writes: nobody's past tells what is missing, only the comparison in the end does.
  change: (plan) => ({
    ...plan,
    sessions: 2,
    ownKeys: true,
    moveChance: 0,
    weights: { ...plan.weights, atomic: 0, checked: 0 },
  }),
};

export const neverRises: Variant = {
  name: "a floor that never rises",
  rule: "I9: the watermark goes up to what all sites say that the root has",
  make: () =>
    hooked(() => ({ sends: (_, message) => [message.kind === "push" ? { ...message, floor: 0 } : message] })),
  checkers: ["stable clocks"],
};

/** Sites that change places all the time, and notice late that a link has ended. */
const changingPlaces = (plan: Plan): Plan => {
  const [any] = plan.sites;
  if (any === undefined) return plan;
  const site = (id: string, parent: string | null, depth: number) => ({
    ...any,
    ...{ id, parent, depth, skewMs: 0, drift: 0, linkLoss: 0, linkMs: [1, 2] as const },
    tier: parent === null ? "root" as const : id === "edge" ? "edge" as const : "core" as const,
    owners: { ...any.owners, f: 0 },
  });
  return {
    ...plan,
    sites: [
      site("root", null, 0),
      site("upper", "root", 1),
      site("lower", "upper", 2),
      site("edge", "upper", 2),
    ],
    sessions: 2,
    requests: 20,
    safetyMs: 1_500,
    watch: null,
    faults: { ...NO_FAULTS, move: 10 },
    noticeMs: [300, 1_500],
    crashes: [],
  };
};

/** Time for which a noticed end of a link waits for its turn: the next link may be up by then. */
const TURN_MS = 5;

export const keepsFormerChild: Variant = {
  name: "the end of a link that the next one makes void",
  rule: "inboxes B4: the end of a link is acted upon at once",
  make: () =>
    hooked(() => ({
      links: (inner, { clock }) => {
        const ends = new Map<SiteId, () => void>();
        const isVoid = (site: SiteId) => ends.get(site)?.();
        return {
          connected: (site, role) => {
            isVoid(site);
            inner.connected(site, role);
          },
          disconnected: (site) => {
            isVoid(site);
            ends.set(site, clock.after(TURN_MS, () => inner.disconnected(site)));
          },
        };
      },
    })),
  change: changingPlaces,
  checkers: ["stable clocks"],
};
