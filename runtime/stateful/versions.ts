/** Code that a stateful session runs: that of the version that serves its app, or that wrote its log. */
import type { EgressRules } from "../isolate/egress_rules.ts";
import type { HostServices } from "./host_services.ts";
import { sessionRows } from "./session_rows.ts";
import type { OwnStoreServices } from "../../functions/sessions/serve/own_store.ts";
import type { OpenedSession, StatefulName } from "../../functions/sessions/home/mod.ts";
import { writerOf } from "../../functions/sessions/turn/mod.ts";
import { CodecError } from "../../store/model/codec.ts";
import type { AppTable, LiveVersion } from "../deploy/mod.ts";
import { Problem } from "../../functions/vocabulary/problem.ts";
import { openPiece } from "../../functions/sessions/serve/pieces.ts";

/** Returns the version that serves a session's app. @throws Problem */
export function currentVersion(
  apps: Pick<AppTable, "get">,
  name: Pick<StatefulName, "app" | "class">,
): LiveVersion {
  const live = apps.get(name.app);
  if (live === undefined) throw new Problem("app_unknown", `no app is called ${name.app} here`);
  const classes = Object.keys(live.current.manifest.sessions);
  if (classes.includes(name.class)) return live.current;
  throw new Problem(
    "not_available",
    `${name.app} declares no stateful session called ${name.class}; it has: ${classes.join(", ") || "none"}`,
  );
}

/** Returns the version that wrote a log (session_host.ts, S2). @throws Problem */
export async function writtenBy(
  apps: Pick<AppTable, "version">,
  name: StatefulName,
  version: string,
): Promise<LiveVersion> {
  const found = await apps.version(name.app, version);
  if (found !== undefined) return found;
  throw new Problem(
    "stateful_parked",
    `the log of ${name.class} ${JSON.stringify(name.id)} was written by version ${
      version.slice(0, 8)
    } of ${name.app}, which is there no more: deploy it again, or delete the session`,
  );
}

/** Returns the code that replays a log: a version of the app, in one build of Deno on one architecture. */
export const replayCode = (version: string): string =>
  `${version} deno ${Deno.version.deno} ${Deno.build.arch}`;

/**
 * Returns the version that a log goes on with: the one that wrote what is behind its checkpoint, as that says by
 * itself. The checkpoint names the code that was to read it; where that never came to it, other code has gone on. So
 * has other code than the first with a session that had no entry.
 */
export function versionOfLog({ version, checkpoint, log }: KeptOpening): string {
  try {
    const pieces = log.values().map(({ bytes }) => openPiece(bytes).bytes);
    const code = writerOf(checkpoint && openPiece(checkpoint.bytes).bytes, pieces);
    return code?.slice(0, code.indexOf(" ")) ?? version;
  } catch (error) {
    if (error instanceof CodecError) return version; // who replays it says so
    throw error;
  }
}

type KeptOpening = Pick<OpenedSession, "version" | "checkpoint" | "log">;

/** Parts that all sessions of a version share, made once: there may be many. */
export class VersionParts {
  readonly #services: HostServices;
  readonly #leftOut: (name: StatefulName, text: string) => void;
  readonly #made = new WeakMap<LiveVersion, { egress: EgressRules; stores: OwnStoreServices }>();

  constructor(services: HostServices, leftOut: (name: StatefulName, text: string) => void) {
    this.#services = services;
    this.#leftOut = leftOut;
  }

  of(version: LiveVersion): { readonly egress: EgressRules; readonly stores: OwnStoreServices } {
    const known = this.#made.get(version);
    if (known !== undefined) return known;
    const { replica, limits, nowMs, egressOf, prepared } = this.#services;
    const { space, writes, lane } = prepared(version);
    const { app } = version;
    const stores = {
      ...{ replica, nowMs, lane, ...sessionRows({ space, limits, writes }) },
      leftOut: (name: Omit<StatefulName, "app">, text: string) => this.#leftOut({ app, ...name }, text),
    };
    const made = { egress: egressOf(version), stores };
    this.#made.set(version, made);
    return made;
  }
}

/** Reports whether hosts hold the log of a session's class, too. */
export function isShared(version: LiveVersion | undefined, { class: className }: StatefulName): boolean {
  const sessions = version?.manifest.sessions ?? {};
  return Object.hasOwn(sessions, className) && sessions[className]?.durability === "hosts";
}
