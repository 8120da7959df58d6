/** What the checkers of queues let pass, as tests/sim/excuses.ts says. */
import type { Excuse } from "../../sim/excuses.ts";

export const QUEUES_EXCUSES: readonly Excuse[] = [
  {
    name: "doubled: a site was gone, or not heard",
    perHundred: 400,
    says: "only if a site that had it was gone for a while, or could not be heard",
  },
  {
    name: "together: a site was gone, or not heard",
    perHundred: 950,
    says: "only if a site that had it was gone for a while, or could not be heard",
  },
  {
    name: "doubled: the consumer was late",
    perHundred: 10,
    says: "or its consumer was late",
  },
  {
    name: "together: the consumer was late",
    perHundred: 1_600,
    says: "or its consumer was late",
  },
];
