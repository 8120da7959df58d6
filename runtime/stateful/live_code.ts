/** Code of deployed versions, as the sessions of a site run it: isolates, stores and ways to the outside. */
import type { StatefulName } from "../../functions/sessions/home/mod.ts";
import type { OpenSession } from "../../functions/sessions/turn/mod.ts";
import type { ChannelSink, OpenChannel, OutsideRequests } from "../../functions/sessions/serve/ports.ts";
import type { CodeTable, SessionCode } from "../../functions/sessions/serve/versions.ts";
import type { Replica } from "../../store/api/api.ts";
import type { FrameWay } from "../../functions/sessions/attach/frame_way.ts";
import type { AppTable, LiveVersion } from "../deploy/mod.ts";
import type { Prepared } from "../gateway/app_runner.ts";
import type { StoreLimits } from "../gateway/session_store.ts";
import type { EgressRules } from "../isolate/egress_rules.ts";
import type { IsolateApp, StatefulPool } from "../isolate/mod.ts";
import { type HttpOrigin, outsideRequests } from "./outside_requests.ts";
import { sessionRows } from "./session_rows.ts";

/** Site, as the code of its sessions needs it. */
export interface LiveCodeServices {
  readonly apps: Pick<AppTable, "get" | "version" | "onChange">;
  readonly pool: Pick<StatefulPool, "open">;
  /** Prepares an isolate: a session whose log is here is being opened, and is likely to need one. */
  readonly prepare?: (name: StatefulName, app: IsolateApp) => void;
  readonly replica: Pick<Replica, "attach">;
  readonly limits: StoreLimits;
  /** Reads the wall clock. */
  readonly nowMs: () => number;
  /** Returns what all runs of a version share. */
  readonly prepared: (version: LiveVersion) => Prepared;
  readonly egressOf: (version: LiveVersion) => EgressRules;
  /** Returns the HTTP origin that a class of a version has. */
  readonly originOf: (name: StatefulName, version: LiveVersion) => HttpOrigin | null;
  /** Function of this name in SessionCode. */
  readonly originWay: (name: StatefulName, version: LiveVersion) => (() => Promise<FrameWay>) | null;
}

/** Returns the code that replays a log: a version of the app, in one build of Deno on one architecture. */
export const replayCode = (version: string): string =>
  `${version} deno ${Deno.version.deno} ${Deno.build.arch}`;

/** Returns the code of a site's versions; what all sessions of a version share is made once: there may be many. */
export function liveCode(services: LiveCodeServices): CodeTable<SessionCode> {
  const { apps } = services;
  const made = new WeakMap<LiveVersion, SessionCode>();
  const codeOf = (version: LiveVersion): SessionCode => {
    const known = made.get(version);
    if (known !== undefined) return known;
    const code = new VersionCode(version, services);
    made.set(version, code);
    return code;
  };
  return {
    get: (app) => {
      const live = apps.get(app);
      return live && { current: codeOf(live.current) };
    },
    version: async (app, version) => {
      const found = await apps.version(app, version);
      return found && codeOf(found);
    },
    onChange: (listener) => apps.onChange(listener),
  };
}

/** Code of one version. What isolates and stores need is made when the first session needs it. */
class VersionCode implements SessionCode {
  readonly app: string;
  readonly version: string;
  readonly manifest: LiveVersion["manifest"];
  readonly #live: LiveVersion;
  readonly #services: LiveCodeServices;
  #stores: SessionCode["stores"] | null = null;
  #egress: EgressRules | null = null;

  constructor(live: LiveVersion, services: LiveCodeServices) {
    this.app = live.app;
    this.version = live.version;
    this.manifest = live.manifest;
    this.#live = live;
    this.#services = services;
  }

  get replay(): string {
    return replayCode(this.version);
  }

  get stores(): SessionCode["stores"] {
    if (this.#stores !== null) return this.#stores;
    const { replica, limits, nowMs, prepared } = this.#services;
    const { space, writes, lane } = prepared(this.#live);
    return this.#stores = { replica, nowMs, lane, ...sessionRows({ space, limits, writes }) };
  }

  open(session: OpenSession, sink: ChannelSink): Promise<OpenChannel> {
    return this.#services.pool.open(this.#services.prepared(this.#live).app, session, sink);
  }

  prepare(name: StatefulName): void {
    this.#services.prepare?.(name, this.#services.prepared(this.#live).app);
  }

  outsideOf(name: StatefulName): OutsideRequests {
    this.#egress ??= this.#services.egressOf(this.#live);
    return outsideRequests(this.#egress, this.#services.originOf(name, this.#live));
  }

  originWay(name: StatefulName): (() => Promise<FrameWay>) | null {
    return this.#services.originWay(name, this.#live);
  }
}
