/**
 * Salvage of a stateful session that can't go on from its log: an isolate of the code that wrote the log makes a
 * checkpoint of what can be kept (functions/sessions/turn/salvage.ts).
 *
 * SA1  Nothing of the session leaves: of all that the isolate sends, only the result of the salvage is heard.
 */
import { z } from "zod";
import type { Checkpoint, Parked } from "../turn/mod.ts";
import { Problem } from "../../vocabulary/problem.ts";
import type { ChannelSink, OpenChannel } from "./ports.ts";

const saidSchema = z.object({
  /** Last entry of the log that the checkpoint has. */
  through: z.number().int().nonnegative(),
  /** Why the replay went no further; null: that is the whole log. */
  why: z.string().nullable(),
  /** Calls and closure timers that are given up. */
  open: z.array(z.string()),
  /** Fields that are given up, and why. */
  leftOut: z.array(z.string()),
});

/** The checkpoint that was salvaged, and what is not in it. */
export interface Salvaged extends z.infer<typeof saidSchema> {
  readonly checkpoint: Checkpoint;
}

/** Salvages the session in the isolate that `open` opens. @throws Problem, what `open` throws */
export async function salvage(open: (sink: ChannelSink) => Promise<OpenChannel>): Promise<Salvaged> {
  const checkpoint = Promise.withResolvers<Checkpoint>(), said = Promise.withResolvers<Parked>();
  const lost = ({ why }: { readonly why: string }) => {
    const problem = new Problem("isolate_killed", `its log can't be replayed: the isolate was ended: ${why}`);
    checkpoint.reject(problem);
    said.reject(problem);
  };
  for (const { promise } of [checkpoint, said] as const) promise.catch(() => {});
  const nothing = () => {};
  const { isolate, channel } = await open({
    ...{ opened: nothing, commit: nothing, call: nothing, dropped: nothing, log: nothing }, // SA1
    checkpointed: checkpoint.resolve,
    parked: said.resolve,
    ended: lost,
  });
  try {
    const { code, message, detail } = await said.promise;
    if (code !== "salvaged") throw new Problem("stateful_parked", `nothing can be kept of it: ${message}`);
    return { ...saidSchema.parse(detail), checkpoint: await checkpoint.promise };
  } finally {
    isolate.closeChannel(channel);
  }
}
