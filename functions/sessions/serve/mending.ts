/**
 * Mending by operators of a stateful session that stands still, at its home: they read its log, have it try again, take
 * back what came after its last checkpoint or what its log can't be replayed to, or have it begin anew.
 *
 * MD1  Only a session that stands still, or can't be opened, is resumed, and nothing of its log goes unless that was
 *      said.
 * MD2  What is taken back is told first: `isTrial` changes nothing.
 * MD3  What of a log can be kept is one checkpoint in place of all of it, at once: the next opening goes on from there,
 *      with whichever version of the app, or finds the log as it was.
 */
import { type Home, HomeError, type Homes, type OpenedSession, type StatefulName } from "../home/mod.ts";
import { isMergeEffect } from "../turn/mod.ts";
import { readEntries, type ReadEntry } from "../turn/log_entry.ts";
import { checkpointHead, withoutLog } from "../turn/taken_back.ts";
import { CodecError } from "../../../store/model/codec.ts";
import { Problem } from "../../vocabulary/problem.ts";
import type { EndedLogs } from "./ended_logs.ts";
import { type LogView, viewLog } from "./log_view.ts";
import { joinPieces, NO_HEAD, openPiece, wrapPiece } from "./pieces.ts";
import type { Openings } from "./openings.ts";
import type { SessionHost } from "./session_host.ts";
import { packState } from "./state_parts.ts";
import { shownSession } from "./session_name.ts";
import { type CodeTable, type DeclaredVersion, versionOfLog } from "./versions.ts";

/** Site, as mending needs it. */
export interface MendingServices {
  readonly homes: Pick<Homes, "kept" | "open">;
  readonly host: Pick<SessionHost, "look" | "resume" | "reset" | "keepLog"> & {
    readonly openings: Pick<Openings, "salvage">;
  };
  readonly apps: Pick<CodeTable<DeclaredVersion>, "get">;
  /** Logs of sessions that ended here. */
  readonly endedLogs?: Pick<EndedLogs, "get" | "drop">;
}

/** Account of what was, or would be, taken back. */
export interface TakenBack {
  /** Last entry that stays. */
  readonly checkpoint: number;
  readonly entries: number;
  /** Numbers of requests, messages and timers among these entries: others had been answered, or told of them. */
  readonly requests: number;
  readonly messages: number;
  readonly timers: number;
  /**
   * Reason why no more of the log is kept; null: that is all of it. Then calls and timers that were open, and fields,
   * given up.
   */
  readonly why: string | null;
  readonly open: readonly string[];
  readonly leftOut: readonly string[];
}

/** State of the session afterwards. */
export interface Resumed {
  readonly state: "open" | "parked";
  readonly problem: string | null;
  readonly takenBack: TakenBack | null;
  /** Clients that held its log, and that it was opened without. */
  readonly leftBehind: readonly string[];
}

/** Way in which a session is resumed. */
export interface Resuming {
  readonly fromCheckpoint: boolean;
  /** True: from as much of its log as can be replayed. */
  readonly fromLog: boolean;
  readonly isTrial: boolean;
  /** True: also where it can't be opened since clients that hold its log do not come back. */
  readonly withoutClients: boolean;
}

/** Mending (see the file's header). */
export class Mending {
  readonly #services: MendingServices;

  constructor(services: MendingServices) {
    this.#services = services;
  }

  /**
   * Returns a log from an entry on, as this site's disk has it; that of the last session of its name that ended here,
   * where there is no other, or where that is asked for. @throws Problem
   */
  async log(
    name: StatefulName,
    { from, isEnded }: { readonly from: number; readonly isEnded: boolean },
  ): Promise<LogView & { readonly endedMs: number | null }> {
    const { homes, endedLogs } = this.#services;
    try {
      const kept = isEnded ? null : await homes.kept(name);
      if (kept !== null) return { ...viewLog(kept, from), endedMs: null };
      const ended = await endedLogs?.get(name) ?? null;
      if (ended !== null) return { ...viewLog(ended, from), endedMs: ended.endedMs };
    } catch (error) {
      if (!(error instanceof CodecError)) throw error;
      throw new Problem(
        "stateful_parked",
        `the log of ${shownSession(name)} can't be read: ${error.message}`,
      );
    }
    throw new Problem(
      "not_found",
      `there is no log of ${shownSession(name)} at this site${isEnded ? " that has ended" : ""}`,
    );
  }

  /** Drops the log of a session that has ended before its time. @throws Problem */
  async forget(name: StatefulName): Promise<void> {
    if (await this.#services.endedLogs?.drop(name)) return;
    throw new Problem("not_found", `${shownSession(name)} has ended, and nothing of it is kept at this site`);
  }

  /** Has a session try again. @throws Problem, HomeError */
  async resume(
    name: StatefulName,
    { fromCheckpoint, fromLog, isTrial, withoutClients }: Resuming,
  ): Promise<Resumed> {
    const { host } = this.#services;
    const look = host.look(name);
    if (withoutClients ? look?.state === "open" : look?.state !== "parked") { // MD1
      throw new Problem(
        "stateful_running",
        `${shownSession(name)} does not stand still: there is nothing to resume`,
      );
    }
    const takenBack = fromCheckpoint || fromLog
      ? await this.#opened(
        name,
        (opened) => fromLog ? this.#salvage(opened, isTrial) : this.#takeBack(opened, isTrial),
      )
      : null;
    if (isTrial) return { state: "parked", problem: look?.problem ?? null, takenBack, leftBehind: [] };
    try {
      const leftBehind = await host.resume(name, withoutClients);
      return { state: "open", problem: null, takenBack, leftBehind };
    } catch (error) {
      // The session tried, and stands still again.
      const after = host.look(name);
      if (after?.state !== "parked") throw error;
      return { state: "parked", problem: after.problem, takenBack, leftBehind: [] };
    }
  }

