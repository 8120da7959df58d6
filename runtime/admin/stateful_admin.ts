/** Stateful sessions of a site, as the admin handlers reach them. */
import type { HomeRow, StatefulName } from "../../functions/sessions/home/mod.ts";
import type { Mending } from "../../functions/sessions/serve/mending.ts";
import type { ParkedReport } from "../../functions/sessions/serve/ports.ts";

/** State of a stateful session, as its home knows it. */
export interface SessionLook {
  readonly state: string;
  /** Version of the code that runs it, where it is open: the row has that of its last opening. */
  readonly version?: string;
  readonly sequence: number;
  readonly checkpoint: number;
  readonly logBytes: number;
  readonly timers: readonly { readonly name: string; readonly dueMs: number }[];
  readonly waiting: number;
  /** Messages to queues that wait to be stored, and why the first of them does; null: none. */
  readonly unsent: { readonly messages: number; readonly why: string } | null;
  /** Number of peers that are attached; `apart`: those of them without a channel. */
  readonly attached: number;
  readonly apart: number;
  /** Ids of some of the peers. */
  readonly peers: readonly string[];
  readonly problem: string | null;
}

/** Stateful sessions of a site, as the admin handlers use them. */
export interface StatefulAdmin {
  /** Lists the arbiter's rows; null below the root. */
  readonly rows:
    | ((options: {
      readonly app?: string;
      readonly after?: StatefulName;
      readonly limit: number;
    }) => Promise<readonly HomeRow[]>)
    | null;
  /** Returns the reason why a session stands still, wherever it is at home; null: it does not. */
  parked(name: StatefulName): ParkedReport | null;
  /** Remedies for a session that stands still, at its home. */
  readonly mending: Mending;
  /** Returns the state of a session; null: it is not in memory here. */
  look(name: StatefulName): SessionLook | null;
  /**
   * Moves a session that is at home here. @throws HomeError `move_refused`: it goes on here.
   *
   * @param drainMs milliseconds that running requests may go on.
   */
  move(name: StatefulName, to: string, drainMs: number): Promise<void>;
  /** Ends a session that is at home here, or that no other site has. @throws HomeError */
  remove(name: StatefulName): Promise<void>;
}
