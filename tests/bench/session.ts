/** Stateful sessions (CESSNA, figures 2 to 6). */
import type { Bench } from "./bench.ts";
import { tracked } from "./session/tracked.ts";

export const bench: Bench = {
  name: "session",
  summary: "stateful sessions: checkpoints of tracked state, loads, memory",
  notMeasured: "the transfer of a checkpoint, and its way to a disk",
  byDefault: true,
  run: tracked,
};
