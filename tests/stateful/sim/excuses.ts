/** What the simulator of homes lets pass, as tests/sim/excuses.ts says. */
import type { Excuse } from "../../sim/excuses.ts";

const KEPT = "is run once, and its answer is kept for a minute, as far as there is room";

export const HOMES_EXCUSES: readonly Excuse[] = [
  { name: "an answer that is not kept any more", perHundred: 80, says: KEPT },
  { name: "an answer that is not kept any more, by a clock that was set", perHundred: 30, says: KEPT },
  { name: "an answer that went for want of room", perHundred: 30, says: KEPT },
];
