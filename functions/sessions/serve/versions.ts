/** Code that a stateful session runs: that of the version that serves its app, or that wrote its log. */
import type { FrameWay } from "../attach/frame_way.ts";
import type { OpenedSession, StatefulName } from "../home/mod.ts";
import { type OpenSession, writerOf } from "../turn/mod.ts";
import { CodecError } from "../../../store/model/codec.ts";
import { Problem } from "../../vocabulary/problem.ts";
import type { OwnStoreServices } from "./own_store.ts";
import { openPiece } from "./pieces.ts";
import type { ChannelSink, OpenChannel, OutsideRequests } from "./ports.ts";

/** Declaration of a class of sessions, as far as their home needs it: other releases may say more. */
interface DeclaredClass {
  readonly methods?: unknown;
  readonly durability?: unknown;
  readonly retention?: { readonly logMs?: number | undefined } | undefined;
}

/** Version of an app, and what it declares. */
export interface DeclaredVersion {
  readonly app: string;
  readonly version: string;
  readonly manifest: { readonly sessions: Readonly<Record<string, DeclaredClass>> };
}

/** Version of an app whose code runs sessions at this site. */
export interface SessionCode extends DeclaredVersion {
  /** Name of the code for replays: a version of the app, in one build of its platform. */
  readonly replay: string;
  /** Opens a session in an isolate that runs the code. @throws StatefulLoadError */
  open(session: OpenSession, sink: ChannelSink): Promise<OpenChannel>;
  /** Prepares an isolate: a session whose log is here is being opened, and is likely to need one. */
  prepare(name: StatefulName): void;
  /** Services that the stores of its sessions need. */
  readonly stores: Omit<OwnStoreServices, "leftOut" | "missed">;
  /** Returns what makes the outside requests of a session. */
  outsideOf(name: StatefulName): OutsideRequests;
  /**
   * Returns what opens a way to the end of the origin that attaches to sessions of the class; null: the class has none.
   */
  originWay(name: StatefulName): (() => Promise<FrameWay>) | null;
}

/** Versions of apps, as a site knows them. */
export interface CodeTable<Code extends DeclaredVersion> {
  /** Returns the code that serves an app; undefined: no app is called so here. */
  get(app: string): { readonly current: Code } | undefined;
  /** Returns a version of an app, whether it serves or not; undefined: there is none such. */
  version(app: string, version: string): Promise<Code | undefined>;
  /** Adds a callback for changes; the result removes it. */
  onChange(listener: () => void): () => void;
}

/** Returns the version that serves a session's app. @throws Problem */
export function currentVersion<Code extends DeclaredVersion>(
  apps: Pick<CodeTable<Code>, "get">,
  name: Pick<StatefulName, "app" | "class">,
): Code {
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
export async function writtenBy<Code extends DeclaredVersion>(
  apps: Pick<CodeTable<Code>, "version">,
  name: StatefulName,
  version: string,
): Promise<Code> {
  const found = await apps.version(name.app, version);
  if (found !== undefined) return found;
  throw new Problem(
    "stateful_parked",
    `the log of ${name.class} ${JSON.stringify(name.id)} was written by version ${
      version.slice(0, 8)
    } of ${name.app}, which is there no more: deploy it again, or delete the session`,
  );
}

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

/** Reports whether hosts hold the log of a session's class, too. */
export function isShared(version: DeclaredVersion | undefined, { class: className }: StatefulName): boolean {
  const sessions = version?.manifest.sessions ?? {};
  return Object.hasOwn(sessions, className) && sessions[className]?.durability === "hosts";
}
