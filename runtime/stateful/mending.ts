/**
 * What operators do about a stateful session that stands still, at its home: read its log, have it try again, take back
 * what came after its last checkpoint, or have it begin anew.
 *
 * MD1  Only one that stands still, or can't be opened, is resumed, and nothing of its log goes unless that was said.
 * MD2  What is taken back is told first: `isTrial` changes nothing.
 */
import { HomeError, type Homes, type StatefulName } from "../../functions/homes/mod.ts";
import { readEntries } from "../../functions/turns/log_entry.ts";
import { withoutLog } from "../../functions/turns/taken_back.ts";
import { CodecError } from "../../store/codec.ts";
import type { AppTable } from "../deploy/app_table.ts";
import { Problem } from "../gateway/problem.ts";
import type { EndedLogs } from "./ended_logs.ts";
import { type LogView, viewLog } from "./log_view.ts";
import { joinPieces, NO_HEAD, openPiece, wrapPiece } from "./pieces.ts";
import type { SessionHost } from "./session_host.ts";
import { shown } from "./hosted.ts";

/** What mending needs of its site. */
export interface MendingServices {
  readonly homes: Pick<Homes, "kept" | "open">;
  readonly host: Pick<SessionHost, "look" | "resume" | "reset">;
  readonly apps: Pick<AppTable, "get">;
  /** Logs of those that ended here. */
  readonly endedLogs?: Pick<EndedLogs, "get" | "drop">;
}

/** What was, or would be, taken back. */
export interface TakenBack {
  /** The last entry that stays. */
  readonly checkpoint: number;
  readonly entries: number;
  /** Of these: what others had been answered, or had it told. */
  readonly requests: number;
  readonly messages: number;
  readonly timers: number;
}

/** How it stands afterwards. */
export interface Resumed {
  readonly state: "open" | "parked";
  readonly problem: string | null;
  readonly takenBack: TakenBack | null;
  /** Clients that held its log, and that it was opened without. */
  readonly leftBehind: readonly string[];
}

/** How one is resumed. */
export interface Resuming {
  readonly fromCheckpoint: boolean;
  readonly isTrial: boolean;
  /** Also one that can't be opened since clients that hold its log do not come back. */
  readonly withoutClients: boolean;
}

/** See the file's header. */
export class Mending {
  readonly #services: MendingServices;

  constructor(services: MendingServices) {
    this.#services = services;
  }

  /**
   * Its log from an entry on, as this site's disk has it; that of the last one of its name that ended here, where there
   * is no other, or that is asked for. @throws Problem
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
      throw new Problem("stateful_parked", `the log of ${shown(name)} can't be read: ${error.message}`);
    }
    throw new Problem(
      "not_found",
      `there is no log of ${shown(name)} at this site${isEnded ? " that has ended" : ""}`,
    );
  }

  /** The log of one that has ended goes before its time. @throws Problem */
  async forget(name: StatefulName): Promise<void> {
    if (await this.#services.endedLogs?.drop(name)) return;
    throw new Problem("not_found", `${shown(name)} has ended, and nothing of it is kept at this site`);
  }

  /** @throws Problem, HomeError */
  async resume(
    name: StatefulName,
    { fromCheckpoint, isTrial, withoutClients }: Resuming,
  ): Promise<Resumed> {
    const { host } = this.#services;
    const look = host.look(name);
    if (withoutClients ? look?.state === "open" : look?.state !== "parked") {
      throw new Problem(
        "stateful_running",
        `${shown(name)} does not stand still: there is nothing to resume`,
      );
    }
    const takenBack = fromCheckpoint ? await this.#takeBack(name, isTrial) : null;
    if (isTrial) return { state: "parked", problem: look?.problem ?? null, takenBack, leftBehind: [] };
    try {
      const leftBehind = await host.resume(name, withoutClients);
      return { state: "open", problem: null, takenBack, leftBehind };
    } catch (error) {
      // It tried, and stands still again.
      const after = host.look(name);
      if (after?.state !== "parked") throw error;
      return { state: "parked", problem: after.problem, takenBack, leftBehind: [] };
    }
  }

  /**
   * Its state is blank, at this site. Who is attached is told to begin anew; its log is kept as that of one that ends.
   *
   * @returns whether it is open; else it begins with its next use. @throws HomeError
   */
  async reset(name: StatefulName): Promise<boolean> {
    return await this.#services.host.reset(name);
  }

  async #takeBack(name: StatefulName, isTrial: boolean): Promise<TakenBack> {
    const { homes, apps } = this.#services;
    const opened = await homes.open(name, apps.get(name.app)?.current.version ?? "");
    const { checkpoint } = opened;
    let told: TakenBack | null = null;
    try {
      if (checkpoint === null) {
        throw new Problem("not_available", `${shown(name)} has no checkpoint to go on from: reset it`);
      }
      const piece = openPiece(checkpoint.bytes);
      const { seen, bytes } = joinPieces(piece, opened.log);
      told = countOf(checkpoint.at, bytes);
      const rewritten = wrapPiece({ ...NO_HEAD, seen }, withoutLog(piece.bytes));
      if (isTrial || told.entries === 0) return told;
      const home = opened.start([]);
      const on = { on: checkpoint.at, version: opened.version };
      try {
        await home.checkpoint({ at: home.sequence, bytes: rewritten, ...on });
      } finally {
        await home.rest().catch(() => {}); // where it is over it need not
      }
      return told;
    } catch (error) {
      if (!(error instanceof CodecError)) throw error;
      throw new Problem(
        "stateful_parked",
        `what is kept of ${shown(name)} can't be read: ${error.message}; reset it`,
      );
    } finally {
      opened.abandon();
    }
  }
}

/** What a log says was done; one that can't be read is counted as far as it can. */
function countOf(checkpoint: number, bytes: Uint8Array): TakenBack {
  const count = { checkpoint, entries: 0, requests: 0, messages: 0, timers: 0 };
  for (const entry of readEntries(bytes)) {
    count.entries++;
    if (entry.kind !== "turn") continue;
    if (entry.input.kind === "request") count.requests++;
    if (entry.input.kind === "message") count.messages++;
    if (entry.input.kind === "timer") count.timers++;
  }
  return count;
}

/** As admin handlers tell it. */
export const mendingProblem = (error: unknown): Problem | null =>
  error instanceof Problem
    ? error
    : error instanceof HomeError
    ? new Problem("stateful_unreachable", error.message)
    : null;
