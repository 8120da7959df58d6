/** The standbys of a site, over isolates of their own (runtime/stateful/standbys.ts). */
import type { Homes } from "../../functions/homes/mod.ts";
import type { Replica } from "../../store/api.ts";
import type { AppTable, LiveVersion } from "../deploy/mod.ts";
import type { Prepared } from "../gateway/app_runner.ts";
import type { StatefulPool } from "../isolate/mod.ts";
import { Standbys } from "../stateful/standbys.ts";
import { codeOf, versionOfLog } from "../stateful/versions.ts";

/** What they are made of. */
export interface StandbyParts {
  readonly site: string;
  readonly homes: Homes;
  readonly replica: Pick<Replica, "owners">;
  readonly pool: StatefulPool;
  readonly apps: AppTable;
  readonly prepared: (version: LiveVersion) => Prepared;
  readonly takeOver: (name: Parameters<Standbys["take"]>[0]) => void;
  readonly appLog: (line: { app: string; version: string; level: string; text: string }) => void;
}

/** Makes them; `Homes` tells them of logs. */
export function standbysOf(parts: StandbyParts): Standbys {
  const { site, homes, pool, apps, takeOver } = parts;
  const { owners } = parts.replica, { detector } = owners;
  return new Standbys({
    ...{ site, takeOver, logs: homes.followable },
    wantsAny: () =>
      apps.list().some(({ current }) =>
        Object.values(current.manifest.sessions).some(({ standby }) => standby)
      ),
    wants: ({ app, class: className }) => {
      const sessions = apps.get(app)?.current.manifest.sessions ?? {};
      return Object.hasOwn(sessions, className) && sessions[className]?.standby === true;
    },
    codeOf: async ({ app }, copy) => {
      const found = await apps.version(app, versionOfLog(copy));
      return found && { version: found.version, code: codeOf(found.version) };
    },
    follow: async ({ app }, version, session, sink) => {
      const found = await apps.version(app, version);
      if (found === undefined) throw new Error(`version ${version.slice(0, 8)} of ${app} is there no more`);
      return await pool.follow(parts.prepared(found).app, session, sink);
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
