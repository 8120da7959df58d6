/** What the simulator of whole sites lets pass, as tests/sim/excuses.ts says: all that the store's does, by the same bounds. */
import { type Excuse, STORE_EXCUSES } from "../sim/excuses.ts";

export const SITES_EXCUSES: readonly Excuse[] = [
  ...STORE_EXCUSES,
  {
    name: "away for more than a minute",
    perHundred: 20,
    says: "who is away from a session for more than a minute is detached",
  },
  {
    name: "a write with a check, with its disk",
    perHundred: 1,
    says:
      "Where the disk is lost, it is made ten seconds after all sites know that, if no mark has come by then: what that disk alone had of it is gone",
  },
  {
    name: "called, and out of reach since",
    perHundred: 2,
    says: "and does not know whether it was run",
  },
];
