/**
 * A program and what it is made again from: the newest checkpoint and the log after it. Turns run here, and their
 * entries are in the log when they are over.
 *
 * Life: opened (`recover`: program filled from the checkpoint, log replayed) → turns, checkpoints, and reloads where a
 * handler was undone → given up with its session. Or first followed (`follow`): what another isolate writes is replayed
 * as it comes; after `goOn`, `recover` finds that done already.
 *
 * LP1  The program is what checkpoint and log make, at every moment between turns. Of the state, the segments of all
 *      checkpoints so far are kept: a checkpoint leaves as those segments that the site does not have.
 * LP2  A turn that threw is not in the log: its program is only good for being made again.
 * LP3  At a commit point the state is one that a checkpoint can hold, and the fields of a load are those that are
 *      there. Otherwise the turn counts as one that threw, before anything of it leaves; and a session that is born so
 *      is parked.
 */
import { types } from "node:util";
import { Writer } from "../../../store/model/codec.ts";
import { AppError } from "../../vocabulary/errors.ts";
import { recognizeProxies } from "../../tracked/owned.ts";
import { type SessionState, StateSegments } from "../../tracked/mod.ts";
import { checkpointDigest, codeOfCheckpoint, encodeCheckpoint } from "./checkpoint.ts";
import { type CheckpointPolicy, checkpointPolicyOf } from "../../class/checkpoint_policy.ts";
import type { Checkpoint, Effect, Output, TimerChange } from "./commit.ts";
import type { KeptCheckpoint, OpenSession } from "./event.ts";
import { type Clocks, LiveSource } from "./live_source.ts";
import { readEntries } from "./log_entry.ts";
import { shapeOf } from "./migration.ts";
import { Program, type ProgramHost } from "./program.ts";
import {
  actsFrom,
  parkedError,
  type Recorded,
  recover,
  type RecoveredProgram,
  requireCode,
  requireSameCode,
  Rerun,
  stateOf,
} from "./recovery.ts";
import { ParkedError, type RunTurn } from "./replay.ts";
import { SessionLog } from "./session_log.ts";
import type { Act } from "./trace.ts";
import type { TurnInput } from "./turn.ts";

/** The isolate's part that a logged program needs. */
export interface RunHost extends ProgramHost, Clocks {
  /** Runs a turn: begins it, drains the microtasks, finishes it. */
  readonly run: RunTurn;
  /** Overrides LARGE_BYTES. */
  readonly largeBytes?: number | undefined;
}

/** Bytes of room for the log of a session that is followed, at first, beside those it was opened with. */
const FOLLOWED_BYTES = 4096;

/**
 * Bytes of state above which a checkpoint is a commit of its own: such a state, changed all over, is written in half a
 * millisecond, as long as a commit takes.
 */
const LARGE_BYTES = 256 * 1024;

/** Turns in which no code of the app runs that a caller could be told of. */
const isOfLog: ReadonlySet<TurnInput["kind"]> = new Set(["birth", "epoch", "rejected"]);

/** Proxies are recognised for all sessions of the isolate, and on the trusted side: apps can't ask (owned.ts). */
recognizeProxies(types.isProxy);

const NO_ENTRIES = new Uint8Array(0);

/** See the file's header. */
export class LoggedProgram {
  readonly #host: RunHost;
  #open: OpenSession;
  #program: Program;
  #state: SessionState | null = null;
  #log = new SessionLog(0, new Uint8Array(0), 0);
  /** The newest checkpoint, with its whole state. */
  #checkpoint: KeptCheckpoint | null = null;
  #segments = new StateSegments();
  /** The checkpoint that the site has, and how many of the segments are in it; null: the next checkpoint is whole. */
  #has: { readonly at: number; readonly segments: number } | null = null;
  #isTakenOver = false;
  #policy: Required<CheckpointPolicy> | null = null;
  /** Milliseconds in turns since the newest checkpoint. */
  #turnsMs = 0;
  /** Greatest store clock of all events so far (LS1, live_source.ts). */
  #storeClockSeen = 0;
  /** Replay and log so far, while the session is followed; null: it is not. */
  #followed: { rerun: Rerun; readonly log: Writer } | null = null;

  constructor(host: RunHost, open: OpenSession) {
    this.#host = host;
    this.#open = open;
    this.#program = new Program(host, open.class, open.id);
  }

  /** The program that runs now. */
  get program(): Program {
    return this.#program;
  }

  get log(): SessionLog {
    return this.#log;
  }

