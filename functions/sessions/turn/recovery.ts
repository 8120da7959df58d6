/**
 * Recovery: makes, from a checkpoint and the log after it, a program that has done what the log says, and stands where
 * the logged one stood.
 *
 * RC1  Code that did not write a log does not replay it. At a checkpoint with no log behind it any code goes on.
 * RC2  What the program gave out up to the last commit point is told apart from what it made since.
 * RC4  Going through a log piece by piece comes to the same as going through all of it.
 * RC3  A replay that does otherwise than its log is done once more, to tell what it does: only then stacks are taken. A
 *      replay for a developer's check (`shows`) takes them at once.
 */
import { CodecError } from "../../../store/model/codec.ts";
import { codeOf } from "../../vocabulary/errors.ts";
import { SessionState, StateSegments } from "../../tracked/mod.ts";
import { type CheckpointParts, codeOfCheckpoint, decodeCheckpoint } from "./checkpoint.ts";
import type { Effect, Output, TimerChange } from "./commit.ts";
import type { KeptCheckpoint, OpenSession } from "./event.ts";
import { readEntries, type ReadEntry } from "./log_entry.ts";
import { loadProgramState } from "./migration.ts";
import { Program, type ProgramHost } from "./program.ts";
import type { Leaving, Made } from "./outbox.ts";
import { type LogMark, ParkedError, replay, type RunTurn, type Tracing, turnsOf } from "./replay.ts";
import { type Act, Trace } from "./trace.ts";

/** Record from which a program is made again. */
export interface Recorded {
  readonly className: string;
  readonly id: string;
  readonly checkpoint: KeptCheckpoint | null;
  readonly entries: Uint8Array;
  /** Code that runs the program now. */
  readonly code: string;
  /** The same entries, where they have been read already. */
  readonly read?: readonly ReadEntry[];
  /** Set to trace what the program does with its contents. */
  readonly shows?: true;
}

/** A program that was recovered, and what the outbox and the log need to go on with it. */
export interface RecoveredProgram {
  readonly program: Program;
  /** Tracked state of the object; null for a session that is not born yet. */
  readonly state: SessionState | null;
  /** Contents of the checkpoint beside the program; null: there is no checkpoint. */
  readonly parts: CheckpointParts | null;
  /** State as the last checkpoint has it; the state's next changes go behind it. */
  readonly segments: StateSegments;
  /**
   * True where `segments` begin with those that came with the checkpoint: not where the checkpoint held all in itself,
   * or the class has migrated the state.
   */
  readonly goesOn: boolean;
  /** Number of entries after the checkpoint, and the place of the last commit point. */
  readonly count: number;
  readonly point: LogMark;
  /** Things made since the checkpoint, up to the last commit point (`given`) and after it (`pending`; RC2). */
  readonly given: Leaving;
  readonly pending: Made;
  /** Ids of peers that have gone since the checkpoint, up to the last commit point. */
  readonly left: readonly string[];
}

/** Returns the tracked state of a program's object. */
export const stateOf = (program: Program): SessionState | null =>
  program.object === null ? null : new SessionState(program.object);

/** Recovers a program. @throws ParkedError; where the replay did otherwise, with what it did, and where. */
export function recover(host: ProgramHost & { readonly run: RunTurn }, recorded: Recorded): RecoveredProgram {
  const to = recorded.shows === true ? new Trace(true) : null;
  try {
    return recovered(host, recorded, to && { from: 0, to });
  } catch (error) {
    const parked = parkedError(error);
    // A second replay would find in modules what this one has left there.
    if (to !== null) throw new ParkedError(parked.code, parked.message, { ...parked.detail, did: to.acts });
    throw parked.code === "diverged" ? told(host, recorded, parked) : parked;
  }
}

/** Returns the reason to park with what a second replay does (RC3). */
function told(
  host: ProgramHost & { readonly run: RunTurn },
  recorded: Recorded,
  first: ParkedError,
): ParkedError {
  const { acts, again } = actsFrom(host, recorded, Number(first.detail["sequence"]));
  const isSame = again?.code === first.code && again.detail["sequence"] === first.detail["sequence"];
  const message = isSame
    ? first.message
    : `${first.message}; a second replay ${again?.message ?? "did as the log says"}`;
  return new ParkedError(first.code, message, { ...first.detail, did: acts });
}

