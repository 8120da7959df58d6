/**
 * Standbys that a site has ready for sessions at home elsewhere, over isolates of their own
 * (functions/sessions/serve/standbys.ts), and a process that waits for one (runtime/stateful/readiness.ts).
 */
import type { Homes, StatefulName } from "../../functions/sessions/home/mod.ts";
import type { Replica } from "../../store/api/api.ts";
import type { AppTable, LiveVersion } from "../deploy/mod.ts";
import type { Prepared } from "../gateway/app_runner.ts";
import type { StatefulPool } from "../isolate/mod.ts";
import { Readiness } from "../stateful/readiness.ts";
import { SYSTEM_CLOCK } from "../stateful/clock.ts";
import { Standbys } from "../../functions/sessions/serve/standbys.ts";
import { versionOfLog } from "../../functions/sessions/serve/versions.ts";
import { replayCode } from "../stateful/live_code.ts";

/** Services of the site that standbys use. */
export interface StandbyParts {
  readonly site: string;
  readonly homes: Homes;
  readonly replica: Pick<Replica, "owners">;
  /** Isolates of followed sessions, and those of sessions that are at home here. */
  readonly pool: StatefulPool;
  readonly homePool: StatefulPool;
  readonly apps: AppTable;
  readonly prepared: (version: LiveVersion) => Prepared;
  readonly takeOver: (name: Parameters<Standbys["take"]>[0]) => void;
  readonly appLog: (line: { app: string; version: string; level: string; text: string }) => void;
}

/** Reports whether a session's class asks for a standby. */
function hasStandby(apps: AppTable, { app, class: className }: StatefulName): boolean {
  const sessions = apps.get(app)?.current.manifest.sessions ?? {};
  return Object.hasOwn(sessions, className) && sessions[className]?.standby === true;
}

/** Returns the processes that wait at this site for others' sessions; `Homes` tells it of logs. */
export function readinessOf({ site, homes, apps, prepared, homePool }: StandbyParts): Readiness {
  return new Readiness({
    ...{ site, pool: homePool, logs: homes.followable },
    hasStandby: (name) => hasStandby(apps, name),
    appOf: (app) => {
      const live = apps.get(app)?.current;
      return live && prepared(live).app;
    },
  });
}

/** Returns the standbys; `Homes` tells them of logs. */
export function standbysOf(parts: StandbyParts): Standbys {
  const { site, homes, pool, homePool, apps, takeOver } = parts;
  const { owners } = parts.replica, { detector } = owners;
  return new Standbys({
    ...{ site, takeOver, logs: homes.followable, clock: SYSTEM_CLOCK },
    wantsAny: () =>
      apps.list().some(({ current }) =>
        Object.values(current.manifest.sessions).some(({ standby }) => standby)
      ),
    wants: (name) => hasStandby(apps, name),
    codeOf: async ({ app }, copy) => {
      const found = await apps.version(app, versionOfLog(copy));
      return found && { version: found.version, code: replayCode(found.version) };
    },
    follow: async ({ app }, version, session, sink, isAhead) => {
      const found = await apps.version(app, version);
      if (found === undefined) throw new Error(`version ${version.slice(0, 8)} of ${app} is there no more`);
      return await (isAhead ? homePool : pool).follow(parts.prepared(found).app, session, sink);
    },
    fellows: {
      isLost: (one) => !owners.isKnown(one) || ["suspected", "dead"].includes(detector.presence(one)),
      watch: (one) => detector.watch(one),
      onChange: (changed) => detector.onPresence(changed),
    },
    log: ({ app }, level, text) => {
      parts.appLog({ app, version: apps.get(app)?.current.version ?? "", level, text });
    },
  });
}