  get #recorded(): Omit<Recorded, "checkpoint" | "entries" | "read"> {
    const { class: className, id, code, shows } = this.#open;
    return { className, id, code, ...shows && { shows } };
  }

  /** True while the session goes on from what other code has written: its first checkpoint comes before any event. */
  get isTakenOver(): boolean {
    return this.#isTakenOver;
  }

  /**
   * Recovers what the session was opened with. `timers` are those that were set at the last commit point. @throws
   * ParkedError
   */
  recover(): RecoveredProgram & { readonly timers: readonly TimerChange[] } {
    const { checkpoint } = this.#open;
    const wasFollowed = this.#followed !== null;
    const { recovered, entries } = this.#followed === null ? this.#replayed() : this.#taken(this.#followed);
    const { program, point } = recovered;
    this.#program = program;
    this.#state = recovered.state;
    this.#segments = recovered.segments;
    this.#checkpoint = checkpoint;
    this.#isTakenOver = checkpoint !== null && codeOfCheckpoint(checkpoint.bytes) !== this.#open.code;
    // A followed session has had checkpoints since: which of them the site has is not known here.
    const goesOn = recovered.goesOn && !wasFollowed;
    this.#has = goesOn && checkpoint !== null
      ? { at: checkpoint.at, segments: checkpoint.state.length }
      : null;
    this.#log = new SessionLog(checkpoint?.at ?? 0, entries, recovered.count);
    this.#log.point(point);
    // What an open handler did to timers has not left.
    const { timers } = program.handler === null ? program : recover(this.#host, {
      ...this.#recorded,
      checkpoint,
      entries: entries.subarray(0, point.bytes),
    }).program;
    // Both may be large, and are made anew from here on: they are not to be held twice.
    this.#open = { ...this.#open, checkpoint: null, entries: NO_ENTRIES };
    return { ...recovered, timers: [...timers].map(([name, dueMs]) => ({ name, dueMs })) };
  }

  #replayed(): { readonly recovered: RecoveredProgram; readonly entries: Uint8Array } {
    const { checkpoint, entries } = this.#open;
    const read = requireCode(this.#open);
    return { recovered: recover(this.#host, { ...this.#recorded, checkpoint, entries, read }), entries };
  }

  #taken({ rerun, log }: { readonly rerun: Rerun; readonly log: Writer }) {
    this.#followed = null;
    return { recovered: rerun.recovered, entries: log.done() };
  }

  // Following

  /** Replays what the session was opened with; each piece that comes is replayed behind it. @throws ParkedError */
  follow(): void {
    requireCode(this.#open);
    const rerun = this.#rerun();
    const log = new Writer(this.#open.entries.length + FOLLOWED_BYTES);
    this.#followed = { rerun, log };
    if (this.#open.entries.length > 0) this.piece(this.#open.entries);
  }

  /** Replays a piece that another isolate has written. @throws ParkedError */
  piece(bytes: Uint8Array): void {
    const followed = this.#followed;
    if (followed === null) throw new Error("a piece of a log that is not followed");
    followed.log.raw(bytes);
    try {
      const entries = readEntries(bytes);
      requireSameCode(entries, this.#open.code);
      if (followed.rerun.feed(bytes, entries)) return;
      // The piece voids entries that were replayed already: once more from the checkpoint on.
      followed.rerun = this.#rerun();
      followed.rerun.feed(followed.log.view());
    } catch (error) {
      throw this.#toldApart(parkedError(error), followed.log.view());
    }
  }

  /**
   * Returns the reason to park after one more replay of the whole log, which says where it differs. Where the whole
   * replay does not differ, following the log did, and the reason says so.
   */
  #toldApart(first: ParkedError, entries: Uint8Array): ParkedError {
    if (first.code !== "diverged") return first;
    try {
      recover(this.#host, { ...this.#recorded, checkpoint: this.#open.checkpoint, entries });
    } catch (error) {
      return parkedError(error);
    }
    return new ParkedError(first.code, `${first.message}; a whole replay did as the log says`, first.detail);
  }

  #rerun(): Rerun {
    return new Rerun(this.#host, { ...this.#recorded, checkpoint: this.#open.checkpoint });
  }

  /** Makes the session this isolate's from now on: `recover` is to be called next. */
  goOn(as: Pick<OpenSession, "epoch" | "replica">): void {
    this.#open = { ...this.#open, ...as };
  }

  // Turns

  /** Runs one turn and appends its entries to the log. Returns false where the turn threw. */
  record(input: TurnInput, storeClock: number): boolean {
    const program = this.#program;
    const beforeMs = program.clockMs;
    const begunMs = this.#host.nowMs();
    this.#storeClockSeen = Math.max(this.#storeClockSeen, storeClock);
    const source = new LiveSource(this.#host, storeClock, this.#storeClockSeen);
    const end = this.#host.run(program, input, source);
    this.#turnsMs += this.#host.nowMs() - begunMs;
    if (program.handler === null && program.failure === null) this.#checkState(input);
    if (program.failure !== null) return false; // LP2
    this.#log.turn(input, end, beforeMs);
    return true;
  }

  /** Refuses the turn whose state no checkpoint can hold (LP3). */
  #checkState(input: TurnInput): void {
    if (this.#state === null || this.#program.isEnded || isOfLog.has(input.kind)) return;
    try {
      this.#state.check();
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      this.#program.refuse(new AppError("state_invalid", message, Object(error).detail));
    }
  }

  /**
   * Begins the session's life, or an epoch of it: a new epoch, another replica number of the site, or other code. The
   * entries leave with the next commit. Returns false where the object can't be made.
   */
  beginEpoch(): boolean {
    const program = this.#program;
    const { epoch, replica, code, seed } = this.#open;
    const isPoint = program.handler === null;
    program.check.widen();
    if (program.epoch !== epoch || program.replica !== replica || program.code !== code) {
      this.record({ kind: "epoch", epoch, replica, code }, 0);
    }
    if (program.object === null && !this.record({ kind: "birth", seed: seed.slice() }, 0)) return false;
    if (this.#state === null && !this.#isBornWell()) return false;
    if (isPoint) this.#log.point();
    return true;
  }

  /**
   * Reports whether the state that the class begins with can be held by a checkpoint (LP3). Otherwise the session
   * stands still with nothing in its log, so that any other code begins it anew.
   */
  #isBornWell(): boolean {
    this.#state = stateOf(this.#program);
    try {
      this.#state?.check();
      return true;
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      this.#program.refuse(new ParkedError("state_invalid", message, Object(error).detail));
      return false;
    }
  }

  /** Returns what the handler that runs has done since the last commit point, as a replay shows it. */
  acts(): readonly Act[] {
    const log = this.#log;
    const entries = log.all();
    const recorded = { ...this.#recorded, checkpoint: this.#checkpoint, entries };
    return actsFrom(this.#host, recorded, log.pointSequence + 1).acts;
  }

  /**
   * Takes back all since the last commit point, and makes the program again as it was then. Returns the number of
   * entries that were given out and are void with that. @throws ParkedError
   */
  takeBack(): number {
    const program = this.#program, log = this.#log;
    // A handler that took its isolate with it may have left nothing here. Then nothing is made again, since a log may
    // be long and a state large.
    const isThere = log.sequence === log.pointSequence && program.failure === null && program.isQuiescent;
    const voids = log.cut();
    if (!isThere) this.#reload();
    return voids;
  }

  #reload(): void {
    const { program, state, segments } = recover(this.#host, {
      ...this.#recorded,
      checkpoint: this.#checkpoint,
      entries: this.#log.upToPoint(),
    });
    this.#program = program;
    this.#state = state;
    this.#segments = segments;
  }

  // Checkpoints

  /** True once the policy of the class asks for a checkpoint. */
  get isCheckpointDue(): boolean {
    const { messages, bytes, ms } = this.#policy ??= checkpointPolicyOf(this.#program.object);
    return this.#log.length >= messages || this.#log.lengthBytes >= bytes || this.#turnsMs >= ms;
  }

  /** True while the state is so large that a checkpoint of it may take milliseconds. */
  get isLarge(): boolean {
    return this.#segments.bytes > (this.#host.largeBytes ?? LARGE_BYTES);
  }

  /**
   * The newest checkpoint, where it stands for all that has happened, with nothing new in it; null: there is none, or a
   * log behind it.
   */
  get currentCheckpoint(): Checkpoint | null {
    const checkpoint = this.#log.length === 0 ? this.#checkpoint : null;
    return checkpoint && { ...checkpoint, state: [], on: checkpoint.at };
  }

  /** Gives up the plain fields that no checkpoint holds, and returns which, and why. */
  leaveOut(): readonly string[] {
    return this.#state?.leaveOut() ?? [];
  }

  /**
   * Takes a checkpoint of the program, which is at rest, and writes its entry. @throws AppError for a state that is no
   * value.
   */
  writeCheckpoint(
    kept: { readonly outputs: readonly Output[]; readonly effects: readonly Effect[] },
  ): Checkpoint {
    this.#turnsMs = 0;
    if (this.#state !== null) this.#segments.add(this.#state.checkpoint()); // LP1
    const isWhole = this.#has === null || this.#segments.isWasteful;
    if (isWhole && this.#segments.length > 1) this.#segments = this.#segments.merged();
    const on = isWhole ? null : this.#has?.at ?? null;
    const state = this.#segments.all.slice(isWhole ? 0 : this.#has?.segments); // LP1
    const bytes = encodeCheckpoint(this.#program, { ...kept, shape: shapeOf(this.#program.object) });
    this.#log.checkpoint(checkpointDigest(bytes, state));
    this.#log.point();
    const at = this.#log.sequence;
    this.#checkpoint = { at, bytes, state: this.#segments.all };
    this.#isTakenOver = false;
    this.#has = { at, segments: this.#segments.length };
    return { at, bytes, state, on };
  }

  /** Begins the log anew behind the newest checkpoint, whose entry was given out. */
  restart(): void {
    this.#log.restart();
    this.#program.math.rest();
    this.#program.crypto.rest();
    this.#program.renew();
  }
}