/** Returns what a replay does from an entry on; `again` is the error that parks that replay. */
export function actsFrom(
  host: ProgramHost & { readonly run: RunTurn },
  recorded: Recorded,
  from: number,
): { readonly acts: readonly Act[]; readonly again: ParkedError | null } {
  const to = new Trace();
  try {
    recovered(host, recorded, { from, to });
    return { acts: to.acts, again: null };
  } catch (error) {
    return { acts: to.acts, again: parkedError(error) };
  }
}

/** Returns an error as a reason to park. */
export function parkedError(error: unknown): ParkedError {
  if (error instanceof ParkedError) return error;
  const message = error instanceof Error ? error.message : String(error);
  if (error instanceof CodecError || codeOf(error) === "value_corrupt") {
    return new ParkedError("log_corrupt", message);
  }
  if (codeOf(error) === "value_invalid") return new ParkedError("state_invalid", message);
  return new ParkedError("class_invalid", `the session's object can't be made: ${message}`);
}

function recovered(
  host: ProgramHost & { readonly run: RunTurn },
  recorded: Recorded,
  trace: Tracing | null,
): RecoveredProgram {
  const rerun = new Rerun(host, recorded);
  rerun.feed(recorded.entries, recorded.read, trace);
  return rerun.recovered;
}

/** A program on its way through a log: the whole log at once, or piece by piece as it is written (RC4). */
export class Rerun {
  readonly #run: RunTurn;
  readonly #program: Program;
  readonly #parts: CheckpointParts | null;
  #state: SessionState | null;
  readonly #segments: StateSegments;
  readonly #goesOn: boolean;
  #count = 0;
  #bytes = 0;
  readonly #at: number;
  #point: LogMark;
  readonly #given = { outputs: [] as Output[], effects: [] as Effect[], timers: [] as TimerChange[] };
  #pending: Made[] = [];
  readonly #left: string[] = [];

  /** @throws what making its object throws, CodecError */
  constructor(
    host: ProgramHost & { readonly run: RunTurn },
    { checkpoint, className, id, code }: Omit<Recorded, "entries">,
  ) {
    this.#run = host.run;
    const program = this.#program = new Program(host, className, id);
    const parts = this.#parts = checkpoint === null ? null : decodeCheckpoint(checkpoint.bytes, program);
    if (program.failure !== null) throw program.failure.error;
    const inside = parts?.state ?? null;
    const segments = inside !== null ? [inside] : checkpoint?.state ?? [];
    const loaded = parts && loadProgramState(host, program, { ...parts, segments }, code);
    this.#state = loaded?.state ?? stateOf(program);
    const isMigrated = loaded?.isMigrated === true;
    this.#segments = new StateSegments(isMigrated ? [] : segments);
    this.#goesOn = parts !== null && inside === null && !isMigrated;
    this.#at = checkpoint?.at ?? 0;
    this.#point = { sequence: this.#at, bytes: 0 };
  }

