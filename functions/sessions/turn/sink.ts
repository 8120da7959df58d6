/** Sink for what stateful sessions give out: the port of an isolate to its site, one for all its sessions. */
import type { Call, Checkpoint, Commit, OpenedProgram, Parked } from "./commit.ts";

/** Receiver of what sessions give out. `channel` is the number under which the site has opened the session. */
export interface SessionSink {
  opened(channel: number, opened: OpenedProgram): void;
  commit(channel: number, commit: Commit): void;
  /** A call without an effect: the site makes it at once, and answers with the event `result`. */
  call(channel: number, call: Call): void;
  /** Tells that nobody waits for this call any more (its handler was rejected, its signal aborted). */
  dropped(channel: number, call: number): void;
  /** Gives out a checkpoint, after the commit with its entry, so that a site that has both may cut what is before. */
  checkpoint(channel: number, checkpoint: Checkpoint): void;
  /** Tells that the session stands still; nothing follows. */
  parked(channel: number, parked: Parked): void;
  /** Writes a line for the log of the app. */
  log(channel: number, level: string, text: string): void;
}
