/**
 * Interfaces between a stateful session that a site serves (hosted.ts) and that site.
 */
import type { StatefulName } from "../home/mod.ts";
import type { PeerClock } from "../attach/mod.ts";
import type { PeersSite } from "./hosted_peers.ts";
import type { Openings } from "./openings.ts";
import type { Parking } from "./parking.ts";
import type { SessionRun } from "./session_run.ts";
import type { CallWait, WaitedCall } from "./waits.ts";

/** The site's part that hosted sessions need: one object for all of them, for there may be many. */
export interface HostedSite {
  readonly clock: PeerClock;
  readonly openings: Pick<Openings, "open">;
  readonly parking: Pick<Parking, "why" | "park">;
  /**
   * Tells that nothing is left of the session here. It may be told again by an object whose name another has by now.
   */
  gone(one: { readonly name: StatefulName }): void;
  log(name: StatefulName, level: string, text: string): void;
  /** Counts a rejected handler, by the kind of its subject. */
  rejected(what: string): void;
  /** Reports a fault in the work around a session, of this session only. */
  failed(name: StatefulName, error: unknown): void;
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
