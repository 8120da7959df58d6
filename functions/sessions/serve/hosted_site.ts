/**
 * What is asked of a stateful session that a site serves, and what it asks of its site (hosted.ts).
 */
import type { StatefulName } from "../home/mod.ts";
import type { PeerClock } from "../attach/mod.ts";
import type { Parked } from "../turn/mod.ts";
import type { TokenState } from "../../../store/api/api.ts";
import type { PeersSite } from "./hosted_peers.ts";
import type { RunListener } from "./run_over.ts";
import type { SessionRun } from "./session_run.ts";
import type { CallWait, WaitedCall } from "./waits.ts";

/** An answer, and what the stateful session had seen. */
export interface Answered {
  readonly answer: Uint8Array;
  readonly token: TokenState | null;
}

/** A request for a stateful session. */
export interface HostedRequest {
  /** Drawn by whoever asks, the same when it asks again. */
  readonly request: string;
  /** Stateful sessions that wait for it, outermost first. */
  readonly chain: readonly string[];
  readonly bytes: Uint8Array;
  /** What the caller had seen. */
  readonly token: TokenState | null;
  /** Whoever asks waits no longer: what has not been begun is not to be (waits.ts). */
  readonly signal?: AbortSignal;
}

/** Why a stateful session stands still. */
export type Reason = Pick<Parked, "message" | "detail"> & {
  readonly code: Parked["code"] | "isolate_killed";
};

/** What hosted sessions need of their site: the same for all, for there may be many. */
export interface HostedSite {
  readonly clock: PeerClock;
  /** Opens a run. */
  open(name: StatefulName, listener: RunListener): Promise<SessionRun>;
  /** Nothing is left of it here. It may be said again, by one whose name another has by now. */
  gone(one: { readonly name: StatefulName }): void;
  log(name: StatefulName, level: string, text: string): void;
  /** Counts a rejected handler, by what it was for. */
  rejected(what: string): void;
  /** A fault of what goes on around it, of this session only. */
  failed(name: StatefulName, error: unknown): void;
  /** What is on record of one that stands still, wherever it did (parked_table.ts); null: it does not. */
  why(name: StatefulName): string | null;
  park(name: StatefulName, reason: Reason): void;
  /** It goes on: this run serves from now on. */
  serves(name: StatefulName, run: SessionRun): void;
  /** It has ended, and its log is about to go; resolves when it may. Never rejects. */
  ending(name: StatefulName): Promise<void>;
  /** Of the one that has ended: answers that nobody has heard. */
  answersOf(name: StatefulName, unheard: ReadonlyMap<string, Uint8Array>): void;
  /** What a call of this app waits for, wherever it is. Never rejects. */
  waitsOf(call: WaitedCall): Promise<CallWait>;
  /** For those attached. */
  peersOf(name: StatefulName): PeersSite;
}
