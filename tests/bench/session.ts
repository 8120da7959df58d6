/** Stateful sessions (CESSNA, figures 2 to 6). */
import type { Bench } from "./bench.ts";
import { tracked } from "./session/tracked.ts";
import { turns } from "./session/turns.ts";

export const bench: Bench = {
  name: "session",
  summary:
    "stateful sessions: what a message and its replay take, checkpoints of tracked state, loads, memory",
  notMeasured: "the socket of an isolate, the transfer of a checkpoint, and its way to a disk",
  byDefault: true,
  run: async (context) => [...await turns(context), ...await tracked(context)],
};
