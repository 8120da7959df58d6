/** What hosting stateful sessions (session_host.ts) needs of its site. */
import type { Homes, StatefulName } from "../../functions/sessions/home/mod.ts";
import type { PeerClock } from "../../functions/sessions/attach/mod.ts";
import type { CallToSession } from "../../functions/sessions/turn/mod.ts";
import type { Replica, TokenState } from "../../store/api/api.ts";
import type { ClockValue } from "../../store/model/row.ts";
import type { AppTable, LiveVersion } from "../deploy/app_table.ts";
import type { Prepared } from "../gateway/app_runner.ts";
import type { StoreLimits } from "../gateway/session_store.ts";
import type { KeptReply } from "../gateway/stateful_calls.ts";
import type { EgressRules } from "../isolate/egress_rules.ts";
import type { IsolateApp, StatefulPool } from "../isolate/mod.ts";
import type { FrameWay } from "../../functions/sessions/attach/frame_way.ts";
import type { HttpOrigin } from "./made_calls.ts";
import type { EndedLogs } from "../../functions/sessions/serve/ended_logs.ts";
import type { ParkedTable } from "./parked_table.ts";
import type { Standby } from "../../functions/sessions/serve/standby.ts";
import type { CallWait, WaitedCall } from "../../functions/sessions/serve/waits.ts";

/** What hosting needs of its site. */
export interface HostServices {
  readonly homes: Homes;
  readonly pool: Pick<StatefulPool, "open">;
  /** A session whose log is here is being opened: an isolate is likely to be needed. */
  readonly prepare?: (name: StatefulName, app: IsolateApp) => void;
  /** Who has followed a session up to that entry, with that code (standbys.ts). */
  readonly standby: (name: StatefulName, version: string, last: number) => Promise<Standby | null>;
  readonly replica: Pick<Replica, "attach" | "status">;
  /** The store's clock: what is drawn of it later is later. */
  readonly storeClock: () => ClockValue;
  readonly apps: Pick<AppTable, "get" | "version" | "onChange">;
  /** What all runs of a version share. */
  readonly prepared: (version: LiveVersion) => Prepared;
  readonly egressOf: (version: LiveVersion) => EgressRules;
  readonly limits: StoreLimits;
  readonly idleMs: number;
  /** Of those attached, at most. */
  readonly channelsMax: number;
  /** A new peer's id. */
  readonly newPeer: () => string;
  /** The cluster's, newest first: peers' keys and sealed logs are made with them. */
  readonly secrets: readonly [Uint8Array, ...Uint8Array[]];
  /** The wall clock. */
  readonly nowMs: () => number;
  /** So long the last answers of one that ended are kept for who asks again. */
  readonly lastAnswersMs?: number;
  /** Where logs of those that ended are kept; nowhere where it is left out. */
  readonly endedLogs?: Pick<EndedLogs, "keep" | "drop" | "sweep">;
  /** The system's, where it is left out. */
  readonly clock?: PeerClock;
  /** Calls another stateful session for one that is at home here. */
  readonly call: (
    from: StatefulName,
    call: CallToSession,
    request: string,
    token: TokenState,
    signal: AbortSignal,
  ) => Promise<KeptReply>;
  /** What a call waits for, at whichever site. Never rejects. */
  readonly waitsOf: (call: WaitedCall) => Promise<CallWait>;
  /** Counts rejected handlers, by what they were for. */
  readonly countRejected: (what: string) => void;
  /** A fault that concerns one session. */
  readonly failed: (name: StatefulName, error: unknown) => void;
  /** The HTTP origin that a class of a version has. */
  readonly originOf: (name: StatefulName, version: LiveVersion) => HttpOrigin | null;
  /** Opens a way to the end of the origin that attaches to sessions of its class; null: it has none. */
  readonly originWay: (name: StatefulName, version: LiveVersion) => (() => Promise<FrameWay>) | null;
  /** Which stand still. */
  readonly parked: ParkedTable;
  readonly site: string;
  /** A text with its places in a version's bundle told as places in its sources. */
  readonly mapped: (version: string, text: string) => Promise<string>;
  /** A text without the app's secrets. */
  readonly redact: (app: string, text: string) => string;
  readonly log: (line: { app: string; version: string; level: string; text: string }) => void;
}