  /**
   * Replays the entries that follow. Returns false, and does nothing, where they void entries that were replayed
   * already.
   *
   * @throws ParkedError `diverged`, CodecError
   */
  feed(
    bytes: Uint8Array,
    entries: readonly ReadEntry[] = readEntries(bytes),
    trace: Tracing | null = null,
  ): boolean {
    const reaches = entries.some((entry, i) =>
      entry.kind === "turn" && entry.input.kind === "rejected" && entry.input.voids > i
    );
    if (reaches && this.#count > 0) return false; // RC4
    const [first] = entries;
    if (first?.kind === "checkpoint" && this.#count > 0) this.#checkpointed();
    const before = this.#bytes;
    const turns = turnsOf(entries, this.#at + this.#count + 1);
    if (turns.length === 0 && entries.length > 0 && this.#program.handler === null) {
      this.#point = { sequence: this.#at + this.#count + entries.length, bytes: before + bytes.length };
    }
    replay(this.#program, turns, this.#run, ({ end, isCheckpoint }) => {
      this.#turned({ sequence: end.sequence, bytes: before + end.bytes }, isCheckpoint);
    }, trace);
    this.#count += entries.length;
    this.#bytes += bytes.length;
    return true;
  }

  #turned(end: LogMark, isCheckpoint: boolean): void {
    const program = this.#program;
    this.#pending.push(program.take());
    this.#state ??= stateOf(program);
    if (program.handler !== null) return; // RC2
    for (const made of this.#pending) {
      this.#given.outputs.push(...made.outputs);
      this.#given.effects.push(...made.effects);
      this.#given.timers.push(...made.timers);
      this.#left.push(...made.left);
    }
    this.#pending = [];
    this.#point = end;
    if (isCheckpoint) this.#checkpointed();
  }

  /** Notes a checkpoint: it puts copies into plain fields, and what goes on after it must find the same. */
  #checkpointed(): void {
    if (this.#state !== null) this.#segments.add(this.#state.checkpoint());
  }

  /** The program and its products so far. */
  get recovered(): RecoveredProgram {
    const pending = this.#pending;
    return {
      program: this.#program,
      state: this.#state,
      segments: this.#segments,
      goesOn: this.#goesOn,
      parts: this.#parts,
      count: this.#count,
      point: this.#point,
      given: this.#given,
      left: this.#left,
      pending: {
        outputs: pending.flatMap(({ outputs }) => outputs),
        effects: pending.flatMap(({ effects }) => effects),
        timers: pending.flatMap(({ timers }) => timers),
        left: pending.flatMap(({ left }) => left),
      },
    };
  }
}

/**
 * Returns the code that wrote what is behind a checkpoint, as the log itself says it; null: nothing is behind it, and
 * any code goes on from there (RC1). @throws CodecError
 */
export function writerOf(checkpoint: Uint8Array | null, pieces: Iterable<Uint8Array>): string | null {
  let wrote = checkpoint === null ? null : codeOfCheckpoint(checkpoint);
  for (const piece of pieces) {
    for (const entry of readEntries(piece)) {
      if (entry.kind !== "turn") continue;
      if (entry.input.kind !== "epoch") return wrote;
      wrote = entry.input.code;
    }
  }
  return null;
}

/**
 * Refuses a log that other code has written (RC1). Returns its entries, as they were read for that. @throws ParkedError
 * `code_differs`, `log_corrupt`.
 */
export function requireCode(
  { code, checkpoint, entries }: Pick<OpenSession, "code" | "checkpoint" | "entries">,
): ReadEntry[] {
  let wrote: string | null;
  let read: ReadEntry[];
  try {
    wrote = checkpoint === null ? null : codeOfCheckpoint(checkpoint.bytes);
    read = readEntries(entries);
  } catch (error) {
    throw parkedError(error);
  }
  for (const entry of read) {
    if (entry.kind !== "turn") continue;
    if (entry.input.kind === "epoch") wrote = entry.input.code;
    else if (wrote !== code) {
      throw codeDiffers(wrote, code);
    }
  }
  return read;
}

/** Refuses entries of other code that follow a log (RC1). @throws ParkedError `code_differs` */
export function requireSameCode(entries: readonly ReadEntry[], code: string): void {
  for (const entry of entries) {
    if (entry.kind !== "turn" || entry.input.kind !== "epoch" || entry.input.code === code) continue;
    throw new ParkedError(
      "code_differs",
      `its log goes on with the code ${entry.input.code}, and this is ${code}`,
    );
  }
}

/**
 * Returns the error for a log of other code. A code's text is `version deno version architecture`
 * (functions/sessions/serve/session_host.ts).
 */
function codeDiffers(wrote: string | null, code: string): ParkedError {
  const [version, , deno, arch] = (wrote ?? "").split(" ");
  const isSameApp = version === code.split(" ")[0];
  const how = isSameApp && deno !== undefined
    ? `run Deno ${deno} on ${arch} once more at a site of this tree, and stop it as planned: a session at rest becomes a ` +
      "checkpoint then, which any goes on from"
    : "deploy what wrote it again: it goes on there until it rests";
  return new ParkedError(
    "code_differs",
    `its log was written by the code ${wrote}, and this is ${code}; ${how}. Or begin it anew (sojourn sessions reset)`,
    { log: wrote, isolate: code },
  );
}
