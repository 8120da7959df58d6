/** Services of a site that hosting stateful sessions (session_host.ts) needs. */
import type { Homes, StatefulName } from "../../functions/sessions/home/mod.ts";
import type { Replica } from "../../store/api/api.ts";
import type { ClockValue } from "../../store/model/row.ts";
import type { AppTable, LiveVersion } from "../deploy/app_table.ts";
import type { Prepared } from "../gateway/app_runner.ts";
import type { StoreLimits } from "../gateway/session_store.ts";
import type { EgressRules } from "../isolate/egress_rules.ts";
import type { IsolateApp, StatefulPool } from "../isolate/mod.ts";
import type { FrameWay } from "../../functions/sessions/attach/frame_way.ts";
import type { HttpOrigin } from "./outside_requests.ts";
import type { EndedLogs } from "../../functions/sessions/serve/ended_logs.ts";
import type { CallingSite } from "../../functions/sessions/serve/session_calls.ts";
import type { ParkedTable } from "./parked_table.ts";
import type { Standby } from "../../functions/sessions/serve/standby.ts";
import type { CallWait, WaitedCall } from "../../functions/sessions/serve/waits.ts";

/** Site, as hosting needs it. */
export interface HostServices extends CallingSite {
  readonly homes: Homes;
  readonly pool: Pick<StatefulPool, "open">;
  /** Prepares an isolate: a session whose log is here is being opened, and is likely to need one. */
  readonly prepare?: (name: StatefulName, app: IsolateApp) => void;
  /** Returns a standby that has followed a session up to that entry, with that code (standbys.ts). */
  readonly standby: (name: StatefulName, version: string, last: number) => Promise<Standby | null>;
  readonly replica: Pick<Replica, "attach" | "status">;
  /** Reads the store's clock: what is drawn of it later is later. */
  readonly storeClock: () => ClockValue;
  readonly apps: Pick<AppTable, "get" | "version" | "onChange">;
  /** Returns what all runs of a version share. */
  readonly prepared: (version: LiveVersion) => Prepared;
  readonly egressOf: (version: LiveVersion) => EgressRules;
  readonly limits: StoreLimits;
  readonly idleMs: number;
  /** Largest number of channels of attached peers. */
  readonly channelsMax: number;
  /** Draws a new peer's id. */
  readonly newPeer: () => string;
  /** Secrets of the cluster, newest first: peers' keys and sealed logs are made with them. */
  readonly secrets: readonly [Uint8Array, ...Uint8Array[]];
  /** Reads the wall clock. */
  readonly nowMs: () => number;
  /** Milliseconds for which the last answers of a session that ended are kept for callers that ask again. */
  readonly lastAnswersMs?: number;
  /** Logs of sessions that ended; left out: none are kept. */
  readonly endedLogs?: Pick<EndedLogs, "keep" | "drop" | "sweep">;
  /** Returns what a call waits for, at whichever site. Never rejects. */
  readonly waitsOf: (call: WaitedCall) => Promise<CallWait>;
  /** Counts rejected handlers, by what they were for. */
  readonly countRejected: (what: string) => void;
  /** Reports a fault that concerns one session. */
  readonly failed: (name: StatefulName, error: unknown) => void;
  /** Returns the HTTP origin that a class of a version has. */
  readonly originOf: (name: StatefulName, version: LiveVersion) => HttpOrigin | null;
  /**
   * Returns what opens a way to the end of the origin that attaches to sessions of the class; null: the class has none.
   */
  readonly originWay: (name: StatefulName, version: LiveVersion) => (() => Promise<FrameWay>) | null;
  /** Sessions that stand still. */
  readonly parked: ParkedTable;
  readonly site: string;
  /** Returns a text with its places in a version's bundle told as places in its sources. */
  readonly mapped: (version: string, text: string) => Promise<string>;
  /** Returns a text without the app's secrets. */
  readonly redact: (app: string, text: string) => string;
  readonly log: (line: { app: string; version: string; level: string; text: string }) => void;
}
