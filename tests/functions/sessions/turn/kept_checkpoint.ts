/** Checkpoints as keepers have them. */
import type { Checkpoint, KeptCheckpoint } from "../../../../functions/sessions/turn/mod.ts";

/** What they have with one more. @throws Error where it goes on from another than the last one */
export function keptAfter(
  before: KeptCheckpoint | null,
  { at, bytes, state, on }: Checkpoint,
): KeptCheckpoint {
  if (on !== null && on !== before?.at) {
    throw new Error(`a checkpoint goes on from ${on}, not from ${before?.at}`);
  }
  return { at, bytes, state: [...on === null ? [] : before?.state ?? [], ...state] };
}
