/** Stateful sessions as the admin handlers reach them. */
import type { HomeRow, StatefulName } from "../../functions/sessions/home/mod.ts";
import type { Mending } from "../stateful/mending.ts";
import type { ParkedReport } from "../stateful/parked_table.ts";

/** What the home knows of a stateful session. */
export interface SessionLook {
  readonly state: string;
  /** The code that runs it, where it is open: the row has that of its last opening. */
  readonly version?: string;
  readonly sequence: number;
  readonly checkpoint: number;
  readonly logBytes: number;
  readonly timers: readonly { readonly name: string; readonly dueMs: number }[];
  readonly waiting: number;
  /** Who is attached; `apart`: those of them without a channel. */
  readonly attached: number;
  readonly apart: number;
  /** The ids of some of them. */
  readonly peers: readonly string[];
  readonly problem: string | null;
}

/** What the admin handlers need of a site's stateful sessions. */
export interface StatefulAdmin {
  /** The arbiter's rows; null below the root. */
  readonly rows:
    | ((options: {
      readonly app?: string;
      readonly after?: StatefulName;
      readonly limit: number;
    }) => Promise<readonly HomeRow[]>)
    | null;
  /** Why it stands still, wherever it is at home; null: it does not. */
  parked(name: StatefulName): ParkedReport | null;
  /** What is done about one that stands still, at its home. */
  readonly mending: Mending;
  /** null: it is not in memory here. */
  look(name: StatefulName): SessionLook | null;
  /**
   * Moves one that is at home here. @throws HomeError `move_refused`: it goes on here.
   *
   * @param drainMs so long what was begun may go on.
   */
  move(name: StatefulName, to: string, drainMs: number): Promise<void>;
  /** Ends one that is at home here, or that nobody else has. @throws HomeError */
  remove(name: StatefulName): Promise<void>;
}
