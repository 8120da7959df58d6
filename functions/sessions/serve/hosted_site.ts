/**
 * Interfaces between a stateful session that a site serves (hosted.ts) and that site.
 */
import type { StatefulName } from "../home/mod.ts";
import type { PeerClock } from "../attach/mod.ts";
import type { Parked } from "../turn/mod.ts";
import type { PeersSite } from "./hosted_peers.ts";
import type { RunListener } from "./run_over.ts";
import type { SessionRun } from "./session_run.ts";
import type { CallWait, WaitedCall } from "./waits.ts";

/** Reason for which a stateful session stands still. */
export type Reason = Pick<Parked, "message" | "detail"> & {
  readonly code: Parked["code"] | "isolate_killed";
};

/** The site's part that hosted sessions need: one object for all of them, for there may be many. */
export interface HostedSite {
  readonly clock: PeerClock;
  /** Opens a run. */
  open(name: StatefulName, listener: RunListener): Promise<SessionRun>;
  /**
   * Tells that nothing is left of the session here. It may be told again by an object whose name another has by now.
   */
  gone(one: { readonly name: StatefulName }): void;
  log(name: StatefulName, level: string, text: string): void;
  /** Counts a rejected handler, by the kind of its subject. */
  rejected(what: string): void;
  /** Reports a fault in the work around a session, of this session only. */
  failed(name: StatefulName, error: unknown): void;
  /**
   * Returns the reason on record for a session that stands still, wherever it does (parked_table.ts); null: it does
   * not.
   */
  why(name: StatefulName): string | null;
  park(name: StatefulName, reason: Reason): void;
  /** Tells that the session goes on: this run serves from now on. */
  serves(name: StatefulName, run: SessionRun): void;
  /** Tells that the session has ended, and its log is about to go; resolves when it may go. Never rejects. */
  ending(name: StatefulName): Promise<void>;
  /** Takes the answers of a session that has ended which nobody has heard. */
  answersOf(name: StatefulName, unheard: ReadonlyMap<string, Uint8Array>): void;
  /** Returns what a call of this app waits for, wherever it is. Never rejects. */
  waitsOf(call: WaitedCall): Promise<CallWait>;
  /** Returns the ports of a session's peers. */
  peersOf(name: StatefulName): PeersSite;
}
