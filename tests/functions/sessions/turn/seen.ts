/** How a run is made, and what is seen of it from outside: what the checker gets. */
import type { Parked, Rejection } from "../../../../functions/sessions/turn/mod.ts";
import type { WhenThrown } from "../../../../functions/class/when_thrown.ts";
import type { Applied, Posted } from "./outside.ts";
import type { Step } from "./robot.ts";
import type { Sitter } from "./sitters.ts";

/** How a run is made. */
export interface Plan {
  /** Between two losses of an isolate, in milliseconds; 0: none. */
  readonly lossEveryMs: number;
  /** Milliseconds until a commit is kept, at most. */
  readonly keepMs: number;
  readonly callMs: number;
  /** Until outputs and writes are where they go, at most. */
  readonly arriveMs: number;
  readonly isCheckpointing: boolean;
  /** A state of any size is as one that takes long to write down. */
  readonly isLarge: boolean;
  readonly whenThrown: WhenThrown;
}

/** What a receiver got, in the order in which it came. */
export interface Received {
  readonly to: string;
  readonly sequence: number;
  readonly bytes: Uint8Array;
  readonly atMs: number;
}

/** All that is seen from outside: what the checker gets. */
export interface Seen {
  readonly asked: ReadonlyMap<string, { readonly script: readonly Step[]; readonly throws: boolean }>;
  /** Those that may have failed for another reason. */
  readonly killed: ReadonlySet<string>;
  readonly received: readonly Received[];
  readonly posted: readonly Posted[];
  /** What was applied to the store, each time. */
  readonly applied: readonly Applied[];
  readonly parked: Parked | null;
  /** In the order of the log. */
  readonly rejections: readonly Rejection[];
  readonly whenThrown: WhenThrown;
  /** Clients that came, and may have gone. */
  readonly sitters: readonly Sitter[];
  /** When all was over. */
  readonly endMs: number;
}
