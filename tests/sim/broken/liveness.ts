/**
 * Variants that never come to an end: nothing that they show is wrong, but something never arrives. They are caught
 * in the liveness phase, by what a history lacks.
 */
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
