/** Variants of tokens that leave while their session can still write. */
import { NO_FAULTS, type Plan } from "../topology.ts";
import { hooked, type Variant } from "./hooks.ts";
import { uneven } from "./moving.ts";

/** Answers that go on for a while, and users who do not wait for their end before they go elsewhere. */
const streaming = (plan: Plan): Plan => ({
  ...uneven(plan),
  openChance: 0.7,
  operationsMax: 4,
  thinkMs: 60,
  mergeShare: 1,
  faults: NO_FAULTS,
});

export const closesTokens: Variant = {
  name: "an open token taken for one that says it all",
  from: 11,
  rule: "H5: what a session is told after its open token left is asked of its source",
  make: () => hooked(() => ({ presents: (token) => ({ ...token, open: false }) })),
  change: streaming,
};