  /**
   * Makes a session's state blank, at this site. Attached peers are told to begin anew; its log is kept as that of a
   * session that ends.
   *
   * @returns true where it is open; else it begins with its next use. @throws HomeError
   */
  async reset(name: StatefulName): Promise<boolean> {
    return await this.#services.host.reset(name);
  }

  /** Runs some work with the session's home open, while nobody is served. */
  async #opened(name: StatefulName, work: (opened: OpenedSession) => Promise<TakenBack>): Promise<TakenBack> {
    const { homes, apps } = this.#services;
    const opened = await homes.open(name, apps.get(name.app)?.current.version ?? "", false, true);
    try {
      return await work(opened);
    } catch (error) {
      if (!(error instanceof CodecError)) throw error;
      throw new Problem(
        "stateful_parked",
        `what is kept of ${shownSession(name)} can't be read: ${error.message}; reset it`,
      );
    } finally {
      opened.abandon();
    }
  }

  async #takeBack(opened: OpenedSession, isTrial: boolean): Promise<TakenBack> {
    const { name, checkpoint } = opened;
    if (checkpoint === null) {
      throw new Problem(
        "not_available",
        `${shownSession(name)} has no checkpoint to go on from: resume it from its log, or reset it`,
      );
    }
    const piece = openPiece(checkpoint.bytes);
    const { seen, bytes } = joinPieces(piece, opened.log);
    const told = { ...countOf(checkpoint.at, readEntries(bytes)), why: null, open: [], leftOut: [] };
    const rewritten = wrapPiece({ ...NO_HEAD, seen }, withoutLog(piece.bytes));
    if (isTrial || told.entries === 0) return told; // MD2
    await this.#replace(opened, { bytes: rewritten, on: checkpoint.at, version: opened.version });
    return told;
  }

  /** Keeps what can be kept of a log (MD3). */
  async #salvage(opened: OpenedSession, isTrial: boolean): Promise<TakenBack> {
    const { checkpoint } = opened;
    if (opened.log.length === 0) { // all of it is in its checkpoint
      return { ...countOf(checkpoint?.at ?? 0, []), why: null, open: [], leftOut: [] };
    }
    const { seen, bytes } = joinPieces(checkpoint && openPiece(checkpoint.bytes), opened.log);
    const { through, why, open, leftOut, checkpoint: kept } = await this.#services.host.openings.salvage(
      opened.name,
      opened,
    );
    const after = readEntries(bytes).slice(through - (checkpoint?.at ?? 0));
    const told = { ...countOf(through, after), why, open, leftOut };
    if (isTrial) return told; // MD2
    const isAll = told.entries === 0 && open.length === 0;
    const { effects } = checkpointHead(kept.bytes);
    const head = {
      seen,
      open: Math.min(...effects.map(({ clock }) => clock)),
      marks: effects.some(({ mutations }) => mutations.some(isMergeEffect)),
    };
    await this.#replace(opened, {
      bytes: wrapPiece(
        effects.length === 0 ? { ...NO_HEAD, seen } : head,
        isAll ? kept.bytes : withoutLog(kept.bytes),
      ),
      ...{ on: kept.on, version: versionOfLog(opened), parts: await packState(kept.state) },
    });
    return told;
  }

  /** Puts a checkpoint in place of all of a log, which is kept to be read; the session rests then. @throws HomeError */
  async #replace(
    opened: OpenedSession,
    checkpoint: Omit<Parameters<Home["checkpoint"]>[0], "at">,
  ): Promise<void> {
    await this.#services.host.keepLog(opened.name);
    const home = opened.start([]);
    try {
      await home.checkpoint({ at: home.sequence, ...checkpoint });
    } finally {
      await home.rest().catch(() => {}); // where it is over it need not
    }
  }
}

/** Counts what entries say was done. */
function countOf(checkpoint: number, entries: readonly ReadEntry[]) {
  const count = { checkpoint, entries: 0, requests: 0, messages: 0, timers: 0 };
  for (const entry of entries) {
    count.entries++;
    if (entry.kind !== "turn") continue;
    if (entry.input.kind === "request") count.requests++;
    if (entry.input.kind === "message") count.messages++;
    if (entry.input.kind === "timer") count.timers++;
  }
  return count;
}

/** Returns an error as admin handlers tell it. */
export const mendingProblem = (error: unknown): Problem | null =>
  error instanceof Problem
    ? error
    : error instanceof HomeError
    ? new Problem("stateful_unreachable", error.message)
    : null;
